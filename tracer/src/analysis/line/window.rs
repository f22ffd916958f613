//! What a window of a line shows: turns, by order or by the loads that other CPUs' caches served, and whose bytes
//! they are about.

use super::{Line, Record, Sharing, SiteKey, Taken};
use crate::{
    access::{LineSize, Tid},
    analysis::{
        conflict::{Conflicts, Touch, conflicts},
        order::Turns,
    },
};

impl Line {
    /// What the open window shows so far; `None` while only one thread is in it and no load of it was served by
    /// another CPU's cache.
    pub(super) fn open_window(&self, line_size: LineSize) -> Option<Sharing> {
        let taken = (self.measured.as_ref()).map_or_else(Taken::default, |m| m.window);
        let mut window = Sharing::unmet(taken);
        let Some(turns) = self.order.turns() else {
            return (taken.loads > 0).then_some(window);
        };
        let cost_ns = self.window_cost_ns as f64;
        window.hand_offs = turns.hand_offs;
        window.expected_hand_offs = turns.expected;
        if turns.stores == 0.0 {
            window.unstored_cost_ns = (cost_ns - window.unmet_cost_ns).max(0.0);
        }
        let interleaving = interleaving(&turns, taken);
        if interleaving == 0.0 {
            return Some(window);
        }
        let Some(kinds) = self.kinds(Record::in_window, line_size) else {
            return Some(window);
        };
        window.weigh(&kinds, turns.samples * interleaving);
        if self.conflicts_without_harvest() {
            window.exact_weight = window.weight;
        }
        // What is known to have waited for nobody is no cost of sharing, whoever comes next.
        let waited_ns = (cost_ns - taken.apart_cost_ns as f64).max(0.0);
        window.cost_ns = (waited_ns * turns.interleaving).max(taken.cost_ns as f64);
        window.samples = turns.samples;
        window.stores = turns.stores;
        window.minority = turns.minority;
        window.unmet = 0.0;
        window.unmet_cost_ns = 0.0;
        Some(window)
    }

    /// Finds out of the whole run whose bytes the loads met that met no store in their windows: a PMU samples so
    /// seldom that load and store may never be in one. That CPUs took turns each of these loads has proven.
    pub(super) fn meet(&self, sharing: &mut Sharing, line_size: LineSize) {
        let stored = (self.measured.as_ref()).is_some_and(|m| m.stored_while_taken());
        if sharing.unmet == 0.0 || !stored {
            return;
        }
        let Some(kinds) = self.kinds(Record::accesses, line_size) else {
            return;
        };
        sharing.weigh(&kinds, sharing.unmet);
        sharing.exact_weight += sharing.unmet;
        sharing.cost_ns += sharing.unmet_cost_ns;
        sharing.samples = (self.samples as f64).min(sharing.samples + sharing.unmet);
        sharing.stores = sharing.stores.max(self.stores as f64);
        sharing.minority = sharing.minority.max(self.minority());
        sharing.unmet = 0.0;
        sharing.unmet_cost_ns = 0.0;
    }

    /// Accesses by threads other than the most frequent one.
    fn minority(&self) -> f64 {
        let touches = self.touches(Record::accesses, |key| key.size);
        let mut by_thread: Vec<(Tid, u64)> = touches.iter().map(|t| (t.tid, t.accesses)).collect();
        by_thread.sort_unstable_by_key(|(tid, _)| *tid);
        let sums = by_thread
            .chunk_by(|a, b| a.0 == b.0)
            .map(|one| one.iter().map(|(_, n)| n).sum::<u64>());
        let (all, most) = sums.fold((0, 0), |(all, most), n| (all + n, n.max(most)));
        (all - most) as f64
    }

    /// How the accesses conflict; and how, if each of unknown size reached to the end of its word.
    fn kinds(&self, count: fn(&Record) -> u64, line_size: LineSize) -> Option<Kinds> {
        let certain = conflicts(&self.touches(count, |key| key.size), line_size)?;
        let unknown = |(key, _): &(SiteKey, Record)| key.widest() != key.size;
        let widest = if self.sites.iter().any(unknown) {
            conflicts(&self.touches(count, SiteKey::widest), line_size)?
        } else {
            certain
        };
        Some(Kinds { certain, widest })
    }

    fn touches(&self, count: fn(&Record) -> u64, size: fn(SiteKey) -> u8) -> Vec<Touch> {
        let counted = |(key, record): &(SiteKey, Record)| {
            let accesses = count(record);
            (accesses > 0 && key.op().touches()).then(|| Touch {
                tid: key.tid,
                offset: key.offset,
                size: size(*key),
                stores: key.op().stores(),
                accesses,
            })
        };
        self.sites.iter().filter_map(counted).collect()
    }

    /// Whether, in the open window, a stalled or decoded store meets such an access of another thread.
    fn conflicts_without_harvest(&self) -> bool {
        let exact =
            |(key, record): &&(SiteKey, Record)| record.window_exact > 0 && key.op().touches();
        let mut stored = false;
        let mut first = None;
        let mut several = false;
        for (key, _) in self.sites.iter().filter(exact) {
            stored |= key.op().stores();
            several |= *first.get_or_insert(key.tid) != key.tid;
        }
        stored && several
    }
}

/// How the accesses of a window conflict, by the bytes that are certain and by those that are possible.
struct Kinds {
    certain: Conflicts,
    widest: Conflicts,
}

impl Sharing {
    fn weigh(&mut self, kinds: &Kinds, weight: f64) {
        self.weight += weight;
        self.true_weight += weight * kinds.certain.true_share;
        self.false_weight += weight * kinds.certain.false_share;
        self.widest_true_weight += weight * kinds.widest.true_share;
        self.widest_false_weight += weight * kinds.widest.false_share;
    }
}

/// What the order shows, or what the loads show that another CPU's cache served: these prove turns, however few
/// the samples are and in whatever order.
fn interleaving(turns: &Turns, taken: Taken) -> f64 {
    let seen = taken.loads as f64 / turns.samples.max(1.0);
    turns.interleaving.max(seen.min(1.0))
}
