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

mod window;

pub(super) use self::window::Shared;
use crate::{
    access::{Access, Basis, ByteSet, Cost, LineSize, SpaceId, Tid},
    analysis::{
        CpuSet, Evidence, Group, Kinds, PmuCounts, SiteCounts,
        conflict::conflicts,
        order::Order,
        pmu::{MeasuredLine, Taken},
        site::{Record, SiteKey},
        small_map::SmallMap,
        stints::{Bytes, Stints},
    },
    distribution::Distributions,
};

/// Number of a slice since the clock's start.
pub(super) type Slice = u32;

/// With fewer samples than this, order cannot be told from chance: of 4 + 4 random ones, 1 order in 35
/// looks like phases; of 2 + 2, 1 in 3.
pub(super) const WINDOW_SAMPLES: u32 = 8;

/// A window never spans more slices, however few the samples: beyond it, accesses are far apart.
pub(super) const MAX_WINDOW_SLICES: Slice = 4;

/// Sites kept per line; 500 threads with four instructions each fit. The rarer half leaves beyond it.
const MAX_SITES: usize = 4096;

/// The part of an access that falls on one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) offset: u8,
    pub(super) size: u8,
    pub(super) cost: Cost,
}

/// A line with at least one access.
#[derive(Clone, Debug)]
pub struct Line {
    sites: SmallMap<SiteKey, Record>,
    order: Order,
    /// Of the open window.
    stints: Stints,
    /// First slice of the open window.
    window: Slice,
    /// Stalled time in the open window.
    window_cost: Cost,
    last_slice: Slice,
    accesses: u64,
    stores: u64,
    samples: u64,
    cost: Cost,
    folded: u64,
    /// Of the closed windows: samples that have another one before them in their window.
    neighbours: u64,
    /// The only thread so far, when `several` is false.
    first: Option<Tid>,
    several: bool,
    /// It has accesses of an emulator.
    emulated: bool,
    /// It has accesses of unknown size.
    sizes_unknown: bool,
    /// Of the closed windows. Boxed because few lines are ever shared.
    shared: Option<Box<Shared>>,
    /// Boxed because runs without a PMU have none.
    measured: Option<Box<MeasuredLine>>,
}

impl Line {
    pub(super) fn new(slice: Slice) -> Line {
        Line {
            sites: SmallMap::default(),
            order: Order::default(),
            stints: Stints::default(),
            window: slice,
            window_cost: Cost(0),
            last_slice: slice,
            accesses: 0,
            stores: 0,
            samples: 0,
            cost: Cost(0),
            folded: 0,
            neighbours: 0,
            first: None,
            several: false,
            emulated: false,
            sizes_unknown: false,
            shared: None,
            measured: None,
        }
    }

    /// Counts one access. An access older than the open window is counted into it.
    pub(super) fn observe(
        &mut self,
        access: &Access,
        piece: Piece,
        key: SiteKey,
        slice: Slice,
        line_size: LineSize,
    ) {
        let ended = slice > self.window
            && (self.order.samples() >= WINDOW_SAMPLES || slice - self.window >= MAX_WINDOW_SLICES);
        if ended {
            self.end_window(line_size);
            self.window = slice;
        }
        self.last_slice = self.last_slice.max(slice);
        let executions = access.executions();
        self.accesses = self.accesses.saturating_add(executions);
        self.cost += piece.cost;
        let measured = (access.basis == Basis::Sampled).then(|| {
            let measured = self.measured.get_or_insert_default();
            measured.count(access, piece.cost, slice);
            measured
        });
        if let Some(record) = self.sites.slot(key, MAX_SITES) {
            record.count(access, piece.cost);
            if let Some(measured) = measured {
                measured.count_site(&mut record.measured, access);
            }
        }
        if self.sites.len() >= MAX_SITES {
            self.folded += self.sites.forget_rare(Record::accesses);
            if let Some(measured) = &mut self.measured {
                measured.keep(self.sites.values_mut().map(|record| &mut record.measured));
            }
        }
        if !access.op.touches() {
            return;
        }
        if access.op.stores() {
            self.stores = self.stores.saturating_add(executions);
        }
        self.several |= *self.first.get_or_insert(access.tid) != access.tid;
        if access.basis == Basis::Emulated {
            self.emulated = true;
            // No samples: all are seen, in order, and the ordered lines keep that. Nothing depends on when.
            return;
        }
        self.window_cost += piece.cost;
        let (time_ns, stores) = (access.time_ns, access.op.stores());
        let new = (self.order).note(time_ns, access.tid, access.cpu, stores);
        self.samples += u64::from(new);
        self.sizes_unknown |= key.widest() != key.least();
        let bytes = |size: u8| {
            let touched = ByteSet::range(key.offset, u16::from(size), line_size).0;
            let stored = if stores { touched } else { 0 };
            Bytes { touched, stored }
        };
        let (certain, widest) = (bytes(key.least()), bytes(key.widest()));
        (self.stints).note(access.tid, access.cpu, new, certain, widest);
    }

    /// Adds what the open window shows to the sums and starts over.
    pub(super) fn end_window(&mut self, line_size: LineSize) {
        if let Some(window) = self.open_window(line_size) {
            self.shared.get_or_insert_default().add(&window);
        }
        self.neighbours += self.open_neighbours();
        for record in self.sites.values_mut() {
            record.end_window();
        }
        self.order.clear();
        self.stints.clear();
        self.window_cost = Cost(0);
        if let Some(measured) = &mut self.measured {
            measured.window = Taken::default();
        }
    }

    fn open_neighbours(&self) -> u64 {
        u64::from(self.order.samples().saturating_sub(1))
    }

    /// Samples that have another one before them in their window: as many may have been hand-offs.
    pub fn neighbours(&self) -> u64 {
        self.neighbours + self.open_neighbours()
    }

    /// Whether a load of it was served by another CPU's cache: others use it, sampled or not.
    pub fn taken(&self) -> bool {
        (self.measured.as_ref()).is_some_and(|measured| measured.loads.taken() > 0)
    }

    /// Whether more than one thread has touched it.
    pub fn several_threads(&self) -> bool {
        self.several
    }

    /// What its windows showed; the open one counts as if it ended now.
    pub fn shared(&self, line_size: LineSize) -> Shared {
        let mut shared = self.shared.as_deref().cloned().unwrap_or_default();
        if let Some(window) = self.open_window(line_size) {
            shared.add(&window);
        }
        shared
    }

    /// How the quantities are spread that samples measured.
    pub fn distributions(&self) -> Distributions {
        (self.measured.as_deref()).map_or_else(Distributions::default, MeasuredLine::distributions)
    }

    /// Everything known so far, with what its [windows showed](Line::shared). `groups` are bytes that belong together, as
    /// [`groups`](super::groups) tells.
    pub fn evidence(&self, mut shared: Shared, line_size: LineSize, groups: &[Group]) -> Evidence {
        let (kinds, widest_kinds) = self.kinds(&mut shared, groups, line_size);
        let sharing = shared.sums;
        let measured = |of: fn(&MeasuredLine) -> PmuCounts| {
            (self.measured.as_deref()).map_or_else(PmuCounts::default, of)
        };
        let mut cpus = CpuSet::default();
        for (_, record) in self.sites.iter() {
            cpus.merge(&record.cpus);
        }
        Evidence {
            accesses: self.accesses,
            stores: self.stores,
            samples: self.samples,
            cost: self.cost,
            several_store: self.several_store(),
            one_cpu: cpus.len() == 1,
            folded: self.folded,
            pmu_loads: measured(|m| m.loads),
            pmu_stores: measured(|m| m.stores),
            unknown_sizes: self.sizes_unknown,
            sharing,
            kinds,
            widest_kinds,
        }
    }

    fn several_store(&self) -> bool {
        let storing = self.sites.iter().filter(|(key, _)| key.op().stores());
        let mut threads = storing.map(|(key, _)| key.tid);
        let first = threads.next();
        threads.any(|tid| Some(tid) != first)
    }

    /// Where it is used: the space that names the code, unless it is the kernel's, the address of that, and the thread.
    pub(crate) fn users(&self) -> impl Iterator<Item = (Option<SpaceId>, u64, Tid)> {
        let user = |(key, _): &(SiteKey, Record)| {
            let site = key.site();
            ((!site.kernel).then_some(site.space), site.ip, site.tid)
        };
        self.sites.iter().map(user)
    }

    /// Its sites with their counts over the run, costliest first.
    pub fn sites(&self) -> Vec<SiteCounts> {
        let measured = |r: &Record| {
            (self.measured.as_ref()).map_or_else(PmuCounts::default, |m| m.site(r.measured))
        };
        let counts = |(k, r): &(SiteKey, Record)| r.counts(*k, measured(r));
        let mut sites: Vec<SiteCounts> = self.sites.iter().map(counts).collect();
        sites.sort_by(SiteCounts::costlier);
        sites
    }

    /// The kinds of hand-offs that a random order of all its accesses would have; see
    /// [`Lives`](super::Lives) for `groups`. `None` where no thread touches what another stored to.
    pub fn kinds_by_bytes(&self, groups: &[Group], line_size: LineSize) -> Option<Kinds> {
        conflicts(&self.touches(|key| key.size), groups, line_size)
    }

    /// Samples so far; none of an emulated line.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// Accesses so far.
    pub fn accesses(&self) -> u64 {
        self.accesses
    }

    /// What was waited for it.
    pub fn cost(&self) -> Cost {
        self.cost
    }

    pub(super) fn site_count(&self) -> usize {
        self.sites.len()
    }

    pub(super) fn last_slice(&self) -> Slice {
        self.last_slice
    }

    /// Shared cost of the closed windows, as a number, plus one for each interleaved sample; `None`
    /// when no window was interleaved and no load was served by another CPU's cache. Of an emulated line that several
    /// threads touched, its cost. Ranks what to keep.
    pub(super) fn shared_rank(&self) -> Option<u64> {
        if self.emulated && self.several {
            return Some(self.cost.0.saturating_add(1));
        }
        let sharing = self.shared.as_ref().map(|shared| &shared.sums);
        let sharing = sharing.filter(|s| s.weight > 0.0 || s.taken > 0.0)?;
        Some((sharing.cost.0 + sharing.weight + sharing.unmet_cost.0 + sharing.unmet) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::{Basis, Cpu, Measured, Op, Pid, SpaceId};
    use crate::analysis::Sharing;

    const COST_NS: u64 = 1_000_000;

    /// A line and its clock: one stalled addition per sample, 1 ms apart, 100 samples a slice.
    struct Sampled {
        line: Line,
        ms: u64,
    }

    impl Sampled {
        fn new() -> Sampled {
            Sampled {
                line: Line::new(0),
                ms: 0,
            }
        }

        fn add(&mut self, tid: u32, offset: u8, basis: Basis) {
            let access = Access {
                time_ns: self.ms * 1_000_000,
                addr: 0x1000 + u64::from(offset),
                ip: 0x401000,
                cost: Cost(COST_NS as u32),
                pid: Pid(1),
                tid: Tid(tid),
                cpu: Cpu(tid),
                size: 8,
                op: Op::Rmw,
                basis,
                locked: false,
                kernel: false,
                ..Access::BLANK
            };
            let piece = Piece {
                offset,
                size: 8,
                cost: Cost(COST_NS),
            };
            let key = SiteKey::new(&access, SpaceId(0), offset, 8);
            let slice = (self.ms / 100) as Slice;
            (self.line).observe(&access, piece, key, slice, LineSize::B64);
        }

        /// Samples of these threads, one after the other, each `step_ms` after the one before; thread n
        /// adds to the n-th offset.
        fn samples(&mut self, tids: &[u32], offsets: [u8; 2], step_ms: u64, times: usize) {
            for tid in tids.iter().cycle().take(times) {
                self.add(*tid, offsets[*tid as usize], Basis::Stalled);
                self.ms += step_ms;
            }
        }

        fn sharing(&self) -> Sharing {
            evidence(&self.line).sharing
        }
    }

    fn evidence(line: &Line) -> Evidence {
        line.evidence(line.shared(LineSize::B64), LineSize::B64, &[])
    }

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 0.05 * b.abs()
    }

    #[test]
    fn only_the_slices_in_which_threads_took_turns_cost() {
        let mut sampled = Sampled::new();
        sampled.samples(&[0, 1], [0, 8], 1, 100);
        sampled.samples(&[0], [0, 8], 1, 500);
        let sharing = sampled.sharing();
        assert!(near(sharing.cost.0, (100 * COST_NS) as f64), "{sharing:?}");
        assert!(near(sharing.samples, 100.0), "{sharing:?}");
    }

    #[test]
    fn each_window_is_judged_by_its_own_bytes() {
        let mut sampled = Sampled::new();
        sampled.samples(&[0, 1], [0, 0], 1, 100);
        sampled.samples(&[0, 1], [0, 8], 1, 100);
        let sharing = sampled.sharing();
        assert!(near(sharing.weight, 200.0), "{sharing:?}");
        let kinds = evidence(&sampled.line).kinds.unwrap();
        assert!(
            near(kinds.truly, 0.5) && near(kinds.falsely, 0.5),
            "{kinds:?}"
        );
    }

    #[test]
    fn few_samples_are_judged_over_some_slices_and_never_over_many() {
        // One or two samples a slice: four slices have enough to see the turns.
        let mut sampled = Sampled::new();
        sampled.samples(&[0, 1], [0, 8], 60, 120);
        let sharing = sampled.sharing();
        assert!(sharing.weight > 100.0, "{sharing:?}");
        // One a second: each window has a single sample, so nothing is paired.
        let mut sampled = Sampled::new();
        sampled.samples(&[0, 1], [0, 8], 1000, 120);
        assert_eq!(sampled.sharing(), Sharing::default());
    }

    #[test]
    fn what_was_measured_stays_with_its_site_when_others_are_forgotten() {
        let mut line = Line::new(0);
        for n in 0..3 * MAX_SITES as u32 {
            // Thread 1 comes every second time, with a latency of its own; the others once.
            let tid = if n % 2 == 0 { 1 } else { 1000 + n };
            let access = Access {
                time_ns: u64::from(n),
                addr: 0x1000,
                ip: 0x401000,
                pid: Pid(1),
                tid: Tid(tid),
                cpu: Cpu(0),
                size: 8,
                op: Op::Load,
                basis: if n % 4 == 3 {
                    Basis::Stalled
                } else {
                    Basis::Sampled
                },
                locked: false,
                kernel: false,
                measured: Measured {
                    latency_cycles: std::num::NonZeroU32::new(tid),
                    ..Measured::default()
                },
                ..Access::BLANK
            };
            let piece = Piece {
                offset: 0,
                size: 8,
                cost: Cost(0),
            };
            let key = SiteKey::new(&access, SpaceId(0), 0, 8);
            line.observe(&access, piece, key, 0, LineSize::B64);
        }
        let sites = line.sites();
        assert!(sites.len() < MAX_SITES);
        for site in sites {
            let (tid, pmu) = (site.site.tid.0, site.pmu);
            let times = if tid == 1 {
                3 * MAX_SITES as u64 / 2
            } else {
                u64::from((tid - 1000) % 4 != 3)
            };
            assert_eq!(pmu.sampled, times, "{tid}");
            assert_eq!(pmu.latency_cycles, times * u64::from(tid), "{tid}");
            assert_eq!(site.accesses(), times.max(1), "{tid}");
        }
    }

    #[test]
    fn looking_at_the_open_window_does_not_end_it() {
        let mut sampled = Sampled::new();
        sampled.samples(&[0, 1], [0, 8], 1, 50);
        let before = sampled.sharing();
        assert_eq!(sampled.sharing(), before);
        sampled.samples(&[0, 1], [0, 8], 1, 50);
        let mut whole = Sampled::new();
        whole.samples(&[0, 1], [0, 8], 1, 100);
        assert_eq!(sampled.sharing(), whole.sharing());
    }

    #[test]
    fn harvested_accesses_of_one_side_leave_nothing_exact() {
        for (basis, exact) in [(Basis::Harvested, false), (Basis::Decoded, true)] {
            let mut sampled = Sampled::new();
            for n in 0..100 {
                let (tid, basis) = [(0, Basis::Stalled), (1, basis)][n % 2];
                sampled.add(tid, tid as u8 * 8, basis);
                sampled.ms += 1;
            }
            let sharing = sampled.sharing();
            assert!(sharing.weight > 0.0);
            assert_eq!(sharing.exact_weight > 0.0, exact);
        }
    }
}
