//! Loads of memory that nobody stores to wait for nobody: what samples say they cost belongs to others, or to no one
//! that is known.

use rustc_hash::{FxHashMap, FxHashSet};

use super::{Reason, Thresholds, WatchThresholds};
use crate::{
    access::{Cost, LineKey, LineSize, Op},
    analysis::{Evidence, SiteCounts, Transfer, Transfers, WatchedLine, WatchedLines},
};

/// Which costs are others' than samples say. Nothing is made or lost: what lines lose is what others gain and what is
/// undecided.
#[derive(Clone, Debug, Default)]
pub struct Moved {
    /// Lines that are not waited for, with what their loads cost.
    lost: FxHashMap<LineKey, Cost>,
    gained: FxHashMap<LineKey, Vec<Transfer>>,
    /// Lines of which windows do not tell yet, and whose loads may have waited for others.
    undecided: FxHashSet<LineKey>,
    undecided_cost: Cost,
}

impl Moved {
    /// Decides by the windows on the lines.
    pub fn new(
        transfers: &Transfers,
        watched: &WatchedLines,
        line_size: LineSize,
        whole: Cost,
        limits: &Thresholds,
    ) -> Moved {
        let of_time = |cost: Cost| cost.0 as f64 / whole.0.max(1) as f64;
        let is_stored = |line, cost: Cost| {
            let (share, limits) = (of_time(cost), &limits.watch);
            (watched.get(line)).is_none_or(|line| !never_stored(line, line_size, share, limits))
        };
        let lost: FxHashMap<LineKey, Cost> = (transfers.lines())
            .filter(|(line, cost)| !is_stored(*line, *cost))
            .collect();
        let mut moved = Moved {
            undecided_cost: lost.values().copied().sum(),
            ..Moved::default()
        };
        for transfer in lost.keys().flat_map(|line| transfers.of(*line)) {
            if !lost.contains_key(&transfer.line) {
                moved.undecided_cost -= transfer.cost;
                let gained = moved.gained.entry(transfer.line).or_default();
                gained.push(transfer);
            }
        }
        let unstored: FxHashMap<LineKey, Cost> = (transfers.lines())
            .filter(|(line, _)| !lost.contains_key(line))
            .filter(|(line, _)| (watched.get(*line)).is_none_or(|line| line.counts().stores == 0))
            .collect();
        for (line, cost) in &unstored {
            let others = transfers.of(*line).filter(|transfer| {
                !unstored.contains_key(&transfer.line) && !lost.contains_key(&transfer.line)
            });
            let own = *cost - others.map(|transfer| transfer.cost).sum();
            let suspect = |cost| of_time(cost) >= limits.suspect_cost_share;
            if suspect(*cost) && !suspect(own) {
                moved.undecided.insert(*line);
                moved.undecided_cost += *cost;
            }
        }
        moved.lost = lost;
        moved
    }

    /// Cost that belongs to no access that is known.
    pub fn undecided_cost(&self) -> Cost {
        self.undecided_cost
    }

    /// Why the line is no finding, where it was none for `reason`.
    pub(super) fn reason(&self, line: LineKey, reason: Reason) -> Reason {
        if self.lost.contains_key(&line) {
            Reason::NotWaitedFor
        } else if reason == Reason::NoStoreSeen && self.undecided.contains(&line) {
            Reason::WaitUndecided
        } else {
            reason
        }
    }

    /// Puts the line's cost right: what it gains counts as shared as far as the line is used by turns.
    pub(super) fn correct(&self, line: LineKey, evidence: &mut Evidence) {
        if !self.changes(line) {
            return;
        }
        if let Some(lost) = self.lost.get(&line) {
            let left = evidence.cost - *lost;
            let part = left.0 as f64 / evidence.cost.0.max(1) as f64;
            evidence.cost = left;
            evidence.sharing.cost *= part;
            evidence.sharing.unstored_cost *= part;
        }
        let gained: Cost = self.gained_by(line).map(|transfer| transfer.cost).sum();
        let sharing = &mut evidence.sharing;
        let interleaving = sharing.weight / (evidence.samples as f64).max(1.0);
        sharing.cost += gained.estimate() * interleaving.min(1.0);
        evidence.cost += gained;
    }

    /// The same for the line's sites. The samples were counted there as seen beside a stalled access.
    pub(super) fn correct_sites(&self, line: LineKey, sites: &mut Vec<SiteCounts>) {
        if !self.changes(line) {
            return;
        }
        if let Some(lost) = self.lost.get(&line) {
            let loads = |site: &&mut SiteCounts| site.site.op == Op::Load;
            let mut left = *lost;
            for site in sites.iter_mut().filter(loads) {
                let taken = site.cost.min(left);
                site.cost -= taken;
                site.waits = site.waits.within(site.cost);
                left -= taken;
            }
        }
        for transfer in self.gained_by(line) {
            let at = sites.iter().position(|site| site.site == transfer.site);
            let at = at.unwrap_or_else(|| {
                sites.push(SiteCounts::unseen(transfer.site));
                sites.len() - 1
            });
            let site = &mut sites[at];
            let decoded = transfer.samples.min(site.decoded);
            let harvested = (transfer.samples - decoded).min(site.harvested);
            site.decoded -= decoded;
            site.harvested -= harvested;
            site.stalled = site.stalled.saturating_add(decoded + harvested);
            site.waits.add(transfer.waits);
            site.cost += transfer.cost;
        }
        sites.sort_by(SiteCounts::costlier);
    }

    fn changes(&self, line: LineKey) -> bool {
        self.lost.contains_key(&line) || self.gained.contains_key(&line)
    }

    fn gained_by(&self, line: LineKey) -> impl Iterator<Item = &Transfer> {
        self.gained.get(&line).into_iter().flatten()
    }
}

/// Whether windows saw the line used, and no store to any of it, often enough that none was missed.
///
/// A load waits for another CPU only while some thread stores to its line. So if loads of the line really took this
/// share of the time, somebody stored there in that share of it at least, and each window had that chance to meet a
/// store: at the rate of one per wait, which is some hundred nanoseconds, a window of any length holds many.
fn never_stored(
    line: &WatchedLine,
    line_size: LineSize,
    share: f64,
    limits: &WatchThresholds,
) -> bool {
    let counts = line.counts();
    let missing = counts.missing_share().unwrap_or(0.0);
    let enough = limits.unstored_windows(share);
    let words = line_size.bytes() as usize / 8;
    counts.stores == 0
        && counts.stored.is_empty()
        && counts.accesses >= limits.accesses
        && missing <= limits.certain_missing_share
        && counts.busy_windows >= enough
        && (0..words).all(|word| u64::from(line.words().together(word, word)) >= enough)
}

impl WatchThresholds {
    /// Windows on each word of a line that show no store, after which none was missed, if loads that took this share
    /// of the time, 0..=1, waited for it; see [`WatchThresholds::unstored_chance`].
    fn unstored_windows(&self, share: f64) -> u64 {
        let share = share.clamp(1e-6, 0.99);
        let windows = self.unstored_chance.ln() / (1.0 - share).ln();
        (windows.ceil().min(self.certain_clear_windows as f64) as u64).max(self.certain_windows)
    }
}

#[cfg(test)]
mod tests;
