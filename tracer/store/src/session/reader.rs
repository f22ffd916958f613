//! Reads a session: the batches that were written, a segment at a time.
//!
//! Of an unfinished recording the last segment may be missing or damaged; that is a caveat. Any other damage
//! is an error that names the file: a stream with a hole would be judged as if it were whole.

use std::{fmt, path::Path, sync::Arc};

use super::{
    directory::Directory,
    error::SessionError,
    meta::Meta,
    read_ahead::ReadAhead,
    schema::ACCESSES,
    segment::{Bound, Position, Segment},
};
use crate::{
    access::{CostUnit, LineSize},
    event::{Batch, Tally},
};

/// What a reader of the data must know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Caveat {
    /// The recorder was killed, or still records.
    Incomplete {
        /// Time that may be missing at the end, milliseconds.
        missing_ms: u64,
    },
    /// The recorder had not yet taken these samples over, or not yet written them, when the last segment was.
    OnTheirWay {
        /// Samples not in the segments.
        samples: u64,
    },
    /// The recorder could not go on; its own words.
    Stopped(String),
    /// The last segment of an unfinished recording cannot be read.
    LastSegmentLost {
        /// The segment's number.
        segment: u32,
        /// What is wrong with it.
        reason: String,
    },
    /// Said by the recorder.
    Recorded(String),
    /// Said by the recorder of how it measured.
    Remark(String),
}

impl fmt::Display for Caveat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Caveat::Incomplete { missing_ms } => write!(
                f,
                "recording did not end normally; the last {:.1} s may be missing",
                *missing_ms as f64 / 1e3
            ),
            Caveat::OnTheirWay { samples } => write!(
                f,
                "{samples} further {} taken, and had not arrived when the last of the recording was written",
                if *samples == 1 {
                    "sample was"
                } else {
                    "samples were"
                }
            ),
            Caveat::LastSegmentLost { segment, reason } => {
                write!(f, "the last segment ({segment}) is left out: {reason}")
            }
            Caveat::Stopped(text) | Caveat::Recorded(text) | Caveat::Remark(text) => {
                f.write_str(text)
            }
        }
    }
}

/// A session being read. Holds one segment, and a few that were decoded ahead.
#[derive(Debug)]
pub struct SessionReader {
    directory: Arc<Directory>,
    /// From the first segment that is asked for to the last one.
    ahead: Option<ReadAhead>,
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
    /// End of the batch that was given out last.
    given: Bound,
    /// Samples that were taken and are not in the segments so far, nor lost, of a recording that did not end normally.
    on_their_way: u64,
    /// Of the parts of accesses: bytes before the segment, in it, and in all.
    bytes_read: (u64, u64, u64),
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
        caveats.extend(meta.remarks.iter().cloned().map(Caveat::Remark));
        let segments = segments.max(meta.segments);
        let bytes = (0..segments).map(|segment| directory.part_bytes(&ACCESSES, segment));
        Ok(SessionReader {
            bytes_read: (0, 0, bytes.sum()),
            segments,
            directory: Arc::new(directory),
            ahead: None,
            meta,
            caveats,
            next_segment: 0,
            first: Position::default(),
            segment: Segment::default(),
            next_bound: 0,
            given: Bound::default(),
            on_their_way: 0,
        })
    }

    /// The same, to find out what lines of this size cost; refused where the recording does not say.
    pub fn open_for(path: &Path, line_size: LineSize) -> Result<SessionReader, SessionError> {
        let reader = SessionReader::open(path)?;
        if reader.meta.answers(line_size) {
            return Ok(reader);
        }
        Err(SessionError::LineSize {
            path: path.to_owned(),
            asked: line_size.bytes(),
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

    /// Share of the accesses' bytes that were given out, 0..=1: how far a reader is.
    pub fn share_read(&self) -> f64 {
        let (before, segment, all) = self.bytes_read;
        let within = self.next_bound as f64 / self.segment.bounds.len().max(1) as f64;
        (before as f64 + segment as f64 * within) / all.max(1) as f64
    }

    /// Fills `batch` with the next one; `false` when there is none, with `batch` empty. The tally of a segment
    /// comes with its first batch.
    pub fn next_batch(&mut self, batch: &mut Batch) -> Result<bool, SessionError> {
        batch.clear();
        while self.next_bound == self.segment.bounds.len() {
            if self.next_segment == self.segments {
                self.ahead = None;
                let samples = std::mem::take(&mut self.on_their_way);
                if samples > 0 {
                    self.caveats.push(Caveat::OnTheirWay { samples });
                }
                return Ok(false);
            }
            self.next_bound = 0;
            self.given = Bound::default();
            self.segment = Segment::default();
            match self.read_segment() {
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
                    self.ahead = None;
                    return Err(error);
                }
            }
            let (before, segment, all) = self.bytes_read;
            let bytes = self.directory.part_bytes(&ACCESSES, self.next_segment);
            self.bytes_read = (before + segment, bytes, all);
            self.next_segment += 1;
            self.first = self.first.after(&self.segment);
            batch.tally = std::mem::take(&mut self.segment.tally);
            if self.meta.cost_unit == CostUnit::Transactions {
                batch.tally.executions = std::mem::take(&mut batch.tally.samples);
            }
            if !self.meta.complete {
                self.count_what_arrived(&mut batch.tally);
            }
        }
        let bound = self.segment.bounds[self.next_bound];
        self.next_bound += 1;
        self.segment.give(self.given, bound, batch);
        self.given = bound;
        Ok(true)
    }

    /// A sample is counted as taken before it arrives, maybe with the next segment. Where the recorder was stopped in between,
    /// it is counted with its arrival instead, so that what is there adds up.
    fn count_what_arrived(&mut self, tally: &mut Tally) {
        let arrived = tally.counted().saturating_add(tally.lost_total());
        let taken = std::mem::replace(&mut tally.produced, arrived);
        self.on_their_way = (self.on_their_way.saturating_add(taken)).saturating_sub(arrived);
    }

    fn is_last_of_unfinished(&self) -> bool {
        !self.meta.complete && self.next_segment + 1 == self.segments
    }

    /// The next segment, decoded ahead.
    fn read_segment(&mut self) -> Result<Segment, SessionError> {
        let (directory, segments) = (&self.directory, self.segments);
        let ahead = (self.ahead).get_or_insert_with(|| ReadAhead::start(directory, segments));
        let numbered = ahead.take(self.next_segment)?;
        numbered.from(self.first).map_err(|(table, damage)| {
            let path = self.directory.part_path(table, self.next_segment);
            SessionError::corrupt(&path, damage)
        })
    }
}
