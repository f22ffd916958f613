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
    directory::Directory,
    error::{Damage, SessionError},
    parts::{self, DecodedAllocations, DecodedWindows, Of},
    schema::{ACCESSES, ALLOCATIONS, LOCAL_STORAGE, MAPPINGS, MEMORY, TASKS, Table, WINDOWS},
    segment::{self, Numbered},
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
    let damaged = |table: &Table, damage: Damage| {
        SessionError::corrupt(&directory.part_path(table, number), damage)
    };
    let of = Of {
        origin: &directory.origin,
        segment: number,
    };
    let accesses = directory.read_part(&ACCESSES, number)?;
    let decoded =
        parts::decode_accesses(accesses, of).map_err(|damage| damaged(&ACCESSES, damage))?;
    let whole = &decoded.whole;
    let (mut mappings, mut tasks) = (Vec::new(), Vec::new());
    if wants_part(directory, &MAPPINGS, number, whole.mappings)? {
        let part = directory.read_part(&MAPPINGS, number)?;
        mappings = parts::decode_mappings(part, of, whole.mappings)
            .map_err(|damage| damaged(&MAPPINGS, damage))?;
    }
    if wants_part(directory, &TASKS, number, whole.tasks)? {
        let part = directory.read_part(&TASKS, number)?;
        tasks =
            parts::decode_tasks(part, of, whole.tasks).map_err(|damage| damaged(&TASKS, damage))?;
    }
    if wants_part(directory, &LOCAL_STORAGE, number, whole.local_storage)? {
        let part = directory.read_part(&LOCAL_STORAGE, number)?;
        let blocks = parts::decode_local_storage(part, of, whole.local_storage);
        tasks.extend(blocks.map_err(|damage| damaged(&LOCAL_STORAGE, damage))?);
    }
    if wants_part(directory, &MEMORY, number, whole.memory)? {
        let part = directory.read_part(&MEMORY, number)?;
        let memory = parts::decode_memory(part, of, whole.memory);
        tasks.extend(memory.map_err(|damage| damaged(&MEMORY, damage))?);
    }
    let mut windows = DecodedWindows::default();
    if wants_part(directory, &WINDOWS, number, whole.windows)? {
        let part = directory.read_part(&WINDOWS, number)?;
        windows = parts::decode_windows(part, of, whole.windows)
            .map_err(|damage| damaged(&WINDOWS, damage))?;
    }
    let mut allocations = DecodedAllocations::default();
    if wants_part(directory, &ALLOCATIONS, number, whole.allocations)? {
        let part = directory.read_part(&ALLOCATIONS, number)?;
        allocations = parts::decode_allocations(part, of, whole.allocations)
            .map_err(|damage| damaged(&ALLOCATIONS, damage))?;
    }
    segment::assemble(decoded, mappings, tasks, windows, allocations)
        .map_err(|damage| damaged(&ACCESSES, damage))
}

/// Whether a part other than `accesses` is to be read: exactly when it has rows.
fn wants_part(
    directory: &Directory,
    table: &Table,
    number: u32,
    rows: u64,
) -> Result<bool, SessionError> {
    if rows == 0 && directory.has_part(table, number) {
        let path = directory.part_path(table, number);
        return Err(SessionError::corrupt(&path, Damage::UnexpectedPart));
    }
    Ok(rows > 0)
}
