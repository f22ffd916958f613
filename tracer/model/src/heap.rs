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
//!
//! Mapped pages are kept apart, as allocations may lie inside of them: an access to none of these counts for the
//! mapping. Unmapping a part of one leaves the rest, which stays what was asked for at its first byte:
//!
//! ```text
//!   mmap    ▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓   addr and size of all that is left
//!   munmap          ├──────┤
//!   left    ▓▓▓▓▓▓▓▓        ▓▓▓▓▓▓▓▓   from and to of each
//! ```

mod chunk;
mod object;
mod space;

use rustc_hash::{FxHashMap, FxHashSet};

use self::space::{SpaceHeap, Trust};
pub use self::{chunk::Chunk, object::HeapObject};
use crate::{
    access::SpaceId,
    event::{Allocation, AllocationKind},
};

/// The heaps of all address spaces.
#[derive(Debug, Default)]
pub struct HeapIndex {
    spaces: FxHashMap<SpaceId, SpaceHeap>,
    /// As in each space, for all of them.
    trust: Trust,
}

impl HeapIndex {
    /// Whether anything was ever told of a heap.
    pub fn is_empty(&self) -> bool {
        self.spaces.is_empty()
    }

    /// Applies an event of the process that runs in `space`; `None` for events of all processes.
    pub fn apply(&mut self, space: Option<SpaceId>, event: &Allocation) {
        let object = |addr: &u64, size: &u64, stack| {
            HeapObject::new(*addr, *size, event.time_ns, event.tid, stack)
        };
        match (&event.kind, space) {
            (AllocationKind::Unseen(part), None) => self.trust.set(*part, u64::MAX),
            (AllocationKind::Seen(part), None) => self.trust.set(*part, event.time_ns),
            (AllocationKind::Unseen(part), Some(space)) => {
                self.space(space).trust.set(*part, u64::MAX);
            }
            (AllocationKind::Seen(part), Some(space)) => {
                self.space(space).trust.set(*part, event.time_ns);
            }
            (AllocationKind::Allocated { addr, size, stack }, Some(space)) => {
                self.space(space).allocate(object(addr, size, stack));
            }
            (AllocationKind::Mapped { addr, size, stack }, Some(space)) => {
                let mut mapping = object(addr, size, stack);
                mapping.is_mapping = true;
                self.space(space).map(mapping);
            }
            (AllocationKind::Freed { addr }, Some(space)) => {
                if let Some(heap) = self.spaces.get_mut(&space) {
                    heap.free(*addr);
                }
            }
            (AllocationKind::Unmapped { addr, size }, Some(space)) => {
                if let Some(heap) = self.spaces.get_mut(&space) {
                    heap.unmap(*addr, addr.saturating_add(*size));
                }
            }
            (
                AllocationKind::Allocated { .. }
                | AllocationKind::Freed { .. }
                | AllocationKind::Mapped { .. }
                | AllocationKind::Unmapped { .. },
                None,
            ) => {}
        }
    }

    fn space(&mut self, space: SpaceId) -> &mut SpaceHeap {
        self.spaces.entry(space).or_default()
    }

    /// A forked child starts with what its parent has.
    pub fn fork(&mut self, parent: SpaceId, child: SpaceId) {
        if let Some(heap) = self.spaces.get(&parent).and_then(SpaceHeap::inherited) {
            self.spaces.insert(child, heap);
        }
    }

    /// Forgets the heaps of address spaces that were left.
    pub fn retire(&mut self, spaces: &FxHashSet<SpaceId>) {
        self.spaces.retain(|space, _| !spaces.contains(space));
    }

    /// Counts an access.
    pub fn touch(&mut self, space: SpaceId, addr: u64) {
        if let Some(heap) = self.spaces.get_mut(&space) {
            heap.touch(addr, self.trust);
        }
    }

    /// The allocations that accesses to the `len` bytes from `addr` went to, in address order, none overlapping
    /// another there, with these accesses. Where memory was used for several one after the other, the most accessed one
    /// stands for its bytes, if most of what is known of them is its own: else it would be named for the others'
    /// accesses.
    pub fn objects(&self, space: SpaceId, addr: u64, len: u64) -> Vec<HeapObject> {
        let heap = self.spaces.get(&space);
        heap.map_or_else(Vec::new, |heap| {
            heap.objects(addr, addr.saturating_add(len))
        })
    }
}

#[cfg(test)]
mod tests;
