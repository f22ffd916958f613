//! What the machines of a group of parts counted.

use super::super::simulated::{SimulatedCosts, SimulatedTotals};
use crate::coherence::{Intent, Served, Transaction};

/// Counts, by the scenarios that a machine was of when it counted.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) machines: Vec<MachineCounts>,
    /// By number of the instruction: its requests that one for ownership followed, and the number of the access that was
    /// the first such one.
    pub(super) followed: Vec<(u64, u64)>,
    /// Accesses left out for want of numbers for their lines.
    pub(super) unnumbered: u64,
}

/// What machines of the same scenarios counted.
#[derive(Debug)]
pub(super) struct MachineCounts {
    /// Bit n for scenario n.
    pub(super) scenarios: u8,
    pub(super) totals: SimulatedTotals,
    /// By number of the instruction.
    pub(super) instructions: Vec<SimulatedCosts>,
}

impl Counts {
    /// Those of machines of these scenarios.
    pub(super) fn of(&mut self, scenarios: u8) -> &mut MachineCounts {
        let known = (self.machines.iter()).position(|machine| machine.scenarios == scenarios);
        let at = known.unwrap_or_else(|| {
            self.machines.push(MachineCounts {
                scenarios,
                totals: SimulatedTotals::default(),
                instructions: Vec::new(),
            });
            self.machines.len() - 1
        });
        &mut self.machines[at]
    }

    /// One for ownership followed the load's request.
    pub(super) fn follow(&mut self, load: u32, number: u64) {
        let load = load as usize;
        if load >= self.followed.len() {
            self.followed.resize(load + 1, (0, u64::MAX));
        }
        let (times, first) = &mut self.followed[load];
        *first = number.min(*first);
        *times += 1;
    }
}

impl MachineCounts {
    pub(super) fn add(&mut self, served: &Served, instruction: u32, intent: Intent) {
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
        let for_load = intent != Intent::Store;
        totals.requests += 1;
        totals.transactions += served.transactions;
        if for_load {
            totals.load_transactions += served.transactions.total();
        }
        row(&mut self.instructions, instruction).add(served, for_load);
    }
}

/// The row of that number, made where there is none.
pub(super) fn row(rows: &mut Vec<SimulatedCosts>, number: u32) -> &mut SimulatedCosts {
    let number = number as usize;
    if number >= rows.len() {
        rows.resize(number + 1, SimulatedCosts::default());
    }
    &mut rows[number]
}
