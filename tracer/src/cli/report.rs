//! `report`: session → pipeline → report; and how `attach` makes its own.

use std::{process::ExitCode, time::Duration};

use anyhow::{Context as _, Result};

use super::{
    args::{AnalysisArgs, ReportArgs},
    output,
};
use crate::{
    access::LineSize,
    analysis::AnalysisOptions,
    event::Batch,
    finding::Thresholds,
    module::ModuleStore,
    names::Resolver,
    pipeline::Pipeline,
    report::{self, RunFacts, model},
    session::{Meta, SessionReader},
};

/// What the report says of a run besides what the pipeline counted.
pub struct RunDescription {
    /// Names of the sources.
    pub sources: Vec<String>,
    /// Time sampled.
    pub duration: Duration,
    /// Samples per second and CPU.
    pub frequency_hz: Option<u64>,
    /// What was watched.
    pub targets: Vec<model::Target>,
    /// CPUs sampled.
    pub cpus: u32,
    /// What else to tell.
    pub caveats: Vec<String>,
}

/// Prints the report of a session.
pub fn run(args: &ReportArgs) -> Result<ExitCode> {
    let mut reader = SessionReader::open(&args.session)?;
    let frequency_hz = reader.meta().frequency_hz;
    let mut pipeline = Pipeline::new(
        analysis_options(&args.analysis, frequency_hz),
        thresholds(&args.analysis),
    );
    let mut batch = Batch::default();
    while reader.next_batch(&mut batch)? {
        pipeline.feed(&batch);
        batch.clear();
    }
    let mut description = describe(reader.meta());
    description
        .caveats
        .extend(reader.caveats().iter().map(ToString::to_string));
    let boot = &reader.meta().boot_id;
    let modules = ModuleStore::new("/".into(), boot.is_some() && *boot == boot_id());
    let report = make(&pipeline, &modules, &description);
    output::print(&report, &args.output).with_context(|| args.session.display().to_string())
}

/// Identifies the running boot.
pub fn boot_id() -> Option<String> {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(id.trim().to_owned())
}

fn describe(meta: &Meta) -> RunDescription {
    let targets = if meta.targets.all {
        vec![model::Target {
            pid: None,
            command: Some("all processes".into()),
        }]
    } else {
        let command = meta.targets.command.as_ref().map(|c| c.join(" "));
        meta.targets
            .pids
            .iter()
            .map(|pid| model::Target {
                pid: Some(*pid),
                command: command.clone(),
            })
            .collect()
    };
    RunDescription {
        sources: meta.sources.iter().map(|s| s.name.clone()).collect(),
        duration: Duration::from_nanos(meta.duration_ns().unwrap_or(0)),
        frequency_hz: meta.frequency_hz,
        targets,
        cpus: meta.machine.online_cpus.unwrap_or(0),
        caveats: meta.caveats.clone(),
    }
}

/// Names what the pipeline found.
pub fn make(pipeline: &Pipeline, modules: &ModuleStore, run: &RunDescription) -> model::Report {
    let names = Resolver::new(&pipeline.spaces, modules);
    let facts = RunFacts {
        sources: run.sources.clone(),
        duration_ns: run.duration.as_nanos() as u64,
        frequency_hz: run.frequency_hz,
        targets: run.targets.clone(),
        cpus: run.cpus,
        line_size: pipeline.line_size(),
        totals: pipeline.totals(),
        lines: Some(pipeline.lines()),
        shared_lines: Some(pipeline.shared_lines()),
        thresholds: *pipeline.thresholds(),
        counts_hand_offs: false,
    };
    report::build(
        &pipeline.judge(),
        &names,
        &pipeline.tally,
        &facts,
        &run.caveats,
    )
}

/// How to cut the stream.
pub fn analysis_options(args: &AnalysisArgs, frequency_hz: Option<u64>) -> AnalysisOptions {
    AnalysisOptions {
        line_size: LineSize::new(args.line_size).unwrap_or(LineSize::B64),
        slice_ns: args.slice * 1_000_000,
        sample_period_ns: frequency_hz.map_or(0, |hz| 1_000_000_000 / hz.max(1)),
        ..AnalysisOptions::default()
    }
}

/// What counts.
pub fn thresholds(args: &AnalysisArgs) -> Thresholds {
    Thresholds {
        cost_share: args.threshold / 100.0,
        ..Thresholds::default()
    }
}
