//! Line tables: one per unit (some units share one), decoded when first needed.

use gimli::{ColumnType, DebugLineOffset};

use super::{RawUnit, View, files};
use crate::{
    kept::Sizeable,
    missing::Missing,
    spans::{Span, Spans},
};

/// A source position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) file: u32,
    /// 0 when the compiler attributes the code to no line.
    pub(crate) line: u32,
    /// 0 when not known.
    pub(crate) column: u32,
    /// 0 when there is one block of code, or none is told apart.
    pub(crate) discriminator: u32,
}

/// A decoded line table.
pub(crate) struct Lines {
    /// Contiguous pieces of code.
    sequences: Spans<Rows>,
    /// Where each row starts, from the start of its sequence. Apart from the rows, for the search.
    offsets: Box<[u32]>,
    rows: Box<[Row]>,
}

/// The rows of a sequence, in the order of addresses.
#[derive(Clone, Copy, Debug)]
struct Rows {
    first: u32,
    last: u32,
}

impl Sizeable for Lines {
    fn bytes(&self) -> usize {
        self.sequences.bytes() + size_of_val(&*self.offsets) + size_of_val(&*self.rows)
    }
}

impl Lines {
    /// The row that covers an address.
    pub(crate) fn row(&self, address: u64) -> Option<&Row> {
        // Sequences do not overlap in sane files; in others any of the covering ones will do.
        let sequence = self.sequences.covering(address).next()?;
        let (first, last) = (sequence.value.first as usize, sequence.value.last as usize);
        let offset = u32::try_from(address - sequence.start).unwrap_or(u32::MAX);
        let offsets = self.offsets.get(first..last)?;
        let upto = offsets.partition_point(|&row| row <= offset);
        self.rows.get(first + upto.checked_sub(1)?)
    }

    /// Decodes the table at `offset`. Rows up to the first damaged instruction are kept.
    pub(crate) fn read(
        view: &View<'_>,
        opened: &RawUnit<'_>,
        offset: DebugLineOffset<usize>,
    ) -> Result<Lines, Missing> {
        let program = files::program(opened, offset)?;
        let mut read = program.rows();
        let (mut offsets, mut rows): (Vec<u32>, Vec<Row>) = (Vec::new(), Vec::new());
        let mut sequences = Vec::new();
        let mut first = 0;
        let mut start = 0;
        while let Ok(Some((_, row))) = read.next_row() {
            view.charge(1)?;
            let address = row.address();
            if row.end_sequence() {
                if rows.len() > first && start < address && view.info.is_code(start) {
                    let (first, last) = (first as u32, rows.len() as u32);
                    let value = Rows { first, last };
                    sequences.push(Span {
                        start,
                        end: address,
                        value,
                    });
                } else {
                    rows.truncate(first);
                    offsets.truncate(first);
                }
                first = rows.len();
                continue;
            }
            if rows.len() == first {
                start = address;
            }
            let offset = u32::try_from(address.saturating_sub(start)).unwrap_or(u32::MAX);
            let decoded = Row {
                file: u32::try_from(row.file_index()).unwrap_or(u32::MAX),
                line: row
                    .line()
                    .map_or(0, |line| u32::try_from(line.get()).unwrap_or(0)),
                column: match row.column() {
                    ColumnType::LeftEdge => 0,
                    ColumnType::Column(column) => u32::try_from(column.get()).unwrap_or(0),
                },
                discriminator: u32::try_from(row.discriminator()).unwrap_or(0),
            };
            // Of several rows for one address the last one holds.
            match rows[first..].last_mut() {
                Some(last) if offsets.last() == Some(&offset) => *last = decoded,
                _ => {
                    rows.push(decoded);
                    offsets.push(offset);
                }
            }
        }
        // The rows of a sequence that does not end are of no code.
        rows.truncate(first);
        offsets.truncate(first);
        Ok(Lines {
            sequences: Spans::new(sequences),
            offsets: offsets.into(),
            rows: rows.into(),
        })
    }
}
