//! The mappings of one address space.

use std::{collections::BTreeMap, sync::Arc};

use crate::{access::Place, event::Mapping};

/// Mappings by start address; never overlapping.
#[derive(Clone, Debug, Default)]
pub(super) struct Mappings(BTreeMap<u64, Arc<Mapping>>);

impl Mappings {
    pub(super) fn find(&self, addr: u64) -> Option<&Arc<Mapping>> {
        let (_, mapping) = self.0.range(..=addr).next_back()?;
        mapping.contains(addr).then_some(mapping)
    }

    /// Where a shared place is mapped first.
    pub(super) fn address(&self, place: Place) -> Option<u64> {
        let Place::Shared { dev, inode, offset } = place else {
            return None;
        };
        self.0.values().find_map(|m| {
            let inside = offset.checked_sub(m.file_offset).filter(|o| *o < m.len)?;
            (m.shared && m.dev == dev && m.inode == inode).then_some(m.start + inside)
        })
    }

    /// Puts the mapping over whatever was there; what sticks out on either side stays.
    pub(super) fn insert(&mut self, new: Arc<Mapping>) {
        if new.len == 0 {
            return;
        }
        let overlapping: Vec<u64> = self
            .0
            .range(..new.end())
            .rev()
            .take_while(|(_, old)| old.end() > new.start)
            .map(|(start, _)| *start)
            .collect();
        for start in overlapping {
            let Some(old) = self.0.remove(&start) else {
                continue;
            };
            if old.start < new.start {
                let left = Mapping {
                    len: new.start - old.start,
                    ..(*old).clone()
                };
                self.0.insert(left.start, Arc::new(left));
            }
            if old.end() > new.end() {
                let cut = new.end() - old.start;
                let right = Mapping {
                    start: new.end(),
                    len: old.len - cut,
                    file_offset: old.file_offset.wrapping_add(cut),
                    ..(*old).clone()
                };
                self.0.insert(right.start, Arc::new(right));
            }
        }
        self.0.insert(new.start, new);
    }

    /// All of them, by address.
    pub(super) fn all(&self) -> impl Iterator<Item = &Arc<Mapping>> {
        self.0.values()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether this very mapping is there.
    pub(super) fn has(&self, mapping: &Mapping) -> bool {
        (self.0.get(&mapping.start)).is_some_and(|known| **known == *mapping)
    }

    /// Takes away this very mapping, if it is there.
    pub(super) fn remove(&mut self, mapping: &Mapping) {
        if self.has(mapping) {
            self.0.remove(&mapping.start);
        }
    }
}
