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
    /// What happened to the heap.
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
    /// Pages were mapped by `mmap` or `mremap`. Allocations may lie inside of them.
    Mapped {
        /// First byte.
        addr: u64,
        /// Bytes asked for, at least 1.
        size: u64,
        /// As in [`AllocationKind::Allocated`].
        stack: Arc<[u64]>,
    },
    /// Pages are being unmapped: of one mapping, of several, of a part of one, and whatever was allocated in them.
    Unmapped {
        /// First byte.
        addr: u64,
        /// Bytes up to the end of the last page, at least 1.
        size: u64,
    },
    /// From here on, events may be missing: what is alive may be freed without a word.
    Unseen(HeapPart),
    /// From here on, none is missing.
    Seen(HeapPart),
}

/// What may be unseen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeapPart {
    /// All of it.
    All,
    /// Allocations and frees.
    Allocations,
    /// Mappings and unmappings.
    Mappings,
}

/// How much of the heap was followed; adds up by [`HeapTally::add`].
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct HeapTally {
    /// Allocations and mappings seen.
    pub allocations: u64,
    /// Frees and unmappings seen, of whatever was allocated when.
    pub frees: u64,
    /// Allocations and frees that found no room in the ring.
    pub lost: u64,
    /// Time in which not all was followed, because it would have cost too much, nanoseconds; not in JSON.
    #[serde(skip)]
    pub off_ns: u64,
    /// Time that the probes took from the targets: traps times their measured cost, nanoseconds; not in JSON.
    #[serde(skip)]
    pub cost_ns: u64,
}

impl HeapTally {
    /// Adds the counts of a later stretch.
    pub fn add(&mut self, other: &HeapTally) {
        for (sum, n) in [
            (&mut self.allocations, other.allocations),
            (&mut self.frees, other.frees),
            (&mut self.lost, other.lost),
            (&mut self.off_ns, other.off_ns),
            (&mut self.cost_ns, other.cost_ns),
        ] {
            *sum = sum.saturating_add(n);
        }
    }
}
