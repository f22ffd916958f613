//! What a machine with caches makes of a complete order of accesses: messages, misses, and the loads that a store
//! follows; for several sets of hinted loads at once.
//!
//! Threads are the processors, numbered in order of appearance: what the system moved between CPUs stays where its
//! data is. An access that spans lines is one access to each. Of an access with
//! [`repeats`](crate::access::Measured::repeats) only the first can miss; the others are executions and nothing else,
//! so that they do not renew the line's place in the order in which lines leave a cache.
//!
//! Scenarios share a machine until the first load that only some of them hint: what is equal is simulated once.

//!
//! Sets of the caches know nothing of each other: the lines of some sets are a part of the work, and parts run on several
//! threads.

mod by_sets;
mod counts;
mod machine;
mod results;

use rustc_hash::FxHashMap;

use self::by_sets::{LinesBySets, Step};
pub use self::results::Simulated;
use super::{
    instruction_numbers::InstructionNumbers,
    parts::Parts,
    served::OnLine,
    simulated::{Executed, Hinted},
    split_by_line::split_by_line,
};
use crate::{
    access::{Access, Basis, Cpu, Op, Place, SpaceId, Tid},
    coherence::{Intent, ModelError, SystemModel},
};

/// Processors of the largest machine. With more threads, the numbers start again.
pub const MOST_PROCESSORS: u32 = 1024;

/// What is counted of an instruction without its lines.
#[derive(Clone, Copy, Debug, Default)]
struct Ran {
    /// `None` until it loads for the first time.
    hinted: Option<Hinted>,
    executions: u64,
    /// Of those, the ones that load.
    loads: u64,
}

/// The fold. Memory: a few hundred bytes for each line and each instruction that was seen.
pub struct Simulation {
    model: SystemModel,
    scenarios: usize,
    counting: bool,
    parts: Parts<LinesBySets>,
    /// Sets of either level that a line's number chooses between.
    sets: u64,
    /// Accesses so far.
    taken: u64,
    instructions: InstructionNumbers<Ran>,
    processors: FxHashMap<Tid, Cpu>,
    last: Option<(Tid, Cpu)>,
    executed: Executed,
}

/// Parts at most.
const MOST_PARTS: u64 = 64;

impl Simulation {
    /// Empty caches; 1 to 8 scenarios. In the first one no load should be hinted, since the filter works on its requests.
    pub fn new(model: &SystemModel, scenarios: usize) -> Result<Simulation, ModelError> {
        let scenarios = scenarios.clamp(1, 8);
        let sets = model.independent_sets()?;
        // What a log keeps depends on the requests for all lines.
        let most = if model.log.is_complete() {
            MOST_PARTS
        } else {
            1
        };
        let divides = |parts: &u64| sets.is_multiple_of(*parts);
        let parts = (1..=most).rev().find(divides).unwrap_or(1);
        let first = LinesBySets::new(model, scenarios, parts)?;
        Ok(Simulation {
            model: *model,
            scenarios,
            counting: true,
            parts: Parts::new(parts as usize, |part| first.of_part(part as u64)),
            sets,
            taken: 0,
            instructions: InstructionNumbers::default(),
            processors: FxHashMap::default(),
            last: None,
            executed: Executed::default(),
        })
    }

    /// Whether accesses from here on are counted, and their loads hinted, as they are at first. Others change what the
    /// caches hold, and nothing else: the start of a program, for instance.
    pub fn set_counting(&mut self, counting: bool) {
        self.counting = counting;
    }

    /// Takes the next access of the order. `hinted` is asked once for each instruction that loads.
    pub fn observe(
        &mut self,
        access: &Access,
        space: SpaceId,
        place: Place,
        hinted: impl FnOnce() -> Hinted,
    ) {
        if access.basis != Basis::Emulated {
            self.executed.sampled += 1;
            return;
        }
        let executions = access.executions();
        let Some(intent) = Intent::of(access.op) else {
            self.executed.ignored += if self.counting { executions } else { 0 };
            return;
        };
        let (mut number, mut biased) = (0, Hinted::default());
        if self.counting {
            match intent {
                Intent::Load => self.executed.loads += executions,
                Intent::BiasedLoad => self.executed.biased_loads += executions,
                Intent::Store => self.executed.stores += executions,
            }
            let instruction = OnLine::new(access, space, 0, 0).instruction;
            let known = (self.instructions).number(instruction, u32::MAX as usize, Ran::default);
            let Some((numbered, ran)) = known else {
                return;
            };
            number = numbered;
            ran.executions += executions;
            if access.op == Op::Load {
                ran.loads += executions;
                biased = *ran.hinted.get_or_insert_with(hinted);
            }
        }
        self.taken += 1;
        let cpu = self.processor(access.tid);
        let (line, parts) = (self.model.line, &mut self.parts);
        split_by_line(access, place, line, &[], |key, _| {
            let index = key.0.position() / line.bytes();
            // Neighbouring sets are together: what a part never touches of its caches takes no memory.
            let part = index % self.sets * parts.count() as u64 / self.sets;
            let step = Step {
                key,
                cpu,
                instruction: number,
                intent,
                biased,
                number: self.taken,
                counts: self.counting,
            };
            parts.take(part as usize, step);
        });
    }

    fn processor(&mut self, tid: Tid) -> Cpu {
        if let Some((last, cpu)) = self.last
            && last == tid
        {
            return cpu;
        }
        let next = Cpu(self.processors.len() as u32 % MOST_PROCESSORS);
        let cpu = *self.processors.entry(tid).or_insert(next);
        self.last = Some((tid, cpu));
        cpu
    }

    /// What the machines did.
    pub fn finish(self) -> Simulated {
        Simulated::new(
            &self.model,
            self.scenarios,
            self.executed,
            self.processors.len() as u64,
            self.instructions.rows(),
            self.parts.finish(),
        )
    }
}

#[cfg(test)]
mod tests;
