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
    cut::cut,
    parts::Parts,
    simulated::{Executed, Hinted},
};
use crate::{
    access::{Access, Basis, Cpu, LineKey, Op, Place, SpaceId, Tid},
    coherence::{Intent, ModelError, SystemModel},
};

/// Processors of the largest machine. With more threads, the numbers start again.
pub const MOST_PROCESSORS: u32 = 1024;

#[derive(Clone, Copy, Debug)]
struct Instruction {
    space: SpaceId,
    ip: u64,
    kernel: bool,
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
    instructions: Vec<Instruction>,
    by_ip: FxHashMap<(SpaceId, u64), u32>,
    recent: Vec<u32>,
    processors: FxHashMap<Tid, Cpu>,
    last: Option<(Tid, Cpu)>,
    executed: Executed,
    /// Scratch.
    pieces: Vec<LineKey>,
}

/// Instructions looked at before the hash is.
const RECENT: usize = 4096;
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
            instructions: Vec::new(),
            by_ip: FxHashMap::default(),
            recent: vec![u32::MAX; RECENT],
            processors: FxHashMap::default(),
            last: None,
            executed: Executed::default(),
            pieces: Vec::new(),
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
            number = self.instruction(access, space);
            let instruction = &mut self.instructions[number as usize];
            instruction.executions += executions;
            if access.op == Op::Load {
                instruction.loads += executions;
                biased = *instruction.hinted.get_or_insert_with(hinted);
            }
        }
        self.taken += 1;
        let mut step = Step {
            key: place.line(self.model.line),
            cpu: self.processor(access.tid),
            instruction: number,
            intent,
            biased,
            number: self.taken,
            counts: self.counting,
        };
        let offset = place.offset_in_line(self.model.line);
        if u64::from(offset) + u64::from(access.size.max(1)) <= self.model.line.bytes() {
            self.serve(step);
            return;
        }
        let mut pieces = std::mem::take(&mut self.pieces);
        cut(access, place, self.model.line, &[], |key, _| {
            pieces.push(key);
        });
        for key in pieces.drain(..) {
            step.key = key;
            self.serve(step);
        }
        self.pieces = pieces;
    }

    fn serve(&mut self, step: Step) {
        let index = step.key.0.position() / self.model.line.bytes();
        // Neighbouring sets are together: what a part never touches of its caches takes no memory.
        let part = index % self.sets * self.parts.count() as u64 / self.sets;
        self.parts.take(part as usize, step);
    }

    fn instruction(&mut self, access: &Access, space: SpaceId) -> u32 {
        let at = access.ip as usize % RECENT;
        let recent = self.recent[at];
        let known = self.instructions.get(recent as usize);
        if known.is_some_and(|known| known.ip == access.ip && known.space == space) {
            return recent;
        }
        let next = self.instructions.len() as u32;
        let number = *self.by_ip.entry((space, access.ip)).or_insert(next);
        if number == next {
            self.instructions.push(Instruction {
                space,
                ip: access.ip,
                kernel: access.kernel,
                hinted: None,
                executions: 0,
                loads: 0,
            });
        }
        self.recent[at] = number;
        number
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
            self.instructions,
            self.parts.finish(),
        )
    }
}

#[cfg(test)]
mod tests;
