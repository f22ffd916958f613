//! False sharing: threads hand a line off for bytes that are their own.

use super::{Finder, Model, Thresholds, Verdict};
use crate::analysis::Evidence;

/// A line is falsely shared when the conflicts of its accesses are on different bytes and less than
/// [`Thresholds::mixed_share`] of its sharing is on common ones.
pub(super) struct FalseSharing;

impl Finder for FalseSharing {
    fn name(&self) -> &'static str {
        "false-sharing"
    }

    fn rule(&self, thresholds: &Thresholds) -> String {
        format!(
            "Threads take turns on the line, one stores, and less than {:.0} % of it is for common bytes.",
            thresholds.mixed_share * 100.0
        )
    }

    fn judge(&self, line: &Evidence, model: &Model) -> Option<Verdict> {
        let sharing = &line.sharing;
        let least = model.thresholds.mixed_share * sharing.weight;
        (sharing.weight > 0.0 && sharing.true_weight < least).then_some(Verdict::FalseSharing)
    }
}
