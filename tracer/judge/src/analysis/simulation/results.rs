//! What the machines did, of all parts.

use super::{
    super::simulated::{
        Executed, SimulatedCosts, SimulatedInstruction, SimulatedLine, SimulatedTotals,
    },
    Ran,
    by_sets::LinesBySets,
    counts::Counts,
    machine::Machine,
};
use crate::{access::LineKey, analysis::Instruction, coherence::SystemModel};

/// A simulation that is over.
#[derive(Debug)]
pub struct Simulated {
    model: SystemModel,
    executed: Executed,
    threads: u64,
    totals: Vec<SimulatedTotals>,
    /// With their executions.
    pub(super) instructions: Vec<(Instruction, u64)>,
    /// By instruction, and then by scenario.
    costs: Vec<Vec<SimulatedCosts>>,
    /// By instruction: as in [`Counts::followed`].
    followed: Vec<(u64, u64)>,
    parts: Vec<LinesBySets>,
}

impl Simulated {
    pub(super) fn new(
        model: &SystemModel,
        scenarios: usize,
        executed: Executed,
        threads: u64,
        ran: &[(Instruction, Ran)],
        (parts, counted): (Vec<LinesBySets>, Vec<Counts>),
    ) -> Simulated {
        let count = ran.len();
        let mut costs = vec![vec![SimulatedCosts::default(); scenarios]; count];
        let mut followed = vec![(0, u64::MAX); count];
        let mut totals = vec![SimulatedTotals::default(); scenarios];
        let mut executed = executed;
        for counts in &counted {
            executed.unnumbered += counts.unnumbered;
            for machine in &counts.machines {
                let of = (0..scenarios).filter(|scenario| machine.scenarios & (1 << scenario) != 0);
                for scenario in of {
                    totals[scenario].add(&machine.totals);
                    for (all, of_machine) in costs.iter_mut().zip(&machine.instructions) {
                        all[scenario].join(of_machine);
                    }
                }
            }
            for (all, (times, first)) in followed.iter_mut().zip(&counts.followed) {
                *all = (all.0 + times, all.1.min(*first));
            }
        }
        for (scenario, totals) in totals.iter_mut().enumerate() {
            let hinted = |ran: &Ran| {
                ran.hinted
                    .is_some_and(|hinted| hinted.0 & (1 << scenario) != 0)
            };
            let hinted = ran.iter().filter(|(_, ran)| hinted(ran));
            let loads = hinted.map(|(_, ran)| ran.loads);
            totals.biased_loads = executed.biased_loads + loads.sum::<u64>();
        }
        Simulated {
            model: *model,
            executed,
            threads,
            totals,
            instructions: (ran.iter())
                .map(|(instruction, ran)| (*instruction, ran.executions))
                .collect(),
            costs,
            followed,
            parts,
        }
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
        self.threads
    }

    /// Lines seen.
    pub fn line_count(&self) -> u64 {
        let lines = self.parts.iter().map(|part| part.line_count() as u64);
        lines.sum()
    }

    /// What each scenario took.
    pub fn totals(&self) -> impl Iterator<Item = &SimulatedTotals> {
        self.totals.iter()
    }

    /// Loads that the filter of SWIFT section 4.1 found, in order of their first pair.
    pub fn found(&self) -> Vec<Instruction> {
        let loads = self.instructions.iter().zip(&self.followed);
        let mut found: Vec<(u64, Instruction)> = loads
            .filter(|(_, (times, _))| *times > 0)
            .map(|((load, _), (_, first))| (*first, *load))
            .collect();
        found.sort_by_key(|(first, _)| *first);
        found.into_iter().map(|(_, load)| load).collect()
    }

    /// Instructions that took messages in any scenario, those that took most in the first one first.
    pub fn instructions(&self, most: usize) -> Vec<SimulatedInstruction> {
        let all = self
            .instructions
            .iter()
            .zip(&self.costs)
            .zip(&self.followed);
        let of =
            |(((instruction, executions), costs), followed): ((&(_, _), &Vec<_>), &(u64, _))| {
                SimulatedInstruction {
                    instruction: *instruction,
                    executions: *executions,
                    followed_by_ownership: followed.0,
                    costs: costs.clone(),
                }
            };
        let mut ranked: Vec<SimulatedInstruction> =
            all.filter(|((_, costs), _)| took(costs)).map(of).collect();
        ranked.sort_by_key(|taking| {
            let first = taking.costs.first().map_or(0, |costs| costs.transactions);
            (std::cmp::Reverse(first), taking.instruction)
        });
        ranked.truncate(most);
        ranked
    }

    /// Lines that took messages in any scenario, those that took most in the first one first.
    pub fn lines(&self, most: usize) -> Vec<SimulatedLine> {
        let mut ranked: Vec<(std::cmp::Reverse<u64>, LineKey, &LinesBySets, u32)> = Vec::new();
        for part in &self.parts {
            let cost = |machine: &Machine, id: u32| machine.line(id).transactions;
            for (key, id) in part.lines() {
                if part.machines.iter().any(|machine| cost(machine, id) > 0) {
                    let first = part.machine(0).map_or(0, |machine| cost(machine, id));
                    ranked.push((std::cmp::Reverse(first), key, part, id));
                }
            }
        }
        ranked.sort_unstable_by_key(|(cost, key, _, _)| (*cost, *key));
        let scenarios = self.totals.len();
        let of = |(_, key, part, id): (_, LineKey, &LinesBySets, u32)| SimulatedLine {
            key,
            costs: (0..scenarios)
                .filter_map(|scenario| part.machine(scenario))
                .map(|machine| machine.line(id))
                .collect(),
        };
        ranked.into_iter().take(most).map(of).collect()
    }
}

fn took(costs: &[SimulatedCosts]) -> bool {
    costs.iter().any(|costs| costs.transactions > 0)
}
