//! Why an observation cannot be.

use std::io;

use crate::{names::WatchTextError, source::SourceError};

/// Why an observation could not begin, or went on no longer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ObserveError {
    /// Of the source.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// What was asked to be watched cannot be read.
    #[error(transparent)]
    WatchText(#[from] WatchTextError),
    /// The process that holds threads could not be started.
    #[error("starting the process that holds threads (--hold)")]
    Hold(#[source] io::Error),
    /// Memory of no process in particular.
    #[error(
        "--watch names memory of a process: give that process with -p, or start it with `-- COMMAND`"
    )]
    WatchOfNobody,
    /// What was asked to be watched is nowhere.
    #[error("--watch {0}")]
    NothingToWatch(String),
    /// The tool was asked to observe itself.
    #[error("pid {0} is cohtrace itself")]
    Itself(u32),
    /// A process could not be opened.
    #[error("watching process {pid}")]
    Process {
        /// Process number that was asked for.
        pid: u32,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The command could not be forked.
    #[error("starting {command}")]
    Start {
        /// Its program.
        command: String,
        /// What the fork or a descriptor for it failed with.
        source: io::Error,
    },
    /// The command could not become its program.
    #[error("running {command}")]
    Run {
        /// As it was typed.
        command: String,
        /// What its `exec` failed with.
        source: io::Error,
    },
    /// Signals and descriptors could not be waited for.
    #[error("preparing to wait for signals and samples")]
    Wait(#[source] io::Error),
}
