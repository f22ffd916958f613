//! The lines of some sets of the caches, in all scenarios.

use super::{super::parts::Part, Hinted, machine::Machine};
use crate::{
    access::{Cpu, LineKey},
    coherence::{Intent, Lines, ModelError, OwnershipFilter, SystemModel},
};

/// One access, as far as it touches a line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) key: LineKey,
    pub(super) cpu: Cpu,
    /// Number of the instruction.
    pub(super) instruction: u32,
    pub(super) intent: Intent,
    /// Where its load is hinted.
    pub(super) biased: Hinted,
    /// Number of the access in the order.
    pub(super) number: u64,
    /// Executions that are to be counted here.
    pub(super) executions: u64,
    /// It is counted; else only what it leaves in the caches is of interest.
    pub(super) counts: bool,
}

/// Lines, their caches and their home.
#[derive(Clone, Debug)]
pub(super) struct LinesBySets {
    /// At least one, and at most one for each scenario.
    pub(super) machines: Vec<Machine>,
    pub(super) lines: Lines,
    filter: OwnershipFilter,
    /// By number of the instruction: its requests that one for ownership followed, and the number of the access that was
    /// the first such one.
    pub(super) followed: Vec<(u64, u64)>,
    /// Accesses left out for want of numbers for their lines.
    pub(super) unnumbered: u64,
}

impl LinesBySets {
    /// Nothing in any cache.
    pub(super) fn new(model: &SystemModel, scenarios: usize) -> Result<LinesBySets, ModelError> {
        Ok(LinesBySets {
            machines: vec![Machine::new(model, scenarios)?],
            lines: Lines::new(model.line),
            filter: OwnershipFilter::of(model.log),
            followed: Vec::new(),
            unnumbered: 0,
        })
    }

    /// The machine of a scenario.
    pub(super) fn machine(&self, scenario: usize) -> Option<&Machine> {
        self.machines.iter().find(|machine| machine.is_of(scenario))
    }

    fn follow(&mut self, load: u32, number: u64) {
        let load = load as usize;
        if load >= self.followed.len() {
            self.followed.resize(load + 1, (0, 0));
        }
        let (times, first) = &mut self.followed[load];
        if *times == 0 {
            *first = number;
        }
        *times += 1;
    }
}

impl Part for LinesBySets {
    type Step = Step;
    type Told = ();

    fn take(&mut self, step: &Step) {
        if step.biased != Hinted::default() {
            let parted = self.machines.iter_mut().filter_map(|m| m.part(step.biased));
            let parted: Vec<Machine> = parted.collect();
            self.machines.extend(parted);
        }
        if step.counts {
            for machine in &mut self.machines {
                let fetches = step.intent == Intent::BiasedLoad || machine.hints(step.biased);
                machine.totals.biased_loads += if fetches { step.executions } else { 0 };
            }
        }
        let Some(line) = self.lines.line(step.key) else {
            self.unnumbered += u64::from(step.counts);
            return;
        };
        let mut follows = None;
        for machine in &mut self.machines {
            let intent = if machine.hints(step.biased) {
                Intent::BiasedLoad
            } else {
                step.intent
            };
            let served = machine.caches.access(step.cpu, line, intent);
            if !step.counts || (!served.missed_l2 && served.request.is_none()) {
                continue;
            }
            machine.count(&served, line, step.instruction, intent);
            if let Some(request) = served.request.filter(|_| machine.is_of(0)) {
                let filter = &mut self.filter;
                follows = filter.observe(line.id, step.cpu, step.instruction, request);
            }
        }
        if let Some(load) = follows {
            self.follow(load, step.number);
        }
    }

    fn told(&mut self, (): ()) {}
}
