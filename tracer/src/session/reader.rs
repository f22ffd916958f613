//! Reads a session: the batches that were written, a segment at a time.
//!
//! Of an unfinished recording the last segment may be missing or damaged; that is a caveat. Any other damage
//! is an error that names the file: a stream with a hole would be judged as if it were whole.

use std::{fmt, path::Path};

use super::{
    directory::Directory,
    error::{Damage, SessionError},
    meta::Meta,
    schema::{ACCESSES, MAPPINGS, TASKS, Table},
    segment::{self, Position, Segment},
    tally_record::TallyRecord,
};
use crate::event::Batch;

/// What a reader of the data must know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Caveat {
    /// The recorder was killed, or still records.
    Incomplete {
        /// Time that may be missing at the end, milliseconds.
        missing_ms: u64,
    },
    /// The recorder could not go on; its own words.
    Stopped(String),
    /// The last segment of an unfinished recording cannot be read.
    LastSegmentLost {
        /// Its number.
        segment: u32,
        /// What is wrong with it.
        reason: String,
    },
    /// Said by the recorder.
    Recorded(String),
}

impl fmt::Display for Caveat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Caveat::Incomplete { missing_ms } => write!(
                f,
                "recording did not end normally; the last {:.1} s may be missing",
                *missing_ms as f64 / 1e3
            ),
            Caveat::LastSegmentLost { segment, reason } => {
                write!(f, "the last segment ({segment}) is left out: {reason}")
            }
            Caveat::Stopped(text) | Caveat::Recorded(text) => f.write_str(text),
        }
    }
}

/// A session being read. Holds one segment.
#[derive(Debug)]
pub struct SessionReader {
    directory: Directory,
    meta: Meta,
    caveats: Vec<Caveat>,
    /// Segments that there are or should be.
    segments: u32,
    /// The next one to decode.
    next_segment: u32,
    /// Numbers of its first rows.
    first: Position,
    /// The one being given out.
    segment: Segment,
    /// The next of its batches.
    next_bound: usize,
    /// Rows of it that were given out.
    given: (usize, usize),
}

impl SessionReader {
    /// Opens the session at `path`. Its segments are checked as they are read.
    pub fn open(path: &Path) -> Result<SessionReader, SessionError> {
        let (directory, meta) = Directory::open(path)?;
        let segments = directory.segments()?;
        let mut caveats = Vec::new();
        match &meta.stopped {
            Some(reason) => caveats.push(Caveat::Stopped(reason.clone())),
            None if !meta.complete => caveats.push(Caveat::Incomplete {
                missing_ms: meta.segment_ms,
            }),
            None => {}
        }
        caveats.extend(meta.caveats.iter().cloned().map(Caveat::Recorded));
        Ok(SessionReader {
            segments: segments.max(meta.segments),
            directory,
            meta,
            caveats,
            next_segment: 0,
            first: Position::default(),
            segment: Segment::default(),
            next_bound: 0,
            given: (0, 0),
        })
    }

    /// What `meta.json` says, in today's shape.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// What must be said of the data; whole once all batches are read.
    pub fn caveats(&self) -> &[Caveat] {
        &self.caveats
    }

    /// Fills `batch` with the next one; `false` when there is none, with `batch` empty. The tally of a segment
    /// comes with its first batch.
    pub fn next_batch(&mut self, batch: &mut Batch) -> Result<bool, SessionError> {
        batch.clear();
        while self.next_bound == self.segment.bounds.len() {
            if self.next_segment == self.segments {
                return Ok(false);
            }
            self.next_bound = 0;
            self.given = (0, 0);
            self.segment.clear();
            match self.read_segment(self.next_segment) {
                Ok(segment) => self.segment = segment,
                Err(error) if self.is_last_of_unfinished() => {
                    self.caveats.push(Caveat::LastSegmentLost {
                        segment: self.next_segment,
                        reason: error.to_string(),
                    });
                }
                Err(error) => {
                    // Asked again, the reader says the end and not the next segment.
                    self.next_segment = self.segments;
                    return Err(error);
                }
            }
            self.next_segment += 1;
            self.first = Position {
                access: self.first.access + self.segment.accesses.len() as u64,
                context: self.first.context + self.segment.context.len() as u64,
                batch: self
                    .segment
                    .bounds
                    .last()
                    .map_or(self.first.batch, |bound| bound.batch + 1),
                counted: self.first.counted
                    + TallyRecord::from(&self.segment.tally).total().unwrap_or(0),
            };
            batch.tally = std::mem::take(&mut self.segment.tally);
        }
        let bound = self.segment.bounds[self.next_bound];
        self.next_bound += 1;
        let (accesses, context) = self.given;
        batch
            .accesses
            .extend_from_slice(&self.segment.accesses[accesses..bound.accesses_end]);
        batch
            .context
            .extend_from_slice(&self.segment.context[context..bound.context_end]);
        self.given = (bound.accesses_end, bound.context_end);
        Ok(true)
    }

    fn is_last_of_unfinished(&self) -> bool {
        !self.meta.complete && self.next_segment + 1 == self.segments
    }

    fn read_segment(&self, number: u32) -> Result<Segment, SessionError> {
        let path = |table: &Table| self.directory.part_path(table, number);
        let damaged = |table: &Table, damage| SessionError::corrupt(&path(table), damage);
        let accesses = self.directory.read_part(&ACCESSES, number)?;
        let decoded = segment::decode_accesses(accesses, number, self.first)
            .map_err(|damage| damaged(&ACCESSES, damage))?;
        let (mut mappings, mut tasks) = (Vec::new(), Vec::new());
        if self.wants_part(&MAPPINGS, number, decoded.whole.mappings)? {
            let part = self.directory.read_part(&MAPPINGS, number)?;
            mappings = segment::decode_mappings(part, number, decoded.whole.mappings)
                .map_err(|damage| damaged(&MAPPINGS, damage))?;
        }
        if self.wants_part(&TASKS, number, decoded.whole.tasks)? {
            let part = self.directory.read_part(&TASKS, number)?;
            tasks = segment::decode_tasks(part, number, decoded.whole.tasks)
                .map_err(|damage| damaged(&TASKS, damage))?;
        }
        segment::assemble(decoded, mappings, tasks, self.first)
            .map_err(|damage| damaged(&ACCESSES, damage))
    }

    /// Whether a context part is to be read: exactly when it has rows.
    fn wants_part(&self, table: &Table, number: u32, rows: u64) -> Result<bool, SessionError> {
        if rows == 0 && self.directory.has_part(table, number) {
            let path = self.directory.part_path(table, number);
            return Err(SessionError::corrupt(&path, Damage::UnexpectedPart));
        }
        Ok(rows > 0)
    }
}
