//! What watch windows make of a suspicion: proof, another verdict, or nothing.
//!
//! Samples tell which lines cost time; windows tell, access by access, how a line is shared. So the cost of a
//! judgement is always the samples', and once windows have seen enough, its kind is theirs:
//!
//! | samples say | windows show | the judgement is |
//! |---|---|---|
//! | a finding | the same kind, or both kinds for a mixed one | confirmed |
//! | a finding | sharing of another kind, for certain and in many windows | that kind, confirmed |
//! | a finding | no sharing, for certain | none: contradicted |
//! | a finding | too little | as sampled |
//! | suspicious, but its writer or samples are missing | sharing of some kind | that kind, confirmed, if it costs enough |
//! | several threads, one after the other | sharing, in several windows | that kind, confirmed, if it costs enough |
//!
//! The last one is of threads that wait for each other: while one works the other one polls, so that samples meet one of
//! them for long, and the windows see the word that they pass to and fro.

use super::{
    Fact, Model, Reason, Significance, Verdict, WatchThresholds, WatchVerdict, watched::Pooled,
    witness::Opinion,
};
use crate::{access::Cost, analysis::Evidence};

/// Lines on which windows must have seen threads meet before they speak for all lines of a thing.
const WATCHED_LINES: usize = 3;

/// How sure a verdict is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Confidence {
    /// By samples alone.
    Sampled,
    /// By windows, which saw the stores and touches that prove it, in order; or by a source that saw every access of
    /// the run, in order.
    Confirmed,
}

impl Confidence {
    /// Stable name, as in reports.
    pub fn name(self) -> &'static str {
        match self {
            Confidence::Sampled => "sampled",
            Confidence::Confirmed => "confirmed",
        }
    }
}

impl Opinion {
    /// The same after the line's windows were heard.
    pub(super) fn confirm_with_windows(
        self,
        watched: &WatchVerdict,
        evidence: &Evidence,
        model: &Model,
    ) -> Opinion {
        let limits = &model.thresholds.watch;
        // Where samples claim nothing, windows contradict nothing.
        let changes = self.verdict.is_none()
            || self.significance != Significance::Significant
            || watched.decides(limits);
        let by_windows = watched.shown.verdict().filter(|_| changes);
        let Some(proven) = self.proven(watched, limits).or(by_windows) else {
            return self.contradicted(watched);
        };
        let confirmed = Opinion {
            verdict: Some(proven),
            confidence: Confidence::Confirmed,
            change: (self.verdict)
                .filter(|sampled| *sampled != proven)
                .map(Fact::SampledAs),
            ..self
        };
        match self.significance {
            Significance::Significant => confirmed,
            Significance::Insignificant(
                Reason::NoStoreSeen
                | Reason::TooFewStores
                | Reason::TooFewSamples
                | Reason::WriterNotSampled
                | Reason::FromOtherCaches
                | Reason::SizesUnknown,
            ) => {
                // What was waited for while several threads used the line: that one of them stores is now known.
                let sharing = &evidence.sharing;
                let cost = (sharing.cost + sharing.unstored_cost).min(evidence.cost.estimate());
                self.if_costly(cost.max(sharing.taken_cost), confirmed, model)
            }
            Significance::Insignificant(Reason::NotInterleaved)
                if watched.shared_windows >= limits.certain_windows =>
            {
                self.if_costly(evidence.sharing.together_cost, confirmed, model)
            }
            Significance::Insignificant(_) => self,
        }
    }

    /// The same of several lines that are one thing, after the windows on all of them were heard. Which of the two kinds
    /// it is, windows that are certain say: what few samples of many lines say of that weighs little beside it.
    pub(super) fn confirm_together(self, watched: &Pooled, lines: usize, model: &Model) -> Opinion {
        let limits = &model.thresholds.watch;
        let shown = &watched.verdict;
        let changes = self.verdict.is_none() || shown.decides(limits);
        let by_windows = shown.shown.verdict().filter(|_| changes);
        let Some(proven) = by_windows.or(self.proven(shown, limits)) else {
            return self.contradicted(shown);
        };
        let enough = watched.lines >= WATCHED_LINES.min(lines);
        Opinion {
            verdict: Some(proven),
            confidence: if enough {
                Confidence::Confirmed
            } else {
                self.confidence
            },
            ..self
        }
    }

    /// What the windows prove of it.
    fn proven(&self, watched: &WatchVerdict, limits: &WatchThresholds) -> Option<Verdict> {
        self.verdict.filter(|kind| watched.proves(*kind, limits))
    }

    /// The confirmed opinion where what it is about costs enough.
    fn if_costly(self, cost: Cost<f64>, confirmed: Opinion, model: &Model) -> Opinion {
        let share = model.share(cost);
        if share.is_some_and(|share| share >= model.thresholds.cost_share) {
            Opinion {
                significance: Significance::Significant,
                shared_cost: cost,
                ..confirmed
            }
        } else {
            self
        }
    }

    fn contradicted(self, watched: &WatchVerdict) -> Opinion {
        let clears = watched.certain && watched.shown.is_no_sharing();
        if !clears || self.significance != Significance::Significant {
            return self;
        }
        Opinion {
            significance: Significance::Insignificant(Reason::Contradicted),
            change: Some(Fact::ShownInstead(watched.shown)),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        access::LineSize,
        analysis::{HandOffs, Sharing},
        finding::{Thresholds, WindowVerdict, significance::tests::shared, witness::Witness as _},
    };

    /// 1 s of 10 s stalled on a line of two threads, a part of it without a store sampled.
    fn evidence(stored_ns: f64, unstored_ns: f64) -> Evidence {
        Evidence {
            sharing: Sharing {
                cost: Cost(stored_ns),
                unstored_cost: Cost(unstored_ns),
                ..Sharing::default()
            },
            ..shared()
        }
    }

    fn windows(shown: WindowVerdict, certain: bool) -> WatchVerdict {
        WatchVerdict {
            shown,
            certain,
            shared_windows: 8,
            accesses: 1000,
            stores: 500,
            threads: 2,
            second_thread: 500,
            hand_offs: hand_offs(shown),
            by_bytes: Some(Verdict::TrueSharing),
            widest: None,
        }
    }

    fn hand_offs(shown: WindowVerdict) -> HandOffs {
        let (truly, falsely) = match shown {
            WindowVerdict::FalseSharing => (4, 96),
            WindowVerdict::TrueSharing => (100, 0),
            WindowVerdict::MixedSharing => (40, 60),
            _ => (0, 0),
        };
        HandOffs {
            truly,
            falsely,
            ..HandOffs::default()
        }
    }

    fn heard(
        verdict: Option<Verdict>,
        significance: Significance,
        evidence: &Evidence,
        watched: &WatchVerdict,
    ) -> Opinion {
        let model = Model {
            whole: Cost(10_000_000_000),
            untimed_stores: 0,
            line_size: LineSize::B64,
            thresholds: &Thresholds::default(),
        };
        let sampled = Opinion {
            verdict,
            significance,
            confidence: Confidence::Sampled,
            shared_cost: evidence.shared_cost(significance),
            change: None,
        };
        sampled.confirm_with_windows(watched, evidence, &model)
    }

    #[test]
    fn windows_that_show_the_sampled_kind_confirm_it() {
        let found = heard(
            Some(Verdict::FalseSharing),
            Significance::Significant,
            &evidence(1e9, 0.0),
            &windows(WindowVerdict::FalseSharing, false),
        );
        assert_eq!(found.confidence, Confidence::Confirmed);
        assert_eq!(found.verdict, Some(Verdict::FalseSharing));
        assert_eq!(found.change, None);
    }

    #[test]
    fn windows_that_show_another_kind_change_it_and_say_so() {
        let found = heard(
            Some(Verdict::MixedSharing),
            Significance::Significant,
            &evidence(1e9, 0.0),
            &windows(WindowVerdict::TrueSharing, true),
        );
        assert_eq!(found.verdict, Some(Verdict::TrueSharing));
        assert_eq!(found.change, Some(Fact::SampledAs(Verdict::MixedSharing)));
    }

    #[test]
    fn a_few_windows_do_not_change_the_kind() {
        let after = |shared_windows, certain| {
            let watched = WatchVerdict {
                shared_windows,
                ..windows(WindowVerdict::TrueSharing, certain)
            };
            let sampled = Some(Verdict::MixedSharing);
            heard(
                sampled,
                Significance::Significant,
                &evidence(1e9, 0.0),
                &watched,
            )
        };
        for (shared_windows, certain) in [(7, true), (8, false)] {
            let found = after(shared_windows, certain);
            assert_eq!(found.verdict, Some(Verdict::MixedSharing));
            assert_eq!(found.confidence, Confidence::Sampled);
            assert_eq!(found.significance, Significance::Significant);
        }
        assert_eq!(after(8, true).verdict, Some(Verdict::TrueSharing));
    }

    #[test]
    fn of_two_kinds_that_windows_prove_the_samples_say_which_weigh_enough() {
        let mixed = |hand_offs| {
            let windows = WatchVerdict {
                hand_offs,
                ..windows(WindowVerdict::FalseSharing, true)
            };
            let sampled = Some(Verdict::MixedSharing);
            heard(
                sampled,
                Significance::Significant,
                &evidence(1e9, 0.0),
                &windows,
            )
        };
        let shares = |truly, falsely| HandOffs {
            truly,
            falsely,
            ..HandOffs::default()
        };
        let found = mixed(shares(40, 960));
        assert_eq!(found.verdict, Some(Verdict::MixedSharing));
        assert_eq!(
            (found.confidence, found.change),
            (Confidence::Confirmed, None)
        );
        // Too few to be there at all.
        assert_eq!(mixed(shares(7, 500)).verdict, Some(Verdict::FalseSharing));
        assert_eq!(mixed(shares(9, 2000)).verdict, Some(Verdict::FalseSharing));
    }

    #[test]
    fn threads_that_traps_keep_apart_confirm_by_their_bytes_what_samples_say_of_their_order() {
        let apart = |sampled| {
            heard(
                Some(sampled),
                Significance::Significant,
                &evidence(1e9, 0.0),
                &windows(WindowVerdict::Apart, true),
            )
        };
        let found = apart(Verdict::TrueSharing);
        assert_eq!(found.confidence, Confidence::Confirmed);
        let other = apart(Verdict::FalseSharing);
        assert_eq!(other.confidence, Confidence::Sampled);
        assert_eq!(other.significance, Significance::Significant);
    }

    #[test]
    fn a_suspicion_is_dropped_only_when_windows_are_certain() {
        for shown in [
            WindowVerdict::OneThread,
            WindowVerdict::NoStores,
            WindowVerdict::NotHandedOff,
        ] {
            let confirm_with_windows = |certain| {
                heard(
                    Some(Verdict::FalseSharing),
                    Significance::Significant,
                    &evidence(1e9, 0.0),
                    &windows(shown, certain),
                )
            };
            assert_eq!(
                confirm_with_windows(false).significance,
                Significance::Significant
            );
            let found = confirm_with_windows(true);
            assert_eq!(
                found.significance,
                Significance::Insignificant(Reason::Contradicted)
            );
            assert_eq!(found.change, Some(Fact::ShownInstead(shown)));
            assert_eq!(found.confidence, Confidence::Sampled);
        }
        let nothing = heard(
            Some(Verdict::FalseSharing),
            Significance::Significant,
            &evidence(1e9, 0.0),
            &windows(WindowVerdict::Nothing, true),
        );
        assert_eq!(nothing.significance, Significance::Significant);
    }

    #[test]
    fn a_writer_that_only_windows_saw_makes_a_finding_of_what_it_costs() {
        let unseen = Significance::Insignificant(Reason::NoStoreSeen);
        let shown = windows(WindowVerdict::FalseSharing, false);
        let found = heard(None, unseen, &evidence(0.0, 8e8), &shown);
        assert_eq!(found.significance, Significance::Significant);
        assert_eq!(found.verdict, Some(Verdict::FalseSharing));
        assert!((found.shared_cost.0 - 8e8).abs() < 1.0);
        let cheap = heard(None, unseen, &evidence(0.0, 8e6), &shown);
        assert_eq!(cheap.significance, unseen);
    }

    #[test]
    fn threads_that_wait_for_each_other_in_turn_are_found_by_windows() {
        let significance = Significance::Insignificant(Reason::NotInterleaved);
        let mut evidence = evidence(0.0, 0.0);
        evidence.sharing.together_cost = Cost(7e8);
        let in_windows = |shared_windows| {
            let shown = WatchVerdict {
                shared_windows,
                ..windows(WindowVerdict::TrueSharing, false)
            };
            heard(None, significance, &evidence, &shown)
        };
        let found = in_windows(3);
        assert_eq!(found.significance, Significance::Significant);
        assert_eq!(found.verdict, Some(Verdict::TrueSharing));
        assert!((found.shared_cost.0 - 7e8).abs() < 1.0);
        // Two may have met the end of one phase and the start of another.
        assert_eq!(in_windows(2).significance, significance);
        let shown = windows(WindowVerdict::NotHandedOff, true);
        assert_eq!(
            heard(None, significance, &evidence, &shown).significance,
            significance
        );
    }

    #[test]
    fn what_samples_call_rare_is_what_windows_show() {
        let significance = Significance::Insignificant(Reason::TooFewStores);
        let sampled = Some(Verdict::MixedSharing);
        let shown = windows(WindowVerdict::TrueSharing, false);
        let found = heard(sampled, significance, &evidence(1e9, 0.0), &shown);
        assert_eq!(found.verdict, Some(Verdict::TrueSharing));
        assert_eq!(found.significance, Significance::Significant);
    }

    #[test]
    fn cheap_lines_stay_what_they_are() {
        for reason in [Reason::CostBelowThreshold, Reason::OneCpu] {
            let significance = Significance::Insignificant(reason);
            let shown = windows(WindowVerdict::TrueSharing, true);
            let found = heard(None, significance, &evidence(1e9, 0.0), &shown);
            assert_eq!(found.significance, significance);
            assert_eq!(found.confidence, Confidence::Sampled);
        }
    }
}
