//! A judgement that nobody made, for tests of those who act on judgements.

use super::{Confidence, Judgement, Significance, Verdict, threads};
use crate::{
    access::{Cost, LineKey},
    analysis::{Kinds, SiteCounts, Uses},
    distribution::Distributions,
};

/// A falsely shared line that is a finding.
pub(crate) fn judged(key: LineKey, sites: Vec<SiteCounts>) -> Judgement {
    Judgement {
        pmu: None,
        distributions: Distributions::default(),
        key,
        verdict: Some(Verdict::FalseSharing),
        significance: Significance::Significant,
        confidence: Confidence::Sampled,
        watched: None,
        order: None,
        cost: Cost(10),
        shared_cost: Cost(10),
        alike_share: None,
        together_share: Some(0.5),
        shared_share: Some(0.5),
        samples: 20,
        accesses: 20,
        interleaving: 1.0,
        kinds: Some(Kinds {
            truly: 0.0,
            falsely: 1.0,
        }),
        threads: threads(&sites),
        sites,
        uses: Uses::default(),
        weak: false,
        facts: Vec::new(),
    }
}
