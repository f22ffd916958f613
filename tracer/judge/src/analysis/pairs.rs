//! Read-then-write pairs: a load, and the next access to the line by the same thread is a store.
//!
//! ```text
//!   thread 1   load p ───────────── store q      a pair (p, q) in thread order
//!   thread 2           load r               ...  in between another CPU only read
//!   the log    READ_SHAR p, READ_SHAR r, READ_PRIV q      not adjacent: no pair by SWIFT's filter
//! ```
//!
//! The order within a thread is exact; that between threads is disturbed by the traps, which stretch the time
//! between load and store from a few cycles to microseconds. So a pair counts by its thread's order, and what
//! others did in between is told beside it. A read of another thread that is itself followed by that thread's
//! store is that thread's own pair, pulled into this one by the traps; every other read is a *mere* one.
//!
//! An instruction that reads and writes at once is a pair with itself.

use super::{
    lookahead::Lookahead,
    pair::Pair,
    pair_flow::Flow,
    pair_records::PairRecords,
    served::{OrderFacts, Served, Statistic},
};
use crate::access::ByteSet;

/// The pairs of one line.
#[derive(Clone, Debug, Default)]
pub(super) struct Pairs {
    lookahead: Lookahead,
    flow: Flow,
    records: PairRecords,
}

impl Pairs {
    /// Loading instructions kept.
    pub(super) fn loads(&self) -> usize {
        self.records.loads()
    }

    /// Executions of loads that are no longer kept.
    pub(super) fn forgotten(&self) -> u64 {
        self.records.forgotten()
    }

    /// The pairs of windows that are over, most frequent first. `active` are the bytes of the line that are known to be
    /// accessed.
    pub(super) fn ranked(&self, active: ByteSet) -> Vec<Pair> {
        self.records.ranked(active)
    }

    /// The same of an open order, as if nothing came any more.
    pub(super) fn ranked_so_far(&self, active: ByteSet, order: &OrderFacts) -> Vec<Pair> {
        if self.lookahead.is_empty() {
            return self.ranked(active);
        }
        let mut ended = self.clone();
        ended.end_window(order);
        ended.ranked(active)
    }
}

impl Statistic for Pairs {
    fn see(&mut self, served: &Served, order: &OrderFacts) {
        if self.lookahead.passes(served) {
            self.flow.take(served, false, &mut self.records, order);
            return;
        }
        self.lookahead.push(*served);
        while let Some((served, mere)) = self.lookahead.pop(order.endless) {
            self.flow.take(&served, mere, &mut self.records, order);
        }
    }

    fn end_window(&mut self, order: &OrderFacts) {
        for (served, mere) in std::mem::take(&mut self.lookahead).rest() {
            self.flow.take(&served, mere, &mut self.records, order);
        }
        self.flow = Flow::default();
    }
}
