//! Accesses that wait until it is known what their threads do next.
//!
//! Whether a load is a mere read shows with its thread's next access to the line; so does whether it takes anything
//! from the pairs of others. Until then what comes behind it waits, too:
//!
//! ```text
//!   thread 1   load ── store               goes on at once: the store was the next access
//!   thread 2   load ─────────────── ?      everything behind waits: until a window's end, or for so many accesses
//! ```

use std::collections::VecDeque;

use crate::{
    access::{Op, Tid},
    analysis::{served::Served, small_map::SmallMap},
};

/// Accesses that wait at most; then the first one is a mere read: when in doubt, a reader is a reader.
const MOST_WAITING: usize = 32;

/// The same while nobody stores: a line that all only read has no pairs to wait for.
const MOST_READS_WAITING: usize = 4;

#[derive(Clone, Copy, Debug)]
struct Waiting {
    served: Served,
    /// Whether it is a mere read, where known.
    mere: Option<bool>,
}

/// An order whose end is still open.
#[derive(Clone, Debug, Default)]
pub(super) struct Lookahead {
    queue: VecDeque<Waiting>,
    /// Number of the queue's first access, from 0.
    first: u64,
    /// The newest access of each thread, if it is a load.
    newest: SmallMap<Tid, Option<u64>>,
    stored: bool,
}

impl Lookahead {
    /// Whether an access need not wait: it is no load, and nothing waits before it. It is taken notice of then.
    pub(super) fn passes(&mut self, served: &Served) -> bool {
        if !self.queue.is_empty() || served.access.op == Op::Load {
            return false;
        }
        if served.access.op.touches() {
            if let Some(newest) = self.newest.slot(served.access.tid, usize::MAX) {
                *newest = None;
            }
            self.stored |= served.access.op.stores();
        }
        true
    }

    pub(super) fn push(&mut self, served: Served) {
        let at = self.first + self.queue.len() as u64;
        let mut mere = Some(false);
        if served.access.op.touches() {
            let newest = self.newest.slot(served.access.tid, usize::MAX);
            let is_load = (served.access.op == Op::Load).then_some(at);
            let before = newest.and_then(|newest| std::mem::replace(newest, is_load));
            let before = before.and_then(|before| before.checked_sub(self.first));
            if let Some(load) = before.and_then(|n| self.queue.get_mut(n as usize)) {
                load.mere = Some(!served.access.op.stores());
            }
            if is_load.is_some() {
                mere = None;
            }
            self.stored |= served.access.op.stores();
        }
        self.queue.push_back(Waiting { served, mere });
    }

    /// The next access of which is known whether it is a mere read, if there is one, or if too many wait of an order that
    /// is endless.
    pub(super) fn pop(&mut self, endless: bool) -> Option<(Served, bool)> {
        let most = match endless {
            false => usize::MAX,
            true if self.stored => MOST_WAITING,
            true => MOST_READS_WAITING,
        };
        let first = self.queue.front()?;
        if first.mere.is_none() && self.queue.len() <= most {
            return None;
        }
        let first = self.queue.pop_front()?;
        self.first += 1;
        Some((first.served, first.mere.unwrap_or(true)))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// What waits, as if nothing came any more.
    pub(super) fn rest(&self) -> impl Iterator<Item = (Served, bool)> + '_ {
        let waiting = self.queue.iter();
        waiting.map(|waiting| (waiting.served, waiting.mere.unwrap_or(true)))
    }
}
