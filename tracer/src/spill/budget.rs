//! How much memory the sort takes.

use std::path::PathBuf;

use crate::analysis::LineAccess;

/// Where and how much.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpillOptions {
    /// Memory for accesses and their order.
    pub budget: Budget,
    /// Where the file without a name is made, should one be needed: in the first that takes one.
    pub directories: Vec<PathBuf>,
    /// Threads that fold lines.
    pub threads: usize,
}

/// A bound on memory, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget(pub u64);

/// Accesses of a run at most: 38 MiB of them, so that a run is being sorted while the next one is filled.
const MOST_OF_A_RUN: u64 = 1 << 19;
/// A run of less makes more work than order.
const LEAST_OF_A_RUN: u64 = 16;
/// One is filled, one is sorted; the rest of the budget holds others.
const BUSY_RUNS: u64 = 2;
/// An access in a run, with its place in the order.
const KEPT_BYTES: u64 = (size_of::<LineAccess>() + 8) as u64;
/// A fourth of the budget at most is one run.
const RUNS: u64 = 4;

impl Budget {
    /// A quarter of the machine's memory, but no more than 256 MiB: more makes the sort hardly any faster.
    pub fn standard(machine_bytes: Option<u64>) -> Budget {
        let most = 256 << 20;
        Budget(machine_bytes.map_or(most, |bytes| most.min(bytes / 4)))
    }

    /// Accesses of one run.
    pub(super) fn run_len(self) -> usize {
        let fair = self.0 / KEPT_BYTES / RUNS;
        fair.clamp(LEAST_OF_A_RUN, MOST_OF_A_RUN) as usize
    }

    /// Runs that may stay in memory.
    pub(super) fn memory_runs(self) -> usize {
        let runs = self.0 / (self.run_len() as u64 * KEPT_BYTES);
        runs.saturating_sub(BUSY_RUNS) as usize
    }

    /// Bytes of the buffer through which one thread reads one of so many runs.
    pub(super) fn read_buffer(self, runs: usize, threads: usize) -> usize {
        let readers = (runs.max(1) * threads.max(1)) as u64;
        (self.0 / RUNS / readers).clamp(4 << 10, 256 << 10) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_runs_together_stay_within_the_budget() {
        for mib in [1, 16, 256, 4096, 1 << 20] {
            let budget = Budget(mib << 20);
            let run = budget.run_len() as u64 * KEPT_BYTES;
            let runs = budget.memory_runs() as u64 + BUSY_RUNS;
            assert!(runs * run <= budget.0, "{mib} MiB");
            assert!(runs * run > budget.0 / 2, "{mib} MiB");
        }
    }

    #[test]
    fn a_budget_of_nothing_still_sorts() {
        assert_eq!((Budget(0).run_len(), Budget(0).memory_runs()), (16, 0));
        assert_eq!(Budget(0).read_buffer(0, 0), 4 << 10);
    }
}
