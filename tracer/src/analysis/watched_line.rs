//! What the windows on one line showed, in sums.

use std::collections::BTreeMap;

use super::{
    conflict::{Touch, conflicts},
    lifetimes::hand_offs,
    pairs::{MAX_LOADS, Pairs, WindowFacts},
    site::SiteKey,
    small_map::SmallMap,
    window_order::{Step, Trapped, order},
};
use crate::{
    access::{ByteSet, LineKey, LineSize, Pid, Tid},
    analysis::{CpuSet, HandOffs, Pair, Site, WatchedWords},
    coherence::{Request, Transactions},
    event::{Window, WindowEnd},
};

/// Sites kept per line; later ones are counted in [`WatchedCounts::folded`].
const MAX_SITES: usize = 4096;

/// Sums over the windows of a line.
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
    /// Accesses in order whose site is not kept because there are too many.
    pub folded: u64,
    /// Bytes that a window watched.
    pub watched: ByteSet,
    /// Bytes that a trapped access touched, watched or not.
    pub touched: ByteSet,
    /// Of those, bytes stored.
    pub stored: ByteSet,
    /// Requests for a copy, with each window from an Idle line and CPUs as processors.
    pub read_shar: u64,
    /// Requests for ownership.
    pub read_priv: u64,
    /// Of both, requests before the first store of their window: which caches had the line is not known.
    pub cold_requests: u64,
    /// Messages that served the requests.
    pub transactions: Transactions,
    /// Hand-offs between CPUs.
    pub hand_offs: HandOffs,
}

impl WatchedCounts {
    /// Hand-offs per second of wall time in windows. A lower bound: the traps slow the threads down. `None`
    /// without time.
    pub fn hand_offs_per_s(&self) -> Option<f64> {
        let seconds = self.span_ns as f64 / 1e9;
        (self.span_ns > 0).then(|| self.hand_offs.total() as f64 / seconds)
    }

    /// Hand-offs per second of the time in which the busiest thread ran freely; `None` when that is less than
    /// half of the windows, and the rest too distorted to tell.
    pub fn native_hand_offs_per_s(&self) -> Option<f64> {
        let tells = self.native_ns > 0 && self.native_ns >= self.span_ns / 2;
        tells.then(|| self.hand_offs.total() as f64 / (self.native_ns as f64 / 1e9))
    }

    /// Part of the hits, 0..=1, that is missing from the orders; `None` without hits.
    pub fn missing_share(&self) -> Option<f64> {
        let missing = self.lost.saturating_add(self.unresolved) as f64;
        (self.hits > 0).then(|| (missing / self.hits as f64).min(1.0))
    }
}

/// A site with its trapped accesses; joins with [`SiteCounts`](crate::analysis::SiteCounts) by the site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrappedSite {
    /// Where.
    pub site: Site,
    /// Accesses in the orders of windows.
    pub trapped: u64,
    /// Where it ran.
    pub cpus: CpuSet,
}

/// One thread's part in the windows of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchedThread {
    /// Process.
    pub pid: Pid,
    /// Thread.
    pub tid: Tid,
    /// Accesses in the orders of windows.
    pub accesses: u64,
    /// Of those, stores.
    pub stores: u64,
    /// Where it ran.
    pub cpus: CpuSet,
}

#[derive(Clone, Debug, Default)]
struct Count {
    trapped: u64,
    cpus: CpuSet,
}

/// A line that at least one window watched.
#[derive(Clone, Debug)]
pub struct WatchedLine {
    key: LineKey,
    line_size: LineSize,
    counts: WatchedCounts,
    sites: SmallMap<SiteKey, Count>,
    words: WatchedWords,
    pairs: Pairs,
}

impl WatchedLine {
    pub(super) fn new(key: LineKey, line_size: LineSize) -> WatchedLine {
        WatchedLine {
            key,
            line_size,
            counts: WatchedCounts::default(),
            sites: SmallMap::default(),
            words: WatchedWords::default(),
            pairs: Pairs::default(),
        }
    }

    /// Adds one window. `accesses` are those with a time in the window, in order; `whole` is false when some
    /// of them were dropped on the way here.
    pub(super) fn take(&mut self, window: &Window, accesses: &[Trapped], whole: bool) {
        let watched = watched_bytes(window, self.line_size);
        let steps = order(accesses, self.key, self.line_size);
        let complete = whole && window.is_complete();
        self.words.note(watched);
        self.count_window(window, watched, complete);
        let on_line = |a: &&Trapped| a.on_line(self.key, self.line_size).is_some();
        let here = accesses.iter().filter(on_line).count();
        self.counts.strays += (accesses.len() - here) as u64;
        // Prefetches do not trap; one that comes all the same has no place in an order.
        self.counts.outside += (here - steps.len()) as u64;
        self.count_time(window, &steps);
        for step in &steps {
            self.count_step(step);
        }
        self.counts.hand_offs.add(hand_offs(&steps, self.line_size));
        let facts = WindowFacts {
            line_size: self.line_size,
            complete,
            watched,
            most_loads: MAX_LOADS,
        };
        self.pairs.observe(&steps, &facts);
    }

    /// Counts an access to the line that belongs to no order.
    pub(super) fn take_outside(&mut self, trapped: &Trapped) {
        self.counts.outside += 1;
        if let Some((offset, size)) = trapped.on_line(self.key, self.line_size) {
            let bytes = ByteSet::range(offset, u16::from(size), self.line_size);
            self.count_bytes(bytes, trapped.access.op.stores());
        }
    }

    fn count_window(&mut self, window: &Window, watched: ByteSet, complete: bool) {
        let counts = &mut self.counts;
        counts.windows += 1;
        counts.complete_windows += u64::from(complete);
        *counts.ends.entry(window.end).or_default() += 1;
        let add = |sum: &mut u64, more: u64| *sum = sum.saturating_add(more);
        add(&mut counts.cost_ns, window.cost_ns);
        add(&mut counts.hits, window.hits);
        add(&mut counts.lost, window.lost);
        for missing in window.unresolved.values() {
            add(&mut counts.unresolved, *missing);
        }
        counts.watched.0 |= watched.0;
    }

    fn count_time(&mut self, window: &Window, steps: &[Step]) {
        let mut threads: SmallMap<Tid, u64> = SmallMap::default();
        for step in steps {
            if let Some(accesses) = threads.slot(step.access.tid, usize::MAX) {
                *accesses += 1;
            }
        }
        let busiest = threads.iter().map(|(_, n)| *n).max().unwrap_or(0);
        let accesses = (steps.len() as u64).max(1);
        let trapped_ns = u128::from(window.cost_ns) * u128::from(busiest) / u128::from(accesses);
        let span_ns = window.end_ns.saturating_sub(window.open_ns);
        let native_ns = u128::from(span_ns).saturating_sub(trapped_ns) as u64;
        let counts = &mut self.counts;
        counts.span_ns = counts.span_ns.saturating_add(span_ns);
        counts.native_ns = counts.native_ns.saturating_add(native_ns);
        counts.busy_windows += u64::from(threads.len() > 0);
        counts.shared_windows += u64::from(threads.len() > 1);
    }

    fn count_step(&mut self, step: &Step) {
        let stores = step.access.op.stores();
        self.count_bytes(step.bytes(self.line_size), stores);
        let counts = &mut self.counts;
        counts.accesses += 1;
        counts.stores += u64::from(stores);
        match step.outcome.request {
            Some(Request::ReadShar) => counts.read_shar += 1,
            Some(Request::ReadPriv) => counts.read_priv += 1,
            None => {}
        }
        let is_cold = step.outcome.request.is_some() && !step.is_known_request();
        counts.cold_requests += u64::from(is_cold);
        counts.transactions += step.outcome.transactions;
        let key = SiteKey::new(&step.access, step.space, step.offset, step.size);
        match self.sites.slot(key, MAX_SITES) {
            Some(count) => {
                count.trapped += 1;
                count.cpus.insert(step.access.cpu);
            }
            None => counts.folded += 1,
        }
    }

    fn count_bytes(&mut self, bytes: ByteSet, stores: bool) {
        self.counts.touched.0 |= bytes.0;
        if stores {
            self.counts.stored.0 |= bytes.0;
        }
    }

    /// Which line.
    pub fn key(&self) -> LineKey {
        self.key
    }

    /// The sums.
    pub fn counts(&self) -> &WatchedCounts {
        &self.counts
    }

    /// Which words were watched at the same time.
    pub fn words(&self) -> &WatchedWords {
        &self.words
    }

    /// Sites, most frequent first.
    pub fn sites(&self) -> Vec<TrappedSite> {
        let mut sites: Vec<TrappedSite> = (self.sites.iter())
            .map(|(key, count)| TrappedSite {
                site: key.site(),
                trapped: count.trapped,
                cpus: count.cpus.clone(),
            })
            .collect();
        sites.sort_by(|a, b| (b.trapped.cmp(&a.trapped)).then_with(|| a.site.cmp(&b.site)));
        sites
    }

    /// The parts of the accesses, 0..=1, that conflict truly and falsely by which thread touches which bytes,
    /// as for samples: in a random order. They may overlap. `None` where none conflict.
    pub fn byte_shares(&self) -> Option<(f64, f64)> {
        let touches: Vec<Touch> = (self.sites.iter())
            .map(|(key, count)| Touch {
                tid: key.tid,
                offset: key.offset,
                size: key.size,
                stores: key.op().stores(),
                accesses: count.trapped,
            })
            .collect();
        let found = conflicts(&touches, self.line_size)?;
        Some((found.true_share, found.false_share))
    }

    /// Threads, most frequent first.
    pub fn threads(&self) -> Vec<WatchedThread> {
        let mut threads: BTreeMap<(Pid, Tid), WatchedThread> = BTreeMap::new();
        for (key, count) in self.sites.iter() {
            let site = key.site();
            let entry = threads.entry((site.pid, site.tid));
            let thread = entry.or_insert_with(|| WatchedThread {
                pid: site.pid,
                tid: site.tid,
                accesses: 0,
                stores: 0,
                cpus: CpuSet::default(),
            });
            thread.accesses += count.trapped;
            thread.stores += if site.op.stores() { count.trapped } else { 0 };
            thread.cpus.merge(&count.cpus);
        }
        let mut threads: Vec<WatchedThread> = threads.into_values().collect();
        threads.sort_by_key(|thread| std::cmp::Reverse(thread.accesses));
        threads
    }

    /// Read-then-write pairs, most frequent first. `sampled` are the bytes of the line that samples saw
    /// accessed: a pair's order is complete only when its windows watched those, too.
    pub fn pairs(&self, sampled: ByteSet) -> Vec<Pair> {
        self.pairs
            .ranked(ByteSet(self.counts.touched.0 | sampled.0))
    }

    /// Executions of loads whose pairs are not kept because there are too many.
    pub fn forgotten_executions(&self) -> u64 {
        self.pairs.forgotten()
    }
}

/// The bytes of the line that the window watched. Mappings are page-aligned, so an address has the offset
/// in its line that its place has.
fn watched_bytes(window: &Window, line_size: LineSize) -> ByteSet {
    let bytes = window.words.iter().fold(0, |set, word| {
        let offset = (word.addr & (line_size.bytes() - 1)) as u8;
        set | ByteSet::range(offset, u16::from(word.len), line_size).0
    });
    ByteSet(bytes)
}
