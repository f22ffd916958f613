//! `record`: source → session.

use std::{
    process::ExitCode,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use anyhow::Result;

use super::{
    args::RecordArgs,
    observe::{Observation, Observed},
    output,
    report::boot_id,
};
use crate::{
    machine::Virtualization,
    session::{MachineRecord, Meta, SessionWriter, SourceRecord, TargetsRecord, WriterOptions},
    source::{self, Target},
};

/// Watches, and keeps everything.
pub fn run(args: RecordArgs) -> Result<ExitCode> {
    let mut observation = Observation::open(&args.target, &args.sampling, false)?;
    let mut meta = describe(&args, &observation);
    let options = WriterOptions {
        force: args.force,
        ..WriterOptions::default()
    };
    let writer = SessionWriter::create(&args.output, meta.clone(), &options)?;
    let mut recording = Recording {
        writer,
        samples: 0,
        accesses: 0,
        lost: 0,
    };
    let result = observation.run(
        &mut recording,
        |recording, batch| {
            recording.samples += batch.tally.samples;
            recording.lost += batch.tally.lost_total();
            recording.accesses += batch.accesses.len() as u64;
            recording.writer.append(batch)?;
            Ok(())
        },
        progress_line,
    );
    if let Ok(Observed {
        duration,
        started_ns,
        caveats,
        ..
    }) = &result
    {
        meta.start_ns = Some(*started_ns);
        meta.end_ns = Some(started_ns + duration.as_nanos() as u64);
        meta.caveats.clone_from(caveats);
    }
    let Recording {
        writer,
        samples,
        accesses,
        lost,
    } = recording;
    // Even after an error: what was written until then shall read.
    let finished = writer.finish(meta);
    result?;
    finished?;
    if !args.sampling.quiet {
        output::write_stderr(&format!(
            "recorded {samples} samples ({accesses} accesses, {lost} samples lost); now run: \
             cohtrace report {}\n",
            args.output.display()
        ));
    }
    Ok(ExitCode::SUCCESS)
}

struct Recording {
    writer: SessionWriter,
    samples: u64,
    accesses: u64,
    lost: u64,
}

fn progress_line(recording: &Recording, elapsed: Duration) -> String {
    let Recording {
        samples,
        accesses,
        lost,
        ..
    } = recording;
    let lost = if *lost > 0 {
        format!("  {lost} lost")
    } else {
        String::new()
    };
    format!(
        "recording  {:.1} s  {samples} samples  {accesses} accesses{lost}",
        elapsed.as_secs_f64()
    )
}

fn describe(args: &RecordArgs, observation: &Observation) -> Meta {
    let machine = &observation.machine;
    let read = |path: &str| {
        std::fs::read_to_string(path)
            .ok()
            .map(|text| text.trim().to_owned())
    };
    let evidence = source::SOURCES
        .iter()
        .find(|kind| kind.name() == observation.source_name)
        .map(|kind| kind.evidence().names())
        .unwrap_or_default();
    let pids = match &observation.targets.target {
        Target::Trees(pids) => pids.iter().map(|pid| pid.0).collect(),
        Target::Everything => Vec::new(),
    };
    let mut meta = Meta::new();
    meta.started_unix_ns = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .ok()
        .map(|since| since.as_nanos() as u64);
    meta.start_ns = Some(observation.started_ns());
    meta.host = read("/proc/sys/kernel/hostname");
    meta.boot_id = boot_id();
    meta.machine = MachineRecord {
        kernel_release: machine.kernel.release.clone(),
        cpu_model: machine.processor.name.clone(),
        arch: Some(std::env::consts::ARCH.to_owned()),
        online_cpus: Some(observation.cpus()),
        line_size_bytes: machine.line_bytes.map(u64::from),
        virtual_machine: machine
            .virtualization
            .as_ref()
            .map(|found| matches!(found, Virtualization::Guest { .. })),
    };
    meta.sources = vec![SourceRecord {
        name: observation.source_name.to_owned(),
        options: [
            (
                "frequency_hz".to_owned(),
                args.sampling.frequency.to_string(),
            ),
            ("ring_kib".to_owned(), args.sampling.ring_kib.to_string()),
        ]
        .into(),
        evidence: evidence.into_iter().map(str::to_owned).collect(),
    }];
    meta.targets = TargetsRecord {
        pids,
        command: (!args.target.command.is_empty()).then(|| args.target.command.clone()),
        all: args.target.all,
    };
    meta.command_line = std::env::args().collect();
    meta.line_size_bytes = machine.line_bytes.map(u64::from);
    meta.frequency_hz = Some(args.sampling.frequency);
    meta
}
