//! What a machine with caches makes of a complete order of accesses: messages, misses, and the loads that a store
//! follows; for several sets of hinted loads at once.
//!
//! Threads are the processors, numbered in order of appearance: what the system moved between CPUs stays where its
//! data is. An access that spans lines is one access to each. Of an access with
//! [`repeats`](crate::access::Measured::repeats) only the first can miss; the others are executions and nothing else,
//! so that they do not renew the line's place in the order in which lines leave a cache.

use rustc_hash::FxHashMap;

use super::{
    cut::cut,
    simulated::{
        Executed, FoundLoad, Hinted, SimulatedCosts, SimulatedInstruction, SimulatedLine,
        SimulatedTotals,
    },
};
use crate::{
    access::{Access, Basis, Cpu, LineKey, Op, Place, SpaceId, Tid},
    coherence::{
        Intent, Line, Lines, ModelError, Multiprocessor, OwnershipFilter, Served, SystemModel,
        Transaction,
    },
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
    followed_by_ownership: u64,
}

/// One set of hints.
#[derive(Debug)]
struct Scenario {
    machine: Multiprocessor,
    totals: SimulatedTotals,
    /// By number of the instruction.
    instructions: Vec<SimulatedCosts>,
    /// By number of the line.
    lines: Vec<SimulatedCosts>,
}

/// The fold. Memory: a few hundred bytes for each line and each instruction that was seen.
#[derive(Debug)]
pub struct Simulation {
    model: SystemModel,
    scenarios: Vec<Scenario>,
    lines: Lines,
    instructions: Vec<Instruction>,
    by_ip: FxHashMap<(SpaceId, u64), u32>,
    recent: Vec<u32>,
    processors: FxHashMap<Tid, Cpu>,
    last: Option<(Tid, Cpu)>,
    filter: OwnershipFilter,
    found: Vec<FoundLoad>,
    executed: Executed,
    /// Scratch.
    pieces: Vec<LineKey>,
}

/// Instructions looked at before the hash is.
const RECENT: usize = 4096;

impl Simulation {
    /// Empty caches, as many machines as scenarios: 1 to 8. In the first one no load should be hinted, since the filter
    /// works on its requests.
    pub fn new(model: &SystemModel, scenarios: usize) -> Result<Simulation, ModelError> {
        let scenario = || {
            Ok(Scenario {
                machine: Multiprocessor::new(model)?,
                totals: SimulatedTotals::default(),
                instructions: Vec::new(),
                lines: Vec::new(),
            })
        };
        Ok(Simulation {
            model: *model,
            scenarios: (0..scenarios.clamp(1, 8))
                .map(|_| scenario())
                .collect::<Result<_, _>>()?,
            lines: Lines::new(model.line),
            instructions: Vec::new(),
            by_ip: FxHashMap::default(),
            recent: vec![u32::MAX; RECENT],
            processors: FxHashMap::default(),
            last: None,
            filter: OwnershipFilter::of(model.log),
            found: Vec::new(),
            executed: Executed::default(),
            pieces: Vec::new(),
        })
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
        let executions = 1 + u64::from(access.measured.repeats);
        let Some(intent) = Intent::of(access.op) else {
            self.executed.ignored += executions;
            return;
        };
        match intent {
            Intent::Load => self.executed.loads += executions,
            Intent::BiasedLoad => self.executed.biased_loads += executions,
            Intent::Store => self.executed.stores += executions,
        }
        let number = self.instruction(access, space);
        let instruction = &mut self.instructions[number as usize];
        instruction.executions += executions;
        let biased = if access.op == Op::Load {
            *instruction.hinted.get_or_insert_with(hinted)
        } else {
            Hinted::default()
        };
        let cpu = self.processor(access.tid);
        let offset = place.offset_in_line(self.model.line);
        if u64::from(offset) + u64::from(access.size.max(1)) <= self.model.line.bytes() {
            self.serve(cpu, number, place.line(self.model.line), intent, biased);
            return;
        }
        let mut pieces = std::mem::take(&mut self.pieces);
        cut(access, place, self.model.line, &[], |key, _| {
            pieces.push(key);
        });
        for key in pieces.drain(..) {
            self.serve(cpu, number, key, intent, biased);
        }
        self.pieces = pieces;
    }

    fn serve(&mut self, cpu: Cpu, instruction: u32, key: LineKey, intent: Intent, biased: Hinted) {
        let Some(line) = self.lines.line(key) else {
            self.executed.unnumbered += 1;
            return;
        };
        for (n, scenario) in self.scenarios.iter_mut().enumerate() {
            let intent = if biased.0 & (1 << n) != 0 {
                Intent::BiasedLoad
            } else {
                intent
            };
            let served = scenario.machine.access(cpu, line, intent);
            if served.missed_l2 || served.request.is_some() {
                scenario.count(&served, line, instruction, intent);
                let request = served.request.filter(|_| n == 0);
                let load = request
                    .and_then(|request| self.filter.observe(line.id, cpu, instruction, request));
                if let Some(load) = load {
                    let load = &mut self.instructions[load as usize];
                    load.followed_by_ownership += 1;
                    if load.followed_by_ownership == 1 {
                        self.found.push(FoundLoad {
                            space: load.space,
                            ip: load.ip,
                            kernel: load.kernel,
                        });
                    }
                }
            }
        }
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
                followed_by_ownership: 0,
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

    /// The machine.
    pub fn model(&self) -> &SystemModel {
        &self.model
    }

    /// What ran.
    pub fn executed(&self) -> &Executed {
        &self.executed
    }

    /// Threads seen.
    pub fn threads(&self) -> u64 {
        self.processors.len() as u64
    }

    /// Lines seen.
    pub fn line_count(&self) -> u64 {
        self.lines.len() as u64
    }

    /// What each scenario took.
    pub fn totals(&self) -> impl Iterator<Item = &SimulatedTotals> {
        self.scenarios.iter().map(|scenario| &scenario.totals)
    }

    /// Loads that the filter of SWIFT section 4.1 found for the first time since this was asked last, in order of their
    /// first pair.
    pub fn take_found(&mut self) -> Vec<FoundLoad> {
        std::mem::take(&mut self.found)
    }

    /// Instructions that took messages in any scenario, those that took most in the first one first.
    pub fn instructions(&self, most: usize) -> Vec<SimulatedInstruction> {
        let ranked = self.ranked(most, self.instructions.len(), Scenario::instructions, |n| {
            let instruction = &self.instructions[n];
            (instruction.space, instruction.ip)
        });
        let of = |(number, costs): (usize, Vec<SimulatedCosts>)| {
            let instruction = &self.instructions[number];
            SimulatedInstruction {
                space: instruction.space,
                ip: instruction.ip,
                kernel: instruction.kernel,
                executions: instruction.executions,
                followed_by_ownership: instruction.followed_by_ownership,
                costs,
            }
        };
        ranked.into_iter().map(of).collect()
    }

    /// Lines that took messages in any scenario, those that took most in the first one first.
    pub fn lines(&self, most: usize) -> Vec<SimulatedLine> {
        let mut keys: Vec<Option<LineKey>> = vec![None; self.lines.len()];
        for (key, id) in self.lines.iter() {
            keys[id as usize] = Some(key);
        }
        let ranked = self.ranked(most, keys.len(), Scenario::lines, |n| keys[n]);
        let of = |(number, costs): (usize, Vec<SimulatedCosts>)| {
            let key = keys[number]?;
            Some(SimulatedLine { key, costs })
        };
        ranked.into_iter().filter_map(of).collect()
    }

    /// Numbers and costs of those with the most messages in the first scenario; of equal ones, by their keys.
    fn ranked<K: Ord>(
        &self,
        most: usize,
        count: usize,
        rows: impl Fn(&Scenario) -> &[SimulatedCosts],
        key: impl Fn(usize) -> K,
    ) -> Vec<(usize, Vec<SimulatedCosts>)> {
        let cost = |scenario: &Scenario, number: usize| {
            rows(scenario).get(number).copied().unwrap_or_default()
        };
        let took = |number: &usize| {
            let mut scenarios = self.scenarios.iter();
            scenarios.any(|scenario| cost(scenario, *number).transactions > 0)
        };
        let mut ranked: Vec<usize> = (0..count).filter(took).collect();
        ranked.sort_by_cached_key(|number| {
            let first = cost(&self.scenarios[0], *number).transactions;
            (std::cmp::Reverse(first), key(*number))
        });
        let of_all = |number: usize| {
            let scenarios = self.scenarios.iter();
            (
                number,
                scenarios.map(|scenario| cost(scenario, number)).collect(),
            )
        };
        ranked.into_iter().take(most).map(of_all).collect()
    }
}

impl Scenario {
    fn instructions(&self) -> &[SimulatedCosts] {
        &self.instructions
    }

    fn lines(&self) -> &[SimulatedCosts] {
        &self.lines
    }

    fn count(&mut self, served: &Served, line: Line, instruction: u32, intent: Intent) {
        let totals = &mut self.totals;
        totals.l2_misses += u64::from(served.missed_l2);
        totals.l3_misses += u64::from(served.missed_l3);
        match served.eviction {
            Some(Transaction::WriteBack) => totals.write_backs += 1,
            Some(_) => totals.drops += 1,
            None => {}
        }
        if served.request.is_none() {
            return;
        }
        let loads = intent != Intent::Store;
        totals.requests += 1;
        totals.transactions += served.transactions;
        if loads {
            totals.load_transactions += served.transactions.total();
        }
        row(&mut self.instructions, instruction).add(served, loads);
        row(&mut self.lines, line.id).add(served, loads);
    }
}

fn row(rows: &mut Vec<SimulatedCosts>, number: u32) -> &mut SimulatedCosts {
    let number = number as usize;
    if number >= rows.len() {
        rows.resize(number + 1, SimulatedCosts::default());
    }
    &mut rows[number]
}

#[cfg(test)]
mod tests;
