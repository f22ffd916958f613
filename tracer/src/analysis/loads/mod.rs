//! What every load would change if it fetched its line for ownership, from a complete order of accesses.
//!
//! The order runs through one [`Directory`](crate::coherence::Directory) per line: the world as it was. When a load
//! misses there, a *shadow* of its line is forked in which that load, and it alone, decides otherwise. Both worlds serve
//! every further access to the line until the line is the same in both; what then differs in messages is what a hint on
//! that load saves or costs, exactly:
//!
//! ```text
//!   accesses      1: load p    1: store q   2: load r   1: load p  ..   messages
//!   as it was     READ_SHAR 4  READ_PRIV 4  4           2                  8
//!   shadow of p   READ_PRIV 4  hit       0  │ equal again: the episode is over, and saved 4
//!                 └ forked                  └ the next miss of p forks anew
//! ```
//!
//! - **Episodes are netted.** The difference of an episode as a whole goes to [`Load::saved`] when messages were saved,
//!   to [`Load::lost`] when they were added. Hence `saved - lost` is the difference of two full replays, without and with
//!   the hint; [`Load::readers_hurt`] counts single reads, in episodes of either kind. An episode that the order cuts off
//!   counts as far as it was seen.
//! - **Other loads are as they are.** A table made by [`LoadTable::hinting`] starts from a world in which some loads are
//!   hinted already. There the shadow of a hinted load is the world without its hint, with the sign turned, so that
//!   `saved` is always what the hint saves *beside the others*.
//! - **Caches are infinite**: a line leaves a cache only by another's request. What evictions add is the simulator's
//!   business. Hence also a program's first touch of a line finds it in no cache.
//! - **Repeats** ([`Measured::repeats`](crate::access::Measured::repeats)) are executions that ask for nothing in the
//!   world as it was. They must end where another processor gets a copy, even one that takes none away: in a shadow that
//!   read may take the line for ownership, and whoever goes on reading would miss. What is folded across such a read is
//!   not held against the hint.
//! - Processors are the accesses' [`cpu`](crate::access::Access::cpu); a program's threads in emulated runs.
//!
//! Watch windows go the same way, each a stretch of its own line. Nobody knows where the line was when a window opened,
//! so nothing counts up to and with its first store; from there on the line's state is certain.

mod line;
mod load;
mod streaks;

#[cfg(test)]
mod laws;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

pub use load::{Following, Load, TouchedLine};
pub use streaks::LineStreaks;

use self::{
    line::{LineState, Step, World},
    load::Counted,
    streaks::{Room, Streaks},
};
use super::{Instruction, cut::cut, window_order::Trapped};
use crate::{
    access::{Access, LineKey, LineSize, Op, Place, SpaceId},
    coherence::{Intent, Protocol},
};

/// How much is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadBounds {
    /// Lines; accesses to more are counted in [`LoadTotals::beyond`] and otherwise ignored.
    pub lines: usize,
    /// Loading instructions; more are run through the protocol, but nothing is known of them.
    pub loads: usize,
    /// Loads of one line whose shadows run at a time. A miss of one more is counted in [`Load::unknown`]; its next one
    /// may find room. With 0 the order is only counted.
    pub shadows_per_line: usize,
    /// Streaks of all lines that a table keeps, for [`LineStreaks`]; of an order with more, none. 4 bytes each.
    pub streaks: usize,
}

impl Default for LoadBounds {
    /// 2,097,152 lines, which is 128 MiB of the program's memory and, measured, 614 MiB of ours when a shadow runs on
    /// each; 65,536 loads; 8 shadows.
    fn default() -> LoadBounds {
        LoadBounds {
            lines: 1 << 21,
            loads: 1 << 16,
            shadows_per_line: 8,
            streaks: 0,
        }
    }
}

/// How to look at an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadOptions {
    /// Coherence granule.
    pub line_size: LineSize,
    /// Variant of the protocol.
    pub protocol: Protocol,
    /// Bounds on memory.
    pub bounds: LoadBounds,
}

impl Default for LoadOptions {
    /// 64-byte lines, the paper's protocol.
    fn default() -> LoadOptions {
        LoadOptions {
            line_size: LineSize::B64,
            protocol: Protocol::default(),
            bounds: LoadBounds::default(),
        }
    }
}

/// Messages of the world as the table ran it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoadTotals {
    /// Executions of all accesses that went through the protocol; one that touches two lines counts for each.
    pub accesses: u64,
    /// Messages that served them.
    pub transactions: u64,
    /// Of those, messages that served loads and prefetches for ownership.
    pub load_transactions: u64,
    /// Accesses to lines beyond [`LoadBounds::lines`]: nothing is known of them.
    pub beyond: u64,
    /// Loads beyond [`LoadBounds::loads`], by executions.
    pub nameless: u64,
}

/// What a table found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Loads {
    /// Loads that missed at least once, by instruction.
    pub loads: Vec<Load>,
    /// Sums.
    pub totals: LoadTotals,
    /// The order, for any set of hints; `None` where it was not kept, or had no room.
    pub streaks: Option<LineStreaks>,
}

/// The fold: accesses in, loads out.
#[derive(Clone, Debug)]
pub struct LoadTable {
    options: LoadOptions,
    hinted: BTreeSet<Instruction>,
    lines: FxHashMap<LineKey, LineState>,
    numbers: FxHashMap<Instruction, u32>,
    loads: Vec<Counted>,
    totals: LoadTotals,
    room: Option<Room>,
    counting: bool,
    /// Of windows.
    ended: Vec<Streaks>,
}

impl LoadTable {
    /// A world without hints.
    pub fn new(options: LoadOptions) -> LoadTable {
        LoadTable::hinting(options, BTreeSet::new())
    }

    /// A world in which these loads fetch for ownership.
    pub fn hinting(options: LoadOptions, hinted: BTreeSet<Instruction>) -> LoadTable {
        LoadTable {
            options,
            hinted,
            lines: FxHashMap::default(),
            numbers: FxHashMap::default(),
            loads: Vec::new(),
            totals: LoadTotals::default(),
            room: (options.bounds.streaks > 0).then_some(Room(options.bounds.streaks)),
            counting: true,
            ended: Vec::new(),
        }
    }

    /// Whether accesses of the order from here on are counted, and its loads hinted, as they are at first. Others change
    /// where lines are, and nothing else: the start of a program, for instance.
    pub fn set_counting(&mut self, counting: bool) {
        self.counting = counting;
    }

    /// Takes the next access of a complete order.
    pub fn observe(&mut self, access: &Access, place: Place, space: SpaceId) {
        let Some(intent) = Intent::of(access.op) else {
            return;
        };
        let instruction = Instruction {
            space,
            ip: access.ip,
            kernel: access.kernel,
        };
        let number = if self.counting {
            self.number(access, instruction)
        } else {
            None
        };
        cut(access, place, self.options.line_size, &[], |key, piece| {
            let room = self.lines.len() < self.options.bounds.lines;
            let line = match self.lines.get_mut(&key) {
                Some(line) => line,
                None if room => {
                    (self.lines.entry(key)).or_insert_with(|| LineState::new(self.options.protocol))
                }
                None => {
                    self.totals.beyond += u64::from(self.counting);
                    return;
                }
            };
            let step = Step {
                access,
                instruction,
                intent,
                number,
                key,
                offset: piece.offset,
                size: piece.size,
            };
            if !self.counting {
                line.warm_up(&step, &mut self.room);
                return;
            }
            let mut world = World {
                loads: &mut self.loads,
                totals: &mut self.totals,
                shadows: self.options.bounds.shadows_per_line,
                room: &mut self.room,
            };
            line.serve(&step, &mut world);
        });
    }

    /// Takes a watch window's accesses, in order: a stretch of its line that starts from an unknown state. Accesses to
    /// other lines are left out.
    pub fn observe_window<'a>(
        &mut self,
        key: LineKey,
        accesses: impl IntoIterator<Item = &'a Trapped>,
    ) {
        let mut line = LineState::new(self.options.protocol);
        let mut cold = true;
        for trapped in accesses {
            let on_line = trapped.on_line(key, self.options.line_size);
            let Some(((offset, size), intent)) = on_line.zip(Intent::of(trapped.access.op)) else {
                continue;
            };
            let instruction = Instruction {
                space: trapped.space,
                ip: trapped.access.ip,
                kernel: trapped.access.kernel,
            };
            let step = Step {
                access: &trapped.access,
                instruction,
                intent,
                number: self.number(&trapped.access, instruction),
                key,
                offset,
                size,
            };
            if cold {
                line.warm_up(&step, &mut self.room);
                cold = !trapped.access.op.stores();
                continue;
            }
            let mut world = World {
                loads: &mut self.loads,
                totals: &mut self.totals,
                shadows: self.options.bounds.shadows_per_line,
                room: &mut self.room,
            };
            line.serve(&step, &mut world);
        }
        let streaks = line.finish(&mut self.loads);
        if self.room.is_some() {
            self.ended.push(streaks);
        }
    }

    /// The load's number, with its execution counted; `None` for what is no load, and beyond the bound.
    fn number(&mut self, access: &Access, instruction: Instruction) -> Option<u32> {
        if access.op != Op::Load {
            return None;
        }
        let executions = 1 + u64::from(access.measured.repeats);
        let number = match self.numbers.get(&instruction) {
            Some(number) => *number,
            None if self.loads.len() < self.options.bounds.loads => {
                let number = self.loads.len() as u32;
                let hinted = self.hinted.contains(&instruction);
                self.loads.push(Counted::new(instruction, hinted));
                self.numbers.insert(instruction, number);
                number
            }
            None => {
                self.totals.nameless += executions;
                return None;
            }
        };
        self.loads[number as usize].facts.executions += executions;
        Some(number)
    }

    /// Messages so far.
    pub fn totals(&self) -> LoadTotals {
        self.totals
    }

    /// What was found, with every episode closed.
    pub fn finish(mut self) -> Loads {
        let mut lines = self.ended;
        for line in self.lines.into_values() {
            let streaks = line.finish(&mut self.loads);
            if self.room.is_some() {
                lines.push(streaks);
            }
        }
        let protocol = self.options.protocol;
        let streaks = (self.room).map(|_| LineStreaks::new(lines, &self.loads, protocol));
        let mut loads: Vec<Load> = (self.loads.into_iter())
            .filter(|counted| counted.facts.requests > 0)
            .map(Counted::into_load)
            .collect();
        loads.sort_by_key(|load| load.instruction);
        Loads {
            loads,
            totals: self.totals,
            streaks,
        }
    }
}
