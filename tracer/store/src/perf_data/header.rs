//! The header of a perf.data: where its sections are (tools/perf/util/header.h), with bounds on each.

use std::io::{self, Read, Seek, SeekFrom};

use super::{
    PerfDataError,
    attr::{Attr, SMALLEST},
    features::Features,
    records::read_full,
};
use crate::perf_format::{
    feature as number,
    fields::{ByteOrder, Fields},
};

/// `struct perf_pipe_file_header` and `struct perf_file_header`.
const PIPE_HEADER: u64 = 16;
const FILE_HEADER: u64 = 104;

/// What is read of one section at most.
const MOST_BYTES: u64 = 64 << 20;
/// Events and ids of all of them.
const MOST_EVENTS: usize = 1 << 14;
const MOST_IDS: usize = 1 << 20;

/// An event and the ids of its counters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) attr: Attr,
    pub(super) ids: Vec<u64>,
    pub(super) name: Option<String>,
}

/// What is known before the first record.
#[derive(Debug)]
pub(super) struct Header {
    pub(super) order: ByteOrder,
    /// Everything else comes as records.
    pub(super) pipe: bool,
    pub(super) events: Vec<Event>,
    pub(super) features: Features,
    /// First byte of the records, and their bytes if the file knows.
    pub(super) start: u64,
    pub(super) len: Option<u64>,
    /// Sections behind the records could not be found.
    pub(super) no_features: bool,
}

/// The fixed part.
pub(super) enum Start {
    Pipe { order: ByteOrder, header: u64 },
    File { order: ByteOrder, rest: Vec<u8> },
}

/// Reads the magic number and the size: of which kind it is. A stream is at its first record then, if it is a pipe.
pub(super) fn start(from: &mut impl Read) -> Result<Start, PerfDataError> {
    let mut first = [0; PIPE_HEADER as usize];
    let got = read_full(from, &mut first)?;
    let order = match first.get(..8) {
        _ if got < first.len() => return Err(PerfDataError::NotPerfData),
        Some(b"PERFILE2") => ByteOrder::Little,
        Some(b"2ELIFREP") => ByteOrder::Big,
        Some(b"PERFFILE" | b"ELIFFREP") => return Err(PerfDataError::Version1),
        _ => return Err(PerfDataError::NotPerfData),
    };
    let size = Fields::new(&first[8..], order).u64().unwrap_or_default();
    if size == PIPE_HEADER {
        return Ok(Start::Pipe {
            order,
            header: PIPE_HEADER,
        });
    }
    if size < FILE_HEADER {
        return Err(PerfDataError::Header("a length that no header has"));
    }
    let mut rest = vec![0; (FILE_HEADER - PIPE_HEADER) as usize];
    if read_full(from, &mut rest)? < rest.len() {
        return Err(PerfDataError::Header("it ends inside the header"));
    }
    Ok(Start::File { order, rest })
}

impl Header {
    /// Of a pipe, whose events come as records.
    pub(super) fn of_pipe(order: ByteOrder, start: u64) -> Header {
        Header {
            order,
            pipe: true,
            events: Vec::new(),
            features: Features::default(),
            start,
            len: None,
            no_features: false,
        }
    }

    /// Reads the sections and goes to the first record.
    pub(super) fn of_file(
        from: &mut (impl Read + Seek),
        order: ByteOrder,
        rest: &[u8],
    ) -> Result<Header, PerfDataError> {
        let cut = PerfDataError::Header("it ends inside the header");
        let mut fields = Fields::new(rest, order);
        let mut word = || fields.u64();
        let words = (|| {
            let attr_len = word()?;
            let sections = [(word()?, word()?), (word()?, word()?), (word()?, word()?)];
            Some((attr_len, sections, word()?))
        })();
        let (attr_len, [attrs, data, _event_types], present) = words.ok_or(cut)?;
        let file_len = from.seek(SeekFrom::End(0))?;
        let mut header = Header {
            order,
            pipe: false,
            events: events(from, order, attr_len, attrs)?,
            features: Features::default(),
            start: data.0,
            // A recorder that was killed did not come back to say.
            len: (data.1 != 0).then_some(data.1),
            no_features: true,
        };
        let end = data.0.checked_add(data.1);
        if let Some(end) = end.filter(|end| header.len.is_some() && *end < file_len) {
            header.no_features = !header.read_features(from, end, present)?;
        }
        from.seek(SeekFrom::Start(header.start))?;
        Ok(header)
    }

    /// Whether the table of sections is there.
    fn read_features(
        &mut self,
        from: &mut (impl Read + Seek),
        table_at: u64,
        present: u64,
    ) -> io::Result<bool> {
        let table = section(from, table_at, u64::from(present.count_ones()) * 16)?;
        let mut fields = Fields::new(&table, self.order);
        for bit in (0..64).filter(|bit| present >> bit & 1 == 1) {
            let (Some(at), Some(len)) = (fields.u64(), fields.u64()) else {
                return Ok(false);
            };
            let bytes = section(from, at, len)?;
            self.features.add(bit, Fields::new(&bytes, self.order));
        }
        // What nothing is said in tells by being there.
        if present >> number::DIR_FORMAT & 1 == 1 {
            self.features.directory = true;
        }
        Ok(true)
    }
}

/// A section, or as much of it as is there.
fn section(from: &mut (impl Read + Seek), at: u64, len: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // Beyond what any file can be; seeking there would be an error of the system's.
    if i64::try_from(at).is_ok() {
        from.seek(SeekFrom::Start(at))?;
        from.take(len.min(MOST_BYTES)).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

fn events(
    from: &mut (impl Read + Seek),
    order: ByteOrder,
    attr_len: u64,
    (at, len): (u64, u64),
) -> Result<Vec<Event>, PerfDataError> {
    // Each is followed by the place of its ids.
    if attr_len < SMALLEST as u64 + 16 {
        return Err(PerfDataError::Header("attributes shorter than they can be"));
    }
    let bytes = section(from, at, len)?;
    let mut fields = Fields::new(&bytes, order);
    let mut events = Vec::new();
    let mut ids = 0;
    while let Some(entry) = fields.take(attr_len) {
        if events.len() == MOST_EVENTS {
            return Err(PerfDataError::Header("more events than can be"));
        }
        let (attr, place) = entry.split_at(entry.len() - 16);
        let attr = Attr::take(&mut Fields::new(attr, order))
            .ok_or(PerfDataError::Header("attributes that cannot be read"))?;
        let mut place = Fields::new(place, order);
        let (ids_at, ids_len) = (place.u64().unwrap_or(0), place.u64().unwrap_or(0));
        let words = section(from, ids_at, ids_len)?;
        let mut words = Fields::new(&words, order);
        let own: Vec<u64> = std::iter::from_fn(|| words.u64()).collect();
        ids += own.len();
        if ids > MOST_IDS {
            return Err(PerfDataError::Header("more ids than can be"));
        }
        events.push(Event {
            attr,
            ids: own,
            name: None,
        });
    }
    Ok(events)
}
