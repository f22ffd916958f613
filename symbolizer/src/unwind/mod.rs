//! Call frame information: function bounds, and where the frame of a function starts at each instruction. Stripped
//! binaries keep `.eh_frame`, so this is what is left to find the start of a function in them.

mod cfa;
mod entries;
mod row;
#[cfg(test)]
mod tests;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use crate::{Module, image::Image, locals::Register, spans::Spans};
use cfa::Row;
pub use row::{FrameRow, Saved};

/// Rows that are kept between questions; some thousand functions.
const MOST_KEPT: usize = 1 << 18;

/// The call frame information of a file, read when first needed.
#[derive(Default)]
pub(crate) struct Unwind {
    /// The entries of `.eh_frame` by address: the offset of each in the section.
    eh_frame: OnceLock<Spans<usize>>,
    debug_frame: OnceLock<Spans<usize>>,
    tables: Mutex<Tables>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Source {
    EhFrame,
    DebugFrame,
}

/// The tables of the functions asked for.
#[derive(Default)]
struct Tables {
    by_entry: HashMap<(Source, usize), Arc<[Row]>>,
    rows: usize,
}

impl Unwind {
    /// The entries of `.eh_frame`.
    pub(crate) fn bounds(&self, image: &Image) -> &Spans<usize> {
        self.eh_frame.get_or_init(|| {
            entries::eh_frame(image).map_or_else(Spans::default, |section| section.ranges(image))
        })
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, Tables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The rows of an entry, decoded by the first question for it.
    fn table(&self, key: (Source, usize), read: impl FnOnce() -> Vec<Row>) -> Arc<[Row]> {
        if let Some(found) = self.kept().by_entry.get(&key) {
            return Arc::clone(found);
        }
        let rows: Arc<[Row]> = read().into();
        let mut kept = self.kept();
        if kept.rows + rows.len() >= MOST_KEPT {
            *kept = Tables::default();
        }
        kept.rows += rows.len() + 1;
        kept.by_entry.insert(key, Arc::clone(&rows));
        rows
    }
}

impl Module {
    /// How to get from a function that is at this address to its caller; `None` without call frame information.
    /// Ask for a return address minus one: a call may be a function's last instruction.
    pub fn frame_row(&self, svma: u64) -> Option<FrameRow> {
        row::frame_row(self.image(), self.unwind().bounds(self.image()), svma)
    }

    /// The canonical frame address at an instruction, before it is executed: the register's value plus the number.
    ///
    /// From `.eh_frame`, else from `.debug_frame`. Nothing where an expression computes it (the procedure linkage
    /// table does so) or nothing is said.
    pub(crate) fn cfa(&self, svma: u64) -> Option<(Register, i64)> {
        let unwind = self.unwind();
        let image = self.image();
        let rows = if let Some(span) = unwind.bounds(image).covering(svma).next() {
            unwind.table((Source::EhFrame, span.value), || {
                entries::eh_frame(image)
                    .map_or_else(Vec::new, |section| cfa::rows(&section, span.value))
            })
        } else {
            // A separate debug file has what the file itself was stripped of.
            let own = entries::debug_frame(image);
            let section = match own {
                Some(section) => section,
                None => entries::debug_frame(self.debug_info().ok()?.image())?,
            };
            let entries = unwind.debug_frame.get_or_init(|| section.ranges(image));
            let span = entries.covering(svma).next()?;
            unwind.table((Source::DebugFrame, span.value), || {
                cfa::rows(&section, span.value)
            })
        };
        let upto = rows.partition_point(|row| row.start <= svma);
        rows.get(upto.checked_sub(1)?)?.rule
    }
}
