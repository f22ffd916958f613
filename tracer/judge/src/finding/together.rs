//! The lines of one thing, as one witness of how it is shared.
//!
//! A line of many has few samples, and its own order tells nothing. All of them together do: of two samples of one line
//! that follow each other within a window, as many are of different threads as when the threads came at random, or none
//! where each line is one thread's. What windows saw on several of the lines is added up in the same way.

use super::{
    Confidence, Member, Model, Reason, Significance,
    meeting::{kinds, meeting},
    verdict::Claim,
    witness::Witness,
};
use crate::{
    access::Cost,
    analysis::{HandOffs, Kinds},
    names::Unit,
};

/// Hand-offs of each line, on average, below which a complete order shows that something was set up and collected again, and
/// not shared in between.
const HAND_OFFS_OF_A_LINE: u64 = 2;

/// Members of which several are used by several threads.
pub(super) struct Together<'a> {
    members: &'a [Member],
    /// What counts as sharing of all that was waited for them.
    shared_cost: Cost<f64>,
    /// What their hand-offs were for.
    pub(super) kinds: Option<Kinds>,
}

impl<'a> Together<'a> {
    /// `unit` is what repeats on the lines, if anything does.
    pub(super) fn new(members: &'a [Member], unit: Option<Unit>) -> Together<'a> {
        let meeting = meeting(members);
        let shared = |member: &Member| (member.shared_cost).max(member.cost.estimate() * meeting);
        let lines = || members.iter().filter(|member| member.several_threads);
        Together {
            members,
            shared_cost: lines().map(shared).sum(),
            kinds: kinds(lines(), shared, unit),
        }
    }

    /// Lines of several threads, costliest first.
    pub(super) fn lines(&self) -> impl Iterator<Item = &'a Member> + use<'a> {
        self.members.iter().filter(|member| member.several_threads)
    }

    /// Hand-offs of the lines of which a source saw every access; `None` where there are none such.
    pub(super) fn hand_offs(&self) -> Option<HandOffs> {
        let orders = self.lines().filter_map(|member| member.order);
        orders.reduce(|all, one| all.plus(&one))
    }

    /// Whether lines that are confirmed by themselves take most of the cost.
    pub(super) fn is_proven(&self) -> bool {
        let confirmed = (self.lines()).filter(|member| member.confidence == Confidence::Confirmed);
        let cost: Cost<f64> = confirmed.map(|member| member.shared_cost).sum();
        cost > Cost(0.0) && cost + cost >= self.shared_cost
    }
}

impl Witness for Together<'_> {
    const CONFIDENCE: Confidence = Confidence::Sampled;

    fn claim(&self, _: &Model) -> Claim {
        Claim::of(self.kinds)
    }

    fn objection(&self, claim: &Claim, model: &Model) -> Option<Reason> {
        let is_finding = |member: &Member| member.significance == Significance::Significant;
        if self.lines().any(is_finding) {
            return None;
        }
        let reason_of_worst = match self.lines().next().map(|member| member.significance) {
            Some(Significance::Insignificant(reason)) => reason,
            _ => Reason::TooFewSamples,
        };
        if claim.kinds.is_none()
            || self.lines().all(|member| member.stores == 0)
            || reason_of_worst == Reason::OneCpu
        {
            return Some(reason_of_worst);
        }
        let is_known = |member: &Member| member.order.is_some() || member.verdict.is_some();
        let hand_offs: f64 = self.lines().map(|member| member.hand_offs).sum();
        if !self.lines().any(is_known) && hand_offs < model.thresholds.hand_offs {
            return Some(Reason::TooFewSamples);
        }
        let ordered = self.lines().filter(|member| member.order.is_some()).count();
        let handed_off = self.hand_offs().map_or(0, |all| all.total());
        if handed_off < HAND_OFFS_OF_A_LINE * ordered as u64 {
            return Some(Reason::HardlyHandedOff);
        }
        if self.shared_cost <= Cost(0.0) {
            return Some(Reason::NotInterleaved);
        }
        (model.is_cheap(self.shared_cost)).then_some(Reason::CostBelowThreshold)
    }

    fn shared_cost(&self, _: Significance) -> Cost<f64> {
        self.shared_cost
    }
}
