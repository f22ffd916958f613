//! Judging what a table holds, for tests that have no pipeline; and a judgement that nobody made.

use super::{
    Confidence, Judgement, Model, Moved, Orders, Ranking, Significance, Thresholds, Verdict,
    judge_table,
};
use crate::{
    access::{Cost, LineKey},
    analysis::{Kinds, LineTable, OrderBounds, OrderedLines, SiteCounts, Uses, WatchedLines},
    distribution::Distributions,
};

/// Judges every line by itself.
pub fn judge_all(
    table: &LineTable,
    watched: &WatchedLines,
    whole: Cost,
    thresholds: &Thresholds,
) -> Vec<Judgement> {
    let ordered = OrderedLines::new(table.line_size(), OrderBounds::default());
    let orders = Orders {
        watched,
        moved: &Moved::default(),
        ordered: &ordered,
    };
    let model = Model {
        whole,
        untimed_stores: table.totals().untimed_stores(),
        line_size: table.line_size(),
        thresholds,
    };
    let ranking = Ranking::new(&orders, model);
    judge_table(table, ranking).judgements
}

/// A falsely shared line that is a finding.
#[cfg(test)]
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
        threads: super::threads(&sites),
        sites,
        uses: Uses::default(),
        weak: false,
        facts: Vec::new(),
    }
}
