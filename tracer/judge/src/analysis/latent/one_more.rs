//! What the element of one more thread would meet, behind the last one of an array that is indexed by thread.
//!
//! The order is replayed with what the last thread does to its element done once more, at the same times, by a processor of its
//! own to the element behind:
//!
//! ```text
//!   today                     |1111....|2222....| |3333....|        |         elements of 32 bytes
//!   one more, beside it       |1111....|2222....| |3333....|nnnn....|         n meets 3
//!
//!   today                     |1111....2222....3| |333....x|                  x is used by somebody else
//!   one more, x moved behind  |1111....2222....3| |333....n| |nnn....x|
//! ```
//!
//! Where something else is used behind the last element, it has to make room: it is replayed in its place, moved by one
//! element, and moved by so many lines as an element has or begins (which is what something does that asks to begin with a
//! line); which of them is right, who knows the names can tell.

use rustc_hash::FxHashMap;

use super::{
    by_thread::{ThreadArray, ThreadArrays},
    counted::{Counted, at},
    elsewhere::LINE,
    replayed::{RunElsewhere, There, UsedLine},
};
use crate::{
    access::{Access, Basis, Cpu, LineKey, Place, SpaceId, Tid},
    analysis::{Way, split_by_line::split_by_line},
};

/// Whose the new element is: no thread has this number.
const NEW_THREAD: Tid = Tid(u32::MAX);

/// Where the new element would be is taken if others do so much there of what the last thread does to its own; less often, it
/// is who sets memory up.
const TAKEN: f64 = 0.02;

/// An element is used by its thread if others, or it between what it uses, do at most so much of what it does there.
const FOREIGN: f64 = 0.1;

/// How it is replayed: whether there is one more, and by how much what lies behind has moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Replay {
    Today,
    Beside,
    Behind,
    LinesBehind,
}

const REPLAYS: [Replay; 4] = [
    Replay::Today,
    Replay::Beside,
    Replay::Behind,
    Replay::LinesBehind,
];

/// What one more thread would cost at the end of an array, on the lines from the last element's to the one behind the new
/// one.
#[derive(Clone, Debug)]
pub struct OneMoreElement {
    /// The array.
    pub array: ThreadArray,
    /// What these lines cost as it is.
    pub today: There,
    /// Of that, hand-offs for neighbours on the lines that the new element would be on.
    pub fought_for: u64,
    /// What they would cost if the new element is behind the last one and all else where it is.
    pub beside: There,
    /// What they would cost if all that is used behind the last one moves by one element.
    pub behind: There,
    /// What they would cost if that moves by whole lines.
    pub lines_behind: There,
    /// Whether the last element is its thread's, and not something else that others use as well.
    pub is_own: bool,
    /// Whether others use the bytes of the new element.
    pub taken: bool,
    /// Those lines as they are.
    pub run: RunElsewhere,
}

/// The order, replayed one way.
#[derive(Debug)]
struct Replayed {
    how: Replay,
    counted: Counted,
}

/// What is counted of an array.
#[derive(Clone, Copy, Debug, Default)]
struct Uses {
    /// Executions by its thread on the last element.
    last: u64,
    /// All other executions on the last element.
    foreign: u64,
    /// Executions by whomever where the new one would be.
    next: u64,
}

/// Some arrays, with one more thread. Feed it every access, in order.
#[derive(Debug)]
pub struct OneMoreThread {
    arrays: Vec<(ThreadArray, Uses)>,
    of_line: FxHashMap<LineKey, Vec<u32>>,
    replays: [Replayed; 4],
    /// The new thread's.
    cpu: Cpu,
}

impl OneMoreThread {
    /// Nothing fed yet.
    pub fn new(found: &ThreadArrays) -> OneMoreThread {
        let mut of_line: FxHashMap<LineKey, Vec<u32>> = FxHashMap::default();
        for (array, number) in found.arrays.iter().zip(0..) {
            for line in lines(array) {
                of_line.entry(line).or_default().push(number);
            }
        }
        let arrays = found.arrays.iter();
        OneMoreThread {
            arrays: arrays.map(|array| (*array, Uses::default())).collect(),
            of_line,
            replays: REPLAYS.map(|how| Replayed {
                how,
                counted: Counted::new(),
            }),
            cpu: found.unused_cpu,
        }
    }

    /// Serves an access at its resolved place; `space` is the address space of the executing process.
    pub fn observe(&mut self, access: &Access, place: Place, space: SpaceId) {
        if access.basis != Basis::Emulated {
            return;
        }
        split_by_line(access, place, LINE, &[], |key, piece| {
            let Some(arrays) = self.of_line.get(&key) else {
                return;
            };
            let part = Access {
                size: piece.size.into(),
                ..*access
            };
            let position = key.0.position() + u64::from(piece.offset);
            for number in arrays {
                let (array, uses) = &mut self.arrays[*number as usize];
                let is_last =
                    access.tid == array.thread && within(position, array.last, array.used);
                if is_last {
                    uses.last = uses.last.saturating_add(access.executions());
                } else if within(position, array.last, array.stride) {
                    uses.foreign = uses.foreign.saturating_add(access.executions());
                }
                if within(position, array.next(), array.used) {
                    uses.next = uses.next.saturating_add(access.executions());
                }
                for replay in &mut self.replays {
                    let moved = replay.moved(array, position);
                    replay
                        .counted
                        .take(&part, at(*number, position + moved), space);
                    if is_last && replay.how != Replay::Today {
                        let new = Access {
                            tid: NEW_THREAD,
                            cpu: self.cpu,
                            ..part
                        };
                        replay
                            .counted
                            .take(&new, at(*number, position + array.stride), space);
                    }
                }
            }
        });
    }

    /// What came of it, array by array.
    pub fn finish(self) -> Vec<OneMoreElement> {
        let arrays = self.arrays.iter().zip(0..);
        let mut found: Vec<OneMoreElement> = arrays
            .map(|((array, uses), number)| OneMoreElement {
                array: *array,
                today: There::default(),
                fought_for: 0,
                beside: There::default(),
                behind: There::default(),
                lines_behind: There::default(),
                is_own: uses.foreign as f64 <= uses.last as f64 * FOREIGN,
                taken: uses.next as f64 > uses.last as f64 * TAKEN,
                run: RunElsewhere {
                    lines: lines(array)
                        .map(|key| self.replays[0].used(number, key))
                        .collect(),
                    ways: Vec::new(),
                },
            })
            .collect();
        for replay in &self.replays {
            for (number, addr, there) in replay.counted.shared() {
                let Some(element) = found.get_mut(number) else {
                    continue;
                };
                let sum = match replay.how {
                    Replay::Today => {
                        if has_new(&element.array, addr) {
                            element.fought_for += there.for_neighbours();
                        }
                        &mut element.today
                    }
                    Replay::Beside => &mut element.beside,
                    Replay::Behind => &mut element.behind,
                    Replay::LinesBehind => &mut element.lines_behind,
                };
                *sum = sum.plus(&there);
            }
        }
        for element in &mut found {
            element.run.ways.push((Way::TODAY, element.today));
        }
        found
    }
}

impl Replayed {
    /// By how much the byte there has moved: what lies behind the last element makes room.
    fn moved(&self, array: &ThreadArray, position: u64) -> u64 {
        let is_behind = position >= array.next().position();
        match self.how {
            Replay::Behind if is_behind => array.stride,
            Replay::LinesBehind if is_behind => array.stride.next_multiple_of(LINE.bytes()),
            _ => 0,
        }
    }

    /// A line as it is, of the array of that number.
    fn used(&self, number: u32, key: LineKey) -> UsedLine {
        UsedLine {
            key,
            sites: self.counted.sites(LineKey(at(number, key.0.position()))),
            fights: true,
        }
    }
}

/// From the last element's line to the one behind the new element.
fn lines(array: &ThreadArray) -> impl Iterator<Item = LineKey> + use<> {
    let first = array.last.line(LINE);
    let end = array.next().position().saturating_add(array.used);
    let positions =
        (first.0.position()..end.saturating_add(LINE.bytes())).step_by(LINE.bytes() as usize);
    positions.map(move |position| LineKey(first.0.at(position)))
}

/// Whether a byte is among so many from a place on, of the same memory.
fn within(position: u64, from: Place, bytes: u64) -> bool {
    position
        .checked_sub(from.position())
        .is_some_and(|inside| inside < bytes)
}

/// Whether a line that begins there would have bytes of the new element, if that is behind the last one.
fn has_new(array: &ThreadArray, line: u64) -> bool {
    let from = array.next().position();
    line < from + array.used && from < line + LINE.bytes()
}

#[cfg(test)]
mod tests;
