//! One segment in memory, and its three parts.
//!
//! ```text
//!   bounds     batch 7       batch 8     batch 9       ends of each batch in both rows
//!   accesses   aaaaaaaaa     aaaa        aaaaaaa       ─► accesses/
//!   context    m  t          mm          t             ─► mappings/ and tasks/, `seq` keeps m and t in order
//! ```

use parquet::errors::ParquetError;
use serde::{Deserialize, Serialize};

use super::{
    access_table,
    context_tables::{self, Placed, Row, text_bytes},
    error::Damage,
    part_reader::read_part,
    part_writer::write_part,
    schema::{ACCESSES, MAPPINGS, MAX_SEGMENT_TEXT_BYTES, TASKS},
    tally_record::TallyRecord,
};
use crate::{
    access::Access,
    event::{Context, Tally},
};

/// Numbers of the next access, context event and batch of a session being read or written.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Position {
    pub access: u64,
    pub context: u64,
    pub batch: u64,
    /// All counts of the tallies before it, added up: while this does not overflow, no sum of tallies does.
    pub counted: u64,
}

/// Where a batch ends in a segment's rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bound {
    pub batch: u64,
    pub accesses_end: usize,
    pub context_end: usize,
}

/// Rows of a stretch of time.
#[derive(Debug, Default)]
pub(super) struct Segment {
    pub accesses: Vec<Access>,
    pub context: Vec<Context>,
    /// One per batch that has rows, in order.
    pub bounds: Vec<Bound>,
    pub tally: Tally,
}

/// A segment's parts; `None` for a table without rows.
pub(super) struct Parts {
    pub accesses: Vec<u8>,
    pub mappings: Option<Vec<u8>>,
    pub tasks: Option<Vec<u8>>,
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
    pub tally: TallyRecord,
}

impl Segment {
    /// Empties it and keeps its memory.
    pub(super) fn clear(&mut self) {
        self.accesses.clear();
        self.context.clear();
        self.bounds.clear();
        self.tally = Tally::default();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows() == 0 && self.tally == Tally::default()
    }

    /// Rows of all tables.
    pub(super) fn rows(&self) -> usize {
        self.accesses.len() + self.context.len()
    }

    /// Newest time in it.
    pub(super) fn newest_ns(&self) -> Option<u64> {
        let accesses = self.accesses.iter().map(|access| access.time_ns);
        let context = self.context.iter().map(|context| context.time_ns);
        accesses.chain(context).max()
    }

    /// The parts of segment `number`, whose first rows have the numbers of `first`.
    pub(super) fn encode(&self, number: u32, first: Position) -> Result<Parts, ParquetError> {
        let names: usize = self
            .context
            .iter()
            .map(|event| text_bytes(&event.kind))
            .sum();
        if names > MAX_SEGMENT_TEXT_BYTES {
            // The writer cuts segments below this, so it is a single name; no reader would take it.
            return Err(ParquetError::General(format!("a name has {names} bytes")));
        }
        let access_batches = self.batch_of_each_row(|bound| bound.accesses_end);
        let context_batches = self.batch_of_each_row(|bound| bound.context_end);
        let mut mappings = Vec::new();
        let mut tasks = Vec::new();
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
            }
        }
        let facts = |whole| {
            let facts = Facts {
                segment: number,
                whole,
            };
            serde_json::to_string(&facts).map_err(|error| ParquetError::General(error.to_string()))
        };
        let whole = Whole {
            accesses: self.accesses.len() as u64,
            mappings: mappings.len() as u64,
            tasks: tasks.len() as u64,
            tally: TallyRecord::from(&self.tally),
        };
        let accesses = write_part(
            &ACCESSES,
            self.accesses.len(),
            facts(Some(whole))?,
            |sink| access_table::encode(&self.accesses, first.access, &access_batches, sink),
        )?;
        let mappings = if mappings.is_empty() {
            None
        } else {
            Some(write_part(
                &MAPPINGS,
                mappings.len(),
                facts(None)?,
                |sink| context_tables::encode_mappings(&mappings, sink),
            )?)
        };
        let tasks = if tasks.is_empty() {
            None
        } else {
            Some(write_part(&TASKS, tasks.len(), facts(None)?, |sink| {
                context_tables::encode_tasks(&tasks, sink)
            })?)
        };
        Ok(Parts {
            accesses,
            mappings,
            tasks,
        })
    }

    fn batch_of_each_row(&self, end: impl Fn(&Bound) -> usize) -> Vec<u64> {
        let mut batches = Vec::new();
        for bound in &self.bounds {
            batches.resize(end(bound), bound.batch);
        }
        batches
    }
}

/// The accesses of a segment, which know what else it has.
pub(super) struct DecodedAccesses {
    pub accesses: Vec<Access>,
    pub batches: Vec<u64>,
    pub whole: Whole,
}

/// Decodes `accesses` of segment `number`; `first` are the numbers its rows must start with.
pub(super) fn decode_accesses(
    part: Vec<u8>,
    number: u32,
    first: Position,
) -> Result<DecodedAccesses, Damage> {
    read_part(&ACCESSES, part, |facts, source| {
        let whole = check_facts(facts, number)?
            .whole
            .ok_or(Damage::Meta("its footer does not count its segment"))?;
        check_count("accesses", source.rows(), whole.accesses)?;
        let (accesses, batches) = access_table::decode(source, first.access)?;
        Ok(DecodedAccesses {
            accesses,
            batches,
            whole,
        })
    })
}

/// Decodes `mappings` of segment `number`, which must have `rows` of them.
pub(super) fn decode_mappings(
    part: Vec<u8>,
    number: u32,
    rows: u64,
) -> Result<Vec<Placed<Context>>, Damage> {
    read_part(&MAPPINGS, part, |facts, source| {
        check_facts(facts, number)?;
        check_count("mappings", source.rows(), rows)?;
        context_tables::decode_mappings(source)
    })
}

/// Decodes `tasks` of segment `number`, which must have `rows` of them.
pub(super) fn decode_tasks(
    part: Vec<u8>,
    number: u32,
    rows: u64,
) -> Result<Vec<Placed<Context>>, Damage> {
    read_part(&TASKS, part, |facts, source| {
        check_facts(facts, number)?;
        check_count("tasks", source.rows(), rows)?;
        context_tables::decode_tasks(source)
    })
}

fn check_facts(facts: &str, number: u32) -> Result<Facts, Damage> {
    let facts: Facts = serde_json::from_str(facts)?;
    if facts.segment == number {
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

/// Puts a segment together again and checks that its rows are those of the stream from `first` on.
pub(super) fn assemble(
    decoded: DecodedAccesses,
    mappings: Vec<Placed<Context>>,
    tasks: Vec<Placed<Context>>,
    first: Position,
) -> Result<Segment, Damage> {
    let mut placed = mappings;
    placed.extend(tasks);
    placed.sort_by_key(|placed| placed.seq);
    for (row, (placed, expected)) in placed.iter().zip(first.context..).enumerate() {
        if placed.seq != expected {
            return Err(Damage::Value {
                column: "seq",
                row,
                value: placed.seq,
            });
        }
    }
    let total = decoded.whole.tally.total();
    if total
        .and_then(|total| total.checked_add(first.counted))
        .is_none()
    {
        return Err(Damage::Meta("its tally overflows"));
    }
    let context_batches: Vec<u64> = placed.iter().map(|placed| placed.batch).collect();
    let mut segment = Segment {
        bounds: bounds(&decoded.batches, &context_batches, first.batch)?,
        accesses: decoded.accesses,
        context: placed.into_iter().map(|placed| placed.row).collect(),
        tally: Tally::try_from(&decoded.whole.tally)?,
    };
    if segment.bounds.is_empty() && !segment.is_empty() {
        // Counts alone are a batch too.
        segment.bounds.push(Bound {
            batch: first.batch,
            accesses_end: 0,
            context_end: 0,
        });
    }
    Ok(segment)
}

/// The batches' ends, from the batch number of each row; numbers never decrease.
fn bounds(accesses: &[u64], context: &[u64], first: u64) -> Result<Vec<Bound>, Damage> {
    let mut bounds: Vec<Bound> = Vec::new();
    let (mut a, mut c) = (0, 0);
    loop {
        let next = accesses.get(a).into_iter().chain(context.get(c)).min();
        let Some(batch) = next.copied() else {
            return Ok(bounds);
        };
        let least = bounds.last().map_or(first, |bound| bound.batch + 1);
        // The largest is refused so that the number after it exists.
        if batch < least || batch == u64::MAX {
            return Err(Damage::Value {
                column: "batch",
                row: a,
                value: batch,
            });
        }
        a += accesses[a..].iter().take_while(|n| **n == batch).count();
        c += context[c..].iter().take_while(|n| **n == batch).count();
        bounds.push(Bound {
            batch,
            accesses_end: a,
            context_end: c,
        });
    }
}
