//! Compressed records: one zstd stream in pieces, each the body of a `PERF_RECORD_COMPRESSED` or `_COMPRESSED2`
//! (tools/perf/util/zstd.c). Unpacked in steps, so that no file makes much of little at once.

use std::io;

use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};

/// Bytes that one step unpacks at most: more than the largest record.
const STEP: usize = 1 << 17;

/// The stream so far.
pub(super) struct Unpacker {
    decoder: Decoder<'static>,
    packed: Vec<u8>,
    packed_at: usize,
    /// The decoder may hold more than it had room to give.
    more: bool,
    out: Vec<u8>,
    out_at: usize,
}

impl Unpacker {
    pub(super) fn new() -> io::Result<Unpacker> {
        Ok(Unpacker {
            decoder: Decoder::new()?,
            packed: Vec::new(),
            packed_at: 0,
            more: false,
            out: Vec::new(),
            out_at: 0,
        })
    }

    /// Adds the next piece; the one before was used up.
    pub(super) fn add(&mut self, piece: &[u8]) {
        self.packed.drain(..self.packed_at);
        self.packed_at = 0;
        self.packed.extend_from_slice(piece);
        self.more = true;
    }

    /// Unpacked bytes that were not taken yet.
    pub(super) fn ready(&self) -> &[u8] {
        &self.out[self.out_at..]
    }

    pub(super) fn consume(&mut self, len: usize) {
        self.out_at = self.out.len().min(self.out_at + len);
    }

    /// Unpacks a step more; `false` when the pieces so far are used up.
    pub(super) fn step(&mut self) -> io::Result<bool> {
        if !self.more {
            return Ok(false);
        }
        self.out.drain(..self.out_at);
        self.out_at = 0;
        let kept = self.out.len();
        self.out.resize(kept + STEP, 0);
        let mut input = InBuffer::around(&self.packed[self.packed_at..]);
        let mut output = OutBuffer::around(&mut self.out[kept..]);
        let ran = self.decoder.run(&mut input, &mut output);
        let (used, made) = (input.pos(), output.pos());
        self.out.truncate(kept + made);
        self.packed_at += used;
        if let Err(error) = ran {
            self.more = false;
            return Err(error);
        }
        // A step that filled its room may have left something in the decoder.
        self.more = self.packed_at < self.packed.len() || made == STEP;
        if used == 0 && made == 0 {
            self.more = false;
            if self.packed_at < self.packed.len() {
                return Err(io::Error::other("it goes no further"));
            }
        }
        Ok(made > 0 || self.more)
    }
}
