//! Decodes segments on several threads, a few ahead of the reader.
//!
//! Thread n of N decodes segments n, n + N, n + 2N, .. and goes on when one is taken: so at most N decoded segments
//! wait, and the reader finds them in order.

use std::{
    sync::{
        Arc,
        mpsc::{Receiver, sync_channel},
    },
    thread::{self, JoinHandle},
};

use super::{
    allocation_table,
    context_tables::{decode_blocks, decode_mappings, decode_memory, decode_paces, decode_tasks},
    directory::Directory,
    error::{Damage, SessionError},
    part_reader::ColumnSource,
    parts::{self, Of},
    schema::{
        ACCESSES, ALLOCATIONS, LOCAL_STORAGE, MAPPINGS, MEMORY, PACES, TASKS, Table, WINDOWS,
    },
    segment::{self, Numbered},
    window_table,
};

/// Threads at most: beyond it, whoever takes the segments is slower than they are.
const MOST_THREADS: usize = 4;

/// A segment, or what is wrong with it.
type Decoded = Result<Numbered, SessionError>;

/// Segments being decoded.
#[derive(Debug)]
pub(super) struct ReadAhead {
    directory: Arc<Directory>,
    /// What each thread has decoded; it ends when this is dropped.
    decoded: Vec<Receiver<Decoded>>,
    threads: Vec<JoinHandle<()>>,
}

impl ReadAhead {
    /// Starts with the first of so many segments.
    pub(super) fn start(directory: &Arc<Directory>, segments: u32) -> ReadAhead {
        let cpus = thread::available_parallelism().map_or(1, Into::into);
        let wanted = cpus.min(MOST_THREADS).min(segments as usize);
        let (mut all_decoded, mut threads) = (Vec::new(), Vec::new());
        for first in 0..wanted {
            let (sender, receiver) = sync_channel(0);
            let directory = directory.clone();
            let decode = move || {
                for number in (first as u32..segments).step_by(wanted) {
                    let decoded = read_segment(&directory, number);
                    // Behind a damaged segment nothing is read.
                    let last = decoded.is_err();
                    if sender.send(decoded).is_err() || last {
                        break;
                    }
                }
            };
            let thread = thread::Builder::new()
                .name("decode".to_owned())
                .spawn(decode);
            let Ok(thread) = thread else {
                // All or none, so that each has its turn.
                all_decoded.clear();
                break;
            };
            all_decoded.push(receiver);
            threads.push(thread);
        }
        ReadAhead {
            directory: directory.clone(),
            decoded: all_decoded,
            threads,
        }
    }

    /// The segment of that number; to be asked for one after the other from 0.
    pub(super) fn take(&self, number: u32) -> Decoded {
        let turn = (number as usize).checked_rem(self.decoded.len());
        let decoded = turn.and_then(|turn| self.decoded[turn].recv().ok());
        decoded.unwrap_or_else(|| read_segment(&self.directory, number))
    }
}

/// Nothing reads on that nobody waits for.
impl Drop for ReadAhead {
    fn drop(&mut self) {
        self.decoded.clear();
        for thread in self.threads.drain(..) {
            // A panic there was told when it happened.
            let _ = thread.join();
        }
    }
}

/// Reads and decodes the parts of a segment; whether it is the one that follows another is not looked at.
fn read_segment(directory: &Directory, number: u32) -> Decoded {
    let damaged =
        |damage: Damage| SessionError::corrupt(&directory.part_path(&ACCESSES, number), damage);
    let of = Of {
        origin: &directory.origin,
        segment: number,
    };
    let accesses = directory.read_part(&ACCESSES, number)?;
    let decoded = parts::decode_accesses(accesses, of).map_err(damaged)?;
    let at = (directory, of);
    let counts = &decoded.whole;
    let mut context = read_rows(at, &MAPPINGS, counts.mappings, decode_mappings)?;
    context.extend(read_rows(at, &TASKS, counts.tasks, decode_tasks)?);
    let blocks = counts.local_storage;
    context.extend(read_rows(at, &LOCAL_STORAGE, blocks, decode_blocks)?);
    context.extend(read_rows(at, &MEMORY, counts.memory, decode_memory)?);
    context.extend(read_rows(at, &PACES, counts.paces, decode_paces)?);
    let windows = read_rows(at, &WINDOWS, counts.windows, window_table::decode)?;
    let (events, decode) = (counts.allocations, allocation_table::decode);
    let allocations = read_rows(at, &ALLOCATIONS, events, decode)?;
    segment::assemble(decoded, context, windows, allocations).map_err(damaged)
}

/// Reads and decodes a part other than `accesses`, which is there exactly when it has rows.
fn read_rows<T: Default>(
    (directory, of): (&Directory, Of<'_>),
    table: &'static Table,
    rows: u64,
    decode: fn(&mut ColumnSource<'_>) -> Result<T, Damage>,
) -> Result<T, SessionError> {
    let path = || directory.part_path(table, of.segment);
    if rows > 0 {
        let part = directory.read_part(table, of.segment)?;
        parts::decode_rows(table, part, of, rows, decode)
            .map_err(|damage| SessionError::corrupt(&path(), damage))
    } else if directory.has_part(table, of.segment) {
        Err(SessionError::corrupt(&path(), Damage::UnexpectedPart))
    } else {
        Ok(T::default())
    }
}
