//! The read-then-write pairs of a run, judged and ranked.

use std::cmp::Reverse;

use super::{Hint, Orders, PairThresholds, hint};
use crate::{
    access::{ByteSet, LineKey},
    analysis::Pair,
};

/// A pair that was seen fewer times is left out: it may be the end of one phase and the start of another.
const LEAST_COUNT: u64 = 3;

/// A pair with its line and what to do about its load.
#[derive(Clone, Debug, PartialEq)]
pub struct JudgedPair {
    /// On which line.
    pub line: LineKey,
    /// The pair.
    pub pair: Pair,
    /// What to do.
    pub hint: Hint,
}

/// Pairs that are kept at most; a whole program may have millions.
const MOST_KEPT: usize = 10_000;

/// Judges the pairs of every line whose order is known: those with a hint first, then by how often they were seen.
/// `sampled` says which bytes of a watched line samples saw accessed. At most 10,000; the rest has the last ranks.
pub fn judge_pairs(
    orders: &Orders<'_>,
    sampled: impl Fn(LineKey) -> ByteSet,
    limits: &PairThresholds,
) -> Vec<JudgedPair> {
    let line_size = orders.ordered.line_size();
    let watched =
        (orders.watched.lines()).map(|line| (line.key(), line.pairs(sampled(line.key()))));
    let ordered = (orders.ordered.shared()).map(|line| (line.key(), line.pairs(line_size)));
    let mut judged: Vec<JudgedPair> = Vec::new();
    for (line, pairs) in watched.chain(ordered) {
        let often = pairs.into_iter().filter(|pair| pair.count >= LEAST_COUNT);
        judged.extend(often.map(|pair| JudgedPair {
            line,
            hint: hint(&pair, limits),
            pair,
        }));
        if judged.len() > 2 * MOST_KEPT {
            rank(&mut judged);
        }
    }
    rank(&mut judged);
    judged
}

fn rank(judged: &mut Vec<JudgedPair>) {
    judged.sort_by_key(|judged| {
        let pair = &judged.pair;
        (
            judged.hint != Hint::FetchForOwnership,
            pair.same_instruction,
            Reverse(pair.count),
            judged.line,
            pair.load.instruction,
            pair.store.instruction,
        )
    });
    judged.truncate(MOST_KEPT);
}
