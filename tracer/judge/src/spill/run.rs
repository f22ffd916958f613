//! A sorted run, in memory or in the file, and a place in it.

use super::{
    coding::{self, GROUP_BYTES, MOST_BYTES},
    error::SpillError,
    file::SpillFile,
};
use crate::analysis::{SortKey, SortRecord, order};

/// Ranges of hashes that are merged one by one; the unit of work of a thread.
pub(super) const RANGES: usize = 64;

/// The range that a hash is in.
fn range_of(hash: u32) -> usize {
    (hash >> (u32::BITS - RANGES.ilog2())) as usize
}

/// Sorted accesses, packed.
#[derive(Debug)]
pub(super) struct Run {
    /// Where each range begins, and where the last one ends.
    starts: Vec<u64>,
    place: Place,
}

#[derive(Debug)]
enum Place {
    Memory(Vec<u8>),
    /// From here on.
    File(u64),
}

impl Run {
    /// Sorts and packs.
    pub(super) fn sort(accesses: &[SortRecord]) -> Run {
        let order = order(accesses);
        let of = |number: u64| &accesses[number as u32 as usize];
        let mut out = Vec::new();
        let mut starts = Vec::with_capacity(RANGES + 1);
        for line in order.chunk_by(|a, b| of(*a).code() == of(*b).code()) {
            let range = range_of((line[0] >> 32) as u32);
            if starts.len() <= range {
                starts.resize(range + 1, out.len() as u64);
            }
            coding::put_group(&mut out, of(line[0]).code(), line.len() as u32);
            let mut before = &SortRecord::default();
            for number in line {
                let access = of(*number);
                coding::put(&mut out, before, access);
                before = access;
            }
        }
        starts.resize(RANGES + 1, out.len() as u64);
        out.shrink_to_fit();
        Run {
            starts,
            place: Place::Memory(out),
        }
    }

    /// The same run in the file.
    pub(super) fn into_file(self, file: &SpillFile, at: u64) -> Result<Run, SpillError> {
        if let Place::Memory(bytes) = &self.place {
            file.write(at, bytes)?;
        }
        Ok(Run {
            starts: self.starts,
            place: Place::File(at),
        })
    }

    /// Bytes, wherever they are.
    pub(super) fn len(&self) -> u64 {
        self.starts.last().copied().unwrap_or(0)
    }

    pub(super) fn is_in_file(&self) -> bool {
        matches!(self.place, Place::File(_))
    }

    /// The first line of a range.
    pub(super) fn cursor<'a>(
        &'a self,
        range: usize,
        file: Option<&'a SpillFile>,
        buffer_bytes: usize,
    ) -> Result<Cursor<'a>, SpillError> {
        let (start, end) = (self.starts[range], self.starts[range + 1]);
        let bytes = match &self.place {
            Place::Memory(bytes) => Bytes::Memory(&bytes[start as usize..end as usize]),
            Place::File(at) => Bytes::File(Reading {
                file,
                at: at + start,
                end: at + end,
                buffer: Vec::new(),
                used: 0,
                buffer_bytes: buffer_bytes.max(2 * MOST_BYTES),
            }),
        };
        let mut cursor = Cursor { group: None, bytes };
        cursor.next_group()?;
        Ok(cursor)
    }
}

/// A place in a range of a run: before the accesses of a line.
pub(super) struct Cursor<'a> {
    group: Option<(SortKey, u32)>,
    bytes: Bytes<'a>,
}

/// What comes next in a range.
enum Bytes<'a> {
    Memory(&'a [u8]),
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
        mut take: impl FnMut(&SortRecord),
    ) -> Result<(), SpillError> {
        let Some((key, count)) = self.group else {
            return Ok(());
        };
        // Packing leaves out what the line's code says.
        let mut access = SortRecord::default();
        for _ in 0..count {
            let bytes = self.bytes.next(MOST_BYTES)?;
            match coding::take(bytes, &mut access) {
                Some(len) => self.bytes.pass(len),
                None => return Err(self.bytes.changed()),
            }
            access.set_code(key.code);
            take(&access);
        }
        self.next_group()
    }

    fn next_group(&mut self) -> Result<(), SpillError> {
        let bytes = self.bytes.next(GROUP_BYTES)?;
        if bytes.is_empty() {
            self.group = None;
            return Ok(());
        }
        let Some((code, count)) = coding::group(bytes) else {
            return Err(self.bytes.changed());
        };
        self.bytes.pass(GROUP_BYTES);
        self.group = Some((SortKey::of_code(code), count));
        Ok(())
    }
}

impl Bytes<'_> {
    /// So many bytes or more, or all that are left.
    fn next(&mut self, least: usize) -> Result<&[u8], SpillError> {
        match self {
            Bytes::Memory(bytes) => Ok(bytes),
            Bytes::File(reading) => {
                reading.refill(least)?;
                Ok(&reading.buffer[reading.used..])
            }
        }
    }

    /// Goes on behind so many of the bytes that [`next`](Bytes::next) gave.
    fn pass(&mut self, len: usize) {
        match self {
            Bytes::Memory(bytes) => *bytes = bytes.get(len..).unwrap_or_default(),
            Bytes::File(reading) => reading.used += len,
        }
    }

    fn changed(&self) -> SpillError {
        match self {
            Bytes::File(Reading {
                file: Some(file), ..
            }) => file.changed(),
            _ => SpillError::changed("memory".into()),
        }
    }
}

impl Reading<'_> {
    fn refill(&mut self, least: usize) -> Result<(), SpillError> {
        let has = self.buffer.len() - self.used;
        if has >= least || self.at == self.end {
            return Ok(());
        }
        let Some(file) = self.file else {
            return Err(SpillError::changed("no file".into()));
        };
        self.buffer.drain(..self.used);
        self.used = 0;
        let more = (self.buffer_bytes - has).min((self.end - self.at) as usize);
        self.buffer.resize(has + more, 0);
        file.read(self.at, &mut self.buffer[has..])?;
        self.at += more as u64;
        Ok(())
    }
}
