//! The judgement of a line all of whose accesses were seen, in order.
//!
//! Nothing is estimated here, so there is nothing to confirm. A line is shared when the protocol had to hand it from one
//! CPU to another after a store by another thread, often enough to be no hand-over from one phase to the next; which
//! kind of sharing, by the hand-offs that brought a value which the taker used ([`HandOffs`](crate::analysis::HandOffs)).
//! Whether it matters follows from the messages that it took, as a share of those of the whole run.
//!
//! Limits that are about samples have no part in this: not how many there are, nor how many are stores, nor how the
//! threads' moments interleave. Time in an emulator is not the program's.

use super::{Confidence, Model, Reason, Significance, Verdict, confirmation::Opinion};
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
            samples: sampled.samples as f64,
            stores: sampled.stores as f64,
            ..Sharing::default()
        },
        kinds: order.kinds,
        widest_kinds: order.kinds,
        ..*sampled
    }
}

/// Judges the line.
pub(super) fn opinion(order: &OrderCounts, evidence: &Evidence, model: &Model) -> Opinion {
    let verdict = kind(order, model);
    let significance = match objection(order, evidence, verdict, model) {
        Some(reason) => Significance::Insignificant(reason),
        None => Significance::Significant,
    };
    Opinion {
        verdict,
        significance,
        confidence: Confidence::Confirmed,
        shared_cost: Cost(order.shared_transactions as f64),
        change: None,
    }
}

/// The kind of sharing; `None` below the least number of hand-offs.
fn kind(order: &OrderCounts, model: &Model) -> Option<Verdict> {
    let limits = model.thresholds;
    if (order.hand_offs.total() as f64) < limits.hand_offs {
        return None;
    }
    Some(Verdict::of(order.kinds?, limits.mixed_share))
}

fn objection(
    order: &OrderCounts,
    evidence: &Evidence,
    verdict: Option<Verdict>,
    model: &Model,
) -> Option<Reason> {
    if evidence.stores == 0 {
        return Some(Reason::ReadOnly);
    }
    if order.cpus < 2 {
        return Some(Reason::OneCpu);
    }
    if verdict.is_none() {
        return Some(Reason::HardlyHandedOff);
    }
    let share = model.share(Cost(order.shared_transactions as f64));
    let below = share.is_some_and(|share| share < model.thresholds.cost_share);
    below.then_some(Reason::CostBelowThreshold)
}
