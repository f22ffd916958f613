//! The request log of a complete order, row by row.

use rustc_hash::FxHashMap;

use crate::{
    access::{Access, LineKey, LineSize, Place},
    analysis::split_by_line::split_by_line,
    coherence::{Directory, Intent, Protocol, RequestRow},
};

/// Turns every access of a program, in order, into the requests that it makes.
#[derive(Debug)]
pub struct RequestLog<T> {
    line_size: LineSize,
    protocol: Protocol,
    lines: FxHashMap<LineKey, (Directory, T)>,
    number: u64,
}

impl<T> RequestLog<T> {
    /// No line is in any cache; the paper's protocol.
    pub fn new(line_size: LineSize) -> RequestLog<T> {
        RequestLog {
            line_size,
            protocol: Protocol::default(),
            lines: FxHashMap::default(),
            number: 0,
        }
    }

    /// Serves an access at its resolved place, and gives `take` each request that it makes, numbered from 0. Targets
    /// (the first byte of the access, whichever of its lines is asked for) and lines are positions in the place's
    /// numbering. With each row comes what `note` says of its line, which is
    /// asked once.
    pub fn observe(
        &mut self,
        access: &Access,
        place: Place,
        note: impl Fn(LineKey) -> T,
        mut take: impl FnMut(RequestRow, &T),
    ) {
        let Some(intent) = Intent::of(access.op) else {
            return;
        };
        let (protocol, line_size) = (self.protocol, self.line_size);
        split_by_line(access, place, line_size, &[], |key, _| {
            let entry = self.lines.entry(key);
            let (directory, noted) =
                entry.or_insert_with(|| (Directory::under(protocol), note(key)));
            let Some(request) = directory.access(access.cpu, intent).request else {
                return;
            };
            let row = RequestRow {
                number: self.number,
                cpu: access.cpu,
                tid: access.tid,
                ip: access.ip,
                target: place.position(),
                line: key.0.position(),
                request,
            };
            self.number += 1;
            take(row, noted);
        });
    }
}
