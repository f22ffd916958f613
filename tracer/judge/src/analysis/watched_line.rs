//! What the windows on one line showed, in sums.

use std::collections::BTreeMap;

use super::{
    conflict::{Touch, conflicts},
    hand_off_intervals::HandOffIntervals,
    pair_records::MAX_LOADS,
    pairs::Pairs,
    served::{OnLine, OrderFacts, Served, Statistic},
    site::SiteKey,
    small_map::SmallMap,
    uses::Stretch,
    window_lives::WindowLives,
    window_order::{Trapped, serve},
};
use crate::{
    access::{ByteSet, LineKey, LineSize, Pid, Tid},
    analysis::{
        CpuSet, Group, HandOffs, Kinds, Pair, Site, SiteCounts, Uses, WatchedCounts, WatchedWords,
        groups,
    },
    distribution::{Distributions, Quantity},
    event::Window,
};

/// Sites kept per line; later ones are counted in [`WatchedCounts::folded`].
const MAX_SITES: usize = 4096;

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

impl From<TrappedSite> for SiteCounts {
    fn from(trapped: TrappedSite) -> SiteCounts {
        SiteCounts {
            trapped: trapped.trapped,
            cpus: trapped.cpus,
            ..SiteCounts::unseen(trapped.site)
        }
    }
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
    /// Of those, not in superseded windows.
    telling: u64,
    cpus: CpuSet,
}

/// A line that at least one window watched.
#[derive(Clone, Debug)]
pub struct WatchedLine {
    key: LineKey,
    line_size: LineSize,
    counts: WatchedCounts,
    /// What the windows had counted that later ones supersede.
    superseded: WatchedCounts,
    sites: SmallMap<SiteKey, Count>,
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
            sites: SmallMap::default(),
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
            self.counts.requests.see(served, &order);
            self.pairs.see(served, &order);
            self.intervals.see(served, &order);
        }
        self.pairs.end_window(&order);
        self.intervals.end_window(&order);
        self.count_hand_offs(&served, order.watched);
    }

    /// Leaves the windows so far out of what is judged.
    fn supersede(&mut self) {
        self.superseded = self.counts.clone();
        self.lives = WindowLives::default();
        self.intervals = HandOffIntervals::default();
        for count in self.sites.values_mut() {
            count.telling = 0;
        }
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
        match self.sites.slot(SiteKey::of(access), MAX_SITES) {
            Some(count) => {
                count.trapped += 1;
                count.telling += 1;
                count.cpus.insert(access.cpu);
            }
            None => self.counts.folded += 1,
        }
    }

    fn count_bytes(&mut self, access: &OnLine) {
        let bytes = access.reach(self.line_size).0;
        self.counts.touched.0 |= bytes;
        if access.op.stores() && !access.is_somewhere() {
            self.counts.stored.0 |= bytes;
        }
    }

    /// Which line.
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
        let touches: Vec<Touch> = (self.sites.iter())
            .filter(|(_, count)| count.telling > 0)
            .map(|(key, count)| Touch {
                tid: key.tid,
                offset: key.offset,
                size: size(*key),
                stores: key.op().stores(),
                accesses: count.telling,
            })
            .collect();
        conflicts(&touches, groups, self.line_size)
    }

    /// Threads, most frequent first, as far as windows were not superseded.
    pub fn threads(&self) -> Vec<WatchedThread> {
        let mut threads: BTreeMap<(Pid, Tid), WatchedThread> = BTreeMap::new();
        for (key, count) in self.sites.iter().filter(|(_, count)| count.telling > 0) {
            let site = key.site();
            let entry = threads.entry((site.pid, site.tid));
            let thread = entry.or_insert_with(|| WatchedThread {
                pid: site.pid,
                tid: site.tid,
                accesses: 0,
                stores: 0,
                cpus: CpuSet::default(),
            });
            thread.accesses += count.telling;
            thread.stores += if site.op.stores() { count.telling } else { 0 };
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
