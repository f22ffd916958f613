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
    /// By the key of their first line.
    by_key: FxHashMap<LineKey, u32>,
    blocks: Vec<Block>,
    /// The first line of each.
    firsts: Vec<LineKey>,
    shift: u32,
    /// Lines numbered.
    count: u32,
    most: u32,
    recent: Vec<(LineKey, u32)>,
}

/// Neighbouring lines: programs go through arrays, and do not come back to a line soon. A line's number and 1; 0 is one
/// that did not appear. In one cache line.
#[derive(Clone, Debug)]
#[repr(align(64))]
struct Block([u32; BLOCK]);

/// Lines of a block.
const BLOCK: usize = 16;
/// Blocks looked at before the hash is. Programs use few again and again.
const RECENT: usize = 1024;
/// No block begins with it: positions of keys are multiples of the size of a line.
const NO_LINE: LineKey = LineKey(Place::Physical { addr: 1 });

impl Lines {
    /// A machine in whose caches there is no line yet.
    pub fn new(size: LineSize) -> Lines {
        Lines::up_to(size, usize::MAX)
    }

    /// None yet, and never more than so many.
    pub fn up_to(size: LineSize, most: usize) -> Lines {
        Lines {
            by_key: FxHashMap::default(),
            blocks: Vec::new(),
            firsts: Vec::new(),
            shift: size.bytes().trailing_zeros(),
            count: 0,
            // The greatest number is left out: caches keep numbers and 1.
            most: u32::try_from(most).unwrap_or(u32::MAX).min(u32::MAX - 1),
            recent: vec![(NO_LINE, 0); RECENT],
        }
    }

    /// The line with that key, numbered now if it is new. `None` when there is no number left, at the latest after 4
    /// billion.
    #[inline]
    pub fn line(&mut self, key: LineKey) -> Option<Line> {
        let index = key.0.position() >> self.shift;
        let within = index as usize % BLOCK;
        let first = LineKey(key.0.at((index - within as u64) << self.shift));
        // Fibonacci hashing (Knuth, volume 3, section 6.4): stacks and arrays lie at distances that are powers of two.
        let mixed = (index / BLOCK as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let at = (mixed >> (u64::BITS - RECENT.ilog2())) as usize;
        let block = if self.recent[at].0 == first {
            self.recent[at].1
        } else {
            let block = self.block(first)?;
            self.recent[at] = (first, block);
            block
        };
        let number = &mut self.blocks[block as usize].0[within];
        if *number == 0 {
            if self.count >= self.most {
                return None;
            }
            self.count += 1;
            *number = self.count;
        }
        let id = *number - 1;
        Some(Line { id, index })
    }

    /// The number of the block; `None` where it would be new, for no line.
    fn block(&mut self, first: LineKey) -> Option<u32> {
        if let Some(block) = self.by_key.get(&first) {
            return Some(*block);
        }
        if self.count >= self.most {
            return None;
        }
        let block = self.blocks.len() as u32;
        self.blocks.push(Block([0; BLOCK]));
        self.firsts.push(first);
        self.by_key.insert(first, block);
        Some(block)
    }

    /// The line with that key, if it appeared.
    pub fn get(&self, key: LineKey) -> Option<Line> {
        let index = key.0.position() >> self.shift;
        let within = index as usize % BLOCK;
        let first = LineKey(key.0.at((index - within as u64) << self.shift));
        let block = *self.by_key.get(&first)?;
        let id = self.blocks[block as usize].0[within].checked_sub(1)?;
        Some(Line { id, index })
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// All keys with their numbers, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (LineKey, u32)> + '_ {
        let blocks = self.firsts.iter().zip(&self.blocks);
        blocks.flat_map(move |(first, Block(numbers))| {
            let start = first.0.position();
            let lines = (0u64..).zip(numbers);
            lines.filter_map(move |(n, number)| {
                let id = number.checked_sub(1)?;
                let key = LineKey(first.0.at(start + (n << self.shift)));
                Some((key, id))
            })
        })
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
        let many = 2 * RECENT * BLOCK;
        for n in 0..many as u64 {
            let known = number(&mut lines, private(2, n * 64));
            assert_eq!(known, Some((3 + n as u32, n)));
        }
        assert_eq!(number(&mut lines, private(0, 0x1000)), Some((0, 0x40)));
        assert_eq!(lines.len(), 3 + many);
        let mut all: Vec<_> = lines.iter().map(|(key, id)| (id, key)).collect();
        all.sort_unstable();
        let keys = [private(0, 0x1000), private(1, 0x1000), private(0, 0x1040)].into_iter();
        let keys = keys.chain((0..many as u64).map(|n| private(2, n * 64)));
        assert!(all.into_iter().eq((0..).zip(keys)));
    }

    #[test]
    fn lines_beyond_the_bound_have_no_number_and_the_others_keep_theirs() {
        let mut lines = Lines::up_to(LineSize::B128, 2);
        let kernel = |addr| LineKey(Place::Kernel { addr });
        let mut number = |addr| lines.line(kernel(addr)).map(|line| line.id);
        assert_eq!([0x2080, 0x9000].map(&mut number), [Some(0), Some(1)]);
        // One beside a known line, and one far away.
        assert_eq!([0x2000, 0x70_0000].map(&mut number), [None, None]);
        assert_eq!([0x9000, 0x2080].map(&mut number), [Some(1), Some(0)]);
        assert_eq!(lines.len(), 2);
    }
}
