//! What goes of address spaces that were left, so that a run of weeks needs no more memory than one of a minute.
//!
//! A line that several threads touched can still be printed: what names it and the code that used it is kept, for the
//! costliest of them. All else of a space that was left is of use to nobody: no access can come to it any more. Nothing
//! is let go before it is much, so a short run prints what it ever did.

use std::{cmp::Reverse, sync::Arc};

use rustc_hash::FxHashMap;

use super::{Lines, Pipeline};
use crate::{
    access::{Cost, LineKey, Pid, Place, SpaceId, Tid},
    event::Mapping,
    space::{Held, Kept},
};

/// Spaces that were left and threads that ended, from which on some go. Of a program with its libraries a space takes some
/// 10 KB, a thread 0.2 KB.
const MUCH: Held = Held {
    spaces: 1024,
    threads: 8192,
};
/// Of spaces that were left and threads that ended, so many are kept for their lines, those of the costliest.
const MOST: Held = Held {
    spaces: 2048,
    threads: 1 << 15,
};
/// Late accesses to what was left come for so long, nanoseconds.
const LATE_NS: u64 = 1_000_000_000;

/// What is let go, and when.
#[derive(Debug)]
pub(super) struct Retiring {
    /// Nothing is printed of what was left.
    pub(super) forgets: bool,
    /// Time of the stream, CLOCK_MONOTONIC nanoseconds.
    pub(super) now_ns: u64,
    enough: Held,
    /// Spaces that would have been kept for their lines, had they not been too many.
    left_out: u64,
}

impl Default for Retiring {
    fn default() -> Retiring {
        Retiring {
            forgets: false,
            now_ns: 0,
            enough: MUCH,
            left_out: 0,
        }
    }
}

/// What lines need, with the highest cost of one that does.
#[derive(Default)]
struct Needs {
    spaces: FxHashMap<SpaceId, Cost>,
    threads: FxHashMap<Tid, Cost>,
    kept: Kept,
}

impl Needs {
    fn line(&mut self, key: LineKey, cost: Cost) {
        if let Place::Private { space, addr } = key.0 {
            self.at(space, addr, cost);
        }
    }

    fn user(&mut self, (space, ip, tid): (Option<SpaceId>, u64, Tid), cost: Cost) {
        if let Some(space) = space {
            self.at(space, ip, cost);
        }
        let most = self.threads.entry(tid).or_default();
        *most = (*most).max(cost);
    }

    fn at(&mut self, space: SpaceId, addr: u64, cost: Cost) {
        let most = self.spaces.entry(space).or_default();
        *most = (*most).max(cost);
        self.kept.addresses.insert((space, addr));
    }
}

impl Pipeline {
    /// For who prints nothing: what was left is let go with all of its lines.
    #[must_use]
    pub fn forgetting(mut self) -> Pipeline {
        self.retiring.forgets = true;
        self
    }

    /// Processes that ended whose lines are printed without their names, since there were too many.
    pub fn left_out(&self) -> u64 {
        self.retiring.left_out
    }

    /// Everything that is kept of address spaces and threads, counted.
    pub fn entries(&self) -> usize {
        self.spaces.entries() + self.watched.lines().count() + self.shown.len()
    }

    /// Forgets memory that a process has no more, but for what names lines and their code.
    pub fn unmapped(&mut self, pid: Pid, gone: &[Arc<Mapping>]) {
        let Some(space) = self.spaces.current(pid) else {
            return;
        };
        let kept = if self.retiring.forgets {
            Kept::default()
        } else {
            self.needs().kept
        };
        self.spaces.unmap(space, gone, &kept);
    }

    /// Lets go of what was left, when it has become much. What sorts its lines is judged at its end, and keeps all.
    pub(super) fn retire(&mut self) {
        let (held, enough) = (self.spaces.held(), self.retiring.enough);
        let is_much = held.spaces >= enough.spaces || held.threads >= enough.threads;
        if !is_much || !matches!(self.lines, Lines::Table(_)) || !self.ordered.is_empty() {
            return;
        }
        let needs = if self.retiring.forgets {
            Needs::default()
        } else {
            self.needs()
        };
        let kept = self.kept(&needs);
        let upto_ns = self.retiring.now_ns.saturating_sub(LATE_NS);
        let retired = self.spaces.retire(upto_ns, &kept);
        let needed = |space: &&SpaceId| needs.spaces.contains_key(*space);
        self.retiring.left_out += retired.spaces.iter().filter(needed).count() as u64;
        if let Lines::Table(table) = &mut self.lines {
            table.retire(&retired.spaces);
        }
        self.watched.retire(&retired.spaces);
        self.heap.retire(&retired.spaces);
        let watched = &self.watched;
        self.shown.retain(|line, _| watched.get(*line).is_some());
        let held = self.spaces.held();
        self.retiring.enough = Held {
            spaces: held.spaces + MUCH.spaces,
            threads: held.threads + MUCH.threads,
        };
    }

    /// What the costliest lines need of all that was left.
    fn kept(&self, needs: &Needs) -> Kept {
        let was_left = |space: &SpaceId| self.spaces.was_left(*space);
        Kept {
            spaces: costliest(&needs.spaces, was_left, MOST.spaces).collect(),
            threads: costliest(&needs.threads, |_| true, MOST.threads).collect(),
            ..Kept::default()
        }
    }

    fn needs(&self) -> Needs {
        let mut needs = Needs::default();
        if let Lines::Table(table) = &self.lines {
            for (key, line) in table.lines().filter(|(_, line)| line.several_threads()) {
                needs.line(key, line.cost());
                line.users().for_each(|user| needs.user(user, line.cost()));
            }
        }
        // Pairs are of one thread as well; where room is short, of several only.
        let is_short = self.watched.is_half_full();
        for line in self.watched.lines() {
            let users = line.sites();
            let first = users.first().map(|site| site.site.tid);
            if is_short && users.iter().all(|site| Some(site.site.tid) == first) {
                continue;
            }
            // What was worth a window outlasts what was only sampled.
            needs.line(line.key(), Cost(u64::MAX));
            for site in users {
                let space = (!site.site.kernel).then_some(site.site.space);
                needs.user((space, site.site.ip, site.site.tid), Cost(u64::MAX));
            }
        }
        needs
    }
}

/// Of those that are counted, the costliest.
fn costliest<T: Copy + Ord>(
    costs: &FxHashMap<T, Cost>,
    counts: impl Fn(&T) -> bool,
    most: usize,
) -> impl Iterator<Item = T> {
    let counted = costs.iter().filter(|(of, _)| counts(of));
    let mut all: Vec<(Reverse<Cost>, T)> =
        counted.map(|(of, cost)| (Reverse(*cost), *of)).collect();
    // The number makes it the same ones at every replay.
    all.sort_unstable();
    all.truncate(most);
    all.into_iter().map(|(_, of)| of)
}

#[cfg(test)]
mod tests;
