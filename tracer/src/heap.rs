//! Which allocation an address of the heap was, and when: from allocations, frees and accesses in the order
//! of time.
//!
//! ```text
//!   addr  ▲   A ▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓░░░░░░░░░░░░░   ▓ accesses count for the allocation
//!         │   B ▓▓▓▓▓┤ freed                          ░ .. in doubt: its free may have been missed
//!         │   C        ▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓░░░░┤ overlapped: it was freed unseen, the doubtful ones are dropped
//!         └──────────────────────────┼─────┼────────► time
//!                                 Unseen  Seen
//! ```
//!
//! Each access counts for the allocation that was alive at its time. An allocation that was never accessed is
//! forgotten when it is freed, so what is kept grows with the accesses.

use std::{collections::BTreeMap, sync::Arc};

use rustc_hash::FxHashMap;

use crate::{
    access::{SpaceId, Tid},
    event::{Allocation, AllocationKind},
};

/// Allocations that a forked child inherits at most; one with more is known by what it allocates itself.
const MOST_INHERITED: usize = 10_000;
/// Freed allocations that are kept for each address space; the least accessed half goes first.
const MOST_PAST: usize = 1 << 18;
/// Stretches of [`STRANGE_BYTES`] whose accesses to nothing known are counted, for each address space.
const MOST_STRANGE: usize = 1 << 18;
/// No allocation starts at less than a multiple of this, so that two have no stretch in common.
const STRANGE_BYTES: u64 = 8;

/// An allocation, and how much it was accessed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeapObject {
    /// First byte.
    pub addr: u64,
    /// Bytes asked for.
    pub size: u64,
    /// When it was allocated, CLOCK_MONOTONIC, nanoseconds.
    pub since_ns: u64,
    /// Which thread allocated it.
    pub tid: Tid,
    /// As in [`AllocationKind::Allocated`].
    pub stack: Arc<[u64]>,
    /// Accesses while it was surely alive.
    pub accesses: u64,
    /// Accesses while its free may have been missed.
    pub doubtful: u64,
}

impl HeapObject {
    /// One past its last byte.
    pub fn end(&self) -> u64 {
        self.addr.saturating_add(self.size)
    }

    /// Whether it was surely alive in most of its accesses.
    pub fn is_certain(&self) -> bool {
        self.accesses >= self.doubtful
    }

    fn all_accesses(&self) -> u64 {
        self.accesses.saturating_add(self.doubtful)
    }
}

/// The heap of one address space.
#[derive(Debug, Default)]
struct SpaceHeap {
    /// By first byte; never overlapping.
    live: BTreeMap<u64, HeapObject>,
    /// Freed, but accessed before.
    past: Vec<HeapObject>,
    /// What began before this time may have been freed unseen. The end of time while nothing is seen.
    trusted_since_ns: u64,
    /// Accesses to no known allocation, by stretch.
    strange: FxHashMap<u64, u64>,
}

/// The heaps of all address spaces.
#[derive(Debug, Default)]
pub struct HeapIndex {
    spaces: FxHashMap<SpaceId, SpaceHeap>,
    /// As in each space, for all of them.
    trusted_since_ns: u64,
}

impl HeapIndex {
    /// Whether anything was ever told of a heap.
    pub fn is_empty(&self) -> bool {
        self.spaces.is_empty()
    }

    /// Applies an event of the process that runs in `space`; `None` for events of all processes.
    pub fn apply(&mut self, space: Option<SpaceId>, event: &Allocation) {
        let trusted_since_ns = match event.kind {
            AllocationKind::Unseen => u64::MAX,
            _ => event.time_ns,
        };
        match (&event.kind, space) {
            (AllocationKind::Unseen | AllocationKind::Seen, None) => {
                self.trusted_since_ns = trusted_since_ns;
            }
            (AllocationKind::Unseen | AllocationKind::Seen, Some(space)) => {
                self.spaces.entry(space).or_default().trusted_since_ns = trusted_since_ns;
            }
            (AllocationKind::Allocated { addr, size, stack }, Some(space)) => {
                let object = HeapObject {
                    addr: *addr,
                    size: *size,
                    since_ns: event.time_ns,
                    tid: event.tid,
                    stack: stack.clone(),
                    accesses: 0,
                    doubtful: 0,
                };
                self.spaces.entry(space).or_default().allocate(object);
            }
            (AllocationKind::Freed { addr }, Some(space)) => {
                if let Some(heap) = self.spaces.get_mut(&space) {
                    heap.free(*addr);
                }
            }
            (AllocationKind::Allocated { .. } | AllocationKind::Freed { .. }, None) => {}
        }
    }

    /// A forked child starts with what its parent has.
    pub fn fork(&mut self, parent: SpaceId, child: SpaceId) {
        let Some(heap) = self.spaces.get(&parent) else {
            return;
        };
        if heap.live.len() > MOST_INHERITED {
            return;
        }
        let fresh = |object: &HeapObject| HeapObject {
            accesses: 0,
            doubtful: 0,
            ..object.clone()
        };
        let heap = SpaceHeap {
            live: heap.live.iter().map(|(at, o)| (*at, fresh(o))).collect(),
            trusted_since_ns: heap.trusted_since_ns,
            ..SpaceHeap::default()
        };
        self.spaces.insert(child, heap);
    }

    /// Counts an access.
    pub fn touch(&mut self, space: SpaceId, addr: u64) {
        let all_since_ns = self.trusted_since_ns;
        let Some(heap) = self.spaces.get_mut(&space) else {
            return;
        };
        let since_ns = heap.trusted_since_ns.max(all_since_ns);
        let object = heap.live.range_mut(..=addr).next_back();
        match object.filter(|(_, object)| addr < object.end()) {
            Some((_, object)) if object.since_ns < since_ns => object.doubtful += 1,
            Some((_, object)) => object.accesses += 1,
            None => {
                let stretch = addr / STRANGE_BYTES;
                if heap.strange.len() < MOST_STRANGE || heap.strange.contains_key(&stretch) {
                    *heap.strange.entry(stretch).or_default() += 1;
                }
            }
        }
    }

    /// The allocations that accesses to the `len` bytes from `addr` went to, in address order, none overlapping
    /// another. Where memory was used for several one after the other, the most accessed one stands for its bytes,
    /// if most of what is known of them is its own: else it would be named for the others' accesses.
    pub fn objects(&self, space: SpaceId, addr: u64, len: u64) -> Vec<HeapObject> {
        let Some(heap) = self.spaces.get(&space) else {
            return Vec::new();
        };
        let end = addr.saturating_add(len);
        let overlaps = |object: &HeapObject| object.addr < end && object.end() > addr;
        let before = heap.live.range(..=addr).next_back();
        let inside = heap
            .live
            .range(addr.saturating_add(1)..end.max(addr.saturating_add(1)));
        let live = before.into_iter().chain(inside).map(|(_, object)| object);
        // Memory that a place of the code allocates and frees again and again is one object in what it is for.
        let mut found: Vec<HeapObject> = Vec::new();
        for object in heap.past.iter().chain(live).filter(|o| overlaps(o)) {
            if object.all_accesses() == 0 {
                continue;
            }
            let same = |known: &&mut HeapObject| {
                (known.addr, known.size) == (object.addr, object.size)
                    && known.stack == object.stack
            };
            match found.iter_mut().find(same) {
                Some(known) => {
                    known.accesses = known.accesses.saturating_add(object.accesses);
                    known.doubtful = known.doubtful.saturating_add(object.doubtful);
                }
                None => found.push(object.clone()),
            }
        }
        found.sort_by_key(|object| {
            (
                std::cmp::Reverse(object.all_accesses()),
                object.since_ns,
                object.addr,
            )
        });
        let mut chosen: Vec<HeapObject> = Vec::new();
        for object in &found {
            let meets = |other: &HeapObject| other.addr < object.end() && object.addr < other.end();
            if chosen.iter().any(meets) {
                continue;
            }
            let others = found
                .iter()
                .filter(|other| meets(other) && *other != object);
            let others: u64 = others.map(HeapObject::all_accesses).sum();
            let stretches =
                object.addr.max(addr) / STRANGE_BYTES..=(object.end().min(end) - 1) / STRANGE_BYTES;
            let strange: u64 = stretches.filter_map(|n| heap.strange.get(&n)).sum();
            if object.all_accesses() > others.max(strange) {
                chosen.push(object.clone());
            }
        }
        chosen.sort_by_key(|object| object.addr);
        chosen
    }
}

impl SpaceHeap {
    fn allocate(&mut self, object: HeapObject) {
        let overlapped: Vec<u64> = self
            .live
            .range(..object.end())
            .rev()
            .take_while(|(_, old)| old.end() > object.addr)
            .map(|(at, _)| *at)
            .collect();
        for at in overlapped {
            if let Some(mut old) = self.live.remove(&at) {
                // Its free was missed, nobody knows when.
                old.doubtful = 0;
                self.keep(old);
            }
        }
        if object.size > 0 {
            self.live.insert(object.addr, object);
        }
    }

    fn free(&mut self, addr: u64) {
        if let Some(object) = self.live.remove(&addr) {
            self.keep(object);
        }
    }

    fn keep(&mut self, object: HeapObject) {
        if object.all_accesses() == 0 {
            return;
        }
        if self.past.len() >= MOST_PAST {
            self.past
                .sort_by_key(|object| std::cmp::Reverse(object.all_accesses()));
            self.past.truncate(MOST_PAST / 2);
        }
        self.past.push(object);
    }
}

#[cfg(test)]
mod tests;
