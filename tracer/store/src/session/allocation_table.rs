//! Events of heaps as columns and back.

use std::{collections::HashMap, fmt::Write as _, sync::Arc};

use parquet::errors::ParquetError;

use super::{
    error::Damage,
    part_writer::ColumnSink,
    schema::{Placed, encode_allocations},
};
use crate::event::{Allocation, AllocationKind, HeapPart};

pub(super) use super::schema::decode_allocations as decode;

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

/// A row of `allocations`.
#[derive(Debug)]
pub(super) struct AllocationRow<'a> {
    pub event: &'a Allocation,
    pub stack: Option<String>,
}

impl AllocationRow<'_> {
    pub(super) fn of(event: &Allocation) -> AllocationRow<'_> {
        let stack = match &event.kind {
            AllocationKind::Allocated { stack, .. } | AllocationKind::Mapped { stack, .. } => {
                Some(text(stack))
            }
            _ => None,
        };
        AllocationRow { event, stack }
    }
}

/// The columns `kind`, `addr` and `size` of an event.
pub(super) fn cells(event: &Allocation) -> (u32, Option<u64>, Option<u64>) {
    match event.kind {
        AllocationKind::Allocated { addr, size, .. } => (ALLOCATED, Some(addr), Some(size)),
        AllocationKind::Freed { addr } => (FREED, Some(addr), None),
        AllocationKind::Mapped { addr, size, .. } => (MAPPED, Some(addr), Some(size)),
        AllocationKind::Unmapped { addr, size } => (UNMAPPED, Some(addr), Some(size)),
        AllocationKind::Unseen(HeapPart::All) => (UNSEEN, None, None),
        AllocationKind::Seen(HeapPart::All) => (SEEN, None, None),
        AllocationKind::Unseen(HeapPart::Allocations) => (ALLOCATIONS_UNSEEN, None, None),
        AllocationKind::Seen(HeapPart::Allocations) => (ALLOCATIONS_SEEN, None, None),
        AllocationKind::Unseen(HeapPart::Mappings) => (MAPPINGS_UNSEEN, None, None),
        AllocationKind::Seen(HeapPart::Mappings) => (MAPPINGS_SEEN, None, None),
    }
}

/// Gives all columns.
pub(super) fn encode(
    rows: &[Placed<AllocationRow<'_>>],
    sink: &mut ColumnSink<'_>,
) -> Result<(), ParquetError> {
    if (rows.iter()).any(|placed| cells(placed.row.event).2 == Some(0)) {
        // No reader would take it.
        return Err(ParquetError::General("an allocation of 0 bytes".to_owned()));
    }
    encode_allocations(rows, sink)
}

/// What happened, by the columns of a row.
pub(super) fn kind(
    row: usize,
    kind: u32,
    addr: Option<u64>,
    size: Option<u64>,
    stack: Option<String>,
    stacks: &mut Stacks,
) -> Result<AllocationKind, Damage> {
    Ok(match (kind, addr, size, stack) {
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
        (UNSEEN, None, None, None) => AllocationKind::Unseen(HeapPart::All),
        (SEEN, None, None, None) => AllocationKind::Seen(HeapPart::All),
        (ALLOCATIONS_UNSEEN, None, None, None) => AllocationKind::Unseen(HeapPart::Allocations),
        (ALLOCATIONS_SEEN, None, None, None) => AllocationKind::Seen(HeapPart::Allocations),
        (MAPPINGS_UNSEEN, None, None, None) => AllocationKind::Unseen(HeapPart::Mappings),
        (MAPPINGS_SEEN, None, None, None) => AllocationKind::Seen(HeapPart::Mappings),
        _ => return Err(Damage::value("kind", row, kind)),
    })
}

/// Each distinct stack once.
#[derive(Default)]
pub(super) struct Stacks(HashMap<String, Arc<[u64]>>);

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::{Pid, Tid};

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
