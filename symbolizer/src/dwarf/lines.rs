//! Line tables: one per unit (some units share one), decoded when first needed.

use std::sync::Arc;

use gimli::{AttributeValue, ColumnType, DebugLineOffset, LineProgramHeader};

use super::{RawUnit, Slice, Unit, View, line_header};
use crate::missing::Missing;

/// Longest path that is built (Linux: PATH_MAX).
const LONGEST_PATH: usize = 4096;

/// A source position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    address: u64,
    file: u32,
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
    files: Box<[Arc<str>]>,
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

    /// The path of a row's file.
    pub(crate) fn path(&self, row: &Row) -> Option<Arc<str>> {
        self.file(u64::from(row.file))
    }

    /// The path of a file by its index, as `DW_AT_call_file` and `DW_AT_decl_file` give it.
    pub(crate) fn file(&self, index: u64) -> Option<Arc<str>> {
        let path = self.files.get(usize::try_from(index).ok()?)?;
        (!path.is_empty()).then(|| Arc::clone(path))
    }

    /// Decodes the table at `offset`. Rows up to the first damaged instruction are kept.
    pub(crate) fn read(
        view: &View<'_>,
        opened: &RawUnit<'_>,
        unit: &Unit,
        offset: DebugLineOffset<usize>,
    ) -> Result<Lines, Missing> {
        let section = gimli::Section::reader(&view.raw.debug_line).slice();
        line_header::check(section.get(offset.0..).ok_or(Missing::Malformed)?)?;
        let address_size = opened.header.address_size();
        let program = view
            .raw
            .debug_line
            .program(offset, address_size, None, None)?;
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
            files: paths(view, opened, unit, read.header())?,
            sequences: sequences.into(),
            rows: rows.into(),
        })
    }
}

fn paths<'a>(
    view: &View<'a>,
    opened: &RawUnit<'a>,
    unit: &Unit,
    header: &LineProgramHeader<Slice<'a>>,
) -> Result<Box<[Arc<str>]>, Missing> {
    let entries = header.file_names();
    let mut paths = Vec::with_capacity(entries.len() + 1);
    // Before DWARF 5 files are counted from 1.
    if header.version() <= 4 {
        paths.push(Arc::from(""));
    }
    for entry in entries {
        let text = |value: AttributeValue<Slice<'a>>| {
            let text = view.text(opened, value).unwrap_or(&[]);
            String::from_utf8_lossy(&text[..text.len().min(LONGEST_PATH)])
        };
        let mut path = String::new();
        push(&mut path, &unit.directory);
        // Before DWARF 5 directory 0 is the unit's own, and is not in the table.
        if header.version() >= 5 || entry.directory_index() != 0 {
            if let Some(directory) = entry.directory(header) {
                push(&mut path, &text(directory));
            }
        }
        push(&mut path, &text(entry.path_name()));
        view.info.budget.charge(1 + path.len() as u64 / 8)?;
        paths.push(Arc::from(path));
    }
    Ok(paths.into())
}

/// Appends a path: an absolute one replaces what is there.
fn push(path: &mut String, part: &str) {
    if part.starts_with('/') {
        path.clear();
    } else if !path.is_empty() && !path.ends_with('/') && !part.is_empty() {
        path.push('/');
    }
    if path.len() + part.len() <= 2 * LONGEST_PATH {
        path.push_str(part);
    }
}
