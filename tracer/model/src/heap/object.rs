//! An allocation or a mapping, and how much each stretch of it was accessed.

use std::{collections::BTreeMap, sync::Arc};

use crate::access::Tid;

/// Accesses are counted apart for each such stretch: an object of many pages answers for the line that is asked for,
/// and loses nothing but the pages that are unmapped.
pub(super) const PART_BYTES: u64 = 64;

/// An allocation, and how much it was accessed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeapObject {
    /// First byte.
    pub addr: u64,
    /// Bytes asked for.
    pub size: u64,
    /// Pages from `mmap` or `mremap`.
    pub is_mapping: bool,
    /// First byte that this is of it: not `addr` where a part was unmapped.
    pub(super) from: u64,
    /// One past the last one.
    pub(super) to: u64,
    /// When it was allocated, CLOCK_MONOTONIC, nanoseconds.
    pub since_ns: u64,
    /// Which thread allocated it.
    pub tid: Tid,
    /// As in [`AllocationKind::Allocated`](crate::event::AllocationKind::Allocated).
    pub stack: Arc<[u64]>,
    /// Accesses while it was surely alive.
    pub accesses: u64,
    /// Accesses while its free may have been missed.
    pub doubtful: u64,
    /// The same, by number of the stretch.
    parts: BTreeMap<u64, Touches>,
}

/// Accesses to a stretch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Touches {
    accesses: u64,
    doubtful: u64,
}

impl HeapObject {
    /// Just allocated.
    pub(super) fn new(
        addr: u64,
        size: u64,
        since_ns: u64,
        tid: Tid,
        stack: &Arc<[u64]>,
    ) -> HeapObject {
        HeapObject {
            addr,
            size,
            is_mapping: false,
            from: addr,
            to: addr.saturating_add(size),
            since_ns,
            tid,
            stack: stack.clone(),
            accesses: 0,
            doubtful: 0,
            parts: BTreeMap::new(),
        }
    }

    /// One past the last byte asked for.
    pub fn end(&self) -> u64 {
        self.addr.saturating_add(self.size)
    }

    /// Whether it was surely alive in most of its accesses.
    pub fn is_certain(&self) -> bool {
        self.accesses >= self.doubtful
    }

    pub(super) fn all_accesses(&self) -> u64 {
        self.accesses.saturating_add(self.doubtful)
    }

    pub(super) fn overlaps(&self, from: u64, to: u64) -> bool {
        self.from < to && self.to > from
    }

    /// Stretches that are counted.
    pub(super) fn parts(&self) -> usize {
        self.parts.len()
    }

    /// The same without accesses.
    pub(super) fn fresh(&self) -> HeapObject {
        HeapObject {
            stack: self.stack.clone(),
            accesses: 0,
            doubtful: 0,
            parts: BTreeMap::new(),
            ..*self
        }
    }

    /// Counts an access, unless that takes a further stretch and there is no room for one.
    pub(super) fn touch(&mut self, addr: u64, is_certain: bool, has_room: bool) {
        let number = addr / PART_BYTES;
        if !has_room && !self.parts.contains_key(&number) {
            return;
        }
        let part = self.parts.entry(number).or_default();
        let counts = if is_certain {
            [&mut part.accesses, &mut self.accesses]
        } else {
            [&mut part.doubtful, &mut self.doubtful]
        };
        for count in counts {
            *count = count.saturating_add(1);
        }
    }

    /// Forgets the accesses in doubt: it was gone by then.
    pub(super) fn forget_doubtful(&mut self) {
        self.doubtful = 0;
        for part in self.parts.values_mut() {
            part.doubtful = 0;
        }
    }

    /// What it has from `from` to `to`, with the accesses to that; `None` where it has nothing there.
    pub(super) fn part(&self, from: u64, to: u64) -> Option<HeapObject> {
        let (from, to) = (from.max(self.from), to.min(self.to));
        if from >= to {
            return None;
        }
        let numbers = from / PART_BYTES..=(to - 1) / PART_BYTES;
        let parts = self.parts.range(numbers);
        let parts: BTreeMap<u64, Touches> = parts.map(|(number, part)| (*number, *part)).collect();
        let sum =
            |count: fn(&Touches) -> u64| parts.values().map(count).fold(0, u64::saturating_add);
        Some(HeapObject {
            from,
            to,
            stack: self.stack.clone(),
            accesses: sum(|part| part.accesses),
            doubtful: sum(|part| part.doubtful),
            parts,
            ..*self
        })
    }
}
