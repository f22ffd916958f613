//! What can go wrong with the sort, and what to do about it.

use std::{io, path::PathBuf};

/// Why a stream could not be sorted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpillError {
    /// No file can be made for what does not fit in memory.
    #[error(
        "the accesses need more than {memory_mib} MiB of memory to sort, and {} takes no temporary file: {source}; \
         set TMPDIR to a directory with room, or give more with --memory",
        directory.display()
    )]
    Create {
        /// Directory of the temporary file.
        directory: PathBuf,
        /// The bound, MiB.
        memory_mib: u64,
        /// What the system said.
        source: io::Error,
    },
    /// The file takes no more.
    #[error(
        "sorting the accesses: writing the temporary file in {} after {written_mib} MiB: {source}; make room, set \
         TMPDIR to a directory with room, or give more memory with --memory",
        directory.display()
    )]
    Write {
        /// Directory of the temporary file.
        directory: PathBuf,
        /// How much it has taken, MiB.
        written_mib: u64,
        /// What the system said.
        source: io::Error,
    },
    /// The file does not give back what it was given.
    #[error("sorting the accesses: reading the temporary file in {}: {source}", directory.display())]
    Read {
        /// Directory of the temporary file.
        directory: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The system gives no thread.
    #[error("sorting the accesses: starting a thread: {0}")]
    Thread(#[source] io::Error),
}

impl SpillError {
    /// What was written there does not come back.
    pub(super) fn changed(directory: PathBuf) -> SpillError {
        let what = "it is not as it was written";
        SpillError::Read {
            directory,
            source: io::Error::new(io::ErrorKind::InvalidData, what),
        }
    }
}
