//! What statistics are told of the stream, one event at a time.

use crate::{
    access::{Access, Basis},
    coherence::Outcome,
};

/// One event. It belongs to one slice, one CPU (if it is on one), one thread and one process.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// A row of the stream.
    Access(Observed<'a>),
    /// A wait of a sampled access for a line, when it is known whether other threads use the line too: at the latest
    /// when the run is over. It is of the access's slice.
    Wait {
        /// Sampled time, nanoseconds.
        time_ns: u64,
        /// Samples that it was seen in.
        samples: u64,
        /// Whether two threads or more touched the line in this run.
        shared: bool,
    },
    /// A thread started.
    Started {
        /// It is the first of a new process.
        process: bool,
    },
    /// A thread ended.
    Ended,
}

/// An access, and what is known of it besides.
#[derive(Clone, Copy, Debug)]
pub struct Observed<'a> {
    /// The row.
    pub access: &'a Access,
    /// It is the first row of a sample in which the access that the CPU waited for was found, or of a PMU's sample.
    pub first_of_sample: bool,
    /// What the directory made of it, on each line that it touches; nothing but of emulated accesses, and of those only
    /// where a selected statistic asks for it.
    pub outcomes: &'a [Outcome],
}

impl Observed<'_> {
    /// Whether a sample hit this access itself: the CPU waited for it, or a PMU chose it.
    pub fn is_sampled(&self) -> bool {
        matches!(self.access.basis, Basis::Stalled | Basis::Sampled)
    }
}
