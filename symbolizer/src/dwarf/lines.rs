//! Line tables: one per unit (some units share one), decoded when first needed.

use gimli::{ColumnType, DebugLineOffset};

use super::{RawUnit, View, files};
use crate::missing::Missing;

/// A source position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    address: u64,
    pub(crate) file: u32,
    /// 0 when the compiler attributes the code to no line.
    pub(crate) line: u32,
    /// 0 when not known.
    pub(crate) column: u32,
}

/// Contiguous code of one unit; `rows[first..last]` describe it, in the order of addresses.
#[derive(Clone, Copy, Debug)]
struct Sequence {
    start: u64,
    end: u64,
    first: u32,
    last: u32,
}

/// A decoded line table.
pub(crate) struct Lines {
    sequences: Box<[Sequence]>,
    rows: Box<[Row]>,
}

impl Lines {
    /// The row that covers an address.
    pub(crate) fn row(&self, address: u64) -> Option<&Row> {
        // Sequences do not overlap in sane files; in others any of the covering ones will do.
        let upto = self
            .sequences
            .partition_point(|sequence| sequence.start <= address);
        let sequence = self.sequences.get(upto.checked_sub(1)?)?;
        if address >= sequence.end {
            return None;
        }
        let rows = self
            .rows
            .get(sequence.first as usize..sequence.last as usize)?;
        let upto = rows.partition_point(|row| row.address <= address);
        rows.get(upto.checked_sub(1)?)
    }

    /// Decodes the table at `offset`. Rows up to the first damaged instruction are kept.
    pub(crate) fn read(
        view: &View<'_>,
        opened: &RawUnit<'_>,
        offset: DebugLineOffset<usize>,
    ) -> Result<Lines, Missing> {
        let program = files::program(view, opened, offset)?;
        let mut read = program.rows();
        let mut rows: Vec<Row> = Vec::new();
        let mut sequences = Vec::new();
        let mut first = 0;
        while let Ok(Some((_, row))) = read.next_row() {
            view.info.budget.charge(1)?;
            let address = row.address();
            if row.end_sequence() {
                if let Some(start) = rows.get(first).map(|row| row.address)
                    && start < address
                    && view.info.is_code(start)
                {
                    let (first, last) = (first as u32, rows.len() as u32);
                    sequences.push(Sequence {
                        start,
                        end: address,
                        first,
                        last,
                    });
                } else {
                    rows.truncate(first);
                }
                first = rows.len();
                continue;
            }
            let decoded = Row {
                address,
                file: u32::try_from(row.file_index()).unwrap_or(u32::MAX),
                line: row
                    .line()
                    .map_or(0, |line| u32::try_from(line.get()).unwrap_or(0)),
                column: match row.column() {
                    ColumnType::LeftEdge => 0,
                    ColumnType::Column(column) => u32::try_from(column.get()).unwrap_or(0),
                },
            };
            // Of several rows for one address the last one holds.
            match rows[first..].last_mut() {
                Some(last) if last.address == address => *last = decoded,
                _ => rows.push(decoded),
            }
        }
        rows.truncate(
            sequences
                .last()
                .map_or(0, |sequence: &Sequence| sequence.last as usize),
        );
        sequences.sort_by_key(|sequence| sequence.start);
        Ok(Lines {
            sequences: sequences.into(),
            rows: rows.into(),
        })
    }
}
