//! The request log of a complete order, row by row.

use rustc_hash::FxHashMap;

use crate::{
    access::{Access, LineKey, LineSize, Place, SpaceId},
    analysis::{
        served::{Home, OnLine},
        split_by_line::split_by_line,
    },
    coherence::{Intent, RequestRow},
};

/// Turns every access of a program, in order, into the requests that it makes.
#[derive(Debug)]
pub struct RequestLog<T> {
    line_size: LineSize,
    lines: FxHashMap<LineKey, (Home, T)>,
    number: u64,
}

impl<T> RequestLog<T> {
    /// No line is in any cache; the paper's protocol.
    pub fn new(line_size: LineSize) -> RequestLog<T> {
        RequestLog {
            line_size,
            lines: FxHashMap::default(),
            number: 0,
        }
    }

    /// Serves an access at its resolved place, and gives `take` each request that it makes, numbered
    /// from 0. The target is the first byte of the access, whichever of its lines is asked for. With each row comes what
    /// `note` says of its line, which is asked once.
    pub fn observe(
        &mut self,
        access: &Access,
        place: Place,
        note: impl Fn(LineKey) -> T,
        mut take: impl FnMut(RequestRow, &T),
    ) {
        if Intent::of(access.op).is_none() {
            return;
        }
        // Rows do not say whose code asks.
        let space = SpaceId::default();
        split_by_line(access, place, self.line_size, &[], |key, piece| {
            let entry = self.lines.entry(key);
            let (home, noted) = entry.or_insert_with(|| (Home::idle(), note(key)));
            let served = home.serve(OnLine::new(access, space, piece.offset, piece.size));
            let row = served.and_then(|served| served.request_row(self.number, place, key));
            if let Some(row) = row {
                self.number += 1;
                take(row, noted);
            }
        });
    }
}
