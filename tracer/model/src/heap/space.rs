//! The heap of one address space.

use std::{cmp::Reverse, collections::BTreeMap};

use rustc_hash::FxHashMap;

use super::object::HeapObject;
use crate::event::HeapPart;

/// Allocations that a forked child inherits at most; one with more is known by what it allocates itself.
const MOST_INHERITED: usize = 10_000;
/// Freed allocations that are kept for each address space; the least accessed half goes first.
const MOST_PAST: usize = 1 << 18;
/// Stretches of objects whose accesses are counted, for each address space.
const MOST_PARTS: usize = 1 << 20;
/// Stretches of [`STRANGE_BYTES`] whose accesses to nothing known are counted, for each address space.
const MOST_STRANGE: usize = 1 << 18;
/// What takes the place of mapped pages takes whole ones; on all machines they are multiples of this.
const PAGE_BYTES: u64 = 4096;
/// No allocation starts at less than a multiple of this, so that two have no stretch in common.
const STRANGE_BYTES: u64 = 8;

/// What began before these times may have been freed unseen. The end of time while nothing is seen.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Trust {
    allocations_since_ns: u64,
    mappings_since_ns: u64,
}

impl Trust {
    pub(super) fn set(&mut self, part: HeapPart, since_ns: u64) {
        if part != HeapPart::Mappings {
            self.allocations_since_ns = since_ns;
        }
        if part != HeapPart::Allocations {
            self.mappings_since_ns = since_ns;
        }
    }

    fn covers(&self, object: &HeapObject) -> bool {
        object.since_ns
            >= if object.is_mapping {
                self.mappings_since_ns
            } else {
                self.allocations_since_ns
            }
    }
}

/// The heap of one address space.
#[derive(Debug, Default)]
pub(super) struct SpaceHeap {
    /// Allocations by first byte; never overlapping.
    pub live: BTreeMap<u64, HeapObject>,
    /// What is left of mappings, by its first byte; never overlapping.
    pub mapped: BTreeMap<u64, HeapObject>,
    /// Freed, but accessed before.
    pub past: Vec<HeapObject>,
    pub trust: Trust,
    /// Stretches counted in all objects.
    parts: usize,
    /// Accesses to no known allocation, by stretch.
    strange: FxHashMap<u64, u64>,
}

impl SpaceHeap {
    /// What a forked child has; `None` where it is too much.
    pub(super) fn inherited(&self) -> Option<SpaceHeap> {
        if self.live.len() + self.mapped.len() > MOST_INHERITED {
            return None;
        }
        let fresh = |objects: &BTreeMap<u64, HeapObject>| {
            let objects = objects.iter();
            objects.map(|(at, object)| (*at, object.fresh())).collect()
        };
        Some(SpaceHeap {
            live: fresh(&self.live),
            mapped: fresh(&self.mapped),
            trust: self.trust,
            ..SpaceHeap::default()
        })
    }

    /// Counts an access for the innermost that holds it.
    pub(super) fn touch(&mut self, addr: u64, all: Trust) {
        let objects = [&mut self.live, &mut self.mapped];
        let holding = |objects: &'_ mut BTreeMap<u64, HeapObject>| {
            let at = objects.range(..=addr).next_back();
            at.filter(|(_, object)| addr < object.to).map(|(at, _)| *at)
        };
        for objects in objects {
            let Some(at) = holding(objects) else {
                continue;
            };
            if let Some(object) = objects.get_mut(&at) {
                let before = object.parts();
                let is_certain = all.covers(object) && self.trust.covers(object);
                object.touch(addr, is_certain, self.parts < MOST_PARTS);
                self.parts += object.parts() - before;
            }
            return;
        }
        let stretch = addr / STRANGE_BYTES;
        if self.strange.len() < MOST_STRANGE || self.strange.contains_key(&stretch) {
            *self.strange.entry(stretch).or_default() += 1;
        }
    }

    /// New memory. What is there still was freed unseen, nobody knows when.
    pub(super) fn allocate(&mut self, object: HeapObject) {
        self.free_between(object.from, object.to, true);
        if object.size > 0 {
            self.live.insert(object.from, object);
        }
    }

    /// New pages, which may take the place of mapped ones.
    pub(super) fn map(&mut self, mapping: HeapObject) {
        let to = mapping.to.checked_next_multiple_of(PAGE_BYTES);
        let to = to.unwrap_or(u64::MAX);
        self.free_between(mapping.from, to, true);
        self.unmap_between(mapping.from, to, true);
        if mapping.size > 0 {
            self.mapped.insert(mapping.from, mapping);
        }
    }

    /// The allocation at an address ends.
    pub(super) fn free(&mut self, addr: u64) {
        if let Some(object) = self.live.remove(&addr) {
            self.keep(object);
        }
    }

    /// These pages end, and what was allocated in them.
    pub(super) fn unmap(&mut self, from: u64, to: u64) {
        self.free_between(from, to, false);
        self.unmap_between(from, to, false);
    }

    fn free_between(&mut self, from: u64, to: u64, unseen: bool) {
        for at in overlapping(&self.live, from, to) {
            if let Some(mut object) = self.live.remove(&at) {
                if unseen {
                    object.forget_doubtful();
                }
                self.keep(object);
            }
        }
    }

    fn unmap_between(&mut self, from: u64, to: u64, unseen: bool) {
        for at in overlapping(&self.mapped, from, to) {
            let Some(whole) = self.mapped.remove(&at) else {
                continue;
            };
            self.parts = self.parts.saturating_sub(whole.parts());
            let left = [whole.part(0, from), whole.part(to, u64::MAX)];
            for left in left.into_iter().flatten() {
                self.parts += left.parts();
                self.mapped.insert(left.from, left);
            }
            if let Some(mut gone) = whole.part(from, to) {
                if unseen {
                    gone.forget_doubtful();
                }
                self.parts += gone.parts();
                self.keep(gone);
            }
        }
    }

    fn keep(&mut self, object: HeapObject) {
        if object.all_accesses() == 0 {
            self.parts = self.parts.saturating_sub(object.parts());
            return;
        }
        if self.past.len() >= MOST_PAST {
            self.past
                .sort_by_key(|object| Reverse(object.all_accesses()));
            let gone = self.past.drain(MOST_PAST / 2..);
            let gone: usize = gone.map(|object| object.parts()).sum();
            self.parts = self.parts.saturating_sub(gone);
        }
        self.past.push(object);
    }

    /// As [`HeapIndex::objects`](super::HeapIndex::objects) says.
    pub(super) fn objects(&self, addr: u64, end: u64) -> Vec<HeapObject> {
        let alive = |objects: &BTreeMap<u64, HeapObject>| {
            let found = overlapping(objects, addr, end).into_iter();
            found
                .filter_map(|at| objects.get(&at)?.part(addr, end))
                .collect::<Vec<_>>()
        };
        let past = self.past.iter().filter_map(|object| object.part(addr, end));
        let all = past.chain(alive(&self.mapped)).chain(alive(&self.live));
        // Memory that a place of the code allocates and frees again and again is one object in what it is for.
        let mut found: Vec<HeapObject> = Vec::new();
        for object in all {
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
                    known.from = known.from.min(object.from);
                    known.to = known.to.max(object.to);
                }
                None => found.push(object),
            }
        }
        found.sort_by_key(|object| (Reverse(object.all_accesses()), object.since_ns, object.addr));
        let mut chosen: Vec<HeapObject> = Vec::new();
        for (number, object) in found.iter().enumerate() {
            let meets = |other: &HeapObject| other.overlaps(object.from, object.to);
            if chosen.iter().any(meets) {
                continue;
            }
            let others = found.iter().enumerate();
            let others = others.filter(|(at, other)| *at != number && meets(other));
            let others = others.map(|(_, other)| other.all_accesses());
            let others = others.fold(0, u64::saturating_add);
            let stretches = object.from / STRANGE_BYTES..=(object.to - 1) / STRANGE_BYTES;
            let strange = stretches.filter_map(|n| self.strange.get(&n));
            let strange = strange.copied().fold(0, u64::saturating_add);
            if object.all_accesses() > others.max(strange) {
                chosen.push(object.clone());
            }
        }
        chosen.sort_by_key(|object| object.from);
        chosen
    }
}

/// Where those start that have bytes from `from` to `to`, of some that do not overlap.
fn overlapping(objects: &BTreeMap<u64, HeapObject>, from: u64, to: u64) -> Vec<u64> {
    let found = objects.range(..to).rev();
    found
        .take_while(|(_, object)| object.to > from)
        .map(|(at, _)| *at)
        .collect()
}
