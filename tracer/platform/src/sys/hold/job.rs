//! What is shared with the process that holds: one page.

use std::sync::atomic::AtomicU32;

/// Threads that can be held at once: more than fight over a line on the machines that are known, few enough that all stand
/// within the time of a hold.
pub const MOST_HELD: usize = 64;

/// Nothing is asked for; the page is the asker's.
pub(super) const IDLE: u32 = 0;
/// The page is the holder's.
pub(super) const ASKED: u32 = 1;
/// The answer is there; the page is the asker's again.
pub(super) const DONE: u32 = 2;

/// The word, and its thread's time on a CPU, at one moment.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(super) struct Mark {
    /// CLOCK_MONOTONIC.
    pub time_ns: u64,
    /// What the word holds.
    pub word: u64,
    /// Of the word's thread.
    pub run_ns: u64,
}

/// A question and its answer. All zero is one that was never asked.
#[repr(C)]
pub(super) struct Job {
    /// Whose the rest is: [`IDLE`], [`ASKED`], [`DONE`]. A futex.
    pub state: AtomicU32,
    pub pid: u32,
    pub tid: u32,
    pub len: u32,
    pub addr: u64,
    /// Process and thread of each.
    pub others: [[u32; 2]; MOST_HELD],
    pub other_count: u32,
    pub beside_ns: u64,
    pub hold_ns: u64,
    /// The answer from here on: before, held, after; the first and last moment of each.
    pub marks: [Mark; 6],
    pub others_run_ns: u64,
    pub held_ns: u64,
    pub held: u32,
    pub in_system_call: u32,
    /// [`HoldEnd::index`](crate::event::HoldEnd::index).
    pub end: u32,
    pub ended_ns: u64,
}
