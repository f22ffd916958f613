//! Loads whose wait may belong to an access before them: what they cost, and what the others would get.
//!
//! A sample is behind the last of the instructions that retired together; another one of them may be what the CPU
//! waited for. A loop that waits reads several words. Where the line of the last one turns out to be stored to by nobody, [`crate::finding`] moves its cost
//! to the access that the sample names [instead](Access::instead).

use rustc_hash::FxHashMap;

use super::{site::SiteKey, split_by_line::split_by_line};
use crate::{
    access::{Access, Basis, Cost, Cpu, LineKey, LineSize, Op, Place, SpaceId, Tid, Wait},
    analysis::{Site, WaitTimes},
};

/// Lines kept; beyond it, the half that costs least is forgotten, and keeps its cost.
const MOST_LINES: usize = 4096;
/// Other accesses kept per line; a new one takes the place of the least.
const MOST_OTHERS: usize = 4;

/// Stalled loads by line, fed with all sampled accesses in their order.
#[derive(Debug)]
pub struct Transfers {
    line_size: LineSize,
    /// The sample that is taken: its time, thread and CPU, its accesses so far, and the load that waits for one of them.
    sample: (u64, Tid, Cpu),
    rows: Vec<(LineKey, SiteKey)>,
    open: Option<Open>,
    lines: FxHashMap<LineKey, Loads>,
}

#[derive(Clone, Copy, Debug)]
struct Open {
    line: LineKey,
    cost: Cost,
    wait: Wait,
    /// From 1.
    row: usize,
}

/// What loads of a line cost.
#[derive(Clone, Debug, Default)]
struct Loads {
    cost: Cost,
    /// A store to it was sampled since.
    stored: bool,
    others: Vec<Transfer>,
}

/// A part of what the loads of a line cost that would be another access's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// The line of the other access.
    pub line: LineKey,
    /// The other access.
    pub site: Site,
    /// Samples that showed it.
    pub samples: u32,
    /// What they cost.
    pub cost: Cost,
    /// Of that, where the CPU stood meanwhile.
    pub waits: WaitTimes,
}

impl Transfers {
    /// Nothing observed yet.
    pub fn new(line_size: LineSize) -> Transfers {
        Transfers {
            line_size,
            sample: (0, Tid(0), Cpu(0)),
            rows: Vec::new(),
            open: None,
            lines: FxHashMap::default(),
        }
    }

    /// Counts a sampled access; of those that cross lines, the first part.
    pub fn observe(&mut self, access: &Access, place: Place, space: SpaceId) {
        let sample = (access.time_ns, access.tid, access.cpu);
        if sample != self.sample {
            self.sample = sample;
            self.rows.clear();
            self.open = None;
        }
        let mut row = None;
        split_by_line(access, place, self.line_size, &[], |line, piece| {
            if access.op.stores()
                && let Some(loads) = self.lines.get_mut(&line)
            {
                loads.stored = true;
            }
            let site = SiteKey::new(access, space, piece.offset, piece.size);
            row.get_or_insert((line, site));
        });
        let Some((line, site)) = row else { return };
        self.rows.push((line, site));
        let is_load = access.op == Op::Load && access.wait != Wait::AtBarrier;
        if access.basis == Basis::Stalled && is_load {
            let cost = Cost::from(access.cost);
            self.count(line, cost);
            self.open = (access.instead > 0).then(|| Open {
                line,
                cost,
                wait: access.wait,
                row: usize::from(access.instead),
            });
        }
        if let Some(open) = self.open
            && let Some((line, site)) = self.rows.get(open.row - 1)
        {
            let (line, site) = (*line, *site);
            self.open = None;
            self.count_other(open, line, site);
        }
    }

    fn count(&mut self, line: LineKey, cost: Cost) {
        let loads = self.lines.entry(line).or_default();
        loads.cost += cost;
        if self.lines.len() <= MOST_LINES {
            return;
        }
        // The key makes it the same lines at every replay.
        let mut order: Vec<(Cost, LineKey)> = (self.lines.iter())
            .map(|(line, loads)| (loads.cost, *line))
            .collect();
        order.sort_unstable();
        for (_, line) in &order[..MOST_LINES / 2] {
            self.lines.remove(line);
        }
    }

    fn count_other(&mut self, open: Open, line: LineKey, site: SiteKey) {
        let Some(loads) = self.lines.get_mut(&open.line).filter(|_| line != open.line) else {
            return;
        };
        let site = site.site();
        let mut others = loads.others.iter_mut();
        if let Some(other) = others.find(|other| other.line == line && other.site == site) {
            other.samples = other.samples.saturating_add(1);
            other.cost += open.cost;
            other.waits.count(open.wait, open.cost);
            return;
        }
        if loads.others.len() >= MOST_OTHERS {
            let least = (loads.others.iter().enumerate()).min_by_key(|(_, other)| other.cost);
            if let Some((least, _)) = least {
                loads.others.remove(least);
            }
        }
        let mut waits = WaitTimes::default();
        waits.count(open.wait, open.cost);
        loads.others.push(Transfer {
            line,
            site,
            samples: 1,
            cost: open.cost,
            waits,
        });
    }

    /// Lines without a sampled store, with what their loads cost.
    pub fn lines(&self) -> impl Iterator<Item = (LineKey, Cost)> {
        let unstored = self.lines.iter().filter(|(_, loads)| !loads.stored);
        unstored.map(|(line, loads)| (*line, loads.cost))
    }

    /// What of the loads of a line would be whose.
    pub fn of(&self, line: LineKey) -> impl Iterator<Item = Transfer> {
        let loads = self.lines.get(&line).into_iter();
        loads.flat_map(|loads| loads.others.iter().copied())
    }
}

#[cfg(test)]
mod tests;
