//! True sharing: threads hand a line off for the same bytes. Padding would do nothing.

use super::{Finder, Model, Thresholds, Verdict};
use crate::analysis::Evidence;

/// A line is truly shared when its threads use common bytes and less than
/// [`Thresholds::mixed_share`] of their conflicts is on different ones.
pub(super) struct TrueSharing;

impl Finder for TrueSharing {
    fn name(&self) -> &'static str {
        "true-sharing"
    }

    fn rule(&self, thresholds: &Thresholds) -> String {
        format!(
            "Threads take turns on the line, one stores, and less than {:.0} % of it is for other bytes.",
            thresholds.mixed_share * 100.0
        )
    }

    fn judge(&self, line: &Evidence, model: &Model) -> Option<Verdict> {
        let sharing = &line.sharing;
        let least = model.thresholds.mixed_share * sharing.weight;
        let truly = sharing.true_weight >= least && sharing.false_weight < least;
        (sharing.weight > 0.0 && truly).then_some(Verdict::TrueSharing)
    }
}
