//! Which words of a line were watched at the same time: only those have a common order.

use crate::access::ByteSet;

/// 8-byte words of the longest line.
const WORDS: usize = 16;

/// For each pair of 8-byte words of a line, the windows that watched both.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WatchedWords {
    /// Row and column are word numbers; symmetric.
    windows: [[u32; WORDS]; WORDS],
}

impl WatchedWords {
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
    let touched = (0..WORDS).filter(|word| bytes.0 >> (word * 8) & 0xff != 0);
    touched.fold(0, |words, word| words | 1 << word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::LineSize;

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
    fn a_byte_watches_its_word() {
        let mut words = WatchedWords::default();
        words.note(ByteSet(1 << 12 | 1 << 3));
        assert_eq!(words.together(0, 1), 1);
    }
}
