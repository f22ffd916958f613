//! Judging what a table holds, for tests that have no pipeline.

use super::{Judgement, Moved, Orders, Ranking, Thresholds, judge_table};
use crate::access::Cost;
use crate::analysis::{LineTable, OrderBounds, OrderedLines, WatchedLines};

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
    let untimed_stores = table.totals().untimed_stores();
    let ranking = Ranking::new(
        &orders,
        table.line_size(),
        whole,
        untimed_stores,
        thresholds,
    );
    judge_table(table, ranking).judgements
}
