//! Which words of a line were watched at the same time: only those have a common order.

use crate::{
    access::{ByteSet, LineSize},
    event::Window,
};

/// Bytes of a word.
const WORD: usize = 8;
/// Words of the longest line.
const WORDS: usize = 16;

/// For each pair of 8-byte words of a line, the windows that watched both; and how narrow a part of each word was
/// watched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WatchedWords {
    /// Row and column are word numbers; symmetric.
    windows: [[u32; WORDS]; WORDS],
    /// Bytes of the narrowest part; 0 for none.
    narrowest: [u8; WORDS],
}

impl WatchedWords {
    /// Notes how narrow the window watches. `true` when it is the first to watch so narrow a part of a word with
    /// `unplaced` bytes: what earlier ones saw there is told better now.
    pub(super) fn narrows(
        &mut self,
        window: &Window,
        line_size: LineSize,
        unplaced: ByteSet,
    ) -> bool {
        let mut narrows = false;
        for watched in &window.words {
            let word = (watched.addr % line_size.bytes()) as usize / WORD;
            let is_unplaced = words_of(unplaced) >> word & 1 == 1;
            if let Some(narrowest) = self.narrowest.get_mut(word)
                && (*narrowest == 0 || watched.len < *narrowest)
            {
                *narrowest = watched.len;
                narrows |= is_unplaced;
            }
        }
        narrows
    }

    /// Counts a window that watched these bytes.
    pub(super) fn note(&mut self, watched: ByteSet) {
        let words = words_of(watched);
        for (word, row) in self.windows.iter_mut().enumerate() {
            for (other, count) in row.iter_mut().enumerate() {
                if words >> word & words >> other & 1 == 1 {
                    *count = count.saturating_add(1);
                }
            }
        }
    }

    /// Windows in which at least a byte of each of the two words was watched; of one word with itself, the
    /// windows that watched it. Words are numbered from the line's start; beyond its end nothing is watched.
    pub fn together(&self, word: usize, other: usize) -> u32 {
        let row = self.windows.get(word);
        row.and_then(|row| row.get(other)).copied().unwrap_or(0)
    }

    /// Pairs of words with a byte in `active` that no window has watched together yet; the smaller number
    /// first, ascending. A word that was never watched is missing with itself, too.
    pub fn missing(&self, active: ByteSet) -> Vec<(usize, usize)> {
        let words = words_of(active);
        let active = |word: &usize| words >> word & 1 == 1;
        let pairs = (0..WORDS)
            .filter(active)
            .flat_map(|word| (word..WORDS).filter(active).map(move |other| (word, other)));
        pairs
            .filter(|(word, other)| self.together(*word, *other) == 0)
            .collect()
    }
}

/// Bit n for a byte in word n.
fn words_of(bytes: ByteSet) -> u16 {
    let touched = (0..WORDS).filter(|word| bytes.0 >> (word * WORD) & 0xff != 0);
    touched.fold(0, |words, word| words | 1 << word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        access::Pid,
        event::{Breadth, WatchedWord, WindowEnd},
    };

    fn bytes(words: &[u8]) -> ByteSet {
        let set = words.iter().fold(0, |set, word| {
            set | ByteSet::range(word * 8, 8, LineSize::B128).0
        });
        ByteSet(set)
    }

    #[test]
    fn words_of_one_window_are_together_and_those_of_two_are_not() {
        let mut words = WatchedWords::default();
        words.note(bytes(&[0, 1]));
        words.note(bytes(&[1, 15]));
        assert_eq!(words.together(0, 1), 1);
        assert_eq!(words.together(15, 1), 1);
        assert_eq!(words.together(0, 15), 0);
        assert_eq!(words.together(1, 1), 2);
        assert_eq!(words.together(0, 99), 0);
    }

    #[test]
    fn what_is_missing_is_the_active_pairs_without_a_window() {
        let mut words = WatchedWords::default();
        words.note(bytes(&[0, 1]));
        words.note(bytes(&[1, 2]));
        assert_eq!(words.missing(bytes(&[0, 1])), []);
        assert_eq!(words.missing(bytes(&[0, 1, 2])), [(0, 2)]);
        assert_eq!(words.missing(bytes(&[1, 5])), [(1, 5), (5, 5)]);
    }

    #[test]
    fn a_window_narrows_once_and_only_where_bytes_were_not_placed() {
        let mut words = WatchedWords::default();
        let mut narrows = |at: &[(u64, u8)], unplaced: u128| {
            let word = |(addr, len): &(u64, u8)| WatchedWord {
                pid: Pid(1),
                addr: 0x1000 + addr,
                len: *len,
            };
            let words_of_window = at.iter().map(word).collect();
            words.narrows(&window(words_of_window), LineSize::B64, ByteSet(unplaced))
        };
        assert!(!narrows(&[(0, 8), (8, 8)], 0));
        assert!(!narrows(&[(0, 8), (8, 8)], 0xff));
        // The other word.
        assert!(!narrows(&[(8, 4), (12, 4)], 0xff));
        assert!(narrows(&[(0, 4), (4, 4)], 0xff));
        assert!(!narrows(&[(0, 4), (4, 4)], 0xff));
        assert!(narrows(&[(0, 4), (4, 2)], 0xff));
    }

    fn window(words: Vec<WatchedWord>) -> Window {
        Window {
            number: 0,
            open_ns: 0,
            end_ns: 0,
            words,
            everyone: false,
            hits: 0,
            lost: 0,
            unresolved: std::collections::BTreeMap::new(),
            inferred: 0,
            cost_ns: 0,
            breadth: Breadth::Cpus,
            end: WindowEnd::Time,
        }
    }

    #[test]
    fn a_byte_watches_its_word() {
        let mut words = WatchedWords::default();
        words.note(ByteSet(1 << 12 | 1 << 3));
        assert_eq!(words.together(0, 1), 1);
    }
}
