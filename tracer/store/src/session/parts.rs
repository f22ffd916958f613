//! A segment's parts as bytes, and what their footers say of each other.

use parquet::errors::ParquetError;
use serde::{Deserialize, Serialize};

use super::{
    access_table,
    allocation_table::{self, AllocationRow},
    context_tables::{Row, text_bytes},
    error::Damage,
    origin::Origin,
    part_reader::{ColumnSource, read_part},
    part_writer::{ColumnSink, write_part, write_part_coded},
    schema::{
        ACCESSES, ALLOCATIONS, AccessColumns, Column, LOCAL_STORAGE, MAPPINGS,
        MAX_SEGMENT_TEXT_BYTES, MEMORY, PACES, Placed, TASKS, Table, WINDOWS, emulated_coding,
        encode_blocks, encode_mappings, encode_memory, encode_paces, encode_tasks,
    },
    segment::{Position, Segment},
    tally_record::TallyRecord,
    window_table,
};
use crate::access::Access;

/// A segment's parts; `None` for a table without rows.
pub(super) struct Parts {
    pub accesses: Vec<u8>,
    pub mappings: Option<Vec<u8>>,
    pub tasks: Option<Vec<u8>>,
    pub local_storage: Option<Vec<u8>>,
    pub memory: Option<Vec<u8>>,
    pub paces: Option<Vec<u8>>,
    pub windows: Option<Vec<u8>>,
    pub allocations: Option<Vec<u8>>,
}

/// The footer's JSON in each part.
#[derive(Debug, Serialize, Deserialize)]
struct Facts {
    segment: u32,
    /// In `accesses` only, the part that makes the segment whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    whole: Option<Whole>,
}

/// What a whole segment has.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Whole {
    pub accesses: u64,
    pub mappings: u64,
    pub tasks: u64,
    /// Versions before 3 had none and do not say so.
    #[serde(default)]
    pub local_storage: u64,
    /// Versions before 6 had none and do not say so.
    #[serde(default)]
    pub memory: u64,
    /// Versions before 8 had none and do not say so.
    #[serde(default)]
    pub paces: u64,
    /// Version 1 had none and does not say so.
    #[serde(default)]
    pub windows: u64,
    /// Before version 3 there were none.
    #[serde(default)]
    pub allocations: u64,
    pub tally: TallyRecord,
}

impl Segment<AccessColumns> {
    /// The parts of segment `number`, whose first rows have the numbers of `first`.
    pub(super) fn encode(
        &self,
        number: u32,
        first: Position,
        origin: &Origin,
    ) -> Result<Parts, ParquetError> {
        let names: usize = self
            .context
            .iter()
            .map(|event| text_bytes(&event.kind))
            .chain(self.allocations.iter().map(allocation_table::text_bytes))
            .sum();
        if names > MAX_SEGMENT_TEXT_BYTES {
            // The writer cuts segments below this, so it is a single name; no reader would take it.
            return Err(ParquetError::General(format!("a name has {names} bytes")));
        }
        let mut mappings = Vec::new();
        let mut tasks = Vec::new();
        let mut blocks = Vec::new();
        let mut memory = Vec::new();
        let mut paces = Vec::new();
        let context = self.context.iter();
        let context = self.placed(context, first.context, |bound| bound.context_end);
        for Placed { seq, batch, row } in context {
            match Row::of(row) {
                Row::Mapping(row) => mappings.push(Placed { seq, batch, row }),
                Row::Task(row) => tasks.push(Placed { seq, batch, row }),
                Row::Block(row) => blocks.push(Placed { seq, batch, row }),
                Row::Memory(row) => memory.push(Placed { seq, batch, row }),
                Row::Pace(row) => paces.push(Placed { seq, batch, row }),
            }
        }
        let windows = self.windows.iter();
        let windows = self.placed(windows, first.window, |bound| bound.windows_end);
        let events = self.allocations.iter().map(AllocationRow::of);
        // Their texts take memory until they are written, so that is here.
        let allocations = part_of_rows(
            &ALLOCATIONS,
            &self.placed(events, first.allocation, |bound| bound.allocations_end),
            number,
            origin,
            allocation_table::encode,
        )?;
        let whole = Whole {
            accesses: self.accesses.len() as u64,
            mappings: mappings.len() as u64,
            tasks: tasks.len() as u64,
            local_storage: blocks.len() as u64,
            memory: memory.len() as u64,
            paces: paces.len() as u64,
            windows: self.windows.len() as u64,
            allocations: self.allocations.len() as u64,
            tally: TallyRecord::from(&self.tally),
        };
        let all_emulated = self.accesses.all_emulated();
        let coding = |column: &Column| {
            if all_emulated {
                emulated_coding(column)
            } else {
                column.coding
            }
        };
        Ok(Parts {
            accesses: write_part_coded(
                &ACCESSES,
                coding,
                self.accesses.len(),
                origin,
                facts(number, Some(whole))?,
                |sink| self.accesses.encode(first.access, sink),
            )?,
            mappings: part_of_rows(&MAPPINGS, &mappings, number, origin, encode_mappings)?,
            tasks: part_of_rows(&TASKS, &tasks, number, origin, encode_tasks)?,
            local_storage: part_of_rows(&LOCAL_STORAGE, &blocks, number, origin, encode_blocks)?,
            memory: part_of_rows(&MEMORY, &memory, number, origin, encode_memory)?,
            paces: part_of_rows(&PACES, &paces, number, origin, encode_paces)?,
            windows: part_of_rows(&WINDOWS, &windows, number, origin, window_table::encode)?,
            allocations,
        })
    }
}

/// A part that is only there if it has rows.
fn part_of_rows<R>(
    table: &'static Table,
    rows: &[Placed<R>],
    number: u32,
    origin: &Origin,
    encode: impl FnOnce(&[Placed<R>], &mut ColumnSink<'_>) -> Result<(), ParquetError>,
) -> Result<Option<Vec<u8>>, ParquetError> {
    if rows.is_empty() {
        return Ok(None);
    }
    let facts = facts(number, None)?;
    write_part(table, rows.len(), origin, facts, |sink| encode(rows, sink)).map(Some)
}

fn facts(segment: u32, whole: Option<Whole>) -> Result<String, ParquetError> {
    serde_json::to_string(&Facts { segment, whole })
        .map_err(|error| ParquetError::General(error.to_string()))
}

/// The accesses of a segment, which know what else it has.
pub(super) struct DecodedAccesses {
    /// Number of the first one.
    pub first: u64,
    pub accesses: Vec<Access>,
    pub batches: Vec<u64>,
    pub whole: Whole,
}

/// What a part is to belong to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Of<'a> {
    pub origin: &'a Origin,
    pub segment: u32,
}

/// Decodes `accesses` of a segment.
pub(super) fn decode_accesses(part: Vec<u8>, of: Of<'_>) -> Result<DecodedAccesses, Damage> {
    read_part(&ACCESSES, part, of.origin, |facts, source| {
        let whole = check_facts(facts, of.segment)?
            .whole
            .ok_or(Damage::Meta("its footer does not count its segment"))?;
        check_count("accesses", source.rows(), whole.accesses)?;
        if whole.tally.total().is_none() {
            return Err(Damage::Meta("its tally overflows"));
        }
        let (first, accesses, batches) = access_table::decode(source)?;
        Ok(DecodedAccesses {
            first,
            accesses,
            batches,
            whole,
        })
    })
}

/// Decodes the part of a table in a segment, which must have `rows` rows.
pub(super) fn decode_rows<T>(
    table: &'static Table,
    part: Vec<u8>,
    of: Of<'_>,
    rows: u64,
    decode: fn(&mut ColumnSource<'_>) -> Result<T, Damage>,
) -> Result<T, Damage> {
    read_part(table, part, of.origin, |facts, source| {
        check_facts(facts, of.segment)?;
        check_count(table.name, source.rows(), rows)?;
        decode(source)
    })
}

fn check_facts(facts: &str, segment: u32) -> Result<Facts, Damage> {
    let facts: Facts = serde_json::from_str(facts)?;
    if facts.segment == segment {
        Ok(facts)
    } else {
        Err(Damage::Meta("it belongs to another segment"))
    }
}

fn check_count(what: &'static str, found: usize, expected: u64) -> Result<(), Damage> {
    if found as u64 == expected {
        Ok(())
    } else {
        Err(Damage::Rows {
            what,
            found: found as u64,
            expected,
        })
    }
}
