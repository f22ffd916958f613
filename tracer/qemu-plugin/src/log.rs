//! Writes the side-band: what threads there are and what is mapped.

use std::sync::{
    Mutex, PoisonError,
    atomic::Ordering::{Acquire, Relaxed, Release},
};

use crate::layout::{ENTRY_WORDS, LOG_WORDS, Log};

/// One writer at a time.
pub(crate) struct LogWriter(Mutex<()>);

impl LogWriter {
    /// Nobody writes.
    pub(crate) const fn new() -> LogWriter {
        LogWriter(Mutex::new(()))
    }

    /// Appends an entry. `wait` is asked while there is no room, with how often it was asked; when it says no, the
    /// entry is dropped. A text longer than the ring is cut.
    pub(crate) fn append(
        &self,
        log: &Log,
        kind: u32,
        numbers: [u64; 3],
        text: &[u8],
        stamp: impl FnOnce() -> u64,
        wait: impl Fn(u32) -> bool,
    ) {
        let text = &text[..text.len().min((LOG_WORDS - ENTRY_WORDS) * 8)];
        let words = ENTRY_WORDS + text.len().div_ceil(8);
        let _turn = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let head = log.head.load(Relaxed);
        let mut turn = 0;
        while head + words as u64 - log.tail.load(Acquire) > LOG_WORDS as u64 {
            if !wait(turn) {
                return;
            }
            turn += 1;
        }
        let first = [u64::from(kind) | (text.len() as u64) << 32, stamp()];
        let text = text.chunks(8).map(|piece| {
            let mut word = [0; 8];
            word[..piece.len()].copy_from_slice(piece);
            u64::from_le_bytes(word)
        });
        for (at, word) in (head as usize..).zip(first.into_iter().chain(numbers).chain(text)) {
            log.words[at % LOG_WORDS].store(word, Relaxed);
        }
        log.head.store(head + words as u64, Release);
    }
}
