//! What two blocks of the heap would cost if one of them lay closer to the other.

use serde::Serialize;

use super::thing::Used;
use crate::{
    access::Cost,
    analysis::{Mover, PairMoved, There},
    finding::{self, Thresholds},
    heap::Chunk,
    names::{Names, ObjectKind, ObjectLayout, ObjectName},
};

/// One of two blocks of the heap is closer to the other than it is, by another allocation before or between them.
#[derive(Debug, Clone, Copy, Serialize, PartialEq)]
pub struct OneMoves {
    /// Which.
    pub moves: MovingBlock,
    /// Bytes by which it begins later, a multiple of 16; below 0 where it begins earlier.
    pub moved_bytes: i8,
    /// Hand-offs from one CPU to another that it adds.
    pub hand_offs: u64,
    /// Of those, hand-offs of nothing that the taker used.
    pub falsely: u64,
    /// Of the others, hand-offs that took along bytes which the taker used and nobody had changed.
    pub dragged: u64,
    /// Messages of the directory protocol that it adds.
    pub messages: u64,
}

/// The one that lies first in memory or the one behind.
#[derive(Debug, Clone, Copy, Serialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum MovingBlock {
    /// It begins later.
    First,
    /// It begins earlier.
    Second,
}

impl OneMoves {
    fn new(mover: Mover, today: &There, there: &There) -> OneMoves {
        let (now, then) = (&today.hand_offs, &there.hand_offs);
        let (moves, moved_bytes) = match mover {
            Mover::First(bytes) => (MovingBlock::First, bytes as i8),
            Mover::Second(bytes) => (MovingBlock::Second, -(bytes as i8)),
        };
        OneMoves {
            moves,
            moved_bytes,
            hand_offs: then.total().saturating_sub(now.total()),
            falsely: then.falsely.saturating_sub(now.falsely),
            dragged: then.dragged.saturating_sub(now.dragged),
            messages: there.messages.saturating_sub(today.messages),
        }
    }

    fn is_alike(&self, other: &OneMoves) -> bool {
        (self.moves, self.moved_bytes) == (other.moves, other.moved_bytes)
    }
}

/// Adds those of another two blocks that are the same things.
pub(super) fn add(moves: &mut Vec<OneMoves>, more: &[OneMoves]) {
    for one in more {
        match moves.iter_mut().find(|known| known.is_alike(one)) {
            None => moves.push(*one),
            Some(known) => {
                known.hand_offs = known.hand_offs.saturating_add(one.hand_offs);
                known.falsely = known.falsely.saturating_add(one.falsely);
                known.dragged = known.dragged.saturating_add(one.dragged);
                known.messages = known.messages.saturating_add(one.messages);
            }
        }
    }
}

/// The ways that make threads fight that do not today, if both are blocks of the heap and there is room.
pub(super) fn one_moves(
    pair: &PairMoved,
    names: &dyn Names,
    whole: Cost,
    thresholds: &Thresholds,
) -> Vec<OneMoves> {
    let fights = |there: &There| finding::would_fight(&pair.today, there, whole, thresholds);
    let fighting = pair.moved.iter().filter(|(_, there)| fights(there));
    let fighting: Vec<&(Mover, There)> = fighting.collect();
    if fighting.is_empty() {
        return Vec::new();
    }
    let room = room(pair, names).unwrap_or(0);
    let fits = |mover: Mover| u64::from(mover.bytes()) <= room;
    let fighting = fighting.into_iter().filter(|(mover, _)| fits(*mover));
    fighting
        .map(|(mover, there)| OneMoves::new(*mover, &pair.today, there))
        .collect()
}

/// Bytes between the chunk of the first line's last block and that of the second line's first; `None` where they are not two
/// blocks, or where it is not known.
fn room(pair: &PairMoved, names: &dyn Names) -> Option<u64> {
    let [first, second] = &pair.run.lines[..] else {
        return None;
    };
    let used = |line| {
        let used = Used::new(line);
        let on_line = used.objects(names);
        let sites = used.sites.iter();
        let indices = sites.filter_map(|counts| on_line.label(&counts.site).0);
        let mut indices: Vec<usize> = indices.collect();
        indices.sort_unstable();
        let objects = |index: &usize| on_line.objects.get(*index).cloned();
        indices
            .iter()
            .filter_map(objects)
            .collect::<Vec<ObjectName>>()
    };
    let (before, behind) = (used(first).pop()?, used(second).into_iter().next()?);
    if !is_block(&before) || !is_block(&behind) {
        return None;
    }
    let (start, size) = before.start.zip(before.size)?;
    let apart = behind.start?.checked_sub(start)?;
    // Of one type and in its steps they may be elements of one block.
    let alike = before.type_name == behind.type_name && before.size == behind.size;
    let is_row = alike && before.allocation.is_none() && apart.is_multiple_of(size.max(1));
    if apart == 0 || is_row {
        return None;
    }
    apart.checked_sub(Chunk::bytes_of(size))
}

/// A number on the heap may be anything, and a part of anything.
fn is_block(object: &ObjectName) -> bool {
    let has_parts = object.layout.as_ref().is_some_and(ObjectLayout::has_parts);
    object.kind == ObjectKind::Heap && (has_parts || object.allocation.is_some())
}
