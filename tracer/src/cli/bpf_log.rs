//! `doctor --bpf-log`: observes like `attach`, by the debug object, and prints why the kernel half did nothing.

use std::{collections::HashMap, path::Path, process::ExitCode, time::Duration};

use anyhow::Result;

use super::{
    args::{
        AnalysisArgs, BpfLogArgs, DEFAULT_OVERHEAD_PERCENT, DEFAULT_RING_KIB, SamplingArgs,
        TargetArgs, WatchArgs,
    },
    heap_options::HeapArgs,
    observe::{Arguments, described},
    output,
    report::{analysis_options, thresholds},
    source_options::SourceArgs,
};
use crate::{
    event::Batch,
    finding::PairThresholds,
    observation::{Observed, Observer},
    pipeline::Pipeline,
    report::doctor::told::{Line, Telling, render_json, render_text},
    sys::{bpf::Told, proc_snapshot},
};

/// Lines that are printed at most: the first ones.
const LINES: usize = 10_000;

/// Observes, then prints, however it ended.
pub(super) fn run(args: &BpfLogArgs, json: bool) -> Result<ExitCode> {
    let target = TargetArgs {
        pid: args.pid.clone(),
        all: args.all,
        command: args.command.clone(),
        leave_running: false,
    };
    let sampling = SamplingArgs {
        duration: Some(args.duration),
        asked_frequency: None,
        ring_kib: DEFAULT_RING_KIB,
        memory: None,
        source: SourceArgs::standard(),
        quiet: true,
    };
    let watch = WatchArgs {
        no_watch: false,
        overhead: DEFAULT_OVERHEAD_PERCENT,
        slots: 4,
        watch: Vec::new(),
    };
    let heap = HeapArgs {
        heap: args.heap,
        ..HeapArgs::standard()
    };
    let analysis = AnalysisArgs {
        line_size: 64,
        threshold: 1.0,
        slice: 100,
    };
    let arguments = Arguments {
        target: &target,
        sampling: &sampling,
        watch: &watch,
        heap: &heap,
        tells: true,
    };
    let mut observation = arguments.open(json)?;
    let mut listening = Listening {
        pipeline: Pipeline::new(
            analysis_options(&analysis, observation.frequency_hz()),
            thresholds(&analysis, PairThresholds::default()),
        ),
        started_ns: observation.started_ns(),
        names: HashMap::new(),
        lines: Vec::new(),
        left_out: 0,
    };
    let Observed {
        duration,
        caveats,
        remarks,
    } = observation.run(&mut listening)?;
    let telling = Telling {
        targets: described(&observation.targets.described),
        sources: observation.sources(),
        duration,
        lines: listening.lines,
        left_out: listening.left_out,
        remarks: caveats.into_iter().chain(remarks).collect(),
    };
    output::write_stdout(&if json {
        render_json(&telling)
    } else {
        render_text(&telling, !output::unicode())
    })?;
    Ok(ExitCode::SUCCESS)
}

/// What is kept while it observes.
struct Listening {
    /// Decides what is watched.
    pipeline: Pipeline,
    started_ns: u64,
    names: HashMap<u32, Option<String>>,
    lines: Vec<Line>,
    left_out: usize,
}

impl Observer for Listening {
    type Error = anyhow::Error;

    fn take(&mut self, batch: &mut Batch) -> Result<()> {
        self.pipeline.feed(batch);
        Ok(())
    }

    fn pipeline(&mut self) -> Option<&mut Pipeline> {
        Some(&mut self.pipeline)
    }

    fn told(&mut self, told: Vec<Told>) {
        // Of our own process nothing is to be seen; it measures what probes cost on itself.
        for told in told
            .into_iter()
            .filter(|told| told.pid.0 != std::process::id())
        {
            if self.lines.len() == LINES {
                self.left_out += 1;
                continue;
            }
            // While it runs: what has ended has no name.
            let name = self.names.entry(told.tid.0);
            let name = name.or_insert_with(|| {
                proc_snapshot::thread_name(Path::new("/proc"), told.pid, told.tid)
            });
            self.lines.push(Line {
                after: Duration::from_nanos(told.time_ns.saturating_sub(self.started_ns)),
                time_ns: told.time_ns,
                program: told.program,
                reason: told.reason.name(),
                words: told.reason.words(),
                pid: told.pid.0,
                tid: told.tid.0,
                thread: name.clone(),
                addr: told.addr,
            });
        }
    }

    fn tell(&mut self, _: Duration) {}
}
