//! Who saw how something is shared, and what is thought of it.
//!
//! | witness | claims, of what hand-offs were for | how sure that is |
//! |---|---|---|
//! | samples of a line (`significance`) | what a sparse order, or the bytes of each thread, make likely | sampled |
//! | every access to a line, in order (`complete`) | what each was for | confirmed |
//! | the lines of one thing (`subject`) | their claims, by what each line costs | sampled |
//!
//! The verdict follows from the claim by one rule ([`Claim::verdict`]); whether it is a finding, by what the witness has
//! to object. Watch windows see too little time to know what a line costs, so they are heard on what others say
//! ([`confirmation`](super::confirmation)).

use super::{Confidence, Fact, Model, Reason, Significance, Verdict, verdict::Claim};
use crate::access::Cost;

/// Who saw how a line, or a thing of several lines, is shared.
pub(super) trait Witness {
    /// How sure its claims are.
    const CONFIDENCE: Confidence;

    /// What the hand-offs were for.
    fn claim(&self, model: &Model) -> Claim;

    /// Why this is no finding; the first reason that applies.
    fn objection(&self, claim: &Claim, model: &Model) -> Option<Reason>;

    /// What counts as sharing of all that was waited for it.
    fn shared_cost(&self, significance: Significance) -> Cost<f64>;
}

/// A judgement in the making.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Opinion {
    pub(super) verdict: Option<Verdict>,
    pub(super) significance: Significance,
    pub(super) confidence: Confidence,
    /// Cost that counts as sharing.
    pub(super) shared_cost: Cost<f64>,
    /// What windows changed.
    pub(super) change: Option<Fact>,
}

impl Opinion {
    /// What a witness makes one think.
    pub(super) fn of<W: Witness>(witness: &W, model: &Model) -> Opinion {
        let claim = witness.claim(model);
        let objection = witness.objection(&claim, model);
        let significance = objection.map_or(Significance::Significant, Significance::Insignificant);
        Opinion {
            verdict: claim.verdict(),
            significance,
            confidence: W::CONFIDENCE,
            shared_cost: witness.shared_cost(significance),
            change: None,
        }
    }
}
