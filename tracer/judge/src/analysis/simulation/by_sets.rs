//! The lines of some sets of the caches, in all scenarios.

use std::hint::black_box;

use super::{super::parts::Part, Hinted, counts::Counts, machine::Machine};
use crate::{
    access::{Cpu, LineKey},
    coherence::{Intent, Line, Lines, ModelError, OwnershipFilter, SystemModel},
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
    /// It is counted; else only what it leaves in the caches is of interest.
    pub(super) counts: bool,
}

/// The lines of some neighbouring sets, in stripes through all memory: numbered as if there were no others, they are close
/// together, and meet in the sets of caches that are as much smaller.
#[derive(Clone, Copy, Debug)]
struct Stripe {
    /// Bytes of a line.
    line: u64,
    /// Independent sets of the whole machine, and how many of them are here.
    all: u64,
    here: u64,
    part: u64,
}

impl Stripe {
    fn alone(&self, key: LineKey) -> LineKey {
        let index = key.0.position() / self.line;
        let index = index / self.all * self.here + index % self.here;
        LineKey(key.0.at(index * self.line))
    }

    fn whole(&self, key: LineKey) -> LineKey {
        let index = key.0.position() / self.line;
        let before = index / self.here * self.all + self.part * self.here;
        LineKey(key.0.at((before + index % self.here) * self.line))
    }
}

/// Lines, their caches and their home.
#[derive(Clone, Debug)]
pub(super) struct LinesBySets {
    /// At least one, and at most one for each scenario.
    pub(super) machines: Vec<Machine>,
    /// As if there were no other sets: see [`Stripe`].
    lines: Lines,
    stripe: Stripe,
    filter: OwnershipFilter,
}

impl LinesBySets {
    /// Nothing in any cache. One of so many parts of the sets.
    pub(super) fn new(
        model: &SystemModel,
        scenarios: usize,
        parts: u64,
    ) -> Result<LinesBySets, ModelError> {
        let sets = model.independent_sets()?;
        let stripe = Stripe {
            line: model.line.bytes(),
            all: sets,
            here: sets / parts,
            part: 0,
        };
        Ok(LinesBySets {
            machines: vec![Machine::new(&model.part(parts), scenarios)?],
            lines: Lines::new(model.line),
            stripe,
            filter: OwnershipFilter::of(model.log),
        })
    }

    /// The same for another part of the sets.
    pub(super) fn of_part(&self, part: u64) -> LinesBySets {
        let stripe = Stripe {
            part,
            ..self.stripe
        };
        LinesBySets {
            stripe,
            ..self.clone()
        }
    }

    /// How many lines there are.
    pub(super) fn line_count(&self) -> usize {
        self.lines.len()
    }

    /// All lines with their numbers, in no order.
    pub(super) fn lines(&self) -> impl Iterator<Item = (LineKey, u32)> + '_ {
        let lines = self.lines.iter();
        lines.map(|(key, id)| (self.stripe.whole(key), id))
    }

    /// The machine of a scenario.
    pub(super) fn machine(&self, scenario: usize) -> Option<&Machine> {
        self.machines.iter().find(|machine| machine.is_of(scenario))
    }
}

impl Part for LinesBySets {
    type Common = Counts;
    type Step = Step;
    type Told = ();
    type Line = Line;

    fn line(&mut self, step: &Step) -> Option<Line> {
        self.lines.line(self.stripe.alone(step.key))
    }

    fn look_at(&self, steps: &[Step], lines: &[Option<Line>]) {
        let known = || {
            let both = steps.iter().zip(lines);
            both.filter_map(|(step, line)| Some((step.cpu, (*line)?)))
        };
        let rows =
            |machine: &Machine| known().fold(0, |seen, (_, line)| seen ^ machine.look_at(line));
        // By the rows, which are near by now.
        let next_out = |machine: &Machine| {
            known().fold(0, |seen, (cpu, line)| {
                seen ^ machine.caches.look_at_next_out(cpu, line)
            })
        };
        black_box(self.machines.iter().map(rows).sum::<u64>());
        black_box(self.machines.iter().map(next_out).sum::<u64>());
    }

    fn serve(&mut self, step: &Step, line: Option<Line>, counts: &mut Counts) {
        if step.biased != Hinted::default() {
            let parted = self.machines.iter_mut().filter_map(|m| m.part(step.biased));
            let parted: Vec<Machine> = parted.collect();
            self.machines.extend(parted);
        }
        let Some(line) = line else {
            counts.unnumbered += u64::from(step.counts);
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
            let of_machine = counts.of(machine.scenarios);
            of_machine.add(&served, step.instruction, intent);
            let Some(request) = served.request else {
                continue;
            };
            machine.count(&served, line, intent);
            if machine.is_of(0) {
                let filter = &mut self.filter;
                follows = filter.observe(line.id, step.cpu, step.instruction, request);
            }
        }
        if let Some(load) = follows {
            counts.follow(load, step.number);
        }
    }

    fn told(&mut self, (): (), _: &mut Counts) {}
}
