//! Cuts a stream of bytes into records; knows their frame, not their meaning.

use std::io::{self, Read};

use super::unpack::Unpacker;
use crate::perf_format::{
    fields::{ByteOrder, Fields},
    frame::{Frame, HEADER_BYTES as HEADER},
    record as kind,
};

/// A record, header off.
#[derive(Debug)]
pub(super) struct RawRecord<'a> {
    /// `PERF_RECORD_*`.
    pub(super) kind: u32,
    pub(super) misc: u16,
    pub(super) body: Fields<'a>,
}

/// Why the records end before the file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CutShort {
    /// The file ends inside a record, or before all are there.
    Truncated { at: u64 },
    /// The record at this byte cannot be one, so that nobody knows where the next begins.
    Damaged { at: u64 },
    /// Compressed records that cannot be unpacked from this one on.
    Packed { at: u64, why: String },
}

/// Reads records one by one.
pub(super) struct Records<R> {
    from: R,
    order: ByteOrder,
    /// Bytes read of the records, from their first one; and how many there are, if the file says.
    at: u64,
    len: Option<u64>,
    /// Of the file, where the records begin.
    start: u64,
    body: Vec<u8>,
    /// What follows a record without being part of it: the data of `PERF_RECORD_AUXTRACE`.
    payload: u64,
    unpacker: Option<Unpacker>,
    cut_short: Option<CutShort>,
    ended: bool,
}

/// Where the next record is.
enum Place {
    Nowhere,
    Body,
    Unpacked(usize),
}

impl<R: Read> Records<R> {
    pub(super) fn new(from: R, order: ByteOrder, start: u64, len: Option<u64>) -> Records<R> {
        Records {
            from,
            order,
            at: 0,
            len,
            start,
            body: Vec::new(),
            payload: 0,
            unpacker: None,
            cut_short: None,
            ended: false,
        }
    }

    /// Why reading ended early, if it did.
    pub(super) fn cut_short(&self) -> Option<&CutShort> {
        self.cut_short.as_ref()
    }

    /// Bytes read.
    pub(super) fn position(&self) -> u64 {
        self.at
    }

    /// The next record; `None` at the end, of whatever kind. Payload that nobody read is passed over.
    pub(super) fn next(&mut self) -> io::Result<Option<RawRecord<'_>>> {
        let order = self.order;
        let (Frame { kind, misc, .. }, body) = match self.find()? {
            Place::Nowhere => return Ok(None),
            Place::Body => (frame(&self.body, order), &self.body[HEADER..]),
            Place::Unpacked(len) => {
                let unpacker = self.unpacker.as_mut();
                let record = unpacker.map(|unpacker| {
                    // Taken now, read by the caller until it asks for the next one.
                    self.body.clear();
                    self.body.extend_from_slice(&unpacker.ready()[..len]);
                    unpacker.consume(len);
                    frame(&self.body, order)
                });
                (record.unwrap_or_default(), &self.body[HEADER..])
            }
        };
        Ok(Some(RawRecord {
            kind,
            misc,
            body: Fields::new(body, order),
        }))
    }

    fn find(&mut self) -> io::Result<Place> {
        loop {
            if self.ended {
                return Ok(Place::Nowhere);
            }
            if let Some(len) = self.unpacked()? {
                return Ok(Place::Unpacked(len));
            }
            if self.ended || !self.read_record()? {
                return Ok(Place::Nowhere);
            }
            let Frame { kind, .. } = frame(&self.body, self.order);
            let body = Fields::new(&self.body[HEADER..], self.order);
            let packed = match kind {
                kind::COMPRESSED => Some(body.rest()),
                kind::COMPRESSED2 => {
                    let mut body = body;
                    // The length without what aligns the record.
                    body.u64().and_then(|len| body.take(len))
                }
                _ => {
                    self.payload = payload(kind, body);
                    return Ok(Place::Body);
                }
            };
            let Some(packed) = packed else {
                self.end(CutShort::Damaged { at: self.file_at() });
                continue;
            };
            if self.unpacker.is_none() {
                self.unpacker = Some(Unpacker::new()?);
            }
            if let Some(unpacker) = &mut self.unpacker {
                unpacker.add(packed);
            }
        }
    }

    /// Length of the whole record that was unpacked, if there is one.
    fn unpacked(&mut self) -> io::Result<Option<usize>> {
        let at = self.file_at();
        loop {
            let Some(unpacker) = &mut self.unpacker else {
                return Ok(None);
            };
            let ready = unpacker.ready();
            if ready.len() >= HEADER {
                let Frame { kind, len, .. } = frame(ready, self.order);
                let nested = matches!(kind, kind::COMPRESSED | kind::COMPRESSED2);
                if len < HEADER || nested || payload(kind, Fields::new(&[], self.order)) > 0 {
                    self.end(CutShort::Damaged { at });
                    return Ok(None);
                }
                if ready.len() >= len {
                    return Ok(Some(len));
                }
            }
            match unpacker.step() {
                Ok(true) => {}
                Ok(false) => return Ok(None),
                Err(error) => {
                    let why = error.to_string();
                    self.end(CutShort::Packed { at, why });
                    return Ok(None);
                }
            }
        }
    }

    /// Reads a record of the file into `body`; `false` at the end.
    fn read_record(&mut self) -> io::Result<bool> {
        self.skip_payload()?;
        let left = self.len.map(|len| len.saturating_sub(self.at));
        if self.ended || left == Some(0) {
            self.finish();
            return Ok(false);
        }
        let at = self.file_at();
        self.body.resize(HEADER, 0);
        let got = read_full(&mut self.from, &mut self.body)?;
        if got < HEADER || left.is_some_and(|left| left < HEADER as u64) {
            if got == 0 && self.len.is_none() {
                self.finish();
            } else {
                self.end(CutShort::Truncated { at });
            }
            return Ok(false);
        }
        let Frame { len, .. } = frame(&self.body, self.order);
        if len < HEADER || left.is_some_and(|left| left < len as u64) {
            self.end(CutShort::Damaged { at });
            return Ok(false);
        }
        self.body.resize(len, 0);
        if read_full(&mut self.from, &mut self.body[HEADER..])? < len - HEADER {
            self.end(CutShort::Truncated { at });
            return Ok(false);
        }
        self.at += len as u64;
        Ok(true)
    }

    /// Bytes of a hardware's trace that follow the last record, of which none were read yet.
    pub(super) fn trace_len(&self) -> u64 {
        if frame(&self.body, self.order).kind == kind::AUXTRACE {
            self.payload
        } else {
            0
        }
    }

    /// Reads of the payload as much as there is room for; 0 at its end.
    pub(super) fn read_payload(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let want = usize::try_from(self.payload).map_or(room.len(), |left| left.min(room.len()));
        let got = read_full(&mut self.from, &mut room[..want])?;
        self.payload -= got as u64;
        self.at += got as u64;
        if got < want {
            self.payload = 0;
            self.end(CutShort::Truncated { at: self.file_at() });
        }
        Ok(got)
    }

    fn skip_payload(&mut self) -> io::Result<()> {
        let mut nowhere = [0; 1 << 14];
        while self.payload > 0 && self.read_payload(&mut nowhere)? > 0 {}
        Ok(())
    }

    fn file_at(&self) -> u64 {
        self.start.saturating_add(self.at)
    }

    /// The last of the pieces ends inside a record when something is left over.
    fn finish(&mut self) {
        let left_over = self.unpacker.as_ref();
        if left_over.is_some_and(|unpacker| !unpacker.ready().is_empty()) {
            self.end(CutShort::Truncated { at: self.file_at() });
        }
        self.ended = true;
    }

    fn end(&mut self, why: CutShort) {
        self.cut_short.get_or_insert(why);
        self.ended = true;
    }
}

/// The header of the record that begins here; all 0 where none does.
fn frame(bytes: &[u8], order: ByteOrder) -> Frame {
    Frame::take(&mut Fields::new(bytes, order)).unwrap_or_default()
}

/// Bytes that follow the record. Of a body that cannot be read, 1: such a record has some.
fn payload(kind: u32, mut body: Fields<'_>) -> u64 {
    match kind {
        kind::AUXTRACE => body.u64().unwrap_or(1),
        kind::TRACING_DATA => body
            .u32()
            .map_or(1, |size| u64::from(size).next_multiple_of(8)),
        _ => 0,
    }
}

/// Reads until the room is full or the input ends.
pub(super) fn read_full(from: &mut impl Read, room: &mut [u8]) -> io::Result<usize> {
    let mut got = 0;
    while got < room.len() {
        match from.read(&mut room[got..]) {
            Ok(0) => break,
            Ok(more) => got += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(got)
}
