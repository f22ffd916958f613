//! The read-then-write pairs of a run, judged and ranked.

use std::cmp::Reverse;

use super::{Hint, PairThresholds, hint};
use crate::{
    access::{ByteSet, LineKey},
    analysis::{Pair, WatchedLines},
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

/// Judges the pairs of every watched line: those with a hint first, then by how often the windows saw them.
/// `sampled` says which bytes of a line samples saw accessed.
pub fn judge_pairs(
    watched: &WatchedLines,
    sampled: impl Fn(LineKey) -> ByteSet,
    limits: &PairThresholds,
) -> Vec<JudgedPair> {
    let mut judged: Vec<JudgedPair> = watched
        .lines()
        .flat_map(|line| {
            let pairs = line.pairs(sampled(line.key())).into_iter();
            pairs.map(|pair| JudgedPair {
                line: line.key(),
                hint: hint(&pair, limits),
                pair,
            })
        })
        .filter(|judged| judged.pair.count >= LEAST_COUNT)
        .collect();
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
    judged
}
