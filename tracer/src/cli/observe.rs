//! What an observation is to be, by the arguments, and what a report says of how it was made.

use std::time::Duration;

use anyhow::{Result, ensure};

use super::{
    args::ObservingArgs,
    machine_costs, rights,
    source_options::{Asked, SourceName},
};
use crate::{
    module::CacheBudget,
    observation::{Described, HoldPlan, Observation, Plan, Starting, What},
    report::{HeapFacts, WatchFacts, model},
    source::{SourceOptions, Watching},
};

impl ObservingArgs {
    /// Opens it, and gives up the rights that it takes no more. Nothing of a started command has run yet. `tells`: the kernel half
    /// says why it did nothing.
    pub(super) fn open(&self, output_to_stderr: bool, tells: bool) -> Result<Observation> {
        let ObservingArgs {
            target,
            sampling,
            watch,
            hold,
            heap,
        } = self;
        let emulator = sampling.source.emulator(&Asked {
            target,
            frequency: sampling.asked_frequency.is_some(),
            watch,
            heap,
        })?;
        if emulator.is_some() {
            ensure!(
                hold.hold.is_none(),
                "--hold sees how fast threads are, and an emulator's are of no machine: leave it out, or --source emulate"
            );
            rights::emulate()?;
        }
        let what = if !target.command.is_empty() {
            What::Command(Box::new(Starting {
                words: target.command.clone(),
                wrapped: emulator.as_ref().map(|emulator| emulator.command()),
                output_to_stderr,
                leave_running: target.leave_running,
            }))
        } else if target.all {
            What::Everything
        } else {
            What::Processes(target.pid.clone())
        };
        let observation = Observation::open(Plan {
            what,
            source: sampling.source.name(),
            options: SourceOptions {
                frequency_hz: sampling.frequency(),
                ring_bytes: sampling.ring_kib * 1024,
                watch: match (watch.no_watch, watch.watch.is_empty()) {
                    (true, _) => Watching::Off,
                    (false, true) => Watching::IfPossible,
                    (false, false) => Watching::Required,
                },
                slots: watch.slots as usize,
                heap: heap.options(target),
                memory: sampling.source.memory(),
                emulator,
                tells,
            },
            watch: watch.watch.clone(),
            watch_share: self.watch_share(),
            hold: self.hold_plan(),
            duration: sampling.duration.map(Duration::from_secs_f64),
            caches: sampling.memory.map(CacheBudget),
        })?;
        rights::observe()?;
        Ok(observation)
    }

    /// Whether to read how fast threads are: where that was asked for, and where what the machine charges is known, so that it
    /// tells something.
    fn hold_plan(&self) -> Option<HoldPlan> {
        let share = self.hold.hold.map(|percent| percent / 100.0);
        let rates = || machine_costs::of_this_boot().map(|_| 0.0);
        let is_live = self.sampling.source.source != SourceName::Emulate;
        let share = share.or_else(rates).filter(|_| is_live)?;
        Some(HoldPlan { share })
    }

    fn watch_share(&self) -> f64 {
        self.watch.overhead / 100.0
    }

    /// What watching costs and may cost; `None` when nothing is watched.
    pub(super) fn watch_facts(&self, observation: &mut Observation) -> Option<WatchFacts> {
        let watcher = observation.watcher()?;
        Some(WatchFacts {
            budget_share: self.watch_share(),
            hit_cost_ns: watcher.prices().hit_ns,
            slots: watcher.slots() as u32,
            breadth: watcher.breadth(),
        })
    }

    /// What following the heap costs; `None` when it is not followed.
    pub(super) fn heap_facts(&self, observation: &Observation) -> Option<HeapFacts> {
        let tracker = observation.heap()?;
        Some(self.heap.facts(tracker))
    }
}

/// The targets as reports have them.
pub(super) fn described(targets: &[Described]) -> Vec<model::Target> {
    let described = targets.iter().map(|target| model::Target {
        pid: target.pid,
        command: target.command.clone(),
    });
    described.collect()
}
