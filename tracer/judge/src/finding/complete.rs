//! The judgement of a line all of whose accesses were seen, in order.
//!
//! Nothing is estimated here, so there is nothing to confirm. A line is shared when the protocol had to hand it from one
//! CPU to another after a store by another thread, often enough to be no hand-over from one phase to the next; which
//! kind of sharing, by the hand-offs that brought a value which the taker used ([`HandOffs`](crate::analysis::HandOffs)).
//! Whether it matters follows from the messages that it took, as a share of those of the whole run.
//!
//! Limits that are about samples have no part in this: not how many there are, nor how many are stores, nor how the
//! threads' moments interleave. Time in an emulator is not the program's.

use super::{Confidence, Model, Reason, Significance, verdict::Claim, witness::Witness};
use crate::{
    access::Cost,
    analysis::{Evidence, OrderCounts, Sharing},
};

/// The evidence with what the order shows in place of what samples show: hand-offs of a known kind are the weight.
pub(super) fn evidence(order: &OrderCounts, sampled: &Evidence) -> Evidence {
    let hand_offs = &order.hand_offs;
    let decided = hand_offs.decided() as f64;
    Evidence {
        sharing: Sharing {
            weight: decided,
            exact_weight: decided,
            cost: Cost(order.shared_transactions as f64),
            hand_offs: hand_offs.total() as f64,
            stores: sampled.stores as f64,
            ..Sharing::default()
        },
        kinds: order.kinds,
        widest_kinds: order.kinds,
        ..*sampled
    }
}

/// A line all of whose accesses were seen, in order.
pub(super) struct CompleteOrder<'a> {
    order: &'a OrderCounts,
    /// Executions that store.
    stores: u64,
}

impl CompleteOrder<'_> {
    pub(super) fn new<'a>(order: &'a OrderCounts, evidence: &Evidence) -> CompleteOrder<'a> {
        CompleteOrder {
            order,
            stores: evidence.stores,
        }
    }
}

impl Witness for CompleteOrder<'_> {
    const CONFIDENCE: Confidence = Confidence::Confirmed;

    /// Nothing below the least number of hand-offs.
    fn claim(&self, model: &Model) -> Claim {
        let enough = self.order.hand_offs.total() as f64 >= model.thresholds.hand_offs;
        Claim::of(self.order.kinds.filter(|_| enough))
    }

    fn objection(&self, claim: &Claim, model: &Model) -> Option<Reason> {
        if self.stores == 0 {
            return Some(Reason::ReadOnly);
        }
        if self.order.cpus < 2 {
            return Some(Reason::OneCpu);
        }
        if claim.kinds.is_none() {
            return Some(Reason::HardlyHandedOff);
        }
        let cost = Cost(self.order.shared_transactions as f64);
        model.is_cheap(cost).then_some(Reason::CostBelowThreshold)
    }

    fn shared_cost(&self, _: Significance) -> Cost<f64> {
        Cost(self.order.shared_transactions as f64)
    }
}
