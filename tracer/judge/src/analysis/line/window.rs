//! What a window of a line shows: turns, by order or by the loads that other CPUs' caches served, and whose bytes
//! they are about.

use super::{Line, MeasuredLine, Record, SiteKey, Taken};
use crate::{
    access::{ByteSet, Cost, LineSize, Tid},
    analysis::{
        Group, Kinds, Lives, Sharing, Uses,
        conflict::{Touch, conflicts},
        order::Turns,
        uses::Stretch,
    },
};

/// What windows of a line showed, in sums.
#[derive(Clone, Debug, Default)]
pub struct Shared {
    pub(super) sums: Sharing,
    /// They weigh what the windows weigh that they are of.
    lives: Lives,
    /// The same, if accesses of unknown size reached to the end of their words; `None` while there is none.
    widest: Option<Lives>,
    uses: Uses,
}

impl Shared {
    /// What each thread used in each window, as far as threads took turns there.
    pub fn uses(&self) -> &Uses {
        &self.uses
    }

    pub(super) fn add(&mut self, window: &Shared) {
        self.sums.add(&window.sums);
        self.uses.add_all(&window.uses);
        if self.widest.is_some() || window.widest.is_some() {
            let widest = self.widest.get_or_insert_with(|| self.lives.clone());
            widest.add_all(window.widest.as_ref().unwrap_or(&window.lives), 1.0);
        }
        self.lives.add_all(&window.lives, 1.0);
    }
}

impl Line {
    /// What the open window shows so far; `None` while only one thread is in it and no load of it was served by
    /// another CPU's cache.
    pub(super) fn open_window(&self, line_size: LineSize) -> Option<Shared> {
        let taken = (self.measured.as_ref()).map_or_else(Taken::default, |m| m.window);
        let mut shared = Shared {
            sums: Sharing::unmet(taken),
            ..Shared::default()
        };
        let Some(turns) = self.order.turns() else {
            return (taken.loads > 0).then_some(shared);
        };
        let cost = self.window_cost.estimate();
        let window = &mut shared.sums;
        window.together_cost = cost;
        window.hand_offs = turns.hand_offs;
        window.expected_hand_offs = turns.expected;
        if turns.stores == 0.0 {
            window.unstored_cost = (cost - window.unmet_cost).max(Cost(0.0));
        }
        let interleaving = interleaving(&turns, taken);
        if interleaving == 0.0 || !self.conflicts(|record| record.in_window() > 0) {
            return Some(shared);
        }
        window.weight = turns.samples * interleaving;
        if self.conflicts(|record| record.window_exact > 0) {
            window.exact_weight = window.weight;
        }
        // What is known to have waited for nobody is no cost of sharing, whoever comes next.
        let waited = (cost - taken.apart_cost.estimate()).max(Cost(0.0));
        window.cost = (waited * turns.interleaving).max(taken.cost.estimate());
        window.samples = turns.samples;
        window.stores = turns.stores;
        window.minority = turns.minority;
        window.unmet = 0.0;
        window.unmet_cost = Cost(0.0);
        let weight = window.weight;
        shared.uses = self.window_uses(line_size);
        shared.lives = weighed(&self.stints.lives(), weight);
        if self.sizes_unknown {
            shared.widest = Some(weighed(&self.stints.widest_lives(), weight));
        }
        Some(shared)
    }

    /// The kinds of its hand-offs by the bytes that are certain, and by those that are possible.
    pub(super) fn kinds(
        &self,
        shared: &mut Shared,
        groups: &[Group],
        line_size: LineSize,
    ) -> (Option<Kinds>, Option<Kinds>) {
        let met = self.meet(&mut shared.sums);
        let kinds = |lives: &Lives, size: fn(SiteKey) -> u8| {
            let seen = lives.kinds(groups);
            if met == 0.0 {
                return seen;
            }
            let touches = self.touches(size);
            let Some(met_kinds) = conflicts(&touches, groups, line_size) else {
                return seen;
            };
            let Some(seen) = seen else {
                return Some(met_kinds);
            };
            let known = lives.known();
            let both = |a: f64, b: f64| (a * known + b * met) / (known + met);
            Some(Kinds {
                truly: both(seen.truly, met_kinds.truly),
                falsely: both(seen.falsely, met_kinds.falsely),
            })
        };
        let certain = kinds(&shared.lives, SiteKey::least);
        let widest = match &shared.widest {
            Some(widest) => kinds(widest, SiteKey::widest),
            None if self.sizes_unknown => kinds(&shared.lives, SiteKey::widest),
            None => certain,
        };
        (certain, widest)
    }

    /// Counts the loads that met no store in their windows to sharing, where stores were sampled in others, and says
    /// how many they were: a PMU samples so seldom that load and store may never be in one window. That CPUs took turns
    /// each of these loads has proven; whose bytes they met the whole run must tell.
    fn meet(&self, sharing: &mut Sharing) -> f64 {
        let stored = self
            .measured
            .as_deref()
            .is_some_and(MeasuredLine::stored_while_taken);
        let met = sharing.unmet;
        if met == 0.0 || !stored || !self.conflicts(|record| record.accesses() > 0) {
            return 0.0;
        }
        sharing.weight += met;
        sharing.exact_weight += met;
        sharing.cost += sharing.unmet_cost;
        sharing.samples = (self.samples as f64).min(sharing.samples + met);
        sharing.stores = sharing.stores.max(self.stores as f64);
        sharing.minority = sharing.minority.max(self.minority());
        sharing.unmet = 0.0;
        sharing.unmet_cost = Cost(0.0);
        met
    }

    /// Accesses by threads other than the most frequent one.
    fn minority(&self) -> f64 {
        let touches = self.touches(SiteKey::least);
        let mut by_thread: Vec<(Tid, u64)> = touches.iter().map(|t| (t.tid, t.accesses)).collect();
        by_thread.sort_unstable_by_key(|(tid, _)| *tid);
        let sums = by_thread
            .chunk_by(|a, b| a.0 == b.0)
            .map(|one| one.iter().map(|(_, n)| n).sum::<u64>());
        let (all, most) = sums.fold((0, 0), |(all, most), n| (all + n, n.max(most)));
        (all - most) as f64
    }

    pub(super) fn touches(&self, size: fn(SiteKey) -> u8) -> Vec<Touch> {
        let counted = |(key, record): &(SiteKey, Record)| {
            let accesses = record.accesses();
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

    /// What each thread used in the open window, by accesses whose bytes are known.
    fn window_uses(&self, line_size: LineSize) -> Uses {
        let mut stretch = Stretch::default();
        for (key, record) in self.sites.iter().filter(|(key, _)| key.op().touches()) {
            let accesses = record.in_window().min(u64::from(u32::MAX)) as u32;
            if accesses > 0 {
                let touched = ByteSet::range(key.offset, u16::from(key.least()), line_size);
                stretch.take(key.tid, accesses, touched);
            }
        }
        let mut uses = Uses::default();
        uses.add_stretch(&stretch);
        uses
    }

    /// Whether, among the accesses of these records, a store meets an access of another thread.
    fn conflicts(&self, counts: impl Fn(&Record) -> bool) -> bool {
        let mut stored = false;
        let mut first = None;
        let mut several = false;
        let here = |(key, record): &&(SiteKey, Record)| counts(record) && key.op().touches();
        for (key, _) in self.sites.iter().filter(here) {
            stored |= key.op().stores();
            several |= *first.get_or_insert(key.tid) != key.tid;
        }
        stored && several
    }
}

/// The lives of a window, to weigh so much together; none where they tell nothing.
fn weighed(lives: &Lives, weight: f64) -> Lives {
    let mut weighed = Lives::default();
    let known = lives.known();
    // Less than one is left over from the subtraction of rare ones.
    if known >= 1.0 {
        weighed.add_all(lives, weight / known);
    }
    weighed
}

/// What the order shows, or what the loads show that another CPU's cache served: these prove turns, however few
/// the samples are and in whatever order.
fn interleaving(turns: &Turns, taken: Taken) -> f64 {
    let seen = taken.loads as f64 / turns.samples.max(1.0);
    turns.interleaving.max(seen.min(1.0))
}
