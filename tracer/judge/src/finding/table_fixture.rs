//! Judging what a table holds, for tests that have no pipeline.

use super::{Judgement, Model, Moved, Orders, Ranking, Thresholds, judge_table};
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
    let model = Model {
        whole,
        untimed_stores: table.totals().untimed_stores(),
        line_size: table.line_size(),
        thresholds,
    };
    let ranking = Ranking::new(&orders, model);
    judge_table(table, ranking).judgements
}
