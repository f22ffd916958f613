//! Allocations and frees of the targets' heaps as the stream tells of them.

use std::sync::Arc;

use crate::access::{Pid, Tid};

/// Something that changes which allocation an address of the heap is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allocation {
    /// CLOCK_MONOTONIC, nanoseconds: when an allocating function returned, or a freeing one was entered.
    pub time_ns: u64,
    /// Process. Of [`AllocationKind::Unseen`] and [`AllocationKind::Seen`], 0 is every process.
    pub pid: Pid,
    /// Thread, or 0 where none did it.
    pub tid: Tid,
    /// What happened.
    pub kind: AllocationKind,
}

/// What happened to the heap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AllocationKind {
    /// Memory was allocated.
    Allocated {
        /// First byte.
        addr: u64,
        /// Bytes asked for, at least 1.
        size: u64,
        /// An instruction of the function that gave it, then the return addresses of the calls, innermost first,
        /// as far as they are known.
        stack: Arc<[u64]>,
    },
    /// Memory is being freed.
    Freed {
        /// First byte.
        addr: u64,
    },
    /// From here on, allocations and frees may be missing: what is alive may be freed without a word.
    Unseen,
    /// From here on, none is missing.
    Seen,
}

/// How much of the heap was followed; adds up by [`HeapTally::add`].
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct HeapTally {
    /// Allocations seen.
    pub allocations: u64,
    /// Frees seen, of whatever was allocated when.
    pub frees: u64,
    /// Allocations and frees that found no room in the ring.
    pub lost: u64,
    /// Time in which nothing was followed, because it would have cost too much, nanoseconds.
    pub off_ns: u64,
    /// Time that the probes took from the targets: traps times their measured cost, nanoseconds.
    pub cost_ns: u64,
}

impl HeapTally {
    /// Adds the counts of a later stretch.
    pub fn add(&mut self, other: &HeapTally) {
        self.allocations += other.allocations;
        self.frees += other.frees;
        self.lost += other.lost;
        self.off_ns += other.off_ns;
        self.cost_ns += other.cost_ns;
    }
}
