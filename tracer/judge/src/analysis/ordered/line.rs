//! One line of a complete order that several threads touch.

use crate::{
    access::{ByteSet, Cpu, LineKey, LineSize, Tid},
    analysis::{
        Group, HandOffs, Kinds, Pair, Requests, Uses,
        hand_off_intervals::HandOffIntervals,
        lifetimes::Lifetimes,
        pair_records::MAX_LOADS,
        pairs::Pairs,
        served::{Home, OnLine, OrderFacts, Statistic},
        uses::Stretches,
    },
    coherence::Directory,
    distribution::{Distributions, Quantity},
};

/// Loading instructions that a line keeps where memory is scarce.
const FEW_LOADS: usize = 16;

/// Sums over a line, from the moment on when a second thread or CPU touched it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct OrderCounts {
    /// Requests that left the cache, by kind.
    pub requests: Requests,
    /// Of their messages, the ones caused by sharing: hand-offs, and what took a copy or ownership from another CPU.
    pub shared_transactions: u64,
    /// Hand-offs between CPUs.
    pub hand_offs: HandOffs,
    /// The parts of those that are of each kind, without what happened but once beside others that go on; `None` when none
    /// is decided.
    pub kinds: Option<Kinds>,
    /// CPUs that touched it.
    pub cpus: usize,
}

/// A line that several threads or CPUs touched.
#[derive(Debug)]
pub struct OrderedLine {
    key: LineKey,
    home: Home,
    lifetimes: Lifetimes,
    stretches: Stretches,
    counts: OrderCounts,
    intervals: HandOffIntervals,
    /// None where there is no room.
    pairs: Option<Box<Pairs>>,
}

impl OrderedLine {
    /// A line that one thread on one CPU had to itself so far.
    pub(super) fn after(
        key: LineKey,
        directory: Directory,
        cpu: Cpu,
        tid: Tid,
        paired: bool,
    ) -> OrderedLine {
        OrderedLine {
            key,
            home: Home::of(directory),
            lifetimes: Lifetimes::after(cpu, tid),
            stretches: Stretches::default(),
            counts: OrderCounts::default(),
            intervals: HandOffIntervals::default(),
            pairs: paired.then(Box::default),
        }
    }

    /// Serves the next access, and says how many messages that took. `scarce`: there is little room for more.
    pub(super) fn take(&mut self, access: OnLine, line_size: LineSize, scarce: bool) -> u32 {
        let Some(served) = self.home.serve(access) else {
            return 0;
        };
        let order = order(line_size, scarce);
        let handed_off = self.lifetimes.see(&served, served.touched(line_size).0);
        if handed_off || served.takes() {
            self.counts.shared_transactions += u64::from(served.messages);
        }
        self.counts.requests.see(&served, &order);
        self.stretches.see(&served, &order);
        self.intervals.see(&served, &order);
        if let Some(pairs) = &mut self.pairs {
            pairs.see(&served, &order);
        }
        served.messages
    }

    /// The line that the order is of.
    pub fn key(&self) -> LineKey {
        self.key
    }

    /// The sums so far. `groups` are bytes that belong together, as [`groups`](crate::analysis::groups) tells.
    pub fn counts(&self, groups: &[Group]) -> OrderCounts {
        let held = self.lifetimes.held();
        let lives = self.lifetimes.lives();
        OrderCounts {
            hand_offs: lives.hand_offs(&held, groups),
            kinds: lives.lasting_kinds(&held, groups),
            cpus: self.lifetimes.cpus(),
            ..self.counts
        }
    }

    /// How the quantities are spread that the order shows.
    pub fn distributions(&self) -> Distributions {
        let mut all = Distributions::default();
        all.add(Quantity::HandOffInterval, self.intervals.intervals());
        all
    }

    /// What each thread used of it at a time.
    pub fn uses(&self) -> &Uses {
        self.stretches.uses()
    }

    /// Loading instructions kept.
    pub(super) fn loads(&self) -> usize {
        self.pairs.as_ref().map_or(0, |pairs| pairs.loads())
    }

    /// Read-then-write pairs, most frequent first, of a line that several CPUs touched; none of others. Accesses
    /// that wait for what their threads do next count as if nothing came any more.
    pub fn pairs(&self, line_size: LineSize) -> Vec<Pair> {
        let pairs = self.pairs.as_ref();
        let pairs = pairs.filter(|_| self.lifetimes.cpus() > 1);
        let everything = ByteSet::default();
        pairs.map_or_else(Vec::new, |pairs| {
            pairs.ranked_so_far(everything, &order(line_size, false))
        })
    }

    /// Executions of loads whose pairs are not kept because there are too many.
    pub fn forgotten_executions(&self) -> u64 {
        self.pairs.as_ref().map_or(0, |pairs| pairs.forgotten())
    }
}

/// A complete order is a window on the whole line that misses nothing.
fn order(line_size: LineSize, scarce: bool) -> OrderFacts {
    OrderFacts {
        line_size,
        complete: true,
        watched: ByteSet(u128::MAX),
        most_loads: if scarce { FEW_LOADS } else { MAX_LOADS },
        endless: true,
    }
}
