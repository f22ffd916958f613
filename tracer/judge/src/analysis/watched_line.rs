//! What the windows on one line showed, in sums.

use super::{
    conflict::conflicts,
    hand_off_intervals::HandOffIntervals,
    pair_records::MAX_LOADS,
    pairs::Pairs,
    served::{OnLine, OrderFacts, Served, Statistic},
    site::SiteKey,
    trapped_sites::TrappedSites,
    uses::Stretch,
    window_lives::WindowLives,
    window_order::{Trapped, serve},
};
use crate::{
    access::{ByteSet, LineKey, LineSize},
    analysis::{
        Group, HandOffs, Kinds, Pair, SiteCounts, TrappedSite, Uses, WatchedCounts, WatchedThread,
        WatchedWords, groups,
    },
    distribution::{Distributions, Quantity},
    event::Window,
};

/// A line that at least one window watched.
#[derive(Clone, Debug)]
pub struct WatchedLine {
    key: LineKey,
    line_size: LineSize,
    counts: WatchedCounts,
    /// What the windows had counted that later ones supersede.
    superseded: WatchedCounts,
    sites: TrappedSites,
    words: WatchedWords,
    lives: WindowLives,
    uses: Uses,
    pairs: Pairs,
    intervals: HandOffIntervals,
}

impl WatchedLine {
    pub(super) fn new(key: LineKey, line_size: LineSize) -> WatchedLine {
        WatchedLine {
            key,
            line_size,
            counts: WatchedCounts::default(),
            superseded: WatchedCounts::default(),
            sites: TrappedSites::default(),
            words: WatchedWords::default(),
            lives: WindowLives::default(),
            uses: Uses::default(),
            pairs: Pairs::default(),
            intervals: HandOffIntervals::default(),
        }
    }

    /// Adds one window. `accesses` are those with a time in the window, in order; `whole` is false when some
    /// of them were dropped on the way here.
    pub(super) fn take(&mut self, window: &Window, accesses: &[Trapped], whole: bool) {
        let order = OrderFacts {
            line_size: self.line_size,
            complete: whole && window.is_complete(),
            watched: watched_bytes(window, self.line_size),
            most_loads: MAX_LOADS,
            endless: false,
        };
        let served = serve(accesses, self.key, self.line_size);
        let served: Vec<Served> = served.map(|(_, served)| served).collect();
        if (self.words).narrows(window, self.line_size, self.counts.unplaced) {
            self.supersede();
        }
        self.words.note(order.watched);
        self.count_window(window, &order);
        let on_line = |a: &&Trapped| a.on_line(self.key, self.line_size).is_some();
        let here = accesses.iter().filter(on_line).count();
        self.counts.strays += (accesses.len() - here) as u64;
        // Prefetches do not trap; one that comes all the same has no place in an order.
        self.counts.outside += (here - served.len()) as u64;
        self.count_time(window, &served);
        for served in &served {
            self.count_access(&served.access);
            self.sites.see(served, &order);
            self.counts.requests.see(served, &order);
            self.pairs.see(served, &order);
            self.intervals.see(served, &order);
        }
        self.counts.folded = self.sites.folded();
        self.pairs.end_window(&order);
        self.intervals.end_window(&order);
        self.count_hand_offs(&served, order.watched);
    }

    /// Leaves the windows so far out of what is judged.
    fn supersede(&mut self) {
        self.superseded = self.counts.clone();
        self.lives = WindowLives::default();
        self.intervals = HandOffIntervals::default();
        self.sites.supersede();
    }

    /// Counts hand-offs by what is certain of the accesses, and by what is possible.
    fn count_hand_offs(&mut self, order: &[Served], watched: ByteSet) {
        let mut unplaced = 0;
        for Served { access, .. } in order.iter().filter(|served| served.access.is_somewhere()) {
            unplaced |= access.reach(self.line_size).0 & watched.0;
        }
        self.counts.unplaced.0 |= unplaced;
        self.lives.add_window(order, unplaced != 0, self.line_size);
        self.counts.hand_offs = self.superseded.hand_offs + self.lives.all();
    }

    /// Counts an access to the line that belongs to no order.
    pub(super) fn take_outside(&mut self, trapped: &Trapped) {
        self.counts.outside += 1;
        if let Some(access) = trapped.on_line(self.key, self.line_size) {
            self.count_bytes(&access);
        }
    }

    fn count_window(&mut self, window: &Window, order: &OrderFacts) {
        let counts = &mut self.counts;
        counts.windows += 1;
        counts.complete_windows += u64::from(order.complete);
        *counts.ends.entry(window.end).or_default() += 1;
        let add = |sum: &mut u64, more: u64| *sum = sum.saturating_add(more);
        add(&mut counts.cost_ns, window.cost_ns);
        add(&mut counts.hits, window.hits);
        add(&mut counts.lost, window.lost);
        for missing in window.unresolved.values() {
            add(&mut counts.unresolved, *missing);
        }
        counts.watched.0 |= order.watched.0;
    }

    fn count_time(&mut self, window: &Window, order: &[Served]) {
        let mut stretch = Stretch::default();
        for Served { access, .. } in order {
            stretch.take(access.tid, 1, access.bytes(self.line_size));
        }
        self.uses.add_stretch(&stretch);
        let (threads, busiest) = (stretch.threads(), stretch.most_accesses());
        let accesses = (order.len() as u64).max(1);
        let trapped_ns = u128::from(window.cost_ns) * u128::from(busiest) / u128::from(accesses);
        let span_ns = window.end_ns.saturating_sub(window.open_ns);
        let native_ns = u128::from(span_ns).saturating_sub(trapped_ns) as u64;
        let counts = &mut self.counts;
        counts.span_ns = counts.span_ns.saturating_add(span_ns);
        counts.native_ns = counts.native_ns.saturating_add(native_ns);
        counts.busy_windows += u64::from(threads > 0);
        counts.shared_windows += u64::from(threads > 1);
    }

    fn count_access(&mut self, access: &OnLine) {
        self.count_bytes(access);
        self.counts.accesses += 1;
        self.counts.stores += u64::from(access.op.stores());
    }

    fn count_bytes(&mut self, access: &OnLine) {
        let bytes = access.reach(self.line_size).0;
        self.counts.touched.0 |= bytes;
        if access.op.stores() && !access.is_somewhere() {
            self.counts.stored.0 |= bytes;
        }
    }

    /// The line that was watched.
    pub fn key(&self) -> LineKey {
        self.key
    }

    /// The sums over all windows.
    pub fn counts(&self) -> &WatchedCounts {
        &self.counts
    }

    /// The sums over the windows that a verdict rests on: those since the first that watched parts of a word in which
    /// earlier ones could not place an access.
    pub fn telling(&self) -> WatchedCounts {
        self.counts.since(&self.superseded)
    }

    /// How the quantities are spread that windows measured.
    pub fn distributions(&self) -> Distributions {
        let mut all = Distributions::default();
        all.add(Quantity::HandOffInterval, self.intervals.intervals());
        all
    }

    /// Which words were watched at the same time.
    pub fn words(&self) -> &WatchedWords {
        &self.words
    }

    /// Sites, most frequent first.
    pub fn sites(&self) -> Vec<TrappedSite> {
        self.sites.ranked()
    }

    /// Bytes that belong together as far as windows saw them used; see [`groups`](super::groups).
    pub fn groups(&self) -> Vec<Group> {
        let sites: Vec<SiteCounts> = self.sites().into_iter().map(Into::into).collect();
        groups(&sites, &self.uses, self.line_size)
    }

    /// What each thread used of it in each window.
    pub fn uses(&self) -> &Uses {
        &self.uses
    }

    /// Hand-offs between CPUs by kind, as far as windows were not superseded, if an access that is known to lie within
    /// some bytes only touched those that others leave alone. `groups` are bytes that belong together, as [`groups`](super::groups) tells.
    pub fn hand_offs(&self, groups: &[Group]) -> HandOffs {
        self.lives.hand_offs(groups)
    }

    /// The same, if it touched all of them; to be asked where there are [`unplaced`](WatchedCounts::unplaced) bytes.
    pub fn widest_hand_offs(&self, groups: &[Group]) -> HandOffs {
        self.lives.widest_hand_offs(groups)
    }

    /// The kinds of hand-offs that a random order of the accesses would have, by which thread touches and stores which
    /// bytes. `None` where no two threads are in each other's way. An access that is known to lie within some bytes only
    /// touches none of those.
    pub fn kinds_by_bytes(&self, groups: &[Group]) -> Option<Kinds> {
        self.kinds_of(SiteKey::least, groups)
    }

    /// The same, if such an access touches all of them.
    pub fn widest_kinds_by_bytes(&self, groups: &[Group]) -> Option<Kinds> {
        self.kinds_of(SiteKey::widest, groups)
    }

    fn kinds_of(&self, size: fn(SiteKey) -> u8, groups: &[Group]) -> Option<Kinds> {
        conflicts(&self.sites.touches(size), groups, self.line_size)
    }

    /// Threads, most frequent first, as far as windows were not superseded.
    pub fn threads(&self) -> Vec<WatchedThread> {
        self.sites.threads()
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
