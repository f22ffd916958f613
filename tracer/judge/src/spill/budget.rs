//! How much memory the sort takes.

use std::path::PathBuf;

use crate::analysis::SortRecord;

/// Where and how much.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpillOptions {
    /// Memory for accesses.
    pub budget: Budget,
    /// Where the unlinked temporary file is made, should one be needed: in the first that takes one.
    pub directories: Vec<PathBuf>,
    /// Threads that fold lines.
    pub threads: usize,
}

/// A bound on memory, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget(pub u64);

/// Accesses of a run at most: 50 MiB while it is filled and sorted.
const MOST_OF_A_RUN: u64 = 1 << 18;
/// A run of less makes more work than order.
const LEAST_OF_A_RUN: u64 = 16;
/// What an access takes meanwhile: once in the run that is filled, once in the run that is sorted, its number there
/// twice, and the packed form of the run.
const BUSY_BYTES: u64 = 2 * size_of::<SortRecord>() as u64 + 2 * 8 + 32;
/// Part of the budget for buffers through which the file is read.
const READ_PART: u64 = 4;

impl Budget {
    /// A quarter of the machine's memory, but no more than 256 MiB: more makes the sort hardly any faster.
    pub fn standard(machine_bytes: Option<u64>) -> Budget {
        let most = 256 << 20;
        Budget(machine_bytes.map_or(most, |bytes| most.min(bytes / 4)))
    }

    /// Accesses of one run; half of the budget at most.
    pub(super) fn run_len(self) -> usize {
        let half = self.0 / 2 / BUSY_BYTES;
        half.clamp(LEAST_OF_A_RUN, MOST_OF_A_RUN) as usize
    }

    /// Bytes of sorted runs that may stay in memory.
    pub(super) fn kept_bytes(self) -> u64 {
        self.0.saturating_sub(self.run_len() as u64 * BUSY_BYTES)
    }

    /// Bytes of the buffer through which one thread reads one of so many runs.
    pub(super) fn read_buffer(self, runs: usize, threads: usize) -> usize {
        let readers = (runs.max(1) * threads.max(1)) as u64;
        (self.0 / READ_PART / readers).clamp(4 << 10, 256 << 10) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_busy_and_what_is_kept_are_the_budget() {
        for mib in [1, 16, 256, 4096, 1 << 20] {
            let budget = Budget(mib << 20);
            let busy = budget.run_len() as u64 * BUSY_BYTES;
            assert_eq!(busy + budget.kept_bytes(), budget.0);
            assert!(budget.kept_bytes() >= busy, "{mib} MiB");
        }
    }

    #[test]
    fn a_budget_of_nothing_still_sorts() {
        assert_eq!((Budget(0).run_len(), Budget(0).kept_bytes()), (16, 0));
        assert_eq!(Budget(0).read_buffer(0, 0), 4 << 10);
    }
}
