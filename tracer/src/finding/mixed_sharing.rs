//! Mixed sharing: common bytes and private bytes on one line, both fought for.

use super::{Finder, Model, Thresholds, Verdict};
use crate::analysis::Evidence;

/// A line is mixed when at least [`Thresholds::mixed_share`] of its sharing is for common bytes and as
/// much is between accesses to different ones.
pub(super) struct MixedSharing;

impl Finder for MixedSharing {
    fn name(&self) -> &'static str {
        "mixed-sharing"
    }

    fn rule(&self, thresholds: &Thresholds) -> String {
        format!(
            "Threads take turns on the line, one stores, and common and other bytes each hold {:.0} % of it or more.",
            thresholds.mixed_share * 100.0
        )
    }

    fn judge(&self, line: &Evidence, model: &Model) -> Option<Verdict> {
        let sharing = &line.sharing;
        let least = model.thresholds.mixed_share * sharing.weight;
        let both = sharing.true_weight >= least && sharing.false_weight >= least;
        (sharing.weight > 0.0 && both).then_some(Verdict::MixedSharing)
    }
}
