//! A segment's parts as bytes, and what their footers say of each other.

use parquet::errors::ParquetError;
use serde::{Deserialize, Serialize};

use super::{
    access_columns::AccessColumns,
    access_table, allocation_table,
    context_tables::{self, Placed, Row, text_bytes},
    error::Damage,
    origin::Origin,
    part_reader::read_part,
    part_writer::{ColumnSink, write_part, write_part_coded},
    schema::{
        ACCESSES, ALLOCATIONS, Column, LOCAL_STORAGE, MAPPINGS, MAX_SEGMENT_TEXT_BYTES, MEMORY,
        TASKS, Table, WINDOWS, emulated_coding,
    },
    segment::{Position, Segment},
    tally_record::TallyRecord,
    window_table,
};
use crate::{
    access::Access,
    event::{Allocation, Context, Window},
};

/// A segment's parts; `None` for a table without rows.
pub(super) struct Parts {
    pub accesses: Vec<u8>,
    pub mappings: Option<Vec<u8>>,
    pub tasks: Option<Vec<u8>>,
    pub local_storage: Option<Vec<u8>>,
    pub memory: Option<Vec<u8>>,
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
        let context_batches = self.batch_of_each_row(|bound| bound.context_end);
        let window_batches = self.batch_of_each_row(|bound| bound.windows_end);
        let allocation_batches = self.batch_of_each_row(|bound| bound.allocations_end);
        let mut mappings = Vec::new();
        let mut tasks = Vec::new();
        let mut blocks = Vec::new();
        let mut memory = Vec::new();
        for ((context, seq), batch) in self
            .context
            .iter()
            .zip(first.context..)
            .zip(context_batches)
        {
            let time_ns = context.time_ns;
            match Row::of(&context.kind) {
                Row::Mapping(row) => mappings.push(Placed {
                    seq,
                    batch,
                    time_ns,
                    row,
                }),
                Row::Task(row) => tasks.push(Placed {
                    seq,
                    batch,
                    time_ns,
                    row,
                }),
                Row::Block(row) => blocks.push(Placed {
                    seq,
                    batch,
                    time_ns,
                    row,
                }),
                Row::Memory(row) => memory.push(Placed {
                    seq,
                    batch,
                    time_ns,
                    row,
                }),
            }
        }
        let whole = Whole {
            accesses: self.accesses.len() as u64,
            mappings: mappings.len() as u64,
            tasks: tasks.len() as u64,
            local_storage: blocks.len() as u64,
            memory: memory.len() as u64,
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
                |sink| access_table::encode(&self.accesses, first.access, sink),
            )?,
            mappings: part_of_rows(&MAPPINGS, mappings.len(), number, origin, |sink| {
                context_tables::encode_mappings(&mappings, sink)
            })?,
            tasks: part_of_rows(&TASKS, tasks.len(), number, origin, |sink| {
                context_tables::encode_tasks(&tasks, sink)
            })?,
            local_storage: part_of_rows(&LOCAL_STORAGE, blocks.len(), number, origin, |sink| {
                context_tables::encode_blocks(&blocks, sink)
            })?,
            memory: part_of_rows(&MEMORY, memory.len(), number, origin, |sink| {
                context_tables::encode_memory(&memory, sink)
            })?,
            windows: part_of_rows(&WINDOWS, self.windows.len(), number, origin, |sink| {
                window_table::encode(&self.windows, first.window, &window_batches, sink)
            })?,
            allocations: part_of_rows(
                &ALLOCATIONS,
                self.allocations.len(),
                number,
                origin,
                |sink| {
                    let first = first.allocation;
                    allocation_table::encode(&self.allocations, first, &allocation_batches, sink)
                },
            )?,
        })
    }
}

/// A part that is only there if it has rows.
fn part_of_rows(
    table: &'static Table,
    rows: usize,
    number: u32,
    origin: &Origin,
    fill: impl FnOnce(&mut ColumnSink<'_>) -> Result<(), ParquetError>,
) -> Result<Option<Vec<u8>>, ParquetError> {
    if rows == 0 {
        return Ok(None);
    }
    write_part(table, rows, origin, facts(number, None)?, fill).map(Some)
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

/// The windows of a segment.
#[derive(Default)]
pub(super) struct DecodedWindows {
    /// Number of the first one.
    pub first: u64,
    pub windows: Vec<Window>,
    pub batches: Vec<u64>,
}

/// The events of heaps of a segment.
#[derive(Default)]
pub(super) struct DecodedAllocations {
    /// Number of the first one.
    pub first: u64,
    pub allocations: Vec<Allocation>,
    pub batches: Vec<u64>,
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

/// Decodes `mappings` of a segment, which must have `rows` of them.
pub(super) fn decode_mappings(
    part: Vec<u8>,
    of: Of<'_>,
    rows: u64,
) -> Result<Vec<Placed<Context>>, Damage> {
    read_part(&MAPPINGS, part, of.origin, |facts, source| {
        check_facts(facts, of.segment)?;
        check_count("mappings", source.rows(), rows)?;
        context_tables::decode_mappings(source)
    })
}

/// Decodes `tasks` of a segment, which must have `rows` of them.
pub(super) fn decode_tasks(
    part: Vec<u8>,
    of: Of<'_>,
    rows: u64,
) -> Result<Vec<Placed<Context>>, Damage> {
    read_part(&TASKS, part, of.origin, |facts, source| {
        check_facts(facts, of.segment)?;
        check_count("tasks", source.rows(), rows)?;
        context_tables::decode_tasks(source)
    })
}

/// Decodes `local_storage` of a segment, which must have `rows` of them.
pub(super) fn decode_local_storage(
    part: Vec<u8>,
    of: Of<'_>,
    rows: u64,
) -> Result<Vec<Placed<Context>>, Damage> {
    read_part(&LOCAL_STORAGE, part, of.origin, |facts, source| {
        check_facts(facts, of.segment)?;
        check_count("local_storage", source.rows(), rows)?;
        context_tables::decode_blocks(source)
    })
}

/// Decodes `memory` of a segment, which must have `rows` of them.
pub(super) fn decode_memory(
    part: Vec<u8>,
    of: Of<'_>,
    rows: u64,
) -> Result<Vec<Placed<Context>>, Damage> {
    read_part(&MEMORY, part, of.origin, |facts, source| {
        check_facts(facts, of.segment)?;
        check_count("memory", source.rows(), rows)?;
        context_tables::decode_memory(source)
    })
}

/// Decodes `windows` of a segment, which must have `rows` of them.
pub(super) fn decode_windows(
    part: Vec<u8>,
    of: Of<'_>,
    rows: u64,
) -> Result<DecodedWindows, Damage> {
    read_part(&WINDOWS, part, of.origin, |facts, source| {
        check_facts(facts, of.segment)?;
        check_count("windows", source.rows(), rows)?;
        let (first, windows, batches) = window_table::decode(source)?;
        Ok(DecodedWindows {
            first,
            windows,
            batches,
        })
    })
}

/// Decodes `allocations` of a segment, which must have `rows` of them.
pub(super) fn decode_allocations(
    part: Vec<u8>,
    of: Of<'_>,
    rows: u64,
) -> Result<DecodedAllocations, Damage> {
    read_part(&ALLOCATIONS, part, of.origin, |facts, source| {
        check_facts(facts, of.segment)?;
        check_count("allocations", source.rows(), rows)?;
        let (first, allocations, batches) = allocation_table::decode(source)?;
        Ok(DecodedAllocations {
            first,
            allocations,
            batches,
        })
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
