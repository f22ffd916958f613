//! Sums over the windows on one line.

use std::collections::BTreeMap;

use super::Requests;
use crate::{access::ByteSet, event::WindowEnd};

/// Sums over windows of a line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WatchedCounts {
    /// Windows.
    pub windows: u64,
    /// Of those, windows from whose order no hit is missing.
    pub complete_windows: u64,
    /// Of those, windows with an access.
    pub busy_windows: u64,
    /// Of those, windows with accesses of several threads.
    pub shared_windows: u64,
    /// Windows by why they ended.
    pub ends: BTreeMap<WindowEnd, u64>,
    /// Wall time in windows, nanoseconds.
    pub span_ns: u64,
    /// The part of it in which each window's busiest thread was not in a trap, nanoseconds.
    pub native_ns: u64,
    /// Time that the traps took from all threads together, nanoseconds.
    pub cost_ns: u64,
    /// Breakpoint hits; an instruction that touches two watched words hits twice.
    pub hits: u64,
    /// Of those, hits without room in their ring.
    pub lost: u64,
    /// Of those, hits whose instruction could not be told.
    pub unresolved: u64,
    /// Accesses within a window that are to another line than the window's.
    pub strays: u64,
    /// Accesses to the line before a window was armed everywhere, or after its end.
    pub outside: u64,
    /// Accesses in the order of a window.
    pub accesses: u64,
    /// Of those, stores.
    pub stores: u64,
    /// Windows that could not tell parts of a word apart and that are in no other count here, because later ones can.
    pub superseded_windows: u64,
    /// Accesses in order whose site is not kept because there are too many.
    pub folded: u64,
    /// Bytes that a window watched.
    pub watched: ByteSet,
    /// Bytes that a trapped access touched, or may have, watched or not.
    pub touched: ByteSet,
    /// Of those, bytes stored for certain.
    pub stored: ByteSet,
    /// Watched bytes of which it is not known whether an access touched them.
    pub unplaced: ByteSet,
    /// Requests, with each window from an Idle line and CPUs as processors.
    pub requests: Requests,
    /// Hand-offs between CPUs; [`WatchedLine::hand_offs`](super::WatchedLine::hand_offs) tells their kinds.
    pub hand_offs: u64,
}

impl WatchedCounts {
    /// The counts without those of the windows before; bytes, requests and what is no part of a window stay.
    pub(super) fn since(&self, before: &WatchedCounts) -> WatchedCounts {
        WatchedCounts {
            windows: self.windows - before.windows,
            superseded_windows: before.windows,
            complete_windows: self.complete_windows - before.complete_windows,
            busy_windows: self.busy_windows - before.busy_windows,
            shared_windows: self.shared_windows - before.shared_windows,
            span_ns: self.span_ns - before.span_ns,
            native_ns: self.native_ns - before.native_ns,
            cost_ns: self.cost_ns - before.cost_ns,
            hits: self.hits - before.hits,
            lost: self.lost - before.lost,
            unresolved: self.unresolved - before.unresolved,
            accesses: self.accesses - before.accesses,
            stores: self.stores - before.stores,
            hand_offs: self.hand_offs - before.hand_offs,
            ..self.clone()
        }
    }

    /// Hand-offs per second of wall time in windows. A lower bound: the traps slow the threads down. `None`
    /// without time.
    pub fn hand_offs_per_s(&self) -> Option<f64> {
        let seconds = self.span_ns as f64 / 1e9;
        (self.span_ns > 0).then(|| self.hand_offs as f64 / seconds)
    }

    /// Hand-offs per second of the time in which the busiest thread ran freely; `None` when that is less than
    /// half of the windows, and the rest too distorted to tell.
    pub fn native_hand_offs_per_s(&self) -> Option<f64> {
        let tells = self.native_ns > 0 && self.native_ns >= self.span_ns / 2;
        tells.then(|| self.hand_offs as f64 / (self.native_ns as f64 / 1e9))
    }

    /// Part of the hits, 0..=1, that is missing from the orders; `None` without hits.
    pub fn missing_share(&self) -> Option<f64> {
        let missing = self.lost.saturating_add(self.unresolved) as f64;
        (self.hits > 0).then(|| (missing / self.hits as f64).min(1.0))
    }
}
