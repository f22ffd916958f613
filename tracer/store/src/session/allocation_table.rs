//! Events of heaps as columns and back.

use std::{collections::HashMap, fmt::Write as _, sync::Arc};

use parquet::errors::ParquetError;

use super::{error::Damage, part_reader::ColumnSource, part_writer::ColumnSink};
use crate::{
    access::{Pid, Tid},
    event::{Allocation, AllocationKind, HeapPart},
};

const ALLOCATED: u32 = 0;
const FREED: u32 = 1;
const UNSEEN: u32 = 2;
const SEEN: u32 = 3;
const MAPPED: u32 = 4;
const UNMAPPED: u32 = 5;
const ALLOCATIONS_UNSEEN: u32 = 6;
const ALLOCATIONS_SEEN: u32 = 7;
const MAPPINGS_UNSEEN: u32 = 8;
const MAPPINGS_SEEN: u32 = 9;

/// Addresses of one stack that are read.
const MOST_FRAMES: usize = 256;

/// Bytes that the event's stack takes as text.
pub(super) fn text_bytes(event: &Allocation) -> usize {
    match &event.kind {
        AllocationKind::Allocated { stack, .. } | AllocationKind::Mapped { stack, .. } => {
            let digits = |addr: &u64| (u64::BITS - (addr | 1).leading_zeros()).div_ceil(4) as usize;
            stack.iter().map(digits).sum::<usize>() + stack.len().saturating_sub(1)
        }
        _ => 0,
    }
}

/// Gives all columns. `first` is the number of the first row; `batches` has one batch number per row.
pub(super) fn encode(
    events: &[Allocation],
    first: u64,
    batches: &[u64],
    sink: &mut ColumnSink<'_>,
) -> Result<(), ParquetError> {
    let mut stacks = Vec::with_capacity(events.len());
    for event in events {
        stacks.push(match &event.kind {
            AllocationKind::Allocated { size: 0, .. }
            | AllocationKind::Mapped { size: 0, .. }
            | AllocationKind::Unmapped { size: 0, .. } => {
                // No reader would take it.
                return Err(ParquetError::General("an allocation of 0 bytes".to_owned()));
            }
            AllocationKind::Allocated { stack, .. } | AllocationKind::Mapped { stack, .. } => {
                Some(text(stack))
            }
            _ => None,
        });
    }
    let rows = || events.iter();
    sink.u64s("seq", (first..).take(events.len()))?;
    sink.u64s("batch", batches.iter().copied())?;
    sink.u64s("time_ns", rows().map(|row| row.time_ns))?;
    sink.u32s("kind", rows().map(|row| code(&row.kind)))?;
    sink.u32s("pid", rows().map(|row| row.pid.0))?;
    sink.u32s("tid", rows().map(|row| row.tid.0))?;
    let addr = |row: &Allocation| match row.kind {
        AllocationKind::Allocated { addr, .. }
        | AllocationKind::Freed { addr }
        | AllocationKind::Mapped { addr, .. }
        | AllocationKind::Unmapped { addr, .. } => Some(addr),
        AllocationKind::Unseen(_) | AllocationKind::Seen(_) => None,
    };
    sink.optional_u64s("addr", rows().map(addr))?;
    let size = |row: &Allocation| match row.kind {
        AllocationKind::Allocated { size, .. }
        | AllocationKind::Mapped { size, .. }
        | AllocationKind::Unmapped { size, .. } => Some(size),
        _ => None,
    };
    sink.optional_u64s("size", rows().map(size))?;
    sink.optional_texts("stack", stacks.iter().map(Option::as_deref))
}

/// Reads all columns: the number of the first event, the events, and the batch number of each.
pub(super) fn decode(
    source: &mut ColumnSource<'_>,
) -> Result<(u64, Vec<Allocation>, Vec<u64>), Damage> {
    let first = source.first_seq()?;
    let batches = source.batches()?;
    let times = source.u64s("time_ns")?;
    let kinds = source.u32s("kind")?;
    let pids = source.u32s("pid")?;
    let tids = source.u32s("tid")?;
    let addrs = source.optional_u64s("addr")?;
    let sizes = source.optional_u64s("size")?;
    let texts = source.optional_texts("stack")?;
    let mut stacks = Stacks::default();
    let mut events = Vec::with_capacity(times.len());
    let columns = times.into_iter().zip(kinds).zip(pids).zip(tids);
    let columns = columns.zip(addrs).zip(sizes).zip(texts).enumerate();
    for (row, ((((((time_ns, kind), pid), tid), addr), size), stack)) in columns {
        let kind = match (kind, addr, size, stack) {
            (ALLOCATED | MAPPED, Some(addr), Some(size), Some(text)) if size > 0 => {
                let stack = stacks.get(text);
                let stack = stack.ok_or(Damage::Meta("a call stack is no list of addresses"))?;
                if kind == MAPPED {
                    AllocationKind::Mapped { addr, size, stack }
                } else {
                    AllocationKind::Allocated { addr, size, stack }
                }
            }
            (UNMAPPED, Some(addr), Some(size), None) if size > 0 => {
                AllocationKind::Unmapped { addr, size }
            }
            (FREED, Some(addr), None, None) => AllocationKind::Freed { addr },
            (_, None, None, None) => match sight(kind) {
                Some(sight) => sight,
                None => return Err(Damage::value("kind", row, kind)),
            },
            _ => return Err(Damage::value("kind", row, kind)),
        };
        events.push(Allocation {
            time_ns,
            pid: Pid(pid),
            tid: Tid(tid),
            kind,
        });
    }
    Ok((first, events, batches))
}

/// Each distinct stack once.
#[derive(Default)]
struct Stacks(HashMap<String, Arc<[u64]>>);

impl Stacks {
    fn get(&mut self, text: String) -> Option<Arc<[u64]>> {
        if let Some(known) = self.0.get(&text) {
            return Some(known.clone());
        }
        let stack: Arc<[u64]> = addresses(&text)?.into();
        self.0.insert(text, stack.clone());
        Some(stack)
    }
}

fn text(stack: &[u64]) -> String {
    let mut text = String::with_capacity(stack.len() * 13);
    for (n, addr) in stack.iter().enumerate() {
        let between = if n == 0 { "" } else { ";" };
        // Writing to a string does not fail.
        let _ = write!(text, "{between}{addr:x}");
    }
    text
}

fn addresses(text: &str) -> Option<Vec<u64>> {
    if text.is_empty() {
        return Some(Vec::new());
    }
    let words = text.split(';').take(MOST_FRAMES);
    words
        .map(|word| u64::from_str_radix(word, 16).ok())
        .collect()
}

fn code(kind: &AllocationKind) -> u32 {
    match kind {
        AllocationKind::Allocated { .. } => ALLOCATED,
        AllocationKind::Freed { .. } => FREED,
        AllocationKind::Mapped { .. } => MAPPED,
        AllocationKind::Unmapped { .. } => UNMAPPED,
        AllocationKind::Unseen(HeapPart::All) => UNSEEN,
        AllocationKind::Seen(HeapPart::All) => SEEN,
        AllocationKind::Unseen(HeapPart::Allocations) => ALLOCATIONS_UNSEEN,
        AllocationKind::Seen(HeapPart::Allocations) => ALLOCATIONS_SEEN,
        AllocationKind::Unseen(HeapPart::Mappings) => MAPPINGS_UNSEEN,
        AllocationKind::Seen(HeapPart::Mappings) => MAPPINGS_SEEN,
    }
}

/// What says that events are missing, or no longer.
fn sight(code: u32) -> Option<AllocationKind> {
    Some(match code {
        UNSEEN => AllocationKind::Unseen(HeapPart::All),
        SEEN => AllocationKind::Seen(HeapPart::All),
        ALLOCATIONS_UNSEEN => AllocationKind::Unseen(HeapPart::Allocations),
        ALLOCATIONS_SEEN => AllocationKind::Seen(HeapPart::Allocations),
        MAPPINGS_UNSEEN => AllocationKind::Unseen(HeapPart::Mappings),
        MAPPINGS_SEEN => AllocationKind::Seen(HeapPart::Mappings),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn a_stack_is_the_same_after_writing_and_takes_as_many_bytes_as_said(
            stack in proptest::collection::vec(proptest::num::u64::ANY, 0..30),
        ) {
            let written = text(&stack);
            proptest::prop_assert_eq!(addresses(&written), Some(stack.clone()));
            let event = Allocation {
                time_ns: 0,
                pid: Pid(1),
                tid: Tid(1),
                kind: AllocationKind::Allocated { addr: 0, size: 1, stack: stack.into() },
            };
            proptest::prop_assert_eq!(text_bytes(&event), written.len());
        }
    }

    #[test]
    fn words_that_are_no_addresses_are_no_stack() {
        for bad in [";", "12;", "0x12", "xyz", "11112222333344445"] {
            assert_eq!(addresses(bad), None, "{bad}");
        }
    }
}
