//! Whether a shared line is a finding, and if not, why.

use super::{Confidence, Model, verdict::Claim, witness::Witness};
use crate::{access::Cost, analysis::Evidence};

/// Finding or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Significance {
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
    /// Loads found it modified by another CPU, at a cost that matters, but the stores that did it were not sampled, or
    /// too few of them: whether the sharing is false or true cannot be told.
    WriterNotSampled,
    /// Loads of it were served by another CPU's cache, at a cost that matters, and no store was sampled: with or
    /// without a writer, it moves.
    FromOtherCaches,
    /// Shared, at a cost that matters, but the sizes of accesses are not known, and they decide its kind.
    SizesUnknown,
    /// Shared, and costly, but the loads came from the CPUs' own caches or from memory, not from another CPU.
    ServedApart,
    /// Watch windows saw every access to it for long enough, and no sharing.
    Contradicted,
    /// Watch windows saw it read for long enough, and nobody store to it: what samples say its loads took, they did not
    /// wait for it.
    NotWaitedFor,
    /// No store was sampled, and none was seen by the windows so far, but those are too few to tell; what its loads took may
    /// as well be the wait for an access shortly before them.
    WaitUndecided,
    /// Every access was seen, and none stores.
    ReadOnly,
    /// Every access was seen, and the line went from one CPU to another too few times for anything but phases.
    HardlyHandedOff,
}

impl Significance {
    /// Its loads are not known to have waited for it: the run as a whole is told of them, the line is not listed.
    pub fn is_left_out(self) -> bool {
        matches!(
            self,
            Significance::Insignificant(Reason::NotWaitedFor | Reason::WaitUndecided)
        )
    }

    /// No finding, since its kind cannot be told, but a line that was seen to move between CPUs at a cost that matters.
    pub fn moves(self) -> bool {
        matches!(
            self,
            Significance::Insignificant(
                Reason::WriterNotSampled | Reason::FromOtherCaches | Reason::SizesUnknown
            )
        )
    }
}

/// Samples of a line that several threads touched, or whose loads another CPU's cache served.
impl Witness for Evidence {
    const CONFIDENCE: Confidence = Confidence::Sampled;

    fn claim(&self, _: &Model) -> Claim {
        Claim {
            kinds: self.kinds,
            widest: self.widest_kinds,
        }
    }

    fn objection(&self, claim: &Claim, model: &Model) -> Option<Reason> {
        objection(self, claim, model)
    }

    fn shared_cost(&self, significance: Significance) -> Cost<f64> {
        if significance.moves() {
            // Of which bytes is not known; that it moved is.
            self.sharing.cost.max(self.sharing.taken_cost)
        } else {
            self.sharing.cost
        }
    }
}

fn objection(evidence: &Evidence, claim: &Claim, model: &Model) -> Option<Reason> {
    let limits = model.thresholds;
    let sharing = &evidence.sharing;
    let samples = evidence.samples as f64;
    // A load that another CPU's cache served proves by itself that CPUs take turns; as many of them as the
    // hand-offs that samples in order would have to show leave nothing to chance.
    let seen_moving = sharing.taken >= limits.hand_offs;
    if evidence.stores == 0 {
        return Some(without_store(evidence, seen_moving, model));
    }
    if evidence.one_cpu && !seen_moving {
        return Some(Reason::OneCpu);
    }
    let few_stores = sharing.stores < limits.store_samples;
    if seen_moving && (claim.kinds.is_none() || few_stores) {
        return Some(without_store(evidence, seen_moving, model));
    }
    if claim.kinds.is_none() {
        // Half of them by each of two threads would be enough to see turns.
        let could_tell = samples >= 2.0 * limits.minority_samples;
        return Some(if could_tell {
            Reason::NotInterleaved
        } else {
            Reason::TooFewSamples
        });
    }
    if !seen_moving {
        if few_stores || sharing.stores < limits.store_share * sharing.samples {
            return Some(Reason::TooFewStores);
        }
        if sharing.minority < limits.minority_samples
            || sharing.minority < limits.minority_share * samples
            || sharing.hand_offs < limits.hand_offs
        {
            return Some(Reason::TooFewSamples);
        }
    }
    if model.is_cheap(sharing.cost) && !stored_often(evidence, model) {
        // Costly enough as a whole, mostly outside interleaved windows: the order is what clears it.
        let mostly_phases = sharing.weight < 0.1 * samples;
        return Some(
            if mostly_phases && !model.is_cheap(evidence.cost.estimate()) {
                Reason::NotInterleaved
            } else if evidence.pmu_loads.sampled > 0 && !model.is_cheap(evidence.cost.estimate()) {
                Reason::ServedApart
            } else {
                Reason::CostBelowThreshold
            },
        );
    }
    // It is shared, and what is not known of sizes hides how.
    (claim.verdict().is_none()).then_some(Reason::SizesUnknown)
}

/// A line whose loads met stores that were not sampled, or none.
fn without_store(evidence: &Evidence, seen_moving: bool, model: &Model) -> Reason {
    let modified = evidence.pmu_loads.hitm() > 0;
    let cost = evidence.sharing.taken_cost;
    match (seen_moving, model.is_cheap(cost)) {
        (false, _) if modified => Reason::TooFewSamples,
        (false, _) => Reason::NoStoreSeen,
        (true, true) => Reason::CostBelowThreshold,
        (true, false) if modified => Reason::WriterNotSampled,
        (true, false) => Reason::FromOtherCaches,
    }
}

/// Whether the line has so much of the stores that come without a latency, that what it costs must not be judged by
/// its loads: Haswell to Ice Lake measure nothing of a store (`precise_datala_hsw`, arch/x86/events/intel/ds.c). Where one
/// thread stores, the others' loads tell.
fn stored_often(evidence: &Evidence, model: &Model) -> bool {
    let stores = evidence.untimed_stores() as f64;
    evidence.several_store
        && model.untimed_stores > 0
        && stores >= model.thresholds.cost_share * model.untimed_stores as f64
        && evidence.sharing.stores >= model.thresholds.store_samples
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::{
        access::LineSize,
        analysis::{Kinds, PmuCounts, Sharing},
        finding::{Thresholds, Verdict},
    };

    /// 1 s of 10 s stalled on a line of two threads, all of it shared.
    pub(in crate::finding) fn shared() -> Evidence {
        Evidence {
            accesses: 2000,
            stores: 2000,
            samples: 2000,
            cost: Cost(1_000_000_000),
            several_store: true,
            one_cpu: false,
            folded: 0,
            pmu_loads: PmuCounts::default(),
            pmu_stores: PmuCounts::default(),
            unknown_sizes: false,
            sharing: Sharing {
                weight: 2000.0,
                exact_weight: 2000.0,
                cost: Cost(1e9),
                unstored_cost: Cost(0.0),
                hand_offs: 1000.0,
                expected_hand_offs: 1000.0,
                samples: 2000.0,
                stores: 2000.0,
                minority: 1000.0,
                ..Sharing::default()
            },
            kinds: None,
            widest_kinds: None,
        }
    }

    fn judged(verdict: Option<Verdict>, change: impl FnOnce(&mut Evidence)) -> Significance {
        let mut evidence = shared();
        change(&mut evidence);
        let model = Model {
            whole: Cost(10_000_000_000),
            untimed_stores: 4000,
            line_size: LineSize::B64,
            thresholds: &Thresholds::default(),
        };
        let part = |kind: Verdict, other| if kind == other { 0.0 } else { 1.0 };
        let kinds = verdict.map(|verdict| Kinds {
            truly: part(verdict, Verdict::FalseSharing),
            falsely: part(verdict, Verdict::TrueSharing),
        });
        let reason = evidence.objection(&Claim::of(kinds), &model);
        reason.map_or(Significance::Significant, Significance::Insignificant)
    }

    fn check(reason: Reason, change: impl FnOnce(&mut Evidence)) {
        let found = judged(Some(Verdict::FalseSharing), change);
        assert_eq!(found, Significance::Insignificant(reason));
    }

    #[test]
    fn at_every_limit_a_line_is_still_a_finding() {
        let at_the_limits = |e: &mut Evidence| {
            e.sharing.cost = Cost(0.01 * 1e10);
            e.sharing.hand_offs = 8.0;
            e.sharing.stores = 20.0;
            e.sharing.minority = 20.0;
        };
        let found = judged(Some(Verdict::FalseSharing), at_the_limits);
        assert_eq!(found, Significance::Significant);
    }

    #[test]
    fn below_each_limit_it_is_not_and_says_why() {
        check(Reason::NoStoreSeen, |e| e.stores = 0);
        check(Reason::OneCpu, |e| e.one_cpu = true);
        check(Reason::CostBelowThreshold, |e| {
            e.sharing.cost = Cost(0.99e8);
        });
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
            Significance::Significant
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

    /// 500 of the loads found it modified, for 8 % of the cost.
    fn modified(evidence: &mut Evidence) {
        evidence.pmu_loads = PmuCounts {
            sampled: 1000,
            local_hitm: 500,
            ..PmuCounts::default()
        };
        evidence.sharing.taken = 500.0;
        evidence.sharing.taken_cost = Cost(8e8);
    }

    #[test]
    fn loads_that_found_it_modified_stand_for_the_turns_and_the_cpus() {
        let sparse = |e: &mut Evidence| {
            e.one_cpu = true;
            e.sharing.hand_offs = 0.0;
            e.sharing.minority = 6.0;
            e.sharing.stores = 6.0;
        };
        check(Reason::OneCpu, sparse);
        let found = judged(Some(Verdict::FalseSharing), |e| {
            sparse(e);
            modified(e);
        });
        assert_eq!(found, Significance::Significant);
    }

    #[test]
    fn a_modified_line_without_stores_is_never_called_read_only() {
        let unseen = |e: &mut Evidence| {
            modified(e);
            e.stores = 0;
        };
        let reason = |change: &dyn Fn(&mut Evidence)| {
            let found = judged(None, |e| {
                unseen(e);
                change(e);
            });
            let Significance::Insignificant(reason) = found else {
                panic!("without a store it is no finding");
            };
            assert_eq!(found.moves(), reason == Reason::WriterNotSampled);
            reason
        };
        assert_eq!(reason(&|_| {}), Reason::WriterNotSampled);
        assert_eq!(reason(&|e| e.sharing.taken = 7.0), Reason::TooFewSamples);
        let cheap = reason(&|e| e.sharing.taken_cost = Cost(0.9e8));
        assert_eq!(cheap, Reason::CostBelowThreshold);
        // Four stores in thousands of loads tell too little of the bytes that are written.
        check(Reason::WriterNotSampled, |e| {
            modified(e);
            e.sharing.stores = 4.0;
        });
    }

    #[test]
    fn stores_without_a_latency_are_judged_by_their_number() {
        let untimed = |stores: u64| {
            judged(Some(Verdict::FalseSharing), |e| {
                e.sharing.cost = Cost(0.0);
                e.cost = Cost(0);
                e.pmu_stores.sampled = stores;
            })
        };
        assert_eq!(untimed(40), Significance::Significant);
        let few = Significance::Insignificant(Reason::CostBelowThreshold);
        assert_eq!(untimed(39), few);
        let by_one = judged(Some(Verdict::FalseSharing), |e| {
            e.sharing.cost = Cost(0.0);
            e.cost = Cost(0);
            e.pmu_stores.sampled = 40;
            e.several_store = false;
        });
        assert_eq!(by_one, few);
    }

    #[test]
    fn costly_lines_outside_interleaved_windows_are_phases() {
        check(Reason::NotInterleaved, |e| {
            e.sharing.cost = Cost(0.5e8);
            e.sharing.weight = 100.0;
        });
        assert_eq!(
            judged(None, |_| {}),
            Significance::Insignificant(Reason::NotInterleaved)
        );
        assert_eq!(
            judged(None, |e| e.samples = 10),
            Significance::Insignificant(Reason::TooFewSamples)
        );
    }
}
