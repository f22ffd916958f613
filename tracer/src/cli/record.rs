//! `record`: source → session.

use std::{
    path::Path,
    process::ExitCode,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use anyhow::{Context as _, Result};

use super::{
    args::{ObservingArgs, RecordArgs},
    heap_options,
    machine_costs::boot_id,
    output,
    progress::Progress,
    watch_options,
    writing::Writer,
};
use crate::{
    access::CostUnit,
    analysis::AnalysisOptions,
    event::Batch,
    finding::Thresholds,
    machine::Virtualization,
    observation::{Observation, Observed, Observer},
    pipeline::Pipeline,
    printable::words,
    report::cost_words,
    session::{MachineRecord, Meta, SessionWriter, SourceRecord, TargetsRecord, WriterOptions},
    source::Target,
    sys::capabilities::OwnRights,
};

/// Watches, and keeps everything.
pub(super) fn run(args: &RecordArgs) -> Result<ExitCode> {
    let observing = &args.observing;
    let mut observation = observing.open(false, false)?;
    let recording = Recording::create(&args.output, args.force, observing, &mut observation)?;
    // Only to know what to watch: the session keeps what was seen, not what was thought of it.
    let options = AnalysisOptions {
        sample_period_ns: 1_000_000_000 / observing.sampling.frequency().max(1),
        ..AnalysisOptions::default()
    };
    let watches = !observing.watch.no_watch && observation.watcher().is_some();
    let chooses = watches || observation.holds();
    let mut recorded = Recorded {
        recording,
        pipeline: chooses.then(|| Pipeline::new(options, Thresholds::default()).forgetting()),
        progress: Progress::new(observing.sampling.quiet),
    };
    let result = observation.run(&mut recorded);
    let Recorded {
        recording,
        mut progress,
        ..
    } = recorded;
    progress.clear();
    let summary = format!(
        "recorded {}; now run: cohtrace report {}",
        recording.counts(),
        args.output.display()
    );
    recording.finish(result.as_ref().ok())?;
    result?;
    if !observing.sampling.quiet {
        output::say(&summary);
    }
    Ok(ExitCode::SUCCESS)
}

/// What `record` keeps while it observes.
struct Recorded {
    recording: Recording,
    pipeline: Option<Pipeline>,
    progress: Progress,
}

impl Observer for Recorded {
    type Error = anyhow::Error;

    fn take(&mut self, batch: &mut Batch) -> Result<()> {
        if let Some(pipeline) = &mut self.pipeline {
            pipeline.feed(batch);
        }
        self.recording.append(batch)
    }

    fn pipeline(&mut self) -> Option<&mut Pipeline> {
        self.pipeline.as_mut()
    }

    fn tell(&mut self, elapsed: Duration) {
        let recording = &self.recording;
        self.progress.update(|| recording.progress_line(elapsed));
    }
}

/// A session being written, by a thread of its own: a program in an emulator makes accesses as fast as one thread
/// writes them.
pub(super) struct Recording {
    writer: Writer,
    meta: Meta,
    /// Samples or executions.
    counted: u64,
    accesses: u64,
    lost: u64,
    unit: CostUnit,
}

impl Recording {
    /// Makes the session directory.
    pub(super) fn create(
        path: &Path,
        force: bool,
        observing: &ObservingArgs,
        observation: &mut Observation,
    ) -> Result<Recording> {
        let meta = describe(observing, observation);
        let options = WriterOptions {
            force,
            ..WriterOptions::default()
        };
        let writer = {
            let _own = OwnRights::take().context("laying down rights")?;
            SessionWriter::create(path, meta.clone(), &options)?
        };
        Ok(Recording {
            writer: Writer::start(writer)?,
            meta,
            counted: 0,
            accesses: 0,
            lost: 0,
            unit: observation.kind.cost_unit(),
        })
    }

    /// Keeps a batch, and leaves the memory of an earlier one. The error is that of an earlier one, too.
    pub(super) fn append(&mut self, batch: &mut Batch) -> Result<()> {
        self.counted += batch.tally.counted();
        self.lost += batch.tally.lost_total();
        self.accesses += batch.accesses.len() as u64;
        self.writer.append(batch)
    }

    /// Writes the rest. Without `observed` the run failed, and what was written until then shall read.
    pub(super) fn finish(mut self, observed: Option<&Observed>) -> Result<()> {
        if let Some(observed) = observed {
            let duration_ns = observed.duration.as_nanos() as u64;
            self.meta.end_ns = self.meta.start_ns.map(|start_ns| start_ns + duration_ns);
            self.meta.caveats.clone_from(&observed.caveats);
            self.meta.remarks.clone_from(&observed.remarks);
        }
        self.writer.finish(self.meta)
    }

    /// What is counted, and what it is kept as: many executions of one instruction are one row.
    fn words(&self) -> (&'static str, &'static str) {
        let kept = match self.unit {
            CostUnit::Transactions => "rows",
            CostUnit::SampledTime | CostUnit::LatencyCycles => "accesses",
        };
        (cost_words::counted(self.unit), kept)
    }

    fn counts(&self) -> String {
        let (what, kept) = self.words();
        let (counted, accesses, lost) = (self.counted, self.accesses, self.lost);
        format!("{counted} {what} ({accesses} {kept}, {lost} {what} lost)")
    }

    fn progress_line(&self, elapsed: Duration) -> String {
        let (what, kept) = self.words();
        let lost = match self.lost {
            0 => String::new(),
            lost => format!("  {lost} lost"),
        };
        let seconds = elapsed.as_secs_f64();
        let (counted, accesses) = (self.counted, self.accesses);
        format!("recording  {seconds:.1} s  {counted} {what}  {accesses} {kept}{lost}")
    }
}

fn describe(observing: &ObservingArgs, observation: &mut Observation) -> Meta {
    let ObservingArgs {
        target, sampling, ..
    } = observing;
    let watch = observing.watch_facts(observation);
    let heap = observing.heap_facts(observation);
    let machine = &observation.machine;
    let read = |path: &str| {
        std::fs::read_to_string(path)
            .ok()
            .map(|text| text.trim().to_owned())
    };
    let kind = observation.kind;
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
            .map(|found| *found != Virtualization::BareMetal),
        software_emulation: machine.software_emulation(),
    };
    meta.sources = vec![SourceRecord {
        name: kind.name().to_owned(),
        options: [
            ("frequency_hz".to_owned(), sampling.frequency().to_string()),
            ("ring_kib".to_owned(), sampling.ring_kib.to_string()),
        ]
        .into_iter()
        .chain(sampling.source.record(kind.cost_unit()))
        .collect(),
        evidence: (kind.evidence().names().into_iter())
            .map(str::to_owned)
            .collect(),
    }];
    meta.sources
        .extend(watch.as_ref().map(watch_options::record));
    meta.sources.extend(heap.as_ref().map(heap_options::record));
    meta.targets = TargetsRecord {
        pids,
        command: (!target.command.is_empty())
            .then(|| target.command.iter().map(|word| words(word)).collect()),
        all: target.all,
    };
    meta.command_line = std::env::args_os().map(|word| words(&word)).collect();
    meta.line_size_bytes = machine.line_bytes.map(u64::from);
    meta.frequency_hz = observation.frequency_hz();
    meta.cost_unit = kind.cost_unit();
    meta
}
