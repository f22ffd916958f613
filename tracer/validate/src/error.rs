//! Why something was not counted.

use std::io;

use crate::source::SourceError;

/// Why an event could not be counted, or a run of it not to its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotCounted {
    /// This build carries no program.
    #[error("this build has no program to count in: it is for x86-64 Linux")]
    NoProgram,
    /// The program's file cannot be made or read.
    #[error("{what}: {source}")]
    Program {
        /// What was tried.
        what: &'static str,
        /// Why it failed.
        source: io::Error,
    },
    /// The carried program lacks something.
    #[error("the carried program has no {0}")]
    NoSymbol(String),
    /// The program ended otherwise than it should.
    #[error("the program that was asked for {n} ended early: {how}")]
    Ended {
        /// Events that it was asked for.
        n: u64,
        /// As the system tells it.
        how: String,
    },
    /// It took too long.
    #[error("a run took more than {seconds} s and was given up")]
    TooLong {
        /// The limit.
        seconds: u64,
    },
    /// A source cannot run here.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// An event of the kernel cannot be counted here.
    #[error(transparent)]
    Event(#[from] crate::sys::perf_event::OpenError),
    /// No function can be probed here.
    #[error(transparent)]
    Uprobes(#[from] crate::sys::uprobe::NoUprobes),
    /// A model of caches that cannot be.
    #[error(transparent)]
    Model(#[from] crate::coherence::ModelError),
    /// The source has no windows.
    #[error("no breakpoint register is to be had for a watch window")]
    NoWindow,
    /// A window ended before the program did.
    #[error("the watch window ended early: {0:?}")]
    WindowEnded(crate::event::WindowEnd),
    /// No PMU of a core is here.
    #[error("unavailable: no PMU")]
    NoPmu,
    /// The PMU of a core does not have the event.
    #[error("unavailable: the PMU has no such event")]
    NoPmuEvent,
    /// The PMU counted for a part of the time only.
    #[error("others had the PMU's counters for {percent:.0} % of the time")]
    Shared {
        /// Part of the time, percent.
        percent: f64,
    },
    /// Nothing tells how large the first-level instruction cache is.
    #[error("unavailable: the kernel does not tell the size of the instruction cache")]
    NoInstructionCache,
    /// The user asked to stop.
    #[error("interrupted")]
    Stopped,
}

impl NotCounted {
    /// Whether the machine has not what it takes, so that nothing that is allowed or installed would help.
    pub fn is_absent(&self) -> bool {
        matches!(
            self,
            NotCounted::NoPmu | NotCounted::NoPmuEvent | NotCounted::NoInstructionCache
        )
    }

    /// Of what was tried with the program's file or pipes.
    pub(crate) fn of(what: &'static str) -> impl FnOnce(io::Error) -> NotCounted {
        move |source| NotCounted::Program { what, source }
    }
}
