//! `doctor --bpf-log`: observes like `attach`, by the debug object, and prints why the kernel half did nothing.

use std::{collections::HashMap, path::Path, process::ExitCode, time::Duration};

use anyhow::Result;

use super::{
    args::{AnalysisArgs, BpfLogArgs, ObservingArgs, TargetArgs},
    observe::described,
    output,
    report::{analysis_options, thresholds},
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
    let mut observing = ObservingArgs::standard(TargetArgs {
        pid: args.pid.clone(),
        all: args.all,
        command: args.command.clone(),
        leave_running: false,
    });
    observing.sampling.duration = Some(args.duration);
    observing.heap.heap = args.heap;
    let analysis = AnalysisArgs::standard();
    let mut observation = observing.open(json, true)?;
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
