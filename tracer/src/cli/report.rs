//! `report`: session → pipeline → report; and how `attach` makes its own.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    time::{Duration, SystemTime},
};

use anyhow::{Context as _, Result};

use super::{
    args::{AnalysisArgs, ReadingArgs, ReportArgs, ReportFormat},
    c2c, heap_options, latent,
    machine_costs::{self, boot_id},
    output,
    reading::Reading,
    source_files::SourceFiles,
    stats, watch_options,
};
use crate::{
    access::{CostUnit, LineSize},
    analysis::AnalysisOptions,
    event::Batch,
    finding::{PairThresholds, Thresholds},
    machine::memory,
    module::{CacheBudget, ModuleStore},
    names::{Names, Resolver},
    pipeline::Pipeline,
    report::{self, RunFacts, load_hints, model},
    session::{self, Meta},
    spill::{Budget, SpillOptions},
};

/// Prints the report of a session.
pub(super) fn run(args: &ReportArgs) -> Result<ExitCode> {
    output::check(args.output.output.as_deref())?;
    if args.stats.is_asked() {
        return stats::run(args);
    }
    latent::check(args)?;
    let pairs = args.pairs.thresholds();
    let session = || args.session().display().to_string();
    if args.format == ReportFormat::C2c {
        let (tables, report) =
            c2c::of_session(args.session(), &args.analysis, pairs, &args.reading)?;
        return output::write(&tables, &report, &args.output).with_context(session);
    }
    let report = if args.latent {
        latent::of_session(args)?
    } else {
        of_session(args.session(), &args.analysis, pairs, &args.reading)?
    };
    if args.format == ReportFormat::Sarif {
        let sources = SourceFiles::new(true).context("the current directory")?;
        let log = load_hints::render_sarif(None, Some(&report), &sources);
        return output::write(&log, &report, &args.output).with_context(session);
    }
    let json = args.output.json || args.format == ReportFormat::Json;
    output::print_as(&report, json, &args.output).with_context(session)
}

/// A session, fed through the pipeline.
pub(super) struct Replayed {
    /// What it judges.
    pub pipeline: Pipeline,
    /// Files that its addresses are in.
    pub modules: ModuleStore,
    /// What the report says of the run.
    pub facts: RunFacts,
}

/// Reads a session to its end, and judges it as a whole.
pub(super) fn replay(
    path: &Path,
    analysis: &AnalysisArgs,
    pairs: PairThresholds,
    reading: &ReadingArgs,
) -> Result<Replayed> {
    replay_for(path, analysis, pairs, reading, |_| ())
}

/// The same, for somebody else too, who gets each batch.
pub(super) fn replay_for(
    path: &Path,
    analysis: &AnalysisArgs,
    pairs: PairThresholds,
    reading: &ReadingArgs,
    mut also: impl FnMut(&Batch),
) -> Result<Replayed> {
    let mut session = Reading::open(
        path,
        line_size(analysis.line_size),
        "reading",
        reading.quiet,
    )?;
    let frequency_hz = session.session().meta().frequency_hz;
    let mut pipeline = Pipeline::sorted(
        analysis_options(analysis, frequency_hz),
        thresholds(analysis, pairs),
        spill_options(path, reading),
    );
    let mut batch = Batch::default();
    while !pipeline.has_failed() && session.next_batch(&mut batch)? {
        also(&batch);
        pipeline.feed(&batch);
        batch.clear();
    }
    pipeline.finish()?;
    session.clear();
    let reader = session.session();
    let mut facts = describe(reader.meta(), &pipeline);
    facts.caveats = (reader.caveats().iter())
        .map(|caveat| match caveat {
            session::Caveat::Remark(text) => report::Caveat::detail(text),
            other => report::Caveat::reading(other.to_string()),
        })
        .collect();
    let modules = modules_of(reader.meta());
    Ok(Replayed {
        pipeline,
        modules,
        facts,
    })
}

/// Files that the addresses of a session are in.
pub(super) fn modules_of(meta: &Meta) -> ModuleStore {
    let boot = &meta.boot_id;
    let modules = ModuleStore::new("/".into(), boot.is_some() && *boot == boot_id())
        .within(CacheBudget::standard(memory::bytes()));
    if boot.is_none() {
        return modules.recorded_elsewhere();
    }
    // Every recorder says when it started.
    let Some(started) = meta.started_unix_ns else {
        return modules;
    };
    let duration = meta.duration_ns().unwrap_or_default();
    modules.recorded(
        SystemTime::UNIX_EPOCH + Duration::from_nanos(started),
        Duration::from_nanos(duration),
    )
}

/// The report of a session.
pub(super) fn of_session(
    path: &Path,
    analysis: &AnalysisArgs,
    pairs: PairThresholds,
    reading: &ReadingArgs,
) -> Result<model::Report> {
    let replayed = replay(path, analysis, pairs, reading)?;
    Ok(make(&replayed.pipeline, &replayed.modules, &replayed.facts))
}

fn describe(meta: &Meta, pipeline: &Pipeline) -> RunFacts {
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
    RunFacts {
        observed: model::Observed {
            sources: meta.sources.iter().map(|s| s.name.clone()).collect(),
            started_ns: meta.start_ns,
            duration_ns: meta.duration_ns().unwrap_or(0),
            frequency_hz: meta.frequency_hz,
            targets,
            cpus: meta.machine.online_cpus.unwrap_or(0),
        },
        software_emulation: meta.machine.software_emulation.clone(),
        watch: watch_options::facts(meta),
        heap: heap_options::facts(meta),
        own_costs: machine_costs::own_costs(meta.boot_id.as_deref()),
        ..counted(pipeline, meta.cost_unit)
    }
}

/// Names what the pipeline found.
pub(super) fn make(pipeline: &Pipeline, modules: &ModuleStore, facts: &RunFacts) -> model::Report {
    make_with(pipeline, modules, facts, |_, _| ())
}

/// The same, with more in it that has names.
pub(super) fn make_with(
    pipeline: &Pipeline,
    modules: &ModuleStore,
    facts: &RunFacts,
    more: impl Fn(&mut model::Report, &dyn Names),
) -> model::Report {
    loop {
        let report = made(pipeline, modules, facts, &more);
        // Somebody wrote to a file while it was read: what it said then is left out. Each time, there are fewer of them.
        if !modules.recheck() {
            return report;
        }
    }
}

fn made(
    pipeline: &Pipeline,
    modules: &ModuleStore,
    facts: &RunFacts,
    more: &impl Fn(&mut model::Report, &dyn Names),
) -> model::Report {
    let names = Resolver::new(&pipeline.spaces, modules).with_heap(&pipeline.heap);
    let mut report = report::build(
        &pipeline.judge_all(),
        &pipeline.pairs(),
        &names,
        &pipeline.tally,
        facts,
    );
    more(&mut report, &names);
    report
}

/// What a pipeline counted of a run, with nothing yet of how it was observed. `unit` is that of costs which accesses have.
pub(super) fn counted(pipeline: &Pipeline, unit: CostUnit) -> RunFacts {
    let ordered = pipeline.ordered();
    let order = (!ordered.is_empty()).then(|| ordered.totals());
    RunFacts {
        observed: model::Observed::default(),
        watch: None,
        watched: pipeline.watch_tally.clone(),
        heap: None,
        line_size: pipeline.line_size(),
        totals: pipeline.totals(),
        lines: Some(pipeline.lines()),
        shared_lines: Some(pipeline.shared_lines()),
        thresholds: *pipeline.thresholds(),
        // Of emulated accesses no recording has a cost: what serves them is counted here.
        cost_unit: order.map_or(unit, |_| CostUnit::Transactions),
        order,
        software_emulation: None,
        paces: pipeline.paces().clone(),
        own_costs: None,
        undecided_cost: pipeline.undecided_cost(),
        caveats: Vec::new(),
    }
}

/// How to cut the stream.
pub(super) fn analysis_options(args: &AnalysisArgs, frequency_hz: Option<u64>) -> AnalysisOptions {
    AnalysisOptions {
        line_size: line_size(args.line_size),
        slice_ns: args.slice * 1_000_000,
        sample_period_ns: frequency_hz.map_or(0, |hz| 1_000_000_000 / hz.max(1)),
        ..AnalysisOptions::default()
    }
}

/// How much memory the sort takes, and where it goes beyond.
fn spill_options(session: &Path, reading: &ReadingArgs) -> SpillOptions {
    let budget = reading.memory.map(Budget);
    // What is beside the session is on a disk; /tmp is memory on many machines.
    let asked = std::env::var_os("TMPDIR").filter(|directory| !directory.is_empty());
    let beside = session.parent().map(|parent| match parent.as_os_str() {
        empty if empty.is_empty() => PathBuf::from("."),
        _ => parent.to_owned(),
    });
    let directories = match asked {
        Some(asked) => vec![asked.into()],
        None => beside.into_iter().chain([std::env::temp_dir()]).collect(),
    };
    SpillOptions {
        budget: budget.unwrap_or_else(|| Budget::standard(memory::bytes())),
        directories,
        threads: std::thread::available_parallelism().map_or(1, Into::into),
    }
}

/// The granule of that many bytes, which the command line has checked.
pub(super) fn line_size(bytes: u64) -> LineSize {
    LineSize::new(bytes).unwrap_or(LineSize::B64)
}

/// What counts.
pub(super) fn thresholds(args: &AnalysisArgs, pairs: PairThresholds) -> Thresholds {
    Thresholds {
        cost_share: args.threshold / 100.0,
        pairs,
        ..Thresholds::default()
    }
}
