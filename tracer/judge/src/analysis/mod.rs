//! Folds over the access stream: who touched which bytes of which line, and how closely in time.
//!
//! [`LineTable`] is fed one access after the other; each [`Line`] sums, window by window, the
//! [`Sharing`] that [`crate::finding`] judges; [`Transfers`] knows which waits may belong to another line. [`WatchedLines`] is fed trapped accesses and the watch windows
//! they belong to; each [`WatchedLine`] has what their complete orders show. [`LoadTable`] is fed a complete order and
//! knows what each load would change if it fetched for ownership; [`Simulation`] is fed the accesses of an emulator, all
//! in order, and counts what a machine with caches makes of them. Pure: no IO, no clock, and nothing
//! here can fail.

mod conflict;
mod cpu_set;
mod groups;
mod hand_off_intervals;
mod instruction_numbers;
mod latent;
mod lifetimes;
mod line;
mod lives;
mod loads;
mod lookahead;
mod order;
mod ordered;
pub mod own_words;
mod paces;
mod pair;
mod pair_flow;
mod pair_records;
mod pairs;
mod parts;
mod pmu;
mod requests;
mod served;
mod sharing;
mod simulated;
mod simulation;
mod site;
mod small_map;
mod sorted;
mod split_by_line;
mod stints;
mod table;
mod transfers;
mod trapped_sites;
mod uses;
mod watched;
mod watched_counts;
mod watched_line;
mod watched_words;
mod window_accesses;
mod window_lives;
mod window_order;

#[cfg(any(test, feature = "fixtures"))]
pub mod emulated_fixture;
#[cfg(test)]
pub(crate) mod site_fixture;
#[cfg(test)]
pub(crate) mod watched_fixture;

pub use cpu_set::CpuSet;
pub use groups::{Group, groups};
pub use latent::{
    ByThread, Elsewhere, Mover, NeighbourBounds, Neighbours, OneMoreElement, OneMoreThread,
    OneMoves, PairMoved, Run, RunElsewhere, Runs, SampledRun, SampledUses, There, ThreadArray,
    ThreadArrays, UsedLine, Way,
};
pub use line::Line;
pub use lives::{HandOffs, Kinds, Lives};
pub use loads::{
    Following, LineStreaks, Load, LoadBounds, LoadOptions, LoadTable, LoadTotals, Loads, RunLoad,
    StreakRun, TouchedLine,
};
pub use ordered::{OrderBounds, OrderCounts, OrderTotals, OrderedLine, OrderedLines, RequestLog};
pub use own_words::OwnWord;
pub use paces::{Paces, WordPaces};
pub use pair::{Instruction, Left, Pair, PairSide};
pub use pmu::PmuCounts;
pub use requests::Requests;
pub use sharing::{Evidence, Sharing};
pub use simulated::{
    Executed, Hinted, SimulatedCosts, SimulatedInstruction, SimulatedLine, SimulatedTotals,
};
pub use simulation::{MOST_PROCESSORS, Simulated, Simulation};
pub use site::{Site, SiteCounts, WaitTimes};
pub use sorted::{LineFold, Objects, SortKey, SortRecord, order};
pub use table::{LineTable, Totals};
pub use transfers::{Transfer, Transfers};
pub use trapped_sites::{TrappedSite, WatchedThread};
pub use uses::Uses;
pub use watched::{WatchBounds, WatchedLines, WatchedTotals};
pub use watched_counts::WatchedCounts;
pub use watched_line::WatchedLine;
pub use watched_words::WatchedWords;
pub use window_accesses::{WindowAccesses, WindowOrder};
pub use window_order::Trapped;

use crate::access::LineSize;

/// Samples that one CPU should yield in a slice, so that an order can be told from chance.
const SLICE_SAMPLES: u64 = 50;

/// How the stream is cut and how much of it is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnalysisOptions {
    /// Coherence granule.
    pub line_size: LineSize,
    /// Shortest slice of time that is judged as one, nanoseconds; see [`AnalysisOptions::slice_ns`].
    pub slice_ns: u64,
    /// Time between two samples of one CPU, nanoseconds; 0 when the source has no period.
    pub sample_period_ns: u64,
    /// Lines kept; beyond it, lines that only one thread touched leave first.
    pub max_lines: usize,
    /// Sites kept in all lines together; the second bound on memory.
    pub max_sites: usize,
}

impl Default for AnalysisOptions {
    /// 64-byte lines, 100 ms slices, 1 kHz; measured at the bounds: 20 MB when each line is private,
    /// 50 MB when all are used by a hundred threads.
    fn default() -> Self {
        AnalysisOptions {
            line_size: LineSize::B64,
            slice_ns: 100_000_000,
            sample_period_ns: 1_000_000,
            // What a hash table of 65,536 buckets holds before it doubles.
            max_lines: 57_000,
            max_sites: 1 << 18,
        }
    }
}

impl AnalysisOptions {
    /// The slice in force, nanoseconds: as asked, but at least the time of 50 samples of one CPU.
    pub fn slice_ns(&self) -> u64 {
        let samples_ns = self.sample_period_ns.saturating_mul(SLICE_SAMPLES);
        self.slice_ns.max(samples_ns).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_is_wider_when_samples_are_few() {
        let at = |sample_period_ns| AnalysisOptions {
            sample_period_ns,
            ..AnalysisOptions::default()
        };
        assert_eq!(at(1_000_000).slice_ns(), 100_000_000);
        assert_eq!(at(10_000_000).slice_ns(), 500_000_000);
        assert_eq!(at(0).slice_ns(), 100_000_000);
        assert_eq!(at(u64::MAX).slice_ns(), u64::MAX);
    }
}
