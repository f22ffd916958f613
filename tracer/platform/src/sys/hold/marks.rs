//! Reads a word of another process and its thread's time on a CPU, without taking memory.

use super::job::Mark;
use crate::{
    access::{Pid, Tid},
    sys::{
        clock,
        perf_event::{self, PerfEvent, Scope},
        process_memory,
    },
};

/// Growth from one value of a word to the next, of so many bytes; `None` where it went down: by more than half of what the
/// word can hold.
pub(super) fn grown(from: u64, to: u64, len: u8) -> Option<u64> {
    let bits = 8 * u32::from(len.clamp(1, 8));
    let most = u64::MAX >> (64 - bits);
    let grown = to.wrapping_sub(from) & most;
    (grown <= most / 2).then_some(grown)
}

/// Counts the time that a thread runs, from when it is opened on; `None` where it has ended.
pub(super) fn run_time(tid: u32) -> Option<PerfEvent> {
    perf_event::open_in_group(&perf_event::task_clock(), Scope::Thread(Tid(tid)), None).ok()
}

/// A word, and what counts its thread's time.
pub(super) struct Word {
    pub(super) pid: u32,
    pub(super) tid: u32,
    pub(super) addr: u64,
    /// 4 or 8 bytes.
    pub(super) len: u8,
    pub(super) run_time: PerfEvent,
}

impl Word {
    /// What it holds; `None` where it cannot be read any more.
    pub(super) fn value(&self) -> Option<u64> {
        let mut bytes = [0; 8];
        let len = usize::from(self.len).min(bytes.len());
        let read = process_memory::read(Pid(self.pid), self.addr, &mut bytes[..len]).ok()?;
        (read == len).then(|| u64::from_le_bytes(bytes))
    }

    /// Marks a moment. This interrupts the thread for some microseconds, to ask its CPU for the time.
    pub(super) fn mark(&self) -> Option<Mark> {
        Some(Mark {
            word: self.value()?,
            run_ns: self.run_time.count().ok()?,
            time_ns: clock::monotonic_ns(),
        })
    }

    /// Growth from one value to the next.
    pub(super) fn grown(&self, from: u64, to: u64) -> Option<u64> {
        grown(from, to, self.len)
    }
}
