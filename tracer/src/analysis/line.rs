//! One line: its sites, the window that is open on it, and the sharing of the windows before.
//!
//! ```text
//!   slices    |    0    |    1    |    2    |    3    |
//!   accesses   aaaabbabb a  b       a         aabbabab
//!   windows   [    1    ][        2          ][   3
//! ```
//!
//! A window is one slice, or up to [`MAX_WINDOW_SLICES`] while the line has had fewer than
//! [`WINDOW_SAMPLES`] samples in it. Nothing is ever paired across windows.

use crate::{
    access::{Access, LineSize, Tid},
    analysis::{
        CpuSet, SiteCounts,
        conflict::{Touch, conflicts},
        order::Order,
        site::{Record, SiteKey},
        small_map::SmallMap,
    },
};

/// With fewer samples than this, order cannot be told from chance: of 4 + 4 random ones, 1 order in 35
/// looks like phases; of 2 + 2, 1 in 3.
pub(super) const WINDOW_SAMPLES: u32 = 8;

/// A window never spans more slices, however few the samples: beyond it, accesses are far apart.
pub(super) const MAX_WINDOW_SLICES: u64 = 4;

/// Sites kept per line; 500 threads with four instructions each fit. The rarer half leaves beyond it.
const MAX_SITES: usize = 4096;

/// What the closed windows of a line showed, summed. Shares are of `weight`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sharing {
    /// Interleaved samples: those of each window times its interleaving.
    pub weight: f64,
    /// The part of `weight` that would remain if every field had a line of its own.
    pub true_weight: f64,
    /// The part of `weight` that conflicts with accesses to other bytes. Overlaps with `true_weight`:
    /// lock and data under it are both.
    pub false_weight: f64,
    /// The part of `weight` in windows whose stalled and decoded accesses alone show a conflict.
    pub exact_weight: f64,
    /// Stalled time of each window times its interleaving, nanoseconds.
    pub cost_ns: f64,
    /// Stalled time in windows of several threads without a store sampled, nanoseconds.
    pub unstored_cost_ns: f64,
    /// Hand-offs seen in windows of several threads.
    pub hand_offs: f64,
    /// Hand-offs that a random order of the same samples would show.
    pub expected_hand_offs: f64,
    /// Samples in interleaved windows.
    pub samples: f64,
    /// Of those, with a store.
    pub stores: f64,
    /// Of those, by threads other than their window's most frequent one.
    pub minority: f64,
}

impl Sharing {
    fn add(&mut self, window: &Sharing) {
        self.weight += window.weight;
        self.true_weight += window.true_weight;
        self.false_weight += window.false_weight;
        self.exact_weight += window.exact_weight;
        self.cost_ns += window.cost_ns;
        self.unstored_cost_ns += window.unstored_cost_ns;
        self.hand_offs += window.hand_offs;
        self.expected_hand_offs += window.expected_hand_offs;
        self.samples += window.samples;
        self.stores += window.stores;
        self.minority += window.minority;
    }
}

/// What is known of a line touched by several threads, the open window included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Evidence {
    /// Accesses, one per instruction and sample.
    pub accesses: u64,
    /// Of those, stores.
    pub stores: u64,
    /// Samples with an access to the line.
    pub samples: u64,
    /// Sampled time spent waiting for the line, nanoseconds.
    pub cost_ns: u64,
    /// All of it ran on one CPU.
    pub one_cpu: bool,
    /// Accesses whose site was forgotten because the line has too many.
    pub folded: u64,
    /// What the windows showed.
    pub sharing: Sharing,
}

/// The part of an access that falls on one line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    pub(super) offset: u8,
    pub(super) size: u8,
    pub(super) cost_ns: u64,
}

/// A line with at least one access.
#[derive(Clone, Debug)]
pub struct Line {
    sites: SmallMap<SiteKey, Record>,
    order: Order,
    /// First slice of the open window.
    window: u64,
    /// Stalled time in the open window.
    window_cost_ns: u64,
    last_slice: u64,
    accesses: u64,
    stores: u64,
    samples: u64,
    cost_ns: u64,
    folded: u64,
    /// The only thread so far, when `several` is false.
    first: Option<Tid>,
    several: bool,
    /// Boxed because few lines are ever shared.
    sharing: Option<Box<Sharing>>,
}

impl Line {
    pub(super) fn new(slice: u64) -> Line {
        Line {
            sites: SmallMap::default(),
            order: Order::default(),
            window: slice,
            window_cost_ns: 0,
            last_slice: slice,
            accesses: 0,
            stores: 0,
            samples: 0,
            cost_ns: 0,
            folded: 0,
            first: None,
            several: false,
            sharing: None,
        }
    }

    /// Counts one access. An access older than the open window is counted into it.
    pub(super) fn observe(
        &mut self,
        access: &Access,
        piece: Piece,
        key: SiteKey,
        slice: u64,
        line_size: LineSize,
    ) {
        let ended = slice > self.window
            && (self.order.samples() >= WINDOW_SAMPLES || slice - self.window >= MAX_WINDOW_SLICES);
        if ended {
            self.close_window(line_size);
            self.window = slice;
        }
        self.last_slice = self.last_slice.max(slice);
        self.accesses = self.accesses.saturating_add(1);
        self.cost_ns = self.cost_ns.saturating_add(piece.cost_ns);
        if let Some(record) = self.sites.slot(key, MAX_SITES) {
            record.count(access, piece.cost_ns);
        }
        if self.sites.len() >= MAX_SITES {
            self.forget_rare_sites();
        }
        if !access.op.touches() {
            return;
        }
        self.window_cost_ns = self.window_cost_ns.saturating_add(piece.cost_ns);
        self.stores += u64::from(access.op.stores());
        self.several |= *self.first.get_or_insert(access.tid) != access.tid;
        let (time_ns, stores) = (access.time_ns, access.op.stores());
        if (self.order).note(time_ns, access.tid, access.cpu, stores) {
            self.samples += 1;
        }
    }

    /// Drops the rarer half, of equal ones the older.
    fn forget_rare_sites(&mut self) {
        let counts = self.sites.iter().map(|(_, record)| record.accesses());
        let mut ranks: Vec<(u64, usize)> = counts.zip(0..).collect();
        let half = ranks.len() / 2;
        let first_kept = *ranks.select_nth_unstable(half).1;
        let folded = &mut self.folded;
        let mut at = 0;
        self.sites.retain(|_, record| {
            let stays = (record.accesses(), at) >= first_kept;
            at += 1;
            if !stays {
                *folded += record.accesses();
            }
            stays
        });
    }

    fn close_window(&mut self, line_size: LineSize) {
        if let Some(window) = self.open_window(line_size) {
            self.sharing.get_or_insert_default().add(&window);
        }
        for record in self.sites.values_mut() {
            record.close_window();
        }
        self.order.clear();
        self.window_cost_ns = 0;
    }

    /// What the open window shows so far; `None` while only one thread is in it.
    fn open_window(&self, line_size: LineSize) -> Option<Sharing> {
        let turns = self.order.turns()?;
        let cost_ns = self.window_cost_ns as f64;
        let mut window = Sharing {
            hand_offs: turns.hand_offs,
            expected_hand_offs: turns.expected,
            ..Sharing::default()
        };
        if turns.stores == 0.0 {
            window.unstored_cost_ns = cost_ns;
        }
        if turns.interleaving == 0.0 {
            return Some(window);
        }
        let Some(conflicts) = conflicts(&self.touches(), line_size) else {
            return Some(window);
        };
        let weight = turns.samples * turns.interleaving;
        window.weight = weight;
        window.true_weight = weight * conflicts.true_share;
        window.false_weight = weight * conflicts.false_share;
        if self.conflicts_without_harvest() {
            window.exact_weight = weight;
        }
        window.cost_ns = cost_ns * turns.interleaving;
        window.samples = turns.samples;
        window.stores = turns.stores;
        window.minority = turns.minority;
        Some(window)
    }

    fn touches(&self) -> Vec<Touch> {
        let open = |(key, record): &(SiteKey, Record)| {
            let accesses = record.in_window();
            (accesses > 0 && key.op().touches()).then(|| Touch {
                tid: key.tid,
                offset: key.offset,
                size: key.size,
                stores: key.op().stores(),
                accesses,
            })
        };
        self.sites.iter().filter_map(open).collect()
    }

    /// Whether, in the open window, a stalled or decoded store meets such an access of another thread.
    fn conflicts_without_harvest(&self) -> bool {
        let exact =
            |(key, record): &&(SiteKey, Record)| record.window_exact > 0 && key.op().touches();
        let mut stored = false;
        let mut first = None;
        let mut several = false;
        for (key, _) in self.sites.iter().filter(exact) {
            stored |= key.op().stores();
            several |= *first.get_or_insert(key.tid) != key.tid;
        }
        stored && several
    }

    /// Whether more than one thread has touched it.
    pub fn several_threads(&self) -> bool {
        self.several
    }

    /// Everything known so far; the open window counts as if it ended now.
    pub fn evidence(&self, line_size: LineSize) -> Evidence {
        let mut sharing = self.sharing.as_deref().copied().unwrap_or_default();
        if let Some(window) = self.open_window(line_size) {
            sharing.add(&window);
        }
        let mut cpus = CpuSet::default();
        for (_, record) in self.sites.iter() {
            cpus.merge(&record.cpus);
        }
        Evidence {
            accesses: self.accesses,
            stores: self.stores,
            samples: self.samples,
            cost_ns: self.cost_ns,
            one_cpu: cpus.len() == 1,
            folded: self.folded,
            sharing,
        }
    }

    /// Its sites with their counts over the run, costliest first.
    pub fn sites(&self) -> Vec<SiteCounts> {
        let mut sites: Vec<SiteCounts> = self.sites.iter().map(|(k, r)| r.counts(*k)).collect();
        sites.sort_by(|a, b| {
            let rank = |s: &SiteCounts| (s.cost_ns, s.accesses());
            rank(b).cmp(&rank(a)).then_with(|| a.site.cmp(&b.site))
        });
        sites
    }

    /// Accesses so far.
    pub fn accesses(&self) -> u64 {
        self.accesses
    }

    /// Sampled time spent waiting for it, nanoseconds.
    pub fn cost_ns(&self) -> u64 {
        self.cost_ns
    }

    pub(super) fn site_count(&self) -> usize {
        self.sites.len()
    }

    pub(super) fn last_slice(&self) -> u64 {
        self.last_slice
    }

    /// Whether any window of it was interleaved.
    pub(super) fn has_shared(&self) -> bool {
        self.sharing.as_ref().is_some_and(|s| s.weight > 0.0)
    }
}
