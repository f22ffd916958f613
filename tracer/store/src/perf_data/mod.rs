//! Recordings of `perf c2c record`, `perf mem record` and any `perf record` whose samples have data addresses:
//! perf.data files and pipes, read record by record.
//!
//! ```text
//!  file ──► header ──► records ──► convert ──► order ──► Batch
//!           (sections)  (frames,    (events,    (rounds,
//!                        unpack)     samples)    bounded)
//! ```
//!
//! The format is that of tools/perf/Documentation/perf.data-file-format.txt and tools/perf/util/{header,session}.c.
//! Files are not trusted: what cannot be read is counted, what says to be larger than it can be is cut, and no more
//! than a bounded number of records is held. Both byte orders are read.

mod attr;
mod convert;
mod counts;
mod description;
mod events;
mod features;
mod header;
mod order;
#[cfg(any(test, feature = "fixtures"))]
pub mod recording;
mod records;
mod side_band;
mod sizes;
#[cfg(test)]
mod tests;
mod unpack;

use std::{
    io::{self, Read, Seek},
    sync::Arc,
};

use convert::State;
use header::{Header, Start, start};
use records::Records;
use sizes::Sizes;

pub use description::Description;

use crate::{event::Batch, module::ModuleStore};

/// Name of the source in sessions and reports.
pub const NAME: &str = "perf-data";

/// Items in one batch.
const BATCH_ITEMS: usize = 4096;

/// Why a file is no recording that can be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PerfDataError {
    /// The magic number is another.
    #[error("not a perf.data file: it does not begin with PERFILE2")]
    NotPerfData,
    /// The first version of the format, of 2009.
    #[error(
        "a perf.data of version 1, which perf wrote before Linux 2.6.32; only version 2 is read"
    )]
    Version1,
    /// The header says what cannot be.
    #[error("not a usable perf.data: {0}")]
    Header(&'static str),
    /// A part of a directory.
    #[error(
        "one of the files of `perf record --threads`, which leaves a directory of them; record without --threads"
    )]
    Directory,
    /// A file where only a pipe can be.
    #[error(
        "a perf.data that was recorded to a file cannot be read from a pipe, since it has what is needed first at \
         its end; give its name"
    )]
    FileInPipe,
    /// No event is described.
    #[error("it describes no event, so its samples cannot be read")]
    NoEvents,
    /// Samples of several events that cannot be told apart.
    #[error(
        "its events record different fields without an id (PERF_SAMPLE_IDENTIFIER), so its samples cannot be told \
         apart"
    )]
    NoIds,
    /// A kernel of 32 bits.
    #[error(
        "recorded on a 32-bit kernel ({0}), whose own addresses cannot be told from those of programs; only 64-bit \
         kernels are read"
    )]
    Kernel32Bit(String),
    /// Samples are still inside a hardware's trace.
    #[error(
        "its accesses are in a trace of Arm SPE, which only perf can take apart: run `perf inject --itrace=M -i \
         perf.data -o injected.data` on the machine that recorded it and import that"
    )]
    ArmSpe,
    /// The system could not read it.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// A recording being read.
pub struct PerfData<R> {
    records: Records<R>,
    state: State,
    no_features: bool,
    unfinished: bool,
    ended: bool,
}

impl<R: Read + Seek> PerfData<R> {
    /// Opens a file, of whichever of the two forms.
    pub fn open(mut from: R) -> Result<PerfData<R>, PerfDataError> {
        let header = match start(&mut from)? {
            Start::Pipe { order, header } => Header::of_pipe(order, header),
            Start::File { order, rest } => Header::of_file(&mut from, order, &rest)?,
        };
        PerfData::new(from, header)
    }
}

impl<R: Read> PerfData<R> {
    /// Reads what a `perf record -o -` writes.
    pub fn from_pipe(mut from: R) -> Result<PerfData<R>, PerfDataError> {
        match start(&mut from)? {
            Start::Pipe { order, header } => PerfData::new(from, Header::of_pipe(order, header)),
            Start::File { .. } => Err(PerfDataError::FileInPipe),
        }
    }

    fn new(from: R, header: Header) -> Result<PerfData<R>, PerfDataError> {
        header.features.check()?;
        Ok(PerfData {
            records: Records::new(from, header.order, header.start, header.len),
            no_features: header.no_features,
            unfinished: !header.pipe && header.len.is_none(),
            state: State::new(header.events, header.features, header.pipe),
            ended: false,
        })
    }

    /// Looks up the sizes of accesses in files of these modules, which are to be those that were
    /// [recorded elsewhere](ModuleStore::recorded_elsewhere): perf does not record them.
    #[must_use]
    pub fn with_modules(mut self, modules: Arc<ModuleStore>) -> PerfData<R> {
        self.state.sizes = Some(Sizes::new(modules));
        self
    }

    /// Appends the next stretch to an empty batch; `false` when there is no more.
    pub fn next_batch(&mut self, batch: &mut Batch) -> Result<bool, PerfDataError> {
        loop {
            if self.state.give(batch, BATCH_ITEMS) {
                return Ok(true);
            }
            if self.ended {
                return Ok(!batch.is_empty());
            }
            if let Some(record) = self.records.next()? {
                self.state.take(&record)?;
                self.take_trace();
                continue;
            }
            self.ended = true;
            if self.state.events.list().is_empty() {
                return Err(PerfDataError::NoEvents);
            }
            self.state.finish();
        }
    }

    /// Counts the bytes of a hardware's trace that follow a record, which the next record passes over.
    fn take_trace(&mut self) {
        let len = self.records.trace_len();
        let counts = &mut self.state.counts;
        counts.other_trace_bytes = counts.other_trace_bytes.saturating_add(len);
    }

    /// Bytes of records read so far.
    pub fn position(&self) -> u64 {
        self.records.position()
    }

    /// What is known of the recording; complete once all batches were read.
    pub fn description(&self) -> Description {
        Description::of(self)
    }
}
