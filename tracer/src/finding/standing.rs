//! Whether a shared line is a finding, and if not, why.

use crate::{
    analysis::Evidence,
    finding::{Model, Verdict},
};

/// Finding or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// A finding.
    Significant,
    /// Not a finding; listed so that nobody has to wonder.
    Insignificant(Reason),
}

/// Why a line is not a finding; the first that applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// No store was sampled. The line may be read-only, or its writer was never sampled.
    NoStoreSeen,
    /// All its accesses ran on one CPU.
    OneCpu,
    /// The threads came one after the other (phases), not by turns.
    NotInterleaved,
    /// Fewer samples or hand-offs than chance or a wrong address could make.
    TooFewSamples,
    /// Stored to, but so rarely sampled that it may be written once and read afterwards.
    TooFewStores,
    /// Shared, but the time lost is below the threshold.
    CostBelowThreshold,
}

/// The standing of a line that several threads touched.
pub(super) fn standing(evidence: &Evidence, verdict: Option<Verdict>, model: &Model) -> Standing {
    match objection(evidence, verdict, model) {
        Some(reason) => Standing::Insignificant(reason),
        None => Standing::Significant,
    }
}

fn objection(evidence: &Evidence, verdict: Option<Verdict>, model: &Model) -> Option<Reason> {
    let limits = model.thresholds;
    let sharing = &evidence.sharing;
    let samples = evidence.samples as f64;
    let below = |cost_ns| model.share(cost_ns).is_some_and(|s| s < limits.cost_share);
    if evidence.stores == 0 {
        return Some(Reason::NoStoreSeen);
    }
    if evidence.one_cpu {
        return Some(Reason::OneCpu);
    }
    if verdict.is_none() {
        // Half of them by each of two threads would be enough to see turns.
        let could_tell = samples >= 2.0 * limits.minority_samples;
        return Some(if could_tell {
            Reason::NotInterleaved
        } else {
            Reason::TooFewSamples
        });
    }
    if sharing.stores < limits.store_samples
        || sharing.stores < limits.store_share * sharing.samples
    {
        return Some(Reason::TooFewStores);
    }
    if sharing.minority < limits.minority_samples
        || sharing.minority < limits.minority_share * samples
        || sharing.hand_offs < limits.hand_offs
    {
        return Some(Reason::TooFewSamples);
    }
    if below(sharing.cost_ns) {
        // Costly enough as a whole, mostly outside interleaved windows: the order is what clears it.
        let mostly_phases = sharing.weight < 0.1 * samples;
        return Some(if mostly_phases && !below(evidence.cost_ns as f64) {
            Reason::NotInterleaved
        } else {
            Reason::CostBelowThreshold
        });
    }
    None
}
