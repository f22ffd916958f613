//! Small numbers for lines, so that what is kept of each is a row and not a hash.

use rustc_hash::FxHashMap;

use crate::access::{LineKey, LineSize, Place};

/// A line, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Line {
    /// Its number, in order of appearance from 0.
    pub id: u32,
    /// Which line of its memory it is; caches choose its set by it.
    pub index: u64,
}

/// The lines that appeared so far.
#[derive(Clone, Debug)]
pub struct Lines {
    by_key: FxHashMap<LineKey, u32>,
    shift: u32,
    most: u32,
    recent: Vec<(LineKey, u32)>,
}

/// Lines looked at before the hash is. Programs use few lines again and again.
const RECENT: usize = 4096;
/// No line has it as a key: positions of keys are multiples of the size of a line.
const NO_LINE: LineKey = LineKey(Place::Physical { addr: 1 });

impl Lines {
    /// None yet.
    pub fn new(size: LineSize) -> Lines {
        Lines::up_to(size, usize::MAX)
    }

    /// None yet, and never more than so many.
    pub fn up_to(size: LineSize, most: usize) -> Lines {
        Lines {
            by_key: FxHashMap::default(),
            shift: size.bytes().trailing_zeros(),
            // The greatest number is left out: caches keep numbers and 1.
            most: u32::try_from(most).unwrap_or(u32::MAX),
            recent: vec![(NO_LINE, 0); RECENT],
        }
    }

    /// The line with that key, numbered now if it is new. `None` when there is no number left, at the latest after 4
    /// billion.
    #[inline]
    pub fn line(&mut self, key: LineKey) -> Option<Line> {
        let index = key.0.position() >> self.shift;
        // Fibonacci hashing (Knuth, volume 3, section 6.4): stacks and arrays lie at distances that are powers of two.
        let at =
            (index.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - RECENT.ilog2())) as usize;
        if self.recent[at].0 == key {
            let id = self.recent[at].1;
            return Some(Line { id, index });
        }
        let next = u32::try_from(self.by_key.len()).unwrap_or(u32::MAX);
        if next >= self.most && !self.by_key.contains_key(&key) {
            return None;
        }
        let id = *self.by_key.entry(key).or_insert(next);
        self.recent[at] = (key, id);
        Some(Line { id, index })
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.by_key.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }

    /// All keys with their numbers, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (LineKey, u32)> + '_ {
        self.by_key.iter().map(|(key, id)| (*key, *id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::SpaceId;

    #[test]
    fn a_line_keeps_its_number_and_equal_positions_of_other_memory_have_another() {
        let mut lines = Lines::new(LineSize::B64);
        let private = |space, addr| {
            LineKey(Place::Private {
                space: SpaceId(space),
                addr,
            })
        };
        let number = |lines: &mut Lines, key| lines.line(key).map(|line| (line.id, line.index));
        assert_eq!(number(&mut lines, private(0, 0x1000)), Some((0, 0x40)));
        assert_eq!(number(&mut lines, private(1, 0x1000)), Some((1, 0x40)));
        assert_eq!(number(&mut lines, private(0, 0x1040)), Some((2, 0x41)));
        // More than are looked at before the hash.
        for n in 0..2 * RECENT as u64 {
            let known = number(&mut lines, private(2, n * 64));
            assert_eq!(known, Some((3 + n as u32, n)));
        }
        assert_eq!(number(&mut lines, private(0, 0x1000)), Some((0, 0x40)));
        assert_eq!(lines.len(), 3 + 2 * RECENT);
        let mut all: Vec<_> = lines.iter().map(|(_, id)| id).collect();
        all.sort_unstable();
        assert!(all.iter().copied().eq(0..3 + 2 * RECENT as u32));
    }
}
