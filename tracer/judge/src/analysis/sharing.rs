//! What the windows of a line showed, in sums: the numbers that verdicts are made of.

use crate::{
    access::Cost,
    analysis::{Kinds, PmuCounts, pmu::Taken},
};

/// What the closed windows of a line showed, summed. Shares are of `weight`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sharing {
    /// Interleaved samples: those of each window times its interleaving.
    pub weight: f64,
    /// The part of `weight` in windows whose stalled and decoded accesses alone show a conflict.
    pub exact_weight: f64,
    /// Cost of each window times its interleaving.
    pub cost: Cost<f64>,
    /// Cost of windows of several threads without a store sampled.
    pub unstored_cost: Cost<f64>,
    /// Cost of windows of several threads, interleaved or not.
    pub together_cost: Cost<f64>,
    /// Hand-offs seen in windows of several threads.
    pub hand_offs: f64,
    /// Hand-offs that a random order of the same samples would show.
    pub expected_hand_offs: f64,
    /// Samples in interleaved windows.
    pub samples: f64,
    /// Of those, with a store.
    pub stores: f64,
    /// Of those, by threads other than their window's most frequent one.
    pub minority: f64,
    /// Loads that a PMU saw served by another CPU's cache. Each is a hand-off, and proves that CPUs take turns.
    pub taken: f64,
    /// Their cost.
    pub taken_cost: Cost<f64>,
    /// Of those, the ones in windows without a store by another thread: whose bytes they met is not known there.
    pub unmet: f64,
    /// Their cost.
    pub unmet_cost: Cost<f64>,
}

impl Sharing {
    pub(super) fn add(&mut self, window: &Sharing) {
        self.weight += window.weight;
        self.exact_weight += window.exact_weight;
        self.cost += window.cost;
        self.unstored_cost += window.unstored_cost;
        self.together_cost += window.together_cost;
        self.hand_offs += window.hand_offs;
        self.expected_hand_offs += window.expected_hand_offs;
        self.samples += window.samples;
        self.stores += window.stores;
        self.minority += window.minority;
        self.taken += window.taken;
        self.taken_cost += window.taken_cost;
        self.unmet += window.unmet;
        self.unmet_cost += window.unmet_cost;
    }

    /// A window without a store that its loads could have met.
    pub(super) fn unmet(taken: Taken) -> Sharing {
        let (loads, cost) = (taken.loads as f64, taken.cost.estimate());
        Sharing {
            taken: loads,
            taken_cost: cost,
            unmet: loads,
            unmet_cost: cost,
            ..Sharing::default()
        }
    }
}

/// What is known of a line touched by several threads, the open window included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Evidence {
    /// Accesses, one per instruction and sample.
    pub accesses: u64,
    /// Of those, stores.
    pub stores: u64,
    /// Samples with an access to the line; none of an emulated line.
    pub samples: u64,
    /// What was waited for the line.
    pub cost: Cost,
    /// Several threads stored to it.
    pub several_store: bool,
    /// All of it ran on one CPU.
    pub one_cpu: bool,
    /// Accesses whose site was forgotten because the line has too many.
    pub folded: u64,
    /// What a PMU measured of its loads.
    pub pmu_loads: PmuCounts,
    /// What a PMU measured of its stores.
    pub pmu_stores: PmuCounts,
    /// Whether some access has an unknown size.
    pub unknown_sizes: bool,
    /// What the windows showed.
    pub sharing: Sharing,
    /// The kinds of its hand-offs; `None` where no window shows one.
    pub kinds: Option<Kinds>,
    /// The same, if each access of unknown size reached to the end of its aligned word.
    pub widest_kinds: Option<Kinds>,
}

impl Evidence {
    /// Loads that another CPU had modified or had, and stores, as a PMU measured them.
    pub fn pmu(&self) -> PmuCounts {
        let mut all = self.pmu_loads;
        all.add(&self.pmu_stores);
        all
    }

    /// Stores sampled without a latency: what they waited is in no cost.
    pub fn untimed_stores(&self) -> u64 {
        self.pmu_stores.sampled - self.pmu_stores.timed
    }
}
