//! How fast a word of memory grew that only one thread stores to: beside the other threads of its line, and while they
//! were held.

use crate::access::{Pid, Tid};

/// A word's growth, and its thread's time on a CPU meanwhile.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Growth {
    /// What was added to the word.
    pub added: u64,
    /// Time that its thread ran, nanoseconds.
    pub run_ns: u64,
}

impl Growth {
    /// Per nanosecond of the thread's run time; `None` where it did not run.
    pub fn rate(self) -> Option<f64> {
        (self.run_ns > 0).then(|| self.added as f64 / self.run_ns as f64)
    }

    /// Both together.
    #[must_use]
    pub fn and(self, other: Growth) -> Growth {
        Growth {
            added: self.added.saturating_add(other.added),
            run_ns: self.run_ns.saturating_add(other.run_ns),
        }
    }
}

/// How a reading ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HoldEnd {
    /// The others were held, and let go, and all was read.
    Held,
    /// Nobody was to be held.
    Beside,
    /// The word did not grow steadily, or too slowly for so short a time; nobody was held.
    Slow,
    /// The thread ran on and its word stood still while the others were held: what it waits for, one of them had. They
    /// were let go at once.
    Stuck,
    /// The thread was off its CPU while the others were held; they were let go.
    OffCpu,
    /// Not all of the others stopped in time, or one ran meanwhile; they were let go.
    NotStopped,
    /// One of the others may not be held: another debugger has it, or a right is missing.
    Refused,
    /// The word could not be read, or a thread has ended.
    Gone,
}

impl HoldEnd {
    /// All, in the order of their codes.
    pub const ALL: [HoldEnd; 8] = [
        HoldEnd::Held,
        HoldEnd::Beside,
        HoldEnd::Slow,
        HoldEnd::Stuck,
        HoldEnd::OffCpu,
        HoldEnd::NotStopped,
        HoldEnd::Refused,
        HoldEnd::Gone,
    ];

    /// Its place in [`HoldEnd::ALL`].
    pub fn index(self) -> u8 {
        self as u8
    }
}

/// One reading of a word's growth: for some milliseconds beside the others, while they were held, and beside them again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// Process.
    pub pid: Pid,
    /// The thread that alone stores to the word.
    pub tid: Tid,
    /// The word: virtual address of its first byte.
    pub addr: u64,
    /// Its length in bytes, 4 or 8.
    pub len: u8,
    /// An address on the line whose other threads were held, or were to be held.
    pub line_addr: u64,
    /// Before and after, together.
    pub beside: Growth,
    /// What the others ran in that time, all of them together, nanoseconds.
    pub others_run_ns: u64,
    /// Wall time of it, nanoseconds.
    pub beside_ns: u64,
    /// While the others were held; nothing where they were not.
    pub alone: Growth,
    /// For how long they were held, from the first that was asked to stop to the last that was let go, nanoseconds.
    pub held_ns: u64,
    /// Threads that were held.
    pub held: u16,
    /// Of those, threads that were in a system call when they stopped, which it may interrupt.
    pub in_system_call: u16,
    /// The others, held or not.
    pub others: u16,
    /// How it ended.
    pub end: HoldEnd,
}

impl Pace {
    /// Whether the others ran as well while the thread was read beside them: only then does it tell what they do to it. On
    /// average one of them, or nearly, was on a CPU all the time.
    pub fn is_together(&self) -> bool {
        self.others_run_ns.saturating_mul(10) >= self.beside_ns.saturating_mul(8)
    }
}
