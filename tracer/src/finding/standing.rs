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
    /// Watch windows saw every access to it for long enough, and no sharing.
    Contradicted,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{access::LineSize, analysis::Sharing, finding::Thresholds};

    /// 1 s of 10 s stalled on a line of two threads, all of it shared.
    fn shared() -> Evidence {
        Evidence {
            accesses: 2000,
            stores: 2000,
            samples: 2000,
            cost_ns: 1_000_000_000,
            one_cpu: false,
            folded: 0,
            sharing: Sharing {
                weight: 2000.0,
                true_weight: 0.0,
                false_weight: 2000.0,
                exact_weight: 2000.0,
                cost_ns: 1e9,
                unstored_cost_ns: 0.0,
                hand_offs: 1000.0,
                expected_hand_offs: 1000.0,
                samples: 2000.0,
                stores: 2000.0,
                minority: 1000.0,
            },
        }
    }

    fn judged(verdict: Option<Verdict>, change: impl FnOnce(&mut Evidence)) -> Standing {
        let mut evidence = shared();
        change(&mut evidence);
        let model = Model {
            sampled_ns: 10_000_000_000,
            line_size: LineSize::B64,
            thresholds: &Thresholds::default(),
        };
        standing(&evidence, verdict, &model)
    }

    fn check(reason: Reason, change: impl FnOnce(&mut Evidence)) {
        let found = judged(Some(Verdict::FalseSharing), change);
        assert_eq!(found, Standing::Insignificant(reason));
    }

    #[test]
    fn at_every_limit_a_line_is_still_a_finding() {
        let at_the_limits = |e: &mut Evidence| {
            e.sharing.cost_ns = 0.01 * 1e10;
            e.sharing.hand_offs = 8.0;
            e.sharing.stores = 20.0;
            e.sharing.minority = 20.0;
        };
        let found = judged(Some(Verdict::FalseSharing), at_the_limits);
        assert_eq!(found, Standing::Significant);
    }

    #[test]
    fn below_each_limit_it_is_not_and_says_why() {
        check(Reason::NoStoreSeen, |e| e.stores = 0);
        check(Reason::OneCpu, |e| e.one_cpu = true);
        check(Reason::CostBelowThreshold, |e| e.sharing.cost_ns = 0.99e8);
        check(Reason::TooFewSamples, |e| e.sharing.hand_offs = 7.0);
        check(Reason::TooFewSamples, |e| e.sharing.minority = 19.0);
        check(Reason::TooFewStores, |e| e.sharing.stores = 19.0);
    }

    #[test]
    fn absolute_limits_hold_where_shares_are_met() {
        let few = |e: &mut Evidence| {
            e.samples = 20;
            e.sharing.samples = 20.0;
            e.sharing.stores = 10.0;
            e.sharing.minority = 10.0;
        };
        assert_eq!(
            judged(Some(Verdict::FalseSharing), few),
            Standing::Significant
        );
        check(Reason::TooFewStores, |e| {
            few(e);
            e.sharing.stores = 4.0;
        });
        check(Reason::TooFewSamples, |e| {
            few(e);
            e.sharing.minority = 7.0;
        });
    }

    #[test]
    fn costly_lines_outside_interleaved_windows_are_phases() {
        check(Reason::NotInterleaved, |e| {
            e.sharing.cost_ns = 0.5e8;
            e.sharing.weight = 100.0;
        });
        assert_eq!(
            judged(None, |_| {}),
            Standing::Insignificant(Reason::NotInterleaved)
        );
        assert_eq!(
            judged(None, |e| e.samples = 10),
            Standing::Insignificant(Reason::TooFewSamples)
        );
    }
}
