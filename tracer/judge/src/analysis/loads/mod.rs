//! What every load would change if it fetched its line for ownership, from a complete order of accesses.
//!
//! The order runs through one [`Directory`](crate::coherence::Directory) per line: the world as it was. When a load
//! misses there, a *shadow* of its line is forked in which that load, and it alone, decides otherwise. Both worlds serve
//! every further access to the line until the line is the same in both; what then differs in messages is what a hint on
//! that load saves or costs, exactly:
//!
//! ```text
//!   accesses      1: load p    1: store q   2: load r   1: load p  ..   messages
//!   as it was     READ_SHAR 4  READ_PRIV 4  4           2                  8
//!   shadow of p   READ_PRIV 4  hit       0  │ equal again: the episode is over, and saved 4
//!                 └ forked                  └ the next miss of p forks anew
//! ```
//!
//! - **Episodes are netted.** The difference of an episode as a whole goes to [`Load::saved`] when messages were saved,
//!   to [`Load::lost`] when they were added. Hence `saved - lost` is the difference of two full replays, without and with
//!   the hint; [`Load::readers_hurt`] counts single reads, in episodes of either kind. An episode that the order cuts off
//!   counts as far as it was seen.
//! - **Other loads are as they are.** A table made by [`LoadTable::hinting`] starts from a world in which some loads are
//!   hinted already. There the shadow of a hinted load is the world without its hint, with the sign turned, so that
//!   `saved` is always what the hint saves *beside the others*.
//! - **Caches are infinite**: a line leaves a cache only by another's request. What evictions add is the simulator's
//!   business. Hence also a program's first touch of a line finds it in no cache.
//! - **Repeats** ([`Measured::repeats`](crate::access::Measured::repeats)) are executions that ask for nothing in the
//!   world as it was. They must end where another processor gets a copy, even one that takes none away: in a shadow that
//!   read may take the line for ownership, and whoever goes on reading would miss. What is folded across such a read is
//!   not held against the hint.
//! - Processors are the accesses' [`cpu`](crate::access::Access::cpu); a program's threads in emulated runs.
//!
//! Watch windows go the same way, each a stretch of its own line. Nobody knows where the line was when a window opened,
//! so nothing counts up to and with its first store; from there on the line's state is certain.

mod load;
mod shard;
mod streaks;
mod table;
mod worlds;

#[cfg(test)]
mod laws;
#[cfg(test)]
mod tests;

pub use load::{Following, Load, TouchedLine};
pub use streaks::{LineStreaks, RunLoad, StreakRun};
pub use table::LoadTable;

use crate::{access::LineSize, coherence::Protocol};

/// How much is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadBounds {
    /// Lines; accesses to more are counted in [`LoadTotals::beyond`] and otherwise ignored.
    pub lines: usize,
    /// Loading instructions; more are run through the protocol, but nothing is known of them.
    pub loads: usize,
    /// Loads of one line whose shadows run at a time. A miss of one more is counted in [`Load::unknown`]; its next one
    /// may find room. With 0 the order is only counted.
    pub shadows_per_line: usize,
    /// Streaks that a table keeps, for [`LineStreaks`], 8 bytes each; of an order with more, those of one line in two, in four,
    /// ... With 0, none are.
    pub streaks: usize,
    /// Of those, streaks of one line: what comes then is left out.
    pub streaks_per_line: usize,
}

impl Default for LoadBounds {
    /// 2,097,152 lines, which is 128 MiB of the program's memory and, measured, 614 MiB of ours when a shadow runs on
    /// each; 65,536 loads; 8 shadows.
    fn default() -> LoadBounds {
        LoadBounds {
            lines: 1 << 21,
            loads: 1 << 16,
            shadows_per_line: 8,
            streaks: 0,
            streaks_per_line: usize::MAX,
        }
    }
}

/// How to look at an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadOptions {
    /// Coherence granule.
    pub line_size: LineSize,
    /// Variant of the protocol.
    pub protocol: Protocol,
    /// Bounds on memory.
    pub bounds: LoadBounds,
    /// Parts of memory that are folded apart, on as many threads as there are processors. What is found does not depend on
    /// the threads.
    pub shards: usize,
}

impl LoadOptions {
    /// The same for a table of which only the messages are of interest.
    #[must_use]
    pub fn only_counting(self) -> LoadOptions {
        let bounds = LoadBounds {
            shadows_per_line: 0,
            streaks: 0,
            ..self.bounds
        };
        LoadOptions { bounds, ..self }
    }
}

impl Default for LoadOptions {
    /// 64-byte lines, the paper's protocol, all memory on the caller's thread.
    fn default() -> LoadOptions {
        LoadOptions {
            line_size: LineSize::B64,
            protocol: Protocol::default(),
            bounds: LoadBounds::default(),
            shards: 1,
        }
    }
}

/// Messages of the world as the table ran it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoadTotals {
    /// Executions of all accesses that went through the protocol; one that touches two lines counts for each.
    pub accesses: u64,
    /// Messages that served them.
    pub transactions: u64,
    /// Of those, messages that served loads and prefetches for ownership.
    pub load_transactions: u64,
    /// Accesses to lines beyond [`LoadBounds::lines`]: nothing is known of them.
    pub beyond: u64,
    /// Loads beyond [`LoadBounds::loads`], by executions.
    pub nameless: u64,
}

impl LoadTotals {
    fn add(&mut self, other: &LoadTotals) {
        self.accesses += other.accesses;
        self.transactions += other.transactions;
        self.load_transactions += other.load_transactions;
        self.beyond += other.beyond;
        self.nameless += other.nameless;
    }
}

/// What a table found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Loads {
    /// Loads that missed at least once, by instruction.
    pub loads: Vec<Load>,
    /// Sums over all loads.
    pub totals: LoadTotals,
    /// The orders, for any set of hints; `None` where none were to be kept.
    pub streaks: Option<LineStreaks>,
}
