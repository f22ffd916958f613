//! The kernel half's word on what counts as a hit, mapped.
//!
//! ```text
//!   prepare   slots, limit, no deadline, no hits      breakpoints still off
//!   open      the window's number; then the deadline  breakpoints all on
//!   close     a limit of 0 hits                       breakpoints still on
//!   settle    no window                               breakpoints all off
//! ```

use std::{
    io,
    mem::offset_of,
    os::fd::BorrowedFd,
    sync::atomic::{AtomicU32, AtomicU64, Ordering},
};

use tracer_ebpf::{WATCH_SLOTS, WatchControl, WatchSlot};

use super::{clock::monotonic_ns, map_memory::MapMemory};
use crate::event::WatchedWord;

/// The mapped [`WatchControl`].
#[derive(Debug)]
pub struct ControlMemory(MapMemory);

impl ControlMemory {
    /// Maps the one value of its array map.
    pub fn map(fd: BorrowedFd<'_>) -> io::Result<ControlMemory> {
        MapMemory::map(fd, size_of::<WatchControl>()).map(ControlMemory)
    }

    /// Says what the next window is of. Only while none is open and no breakpoint is armed.
    pub fn prepare(&self, words: &[WatchedWord], hit_limit: u64) {
        for index in 0..WATCH_SLOTS {
            let slot = offset_of!(WatchControl, slots) + index * size_of::<WatchSlot>();
            let word = words.get(index);
            let (addr, pid) = word.map_or((0, 0), |word| (word.addr, word.pid.0));
            self.word32(slot + offset_of!(WatchSlot, pid))
                .store(pid, Ordering::Relaxed);
            self.word(slot + offset_of!(WatchSlot, addr))
                .store(addr, Ordering::Relaxed);
        }
        for (field, value) in [
            (offset_of!(WatchControl, hit_limit), hit_limit),
            (offset_of!(WatchControl, hits), 0),
            (offset_of!(WatchControl, deadline_ns), u64::MAX),
        ] {
            self.word(field).store(value, Ordering::Relaxed);
        }
    }

    /// Opens the window; hits count from here on. Returns when that was, at the latest. Its deadline is
    /// `duration_ns` later.
    pub fn open(&self, number: u64, duration_ns: u64) -> u64 {
        // Release: who sees the window open sees what was prepared.
        self.word(offset_of!(WatchControl, open))
            .store(open_value(number), Ordering::Release);
        let open_ns = monotonic_ns();
        self.word(offset_of!(WatchControl, deadline_ns))
            .store(open_ns.saturating_add(duration_ns), Ordering::Relaxed);
        open_ns
    }

    /// Closes the window; hits no longer count, and turn their breakpoints off where the kernel lets them.
    /// Returns a time up to which they did, but for those that were skipped earlier.
    pub fn close(&self) -> u64 {
        let still_open_ns = monotonic_ns();
        // Release: not before the time is read.
        self.word(offset_of!(WatchControl, hit_limit))
            .store(0, Ordering::Release);
        still_open_ns
    }

    /// No window is open any more. Only while no breakpoint is armed.
    pub fn settle(&self) {
        self.word(offset_of!(WatchControl, open))
            .store(0, Ordering::Relaxed);
    }

    /// Hits of the window so far, as the kernel half counts them for the limit.
    pub fn hits(&self) -> u64 {
        self.word(offset_of!(WatchControl, hits))
            .load(Ordering::Relaxed)
    }

    fn word(&self, offset: usize) -> &AtomicU64 {
        let word = self.0.at(offset, 8).expect("a field of the mapped value");
        // SAFETY: aligned, mapped as long as `self`; the kernel half too uses whole words only.
        unsafe { AtomicU64::from_ptr(word.cast().as_ptr()) }
    }

    fn word32(&self, offset: usize) -> &AtomicU32 {
        let word = self.0.at(offset, 4).expect("a field of the mapped value");
        // SAFETY: as in `word`.
        unsafe { AtomicU32::from_ptr(word.cast().as_ptr()) }
    }
}

/// What [`WatchControl::open`] is while a window is open.
pub fn open_value(number: u64) -> u64 {
    number.saturating_add(1)
}
