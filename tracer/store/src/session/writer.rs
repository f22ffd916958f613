//! Writes a session: buffers batches, puts them on disk a segment at a time.
//!
//! Whatever happens, the directory reads as a session: `meta.json` is there from the start, a segment exists
//! once its accesses do, and a write that fails ends the recording instead of leaving a gap.

use std::{
    io,
    ops::Range,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use super::{
    allocation_table,
    context_tables::text_bytes,
    directory::Directory,
    error::SessionError,
    meta::{FORMAT, Meta},
    origin::Origin,
    schema::{
        ACCESSES, ALLOCATIONS, AccessColumns, LOCAL_STORAGE, MAPPINGS, MAX_SEGMENT_ROWS,
        MAX_SEGMENT_TEXT_BYTES, MAX_SEGMENT_WINDOWS, MEMORY, PACES, SCHEMA_VERSION, TASKS, WINDOWS,
    },
    segment::{Bound, Position, Segment},
    tally_record::TallyRecord,
};
use crate::event::{Batch, Context, Tally};

/// How to write.
#[derive(Debug, Clone)]
pub struct WriterOptions {
    /// Replace a session of the same name.
    pub force: bool,
    /// A segment is written when its first batch is this old: what a killed recorder can lose.
    pub segment_time: Duration,
    /// A segment is written when this many rows are buffered; at least 1, at most 1,048,576.
    pub segment_rows: usize,
}

impl Default for WriterOptions {
    /// 2 s; 262,144 rows, which is 25 MiB of accesses in memory if no column is the same in all.
    fn default() -> WriterOptions {
        WriterOptions {
            force: false,
            segment_time: Duration::from_secs(2),
            segment_rows: 1 << 18,
        }
    }
}

/// Rows of a batch.
struct Piece {
    accesses: Range<usize>,
    context: Range<usize>,
    windows: Range<usize>,
    allocations: Range<usize>,
}

/// A session being written. Rows not yet on disk are lost if it is dropped without
/// [`finish`](SessionWriter::finish).
#[derive(Debug)]
pub struct SessionWriter {
    directory: Directory,
    meta: Meta,
    segment_time: Duration,
    segment_rows: usize,
    buffer: Segment<AccessColumns>,
    text_bytes: usize,
    /// When the first batch of the buffer came.
    since: Option<Instant>,
    /// Numbers of the buffer's first rows.
    first: Position,
    /// Number of the next batch.
    next_batch: u64,
    /// Of all segments on disk.
    tally: Tally,
}

impl SessionWriter {
    /// Makes the directory at `path` with a `meta.json` that says "not complete". Of `meta`, the writer sets
    /// the fields that its documentation says.
    pub fn create(
        path: &Path,
        meta: Meta,
        options: &WriterOptions,
    ) -> Result<SessionWriter, SessionError> {
        let directory = Directory::create(path, options.force)?;
        let mut writer = SessionWriter {
            directory,
            meta,
            segment_time: options.segment_time,
            segment_rows: options.segment_rows.clamp(1, MAX_SEGMENT_ROWS),
            buffer: Segment::default(),
            text_bytes: 0,
            since: None,
            first: Position::default(),
            next_batch: 0,
            tally: Tally::default(),
        };
        writer.meta.segments = 0;
        writer.meta.stopped = None;
        writer.write_meta(false)?;
        Ok(writer)
    }

    /// Takes a batch, and writes a segment if one is due. An empty batch is a chance to write too.
    ///
    /// After an error the session ends before the rows that could not be written; only
    /// [`finish`](SessionWriter::finish) is then of use.
    pub fn append(&mut self, batch: &Batch) -> Result<(), SessionError> {
        if self.meta.stopped.is_some() {
            return Err(SessionError::Stopped {
                path: self.directory.path.clone(),
            });
        }
        if !batch.is_empty() {
            self.since.get_or_insert_with(Instant::now);
        }
        let text = batch
            .context
            .iter()
            .map(|context| text_bytes(&context.kind))
            .chain(batch.allocations.iter().map(allocation_table::text_bytes));
        let text: usize = text.sum();
        let (accesses, context) = (batch.accesses.len(), batch.context.len());
        let (windows, allocations) = (batch.windows.len(), batch.allocations.len());
        let rows = accesses + context + windows + allocations;
        let segment_rows = self.segment_rows;
        let fits = |buffer: &Segment<AccessColumns>, text_bytes: usize| {
            buffer.rows() + rows <= segment_rows
                && buffer.windows.len() + windows <= MAX_SEGMENT_WINDOWS
                && text_bytes.saturating_add(text) <= MAX_SEGMENT_TEXT_BYTES
        };
        if !fits(&self.buffer, self.text_bytes) {
            self.flush()?;
        }
        self.buffer.tally.add(&batch.tally);
        if !fits(&Segment::default(), 0) {
            self.append_in_pieces(batch)?;
        } else if rows > 0 {
            let all = Piece {
                accesses: 0..accesses,
                context: 0..context,
                windows: 0..windows,
                allocations: 0..allocations,
            };
            self.take(batch, all);
            self.text_bytes += text;
        }
        let due = self
            .since
            .is_some_and(|since| since.elapsed() >= self.segment_time);
        if due || self.buffer.rows() >= self.segment_rows {
            self.flush()?;
        }
        Ok(())
    }

    /// Writes what is buffered, and the final `meta.json` with what was learnt since the start.
    ///
    /// After a failed write the session is finished all the same, as incomplete and with the failure as
    /// [`Meta::stopped`].
    pub fn finish(mut self, meta: Meta) -> Result<(), SessionError> {
        let flushed = self.flush();
        let so_far = std::mem::replace(&mut self.meta, meta);
        self.meta.segments = so_far.segments;
        let complete = so_far.stopped.is_none();
        if !complete {
            // What is on disk ends here, whenever the recording was given up.
            self.meta.end_ns = so_far.end_ns;
        }
        self.meta.end_ns = self.meta.end_ns.or(so_far.end_ns);
        self.meta.stopped = so_far.stopped;
        let written = self.write_meta(complete);
        flushed.and(written)
    }

    /// Where the session is.
    pub fn path(&self) -> &Path {
        &self.directory.path
    }

    /// Rows that are not on disk yet.
    pub fn buffered_rows(&self) -> usize {
        self.buffer.rows()
    }

    /// A batch larger than a segment, cut where all orders allow it: context up to the time of an allocation, and
    /// both up to the time of an access, stay before it, so that the pieces mean what the whole means. Windows come
    /// last, after all accesses.
    fn append_in_pieces(&mut self, batch: &Batch) -> Result<(), SessionError> {
        let (accesses, context) = (&batch.accesses, &batch.context);
        let (windows, allocations) = (batch.windows.len(), &batch.allocations);
        let (mut a, mut c, mut h, mut w) = (0, 0, 0, 0);
        while a < accesses.len() || c < context.len() || h < allocations.len() || w < windows {
            let (first_a, first_c, first_h, first_w, mut text) = (a, c, h, w, 0usize);
            while a - first_a + c - first_c + h - first_h < self.segment_rows {
                let access_ns = accesses.get(a).map_or(u64::MAX, |access| access.time_ns);
                let heap_ns = allocations.get(h).map_or(u64::MAX, |event| event.time_ns);
                let is_first = |event: &&Context| event.time_ns <= access_ns.min(heap_ns);
                let any_text = c > first_c || h > first_h;
                if let Some(event) = context.get(c).filter(is_first) {
                    text = text.saturating_add(text_bytes(&event.kind));
                    if text > MAX_SEGMENT_TEXT_BYTES && any_text {
                        break;
                    }
                    c += 1;
                } else if let Some(event) = allocations.get(h).filter(|_| heap_ns <= access_ns) {
                    text = text.saturating_add(allocation_table::text_bytes(event));
                    if text > MAX_SEGMENT_TEXT_BYTES && any_text {
                        break;
                    }
                    h += 1;
                } else if a < accesses.len() {
                    a += 1;
                } else {
                    break;
                }
            }
            if a == accesses.len() && c == context.len() && h == allocations.len() {
                let rows = a - first_a + c - first_c + h - first_h;
                let room = self.segment_rows - rows;
                w = windows.min(w + room.min(MAX_SEGMENT_WINDOWS));
            }
            let piece = Piece {
                accesses: first_a..a,
                context: first_c..c,
                windows: first_w..w,
                allocations: first_h..h,
            };
            self.take(batch, piece);
            self.flush()?;
        }
        Ok(())
    }

    /// Buffers a piece as one batch.
    fn take(&mut self, batch: &Batch, piece: Piece) {
        self.buffer
            .accesses
            .extend(&batch.accesses[piece.accesses], self.next_batch);
        self.buffer
            .context
            .extend_from_slice(&batch.context[piece.context]);
        self.buffer
            .windows
            .extend_from_slice(&batch.windows[piece.windows]);
        self.buffer
            .allocations
            .extend_from_slice(&batch.allocations[piece.allocations]);
        self.buffer.bounds.push(Bound {
            batch: self.next_batch,
            accesses_end: self.buffer.accesses.len(),
            context_end: self.buffer.context.len(),
            windows_end: self.buffer.windows.len(),
            allocations_end: self.buffer.allocations.len(),
        });
        self.next_batch += 1;
    }

    fn flush(&mut self) -> Result<(), SessionError> {
        self.since = None;
        if self.buffer.is_empty() || self.meta.stopped.is_some() {
            return Ok(());
        }
        let written = self.write_segment();
        if let Err((path, source)) = written {
            self.meta.stopped = Some(format!(
                "recording stopped early: {} could not be written ({source}); {} accesses, {} context \
                 events, {} watch windows and {} heap events after the last segment are missing",
                path.display(),
                self.buffer.accesses.len(),
                self.buffer.context.len(),
                self.buffer.windows.len(),
                self.buffer.allocations.len(),
            ));
            return Err(self.write_error(path, source));
        }
        self.first = Position {
            access: self.first.access + self.buffer.accesses.len() as u64,
            context: self.first.context + self.buffer.context.len() as u64,
            window: self.first.window + self.buffer.windows.len() as u64,
            allocation: self.first.allocation + self.buffer.allocations.len() as u64,
            batch: self.next_batch,
            ..self.first
        };
        self.tally.add(&self.buffer.tally);
        self.meta.segments += 1;
        self.meta.end_ns = self.meta.end_ns.max(self.buffer.newest_ns());
        self.buffer.clear();
        self.text_bytes = 0;
        self.write_meta(false)
    }

    /// Context first, accesses last: a segment without accesses does not exist, so no access can be read whose
    /// mapping was not written.
    fn write_segment(&self) -> Result<(), (PathBuf, io::Error)> {
        let number = self.meta.segments;
        let parts = self
            .buffer
            .encode(number, self.first, &Origin::of(&self.meta))
            .map_err(|error| (self.directory.path.clone(), io::Error::other(error)))?;
        let parts = [
            (&MAPPINGS, parts.mappings),
            (&TASKS, parts.tasks),
            (&LOCAL_STORAGE, parts.local_storage),
            (&MEMORY, parts.memory),
            (&PACES, parts.paces),
            (&WINDOWS, parts.windows),
            (&ALLOCATIONS, parts.allocations),
            (&ACCESSES, Some(parts.accesses)),
        ];
        for (table, part) in &parts {
            let Some(part) = part else { continue };
            if let Err(error) = self.directory.write_part(table, number, part) {
                for (table, _) in &parts {
                    // Only room is at stake: a segment without accesses is not read.
                    let _ = std::fs::remove_file(self.directory.part_path(table, number));
                }
                return Err((self.directory.part_path(table, number), error));
            }
        }
        Ok(())
    }

    fn write_meta(&mut self, complete: bool) -> Result<(), SessionError> {
        FORMAT.clone_into(&mut self.meta.format);
        self.meta.schema_version = SCHEMA_VERSION;
        self.meta.segment_ms = self.segment_time.as_millis() as u64;
        self.meta.tally = TallyRecord::from(&self.tally);
        self.meta.complete = complete;
        let written = self.directory.write_meta(&self.meta);
        written.map_err(|source| {
            let path = self.directory.meta_path();
            self.meta.stopped.get_or_insert_with(|| {
                format!(
                    "recording stopped early: {} could not be written ({source})",
                    path.display()
                )
            });
            self.write_error(path, source)
        })
    }

    fn write_error(&self, path: PathBuf, source: io::Error) -> SessionError {
        SessionError::Write {
            path,
            kept_segments: self.meta.segments,
            source,
        }
    }
}
