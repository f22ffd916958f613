//! The limits between noise and finding, each with its reason.

use super::{PairThresholds, WatchThresholds};

/// When a shared line is a finding.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Thresholds {
    /// Least share of the sampled time stalled on the line and attributed to sharing. Below 1 % a
    /// repair cannot be measured on a noisy machine. Not applied when no time was sampled.
    pub cost_share: f64,
    /// Least samples, in interleaved windows, by threads other than the most frequent one. Two
    /// threads therefore have at least as many each.
    pub minority_samples: f64,
    /// The same as a share of all samples of the line; a stray address now and then, in a long run,
    /// does not add up to a finding.
    pub minority_share: f64,
    /// Least hand-offs seen.
    pub hand_offs: f64,
    /// Least samples with a store in interleaved windows: a flag or a configuration written once is
    /// sampled once or twice.
    pub store_samples: f64,
    /// The same as a share of the samples in interleaved windows.
    pub store_share: f64,
    /// Least part of the sharing that must show without harvested accesses; below it the finding is
    /// marked weak.
    pub exact_share: f64,
    /// Least share of the sampled time stalled on a line of several threads without a store sampled,
    /// for it to be listed. Reading a line that stays in all caches costs samples too, so this is
    /// above `cost_share`.
    pub suspect_cost_share: f64,
    /// Most insignificant lines listed.
    pub insignificant_listed: usize,
    /// When windows have shown enough.
    pub watch: WatchThresholds,
    /// When a load should fetch for ownership.
    pub pairs: PairThresholds,
}

impl Default for Thresholds {
    fn default() -> Self {
        Thresholds {
            cost_share: 0.01,
            minority_samples: 8.0,
            minority_share: 0.01,
            hand_offs: 8.0,
            store_samples: 5.0,
            store_share: 0.01,
            exact_share: 0.1,
            suspect_cost_share: 0.05,
            insignificant_listed: 20,
            watch: WatchThresholds::default(),
            pairs: PairThresholds::default(),
        }
    }
}
