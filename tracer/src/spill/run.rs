//! A sorted run, in memory or in the file, and a place in it.

use super::{
    coding::{self, GROUP_BYTES, MOST_BYTES},
    error::SpillError,
    file::SpillFile,
};
use crate::analysis::{LineAccess, SortKey, order};

/// Ranges of hashes that are merged one by one; the unit of work of a thread.
pub(super) const RANGES: usize = 64;

/// The range that a hash is in.
fn range_of(hash: u32) -> usize {
    (hash >> (u32::BITS - RANGES.ilog2())) as usize
}

/// Sorted accesses.
#[derive(Debug)]
pub(super) enum Run {
    /// `order` says their order, as [`order`] makes it.
    Memory {
        accesses: Vec<LineAccess>,
        order: Vec<u64>,
    },
    /// Where each range begins in the file, and where the last one ends.
    File { starts: Vec<u64> },
}

impl Run {
    /// Sorts.
    pub(super) fn in_memory(accesses: Vec<LineAccess>) -> Run {
        Run::Memory {
            order: order(&accesses),
            accesses,
        }
    }

    /// Sorts and writes; the accesses are left as they were.
    pub(super) fn in_file(
        accesses: &[LineAccess],
        file: &SpillFile,
        at: u64,
    ) -> Result<Run, SpillError> {
        let order = order(accesses);
        let of = |number: u64| &accesses[number as u32 as usize];
        let mut writer = file.writer(at);
        let mut starts = Vec::with_capacity(RANGES + 1);
        for line in order.chunk_by(|a, b| of(*a).code() == of(*b).code()) {
            let range = range_of((line[0] >> 32) as u32);
            if starts.len() <= range {
                starts.resize(range + 1, writer.position());
            }
            let code = of(line[0]).code();
            coding::put_group(&mut writer.out, code, line.len() as u32);
            let mut before = LineAccess::default();
            for number in line {
                coding::put(&mut writer.out, &before, of(*number));
                before = *of(*number);
                writer.pass()?;
            }
        }
        starts.resize(RANGES + 1, writer.position());
        writer.flush()?;
        Ok(Run::File { starts })
    }

    /// Where it ends in the file, if it is there.
    pub(super) fn end(&self) -> Option<u64> {
        match self {
            Run::Memory { .. } => None,
            Run::File { starts } => starts.last().copied(),
        }
    }

    /// The first line of a range.
    pub(super) fn cursor<'a>(
        &'a self,
        range: usize,
        file: Option<&'a SpillFile>,
        buffer_bytes: usize,
    ) -> Result<Cursor<'a>, SpillError> {
        let mut cursor = match self {
            Run::Memory { accesses, order } => {
                let first = |range| order.partition_point(|n| range_of((n >> 32) as u32) < range);
                Cursor {
                    group: None,
                    rest: Rest::Memory {
                        accesses,
                        order: &order[first(range)..first(range + 1)],
                    },
                }
            }
            Run::File { starts } => Cursor {
                group: None,
                rest: Rest::File(Reading {
                    file,
                    at: starts[range],
                    end: starts[range + 1],
                    buffer: Vec::new(),
                    used: 0,
                    buffer_bytes: buffer_bytes.max(2 * MOST_BYTES),
                }),
            },
        };
        cursor.next_group()?;
        Ok(cursor)
    }
}

/// A place in a range of a run: before the accesses of a line.
pub(super) struct Cursor<'a> {
    group: Option<(SortKey, u32)>,
    rest: Rest<'a>,
}

enum Rest<'a> {
    Memory {
        accesses: &'a [LineAccess],
        order: &'a [u64],
    },
    File(Reading<'a>),
}

struct Reading<'a> {
    file: Option<&'a SpillFile>,
    /// What is not in the buffer yet.
    at: u64,
    end: u64,
    buffer: Vec<u8>,
    used: usize,
    buffer_bytes: usize,
}

impl Cursor<'_> {
    /// The line that comes next.
    pub(super) fn line(&self) -> Option<SortKey> {
        self.group.map(|(key, _)| key)
    }

    /// Gives the accesses of that line, and goes on to the next one.
    pub(super) fn take_line(
        &mut self,
        mut take: impl FnMut(&LineAccess),
    ) -> Result<(), SpillError> {
        let Some((key, count)) = self.group else {
            return Ok(());
        };
        match &mut self.rest {
            Rest::Memory { accesses, order } => {
                let (line, rest) = order.split_at(count as usize);
                for number in line {
                    take(&accesses[*number as u32 as usize]);
                }
                *order = rest;
            }
            Rest::File(reading) => {
                let mut access = LineAccess::default();
                for _ in 0..count {
                    reading.refill(MOST_BYTES)?;
                    let bytes = &reading.buffer[reading.used..];
                    let len = coding::take(bytes, &mut access).ok_or_else(|| reading.changed())?;
                    reading.used += len;
                    let mut whole = access;
                    whole.set_code(key.code);
                    take(&whole);
                }
            }
        }
        self.next_group()
    }

    fn next_group(&mut self) -> Result<(), SpillError> {
        self.group = match &mut self.rest {
            Rest::Memory { accesses, order } => order.first().map(|first| {
                let code = |number: &u64| accesses[*number as u32 as usize].code();
                let line = code(first);
                let same = |number: &&u64| code(number) == line;
                let count = order.iter().take_while(same).count();
                let hash = (first >> 32) as u32;
                (SortKey { hash, code: line }, count as u32)
            }),
            Rest::File(reading) => reading.group()?,
        };
        Ok(())
    }
}

impl Reading<'_> {
    fn changed(&self) -> SpillError {
        match self.file {
            Some(file) => file.changed(),
            None => SpillError::Thread(std::io::Error::other("a run without its file")),
        }
    }

    /// Has so many bytes in the buffer, or all that are left.
    fn refill(&mut self, least: usize) -> Result<(), SpillError> {
        let has = self.buffer.len() - self.used;
        if has >= least || self.at == self.end {
            return Ok(());
        }
        let Some(file) = self.file else {
            return Err(self.changed());
        };
        self.buffer.drain(..self.used);
        self.used = 0;
        let more = (self.buffer_bytes - has).min((self.end - self.at) as usize);
        self.buffer.resize(has + more, 0);
        file.read(self.at, &mut self.buffer[has..])?;
        self.at += more as u64;
        Ok(())
    }

    fn group(&mut self) -> Result<Option<(SortKey, u32)>, SpillError> {
        self.refill(GROUP_BYTES)?;
        if self.used == self.buffer.len() {
            return Ok(None);
        }
        let head = coding::group(&self.buffer[self.used..]);
        let (code, count) = head.ok_or_else(|| self.changed())?;
        self.used += GROUP_BYTES;
        Ok(Some((SortKey::of_code(code), count)))
    }
}
