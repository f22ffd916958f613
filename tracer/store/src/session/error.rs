//! What can go wrong with a session on disk, and what to do about it.

use std::{
    io,
    path::{Path, PathBuf},
};

use parquet::errors::ParquetError;

/// Why a session could not be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// The place is taken.
    #[error("{} exists already: choose another name, or pass --force to replace a session", path.display())]
    Exists {
        /// The session asked for.
        path: PathBuf,
    },
    /// `--force` was given, and what is there is not (only) a session.
    #[error("{} is not replaced: {reason}; remove it yourself or choose another name", path.display())]
    NotReplaceable {
        /// What is there.
        path: PathBuf,
        /// What makes it no session.
        reason: String,
    },
    /// A file could not be written; the session so far still reads.
    #[error(
        "writing {}: {source}; make room or choose another place, then record again{}",
        path.display(),
        if *kept_segments == 0 { "" } else { " (what was recorded until then is kept and reads)" }
    )]
    Write {
        /// The file or directory.
        path: PathBuf,
        /// Segments that are on disk whole.
        kept_segments: u32,
        /// What the system said.
        source: io::Error,
    },
    /// An earlier write failed, so nothing more is recorded: a gap in the middle would mislead.
    #[error("{} takes no more after a failed write: finish it, make room and record again", path.display())]
    Stopped {
        /// The session.
        path: PathBuf,
    },
    /// There is no readable `meta.json`.
    #[error("{} is not a session: {reason}; give a directory that `cohtrace record` wrote", path.display())]
    NotASession {
        /// The path asked for.
        path: PathBuf,
        /// What is missing.
        reason: String,
    },
    /// Written by a later version of the tool.
    #[error(
        "{} has session schema {found} (written by cohtrace {writer}), this cohtrace {} reads up to {supported}: \
         use that version or a later one",
        path.display(),
        env!("CARGO_PKG_VERSION")
    )]
    Newer {
        /// The session.
        path: PathBuf,
        /// Its schema version.
        found: u64,
        /// The newest this build reads.
        supported: u32,
        /// Version of the tool that wrote it, or `of unknown version`.
        writer: String,
    },
    /// Accesses that lines of this size need are not in it.
    #[error(
        "{} answers for lines of 64 bytes only: it was recorded by a cohtrace that kept one row of what repeats on 64 \
         bytes, so that fights between the halves of {asked} bytes are missing; record it again, or ask with \
         --line-size 64",
        path.display()
    )]
    LineSize {
        /// The session.
        path: PathBuf,
        /// Bytes asked for.
        asked: u64,
    },
    /// A file could not be read.
    #[error("reading {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file is not as it was written.
    #[error("{} is damaged: {damage}; restore it from a copy or record again", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// How it shows.
        #[source]
        damage: Damage,
    },
}

impl SessionError {
    pub(super) fn read(path: &Path, source: io::Error) -> SessionError {
        SessionError::Read {
            path: path.to_owned(),
            source,
        }
    }

    pub(super) fn corrupt(path: &Path, damage: impl Into<Damage>) -> SessionError {
        SessionError::Corrupt {
            path: path.to_owned(),
            damage: damage.into(),
        }
    }
}

impl Damage {
    /// A value outside its range.
    pub(super) fn value(column: &'static str, row: usize, value: impl Into<u64>) -> Damage {
        Damage::Value {
            column,
            row,
            value: value.into(),
        }
    }
}

/// How a damaged file shows its damage.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Damage {
    /// A part that must be there is not.
    #[error("the file is missing")]
    MissingPart,
    /// A part is there that its segment does not have.
    #[error("the segment should have no such part")]
    UnexpectedPart,
    /// Not a regular file, or larger than any part.
    #[error("it is no regular file of at most {limit} bytes")]
    Size {
        /// The most a part can have.
        limit: u64,
    },
    /// The checksum is absent, or of other bytes.
    #[error("its checksum {0}")]
    Seal(&'static str),
    /// The Parquet reader refused it.
    #[error("{0}")]
    Parquet(#[from] ParquetError),
    /// The Parquet reader gave up in a way that it should not.
    #[error("the Parquet reader stopped at impossible content")]
    Panicked,
    /// The footer or a page announces what cannot be.
    #[error("column {column} announces {what}")]
    Claim {
        /// The column.
        column: &'static str,
        /// The announcement.
        what: &'static str,
    },
    /// Columns are missing, of other types, or too many.
    #[error("its columns are not those of table {table}: {detail}")]
    Columns {
        /// The table.
        table: &'static str,
        /// The first difference.
        detail: String,
    },
    /// Row counts disagree.
    #[error("it has {found} rows of {what}, {expected} expected")]
    Rows {
        /// Which rows.
        what: &'static str,
        /// How many there are.
        found: u64,
        /// How many there should be.
        expected: u64,
    },
    /// More rows than a segment can have.
    #[error("it announces {found} rows, a segment has at most {limit}")]
    TooManyRows {
        /// How many it announces.
        found: u64,
        /// The most a table has in a segment.
        limit: usize,
    },
    /// A value outside its range.
    #[error("row {row} has {column} {value}, which means nothing")]
    Value {
        /// The column.
        column: &'static str,
        /// The row in the part, from 0.
        row: usize,
        /// The value.
        value: u64,
    },
    /// The names in it would fill the memory.
    #[error("its names exceed {limit} bytes")]
    Text {
        /// The most a segment can have.
        limit: usize,
    },
    /// `meta.json`, or the JSON in a part's footer.
    #[error("{0}")]
    Json(#[from] serde_json::Error),
    /// `meta.json` says something that cannot be.
    #[error("{0}")]
    Meta(&'static str),
}
