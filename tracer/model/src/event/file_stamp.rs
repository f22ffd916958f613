//! When a file was what it was.

use std::{fs::Metadata, os::unix::fs::MetadataExt as _};

/// Length and times of a file: while they stay, so do its bytes. One of the same number in its place has others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileStamp {
    /// Length, bytes.
    pub bytes: u64,
    /// Last change of its bytes, nanoseconds since 1970-01-01 UTC. Anybody who may write to the file can set it.
    pub modified_ns: u64,
    /// Last change of its bytes, owner, mode or number of names, nanoseconds since 1970-01-01 UTC, which nobody can set.
    pub changed_ns: u64,
}

impl FileStamp {
    /// What the file system says now; of times before 1970, that year.
    pub fn of(metadata: &Metadata) -> FileStamp {
        let ns = |seconds: i64, ns: i64| {
            let seconds = u64::try_from(seconds).unwrap_or_default();
            let ns = u64::try_from(ns).unwrap_or_default();
            seconds.saturating_mul(1_000_000_000).saturating_add(ns)
        };
        FileStamp {
            bytes: metadata.len(),
            modified_ns: ns(metadata.mtime(), metadata.mtime_nsec()),
            changed_ns: ns(metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    /// Whether it has the same bytes, whatever became of its names, owner and mode.
    pub fn same_bytes(&self, other: &FileStamp) -> bool {
        (self.bytes, self.modified_ns) == (other.bytes, other.modified_ns)
    }
}
