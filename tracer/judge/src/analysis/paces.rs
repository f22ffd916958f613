//! How fast threads were beside the others of a line, and without them.

use rustc_hash::FxHashMap;

use crate::{
    access::{LineKey, Tid},
    event::Pace,
};

/// Readings that are kept of a word, and words of which some are kept: more than are ever made.
const MOST_READINGS: usize = 256;
const MOST_WORDS: usize = 1 << 12;

/// What was read of a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WordPaces {
    /// The word's thread.
    pub tid: Tid,
    /// Virtual address of the word.
    pub addr: u64,
    /// The line that it is on, which is another one than that of the threads that were held, where a thread has no word there.
    pub line: LineKey,
    /// In the order in which they were made.
    pub readings: Vec<Pace>,
}

/// Readings of words, by the line whose threads they are about.
#[derive(Clone, Debug, Default)]
pub struct Paces {
    by_line: FxHashMap<LineKey, Vec<WordPaces>>,
    words: usize,
}

impl Paces {
    /// Takes a reading about the threads of a line; `word` is the line of the word itself.
    pub fn observe(&mut self, line: LineKey, word: LineKey, read: &Pace) {
        let words = self.by_line.entry(line).or_default();
        let same = |known: &&mut WordPaces| (known.tid, known.addr) == (read.tid, read.addr);
        if let Some(known) = words.iter_mut().find(same) {
            if known.readings.len() < MOST_READINGS {
                known.readings.push(*read);
            }
        } else if self.words < MOST_WORDS {
            self.words += 1;
            words.push(WordPaces {
                tid: read.tid,
                addr: read.addr,
                line: word,
                readings: vec![*read],
            });
        }
    }

    /// Words that were read about the threads of a line.
    pub fn of(&self, line: LineKey) -> &[WordPaces] {
        self.by_line.get(&line).map_or(&[], Vec::as_slice)
    }

    /// All words.
    pub fn words(&self) -> impl Iterator<Item = &WordPaces> {
        self.by_line.values().flatten()
    }
}
