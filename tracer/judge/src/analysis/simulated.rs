//! What a [`Simulation`](super::Simulation) counts, as data.

use super::Instruction;
use crate::{
    access::LineKey,
    coherence::{Served, Transactions},
};

/// In which scenarios a load fetches for ownership; bit n for scenario n.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hinted(pub u8);

/// What ran; the same in each scenario.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Executed {
    /// Loads, repeats included.
    pub loads: u64,
    /// Loads with bias and prefetches for ownership that the program has itself, repeats included.
    pub biased_loads: u64,
    /// Stores and read-modify-writes, repeats included.
    pub stores: u64,
    /// Plain prefetches, and accesses that may be either: left out.
    pub ignored: u64,
    /// Accesses that no emulator saw: samples among a complete order. Left out.
    pub sampled: u64,
    /// Accesses left out for want of numbers for their lines.
    pub unnumbered: u64,
}

/// What one scenario took in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SimulatedTotals {
    /// Messages that served requests, by kind: application transactions.
    pub transactions: Transactions,
    /// Of those, messages for loads; those of loads with bias too.
    pub load_transactions: u64,
    /// Executions of loads that fetch for ownership, hinted ones and the program's own with its prefetches; repeats
    /// included.
    pub biased_loads: u64,
    /// Requests that left the cache.
    pub requests: u64,
    /// Accesses that missed the second level.
    pub l2_misses: u64,
    /// Accesses that missed the last level: the line was fetched.
    pub l3_misses: u64,
    /// Dirty lines that left a last level to make room; a message each, not among `transactions`.
    pub write_backs: u64,
    /// Clean lines that did; a message each, not among `transactions`.
    pub drops: u64,
}

/// What an instruction or a line took in one scenario.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SimulatedCosts {
    /// Messages that served requests.
    pub transactions: u64,
    /// Of those, messages for loads.
    pub load_transactions: u64,
    /// Misses of the last level.
    pub l3_misses: u64,
}

impl SimulatedTotals {
    pub(super) fn add(&mut self, other: &SimulatedTotals) {
        self.transactions += other.transactions;
        self.load_transactions += other.load_transactions;
        self.requests += other.requests;
        self.biased_loads += other.biased_loads;
        self.l2_misses += other.l2_misses;
        self.l3_misses += other.l3_misses;
        self.write_backs += other.write_backs;
        self.drops += other.drops;
    }
}

impl SimulatedCosts {
    pub(super) fn join(&mut self, other: &SimulatedCosts) {
        self.transactions += other.transactions;
        self.load_transactions += other.load_transactions;
        self.l3_misses += other.l3_misses;
    }

    pub(super) fn add(&mut self, served: &Served, loads: bool) {
        let messages = served.transactions.total();
        self.transactions += messages;
        self.load_transactions += if loads { messages } else { 0 };
        self.l3_misses += u64::from(served.missed_l3);
    }
}

/// An instruction with what it took in each scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimulatedInstruction {
    /// The instruction that is counted.
    pub instruction: Instruction,
    /// Executions, repeats included.
    pub executions: u64,
    /// Of its requests in the first scenario, those that the filter of SWIFT section 4.1 finds.
    pub followed_by_ownership: u64,
    /// By scenario.
    pub costs: Vec<SimulatedCosts>,
}

/// A line with what it took in each scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimulatedLine {
    /// The line that is counted.
    pub key: LineKey,
    /// By scenario.
    pub costs: Vec<SimulatedCosts>,
}
