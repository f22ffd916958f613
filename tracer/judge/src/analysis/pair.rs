//! A read-then-write pair as it is reported; [`super::pairs`] finds them.

use crate::access::{ByteSet, Op, SpaceId};

/// An instruction of a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instruction {
    /// Address space: names the code at `ip`.
    pub space: SpaceId,
    /// Virtual address of the instruction.
    pub ip: u64,
    /// Executed in kernel mode.
    pub kernel: bool,
}

/// One side of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PairSide {
    /// The instruction.
    pub instruction: Instruction,
    /// What it does.
    pub op: Op,
    /// First byte of the line that it touched when first seen, or seen with bytes that are known.
    pub offset: u8,
    /// Bytes of the line that it touched then.
    pub size: u8,
    /// Where not 0: it never was, and lay somewhere in so many bytes from `offset` on.
    pub within: u8,
    /// All bytes of the line that it ever touched, or may have.
    pub bytes: ByteSet,
}

/// Where the line was when the store of a pair came. They need not add up to the pair's count: of the first
/// access of a window nobody knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Left {
    /// Another CPU had stored to it and owned it.
    pub dirty: u64,
    /// Another CPU owned it without having stored.
    pub clean: u64,
    /// Other CPUs had copies.
    pub shared: u64,
    /// The storing CPU alone had a copy.
    pub own: u64,
}

/// A load and the store that follows it, with what the windows showed of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    /// The load.
    pub load: PairSide,
    /// The store.
    pub store: PairSide,
    /// One instruction reads and writes.
    pub same_instruction: bool,
    /// Times that the load was followed by this store, in the order of its thread.
    pub count: u64,
    /// Times that the two were adjacent requests in the line's log, by one CPU: SWIFT's filter. Requests
    /// before the first store of their window are left out: nobody knows where the line was. May be above
    /// `count` when a hit of another load stands between; 0 for `same_instruction`, which makes one request.
    pub global_count: u64,
    /// Executions of the load that had a successor in their window; the last access of a thread has none.
    pub executions: u64,
    /// `count` in `executions`, 0..=1; `None` when there is none.
    pub share_of_load: Option<f64>,
    /// Of the load's executions, those that missed (for `same_instruction`: or lacked ownership). Without those
    /// before the first store of their window, of which nobody knows.
    pub load_requests: u64,
    /// Of the load's executions, those that came when another CPU had merely read the line since its last
    /// store: it would lose a copy to a fetch for ownership.
    pub among_readers: u64,
    /// Of `count`, those with only reads of other CPUs in between.
    pub taken_by_reads: u64,
    /// Of `count`, those with a store of another CPU in between.
    pub taken_by_writes: u64,
    /// Of `count`, those with a mere read of another CPU in between.
    pub mere_reads: u64,
    /// Where the line was just before the store.
    pub left: Left,
    /// Threads that did it.
    pub threads: usize,
    /// Every window in which it was counted is complete and watched all active bytes of the line.
    pub complete_order: bool,
}

impl Pair {
    /// Adds what was seen of the same pair on another line. Threads are those of the line that most threads did it on.
    pub fn add(&mut self, other: &Pair) {
        let Pair {
            load: _,
            store: _,
            same_instruction: _,
            count,
            global_count,
            executions,
            share_of_load: _,
            load_requests,
            among_readers,
            taken_by_reads,
            taken_by_writes,
            mere_reads,
            left,
            threads,
            complete_order,
        } = other;
        for (sum, more) in [
            (&mut self.count, count),
            (&mut self.global_count, global_count),
            (&mut self.executions, executions),
            (&mut self.load_requests, load_requests),
            (&mut self.among_readers, among_readers),
            (&mut self.taken_by_reads, taken_by_reads),
            (&mut self.taken_by_writes, taken_by_writes),
            (&mut self.mere_reads, mere_reads),
            (&mut self.left.dirty, &left.dirty),
            (&mut self.left.clean, &left.clean),
            (&mut self.left.shared, &left.shared),
            (&mut self.left.own, &left.own),
        ] {
            *sum = sum.saturating_add(*more);
        }
        let executed = self.executions as f64;
        self.share_of_load = (self.executions > 0).then(|| self.count as f64 / executed);
        self.threads = self.threads.max(*threads);
        self.complete_order &= complete_order;
    }
}
