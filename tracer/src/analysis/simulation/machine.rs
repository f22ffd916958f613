//! One machine, for the scenarios that hint the same loads so far.

use super::{
    super::simulated::{SimulatedCosts, SimulatedTotals},
    Hinted,
};
use crate::coherence::{
    Intent, Line, ModelError, Multiprocessor, Served, SystemModel, Transaction,
};

/// A machine, and what it counted.
#[derive(Clone, Debug)]
pub(super) struct Machine {
    /// Bit n for scenario n.
    scenarios: u8,
    pub(super) caches: Multiprocessor,
    pub(super) totals: SimulatedTotals,
    /// By number of the instruction.
    instructions: Vec<SimulatedCosts>,
    /// By number of the line.
    lines: Vec<SimulatedCosts>,
}

impl Machine {
    /// Empty caches, for the first so many scenarios, 1 to 8.
    pub(super) fn new(model: &SystemModel, scenarios: usize) -> Result<Machine, ModelError> {
        Ok(Machine {
            scenarios: u8::MAX >> (8 - scenarios.clamp(1, 8)),
            caches: Multiprocessor::new(model)?,
            totals: SimulatedTotals::default(),
            instructions: Vec::new(),
            lines: Vec::new(),
        })
    }

    /// Whether it is that of the scenario.
    pub(super) fn is_of(&self, scenario: usize) -> bool {
        self.scenarios & (1 << scenario) != 0
    }

    /// Whether its scenarios hint a load, of which they all do the same.
    pub(super) fn hints(&self, hinted: Hinted) -> bool {
        self.scenarios & hinted.0 != 0
    }

    /// A machine for those of its scenarios that hint a load, where others do not: these stay here.
    pub(super) fn part(&mut self, hinted: Hinted) -> Option<Machine> {
        let (with, without) = (self.scenarios & hinted.0, self.scenarios & !hinted.0);
        if with == 0 || without == 0 {
            return None;
        }
        self.scenarios = without;
        Some(Machine {
            scenarios: with,
            ..self.clone()
        })
    }

    pub(super) fn instructions(&self) -> &[SimulatedCosts] {
        &self.instructions
    }

    /// What the line of that number took.
    pub(super) fn line(&self, id: u32) -> SimulatedCosts {
        self.lines.get(id as usize).copied().unwrap_or_default()
    }

    pub(super) fn count(&mut self, served: &Served, line: Line, instruction: u32, intent: Intent) {
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
