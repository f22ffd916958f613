//! What is counted of one load.

use super::{shard::Step, worlds::Effect};
use crate::{
    access::{LineKey, Op},
    analysis::{Instruction, small_map::SmallMap},
    coherence::Found,
};

/// Following stores told apart per load; the rest are counted in [`Load::other_stores`].
const MAX_STORES: usize = 8;
/// Lines told apart per load.
const MAX_LINES: usize = 4;

/// A store that followed a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Following {
    /// The store.
    pub instruction: Instruction,
    /// What it does: [`Op::Load`] for another hinted load.
    pub op: Op,
    /// With a lock.
    pub locked: bool,
    /// Times.
    pub count: u64,
}

/// Bytes of a line that a load missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TouchedLine {
    /// The line.
    pub line: LineKey,
    /// First byte of it that was loaded when it was last seen.
    pub offset: u8,
    /// Bytes then.
    pub size: u8,
    /// Requests; an upper bound where the load missed many lines.
    pub requests: u64,
}

/// A load that missed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// The load.
    pub instruction: Instruction,
    /// The table's world had it hinted.
    pub hinted: bool,
    /// Executions.
    pub executions: u64,
    /// Of those, executions that missed.
    pub requests: u64,
    /// Of the requests: the line was in no other cache.
    pub found_idle: u64,
    /// Of the requests: other processors had copies, none owned it.
    pub found_shared: u64,
    /// Copies of others that those found, in sum.
    pub sharers: u64,
    /// Of the requests: another processor owned it and had not written.
    pub found_clean: u64,
    /// Of the requests: another processor owned it and had written.
    pub found_dirty: u64,
    /// Of the requests, those whose line's next request was by the same processor, for ownership: the filter of SWIFT,
    /// section 4.1. Always 0 for a hinted load, which asks for ownership itself.
    pub followed_by_store: u64,
    /// The stores of those, most frequent first.
    pub stores: Vec<Following>,
    /// Stores of those that are not told apart because there are too many.
    pub other_stores: u64,
    /// The lines that it missed most.
    pub lines: Vec<TouchedLine>,
    /// Messages that the hint saves, in episodes that save some.
    pub saved: u64,
    /// Messages that the hint adds, in episodes that add some.
    pub lost: u64,
    /// Messages that serve loads, with the hint less those without.
    pub load_messages_added: i64,
    /// Loads that cost more because of the hint, other than the hinted load where it misses in any case.
    pub readers_hurt: u64,
    /// Requests of which nobody knows what the hint would have changed, for want of a shadow.
    pub unknown: u64,
}

impl Load {
    /// Messages saved less messages added.
    pub fn net(&self) -> i64 {
        self.saved as i64 - self.lost as i64
    }

    /// Whether the store that follows most often is the load itself: one instruction that was seen as two accesses.
    pub fn stores_itself(&self) -> bool {
        (self.stores.first()).is_some_and(|store| store.instruction == self.instruction)
    }
}

/// A load while it is counted: what its misses were.
#[derive(Clone, Debug, Default)]
pub(super) struct Counted {
    /// As far as it is counted on lines.
    load: Load,
    stores: SmallMap<(Instruction, Op, bool), u64>,
}

impl Counted {
    /// Counts a miss.
    pub(super) fn request(&mut self, step: &Step, found: Found) {
        let load = &mut self.load;
        load.requests += 1;
        match found {
            // Its own copy is no miss.
            Found::Own => {}
            Found::Idle => load.found_idle += 1,
            Found::Clean(_) => load.found_clean += 1,
            Found::Dirty(_) => load.found_dirty += 1,
            Found::Shared { others } => {
                load.found_shared += 1;
                load.sharers += others as u64;
            }
        }
        self.touch(step);
    }

    /// Keeps the lines missed most (Metwally, Agrawal, El Abbadi, "Efficient computation of frequent and top-k elements
    /// in data streams", 2005): a new line takes the place, and the count, of the rarest.
    fn touch(&mut self, step: &Step) {
        let lines = &mut self.load.lines;
        let touched = |requests| TouchedLine {
            line: step.key,
            offset: step.offset,
            size: step.size,
            requests,
        };
        if let Some(known) = lines.iter_mut().find(|known| known.line == step.key) {
            *known = touched(known.requests + 1);
        } else if lines.len() < MAX_LINES {
            lines.push(touched(1));
        } else if let Some(rarest) = lines.iter_mut().min_by_key(|known| known.requests) {
            *rarest = touched(rarest.requests + 1);
        }
    }

    /// Counts a store that was the next request for the line.
    pub(super) fn followed_by(&mut self, step: &Step) {
        self.load.followed_by_store += 1;
        self.add_store((step.instruction, step.op, step.locked), 1);
    }

    fn add_store(&mut self, key: (Instruction, Op, bool), times: u64) {
        match self.stores.slot(key, MAX_STORES) {
            Some(count) => *count += times,
            None => self.load.other_stores += times,
        }
    }

    /// Takes in what the load did on other lines.
    pub(super) fn join(&mut self, other: Counted) {
        let (load, others) = (&mut self.load, other.load);
        load.requests += others.requests;
        load.found_idle += others.found_idle;
        load.found_shared += others.found_shared;
        load.sharers += others.sharers;
        load.found_clean += others.found_clean;
        load.found_dirty += others.found_dirty;
        load.followed_by_store += others.followed_by_store;
        load.other_stores += others.other_stores;
        load.lines.extend(others.lines);
        sort_lines(&mut load.lines);
        load.lines.truncate(MAX_LINES);
        for (key, count) in other.stores.iter() {
            self.add_store(*key, *count);
        }
    }

    /// The load; `None` of one that never missed.
    pub(super) fn into_load(
        mut self,
        instruction: Instruction,
        executions: u64,
        effect: &Effect,
    ) -> Option<Load> {
        if self.load.requests == 0 {
            return None;
        }
        let mut stores: Vec<Following> = (self.stores.iter())
            .map(|((instruction, op, locked), count)| Following {
                instruction: *instruction,
                op: *op,
                locked: *locked,
                count: *count,
            })
            .collect();
        stores.sort_by_key(|store| (std::cmp::Reverse(store.count), store.instruction));
        sort_lines(&mut self.load.lines);
        Some(Load {
            instruction,
            hinted: effect.hinted,
            executions,
            stores,
            saved: effect.saved,
            lost: effect.lost,
            load_messages_added: effect.load_messages_added,
            readers_hurt: effect.readers_hurt,
            unknown: effect.unknown,
            ..self.load
        })
    }
}

fn sort_lines(lines: &mut [TouchedLine]) {
    lines.sort_by_key(|line| (std::cmp::Reverse(line.requests), line.line));
}
