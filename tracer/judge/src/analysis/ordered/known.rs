//! All lines of a complete order in a few bytes each, found fast.
//!
//! A program goes from a line to its neighbour more often than anywhere else, so neighbours lie together, and the
//! places of those that were asked for last are at hand without a hash:
//!
//! ```text
//!   recent   a slot for each of some groups ──┐
//!   index    by the group's first line ───────┴─► groups   │ line │ line │ line │ line │
//! ```

use rustc_hash::FxHashMap;

use crate::access::{Cpu, LineKey, LineSize, Tid};

/// A line as one processor has it that nobody else touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Copy {
    Shared,
    Exclusive,
    Modified,
}

/// A line that one thread on one CPU has to itself, or where to find it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    pub(super) cpu: Cpu,
    pub(super) tid: Tid,
    pub(super) copy: Copy,
    /// Number of the line among those of several threads, or none.
    pub(super) shared: u32,
}

/// Of a line of one thread, in place of its number.
pub(super) const PRIVATE: u32 = u32::MAX;
/// Of a line that nobody has touched.
const NEW: u32 = u32::MAX - 1;

impl Known {
    /// Whether nobody has touched it.
    pub(super) fn is_new(&self) -> bool {
        self.shared == NEW
    }
}

/// Lines of a group.
const GROUP: usize = 4;
/// Groups at hand: 40 KiB of them.
const RECENT: usize = 1 << 10;

/// The lines of a run, up to a bound.
#[derive(Debug)]
pub(super) struct KnownLines {
    line_size: LineSize,
    most: usize,
    len: usize,
    groups: Vec<[Known; GROUP]>,
    index: FxHashMap<LineKey, u32>,
    recent: Vec<Option<(LineKey, u32)>>,
}

impl KnownLines {
    pub(super) fn new(line_size: LineSize, most: usize) -> KnownLines {
        KnownLines {
            line_size,
            most,
            len: 0,
            groups: Vec::new(),
            index: FxHashMap::default(),
            recent: Vec::new(),
        }
    }

    /// A group's first line, its number in address order, and which line of it this is.
    fn split(&self, key: LineKey) -> (LineKey, usize, usize) {
        let position = key.0.position();
        let line = position / self.line_size.bytes();
        let first = position & !(self.line_size.bytes() * GROUP as u64 - 1);
        let (number, at) = (line / GROUP as u64, line % GROUP as u64);
        (LineKey(key.0.at(first)), number as usize, at as usize)
    }

    /// What is known of a line; of a new one, nothing yet. `None` when it is new and there is no room for it.
    pub(super) fn room(&mut self, key: LineKey) -> Option<&mut Known> {
        let (first, number, at) = self.split(key);
        if self.recent.is_empty() {
            self.recent.resize(RECENT, None);
        }
        let recent = &mut self.recent[number % RECENT];
        let group = match recent {
            Some((known, group)) if *known == first => *group,
            _ => {
                let full = self.len >= self.most;
                let group = match self.index.get(&first) {
                    Some(group) => *group,
                    None if full => return None,
                    None => {
                        let group = self.groups.len() as u32;
                        self.groups.push([UNTOUCHED; GROUP]);
                        self.index.insert(first, group);
                        group
                    }
                };
                *recent = Some((first, group));
                group
            }
        };
        let line = &mut self.groups[group as usize][at];
        (!line.is_new() || self.len < self.most).then_some(line)
    }

    /// Keeps a line that was new; there was room for it.
    pub(super) fn put(&mut self, key: LineKey, line: Known) {
        if let Some(known) = self.room(key) {
            *known = line;
            self.len += 1;
        }
    }

    /// A line that was touched.
    pub(super) fn get(&self, key: LineKey) -> Option<&Known> {
        let (first, _, at) = self.split(key);
        let group = *self.index.get(&first)?;
        let line = &self.groups[group as usize][at];
        (!line.is_new()).then_some(line)
    }
}

const UNTOUCHED: Known = Known {
    cpu: Cpu(0),
    tid: Tid(0),
    copy: Copy::Shared,
    shared: NEW,
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::{Place, SpaceId};

    fn line(tid: u32) -> Known {
        Known {
            tid: Tid(tid),
            shared: PRIVATE,
            ..UNTOUCHED
        }
    }

    fn key(space: u32, addr: u64) -> LineKey {
        LineKey(Place::Private {
            space: SpaceId(space),
            addr,
        })
    }

    #[test]
    fn lines_that_share_a_slot_are_told_apart() {
        for line_size in [LineSize::B64, LineSize::B128] {
            let far = line_size.bytes() * (GROUP * RECENT) as u64;
            let mut lines = KnownLines::new(line_size, 100);
            let keys = [
                key(0, 0),
                key(0, line_size.bytes()),
                key(0, far),
                key(1, 0),
                LineKey(Place::Kernel { addr: 0 }),
            ];
            for (tid, key) in (1..).zip(keys) {
                assert!(lines.room(key).unwrap().is_new());
                assert!(lines.get(key).is_none());
                lines.put(key, line(tid));
            }
            for (tid, key) in (1..).zip(keys) {
                assert_eq!(lines.room(key).unwrap().tid, Tid(tid));
                assert_eq!(lines.get(key).unwrap().tid, Tid(tid));
            }
        }
    }

    #[test]
    fn a_full_one_has_no_room_for_a_neighbour_nor_for_another_group() {
        let mut lines = KnownLines::new(LineSize::B64, 1);
        lines.put(key(0, 0), line(1));
        assert!(lines.room(key(0, 64)).is_none());
        assert!(lines.room(key(0, 0x1000)).is_none());
        assert!(lines.room(key(0, 0)).is_some());
    }
}
