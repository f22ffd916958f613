//! All lines of a run, within a bound on memory, every access accounted for.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::{
    access::{Access, Cost, LineKey, LineSize, Place, SpaceId, Wait},
    analysis::{
        AnalysisOptions, PmuCounts,
        line::{Line, MAX_WINDOW_SLICES, Piece, Slice},
        pmu::is_store_sample,
        site::SiteKey,
        split_by_line::{slice_of, split_by_line},
    },
};

/// What the table was fed and what it no longer holds:
/// `touches == evicted_touches + Σ accesses of the lines`, and likewise for `cost`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Accesses observed; of emulated ones, executions.
    pub accesses: u64,
    /// The same, with one that crosses lines counted on each.
    pub touches: u64,
    /// Cost of all accesses.
    pub cost: Cost,
    /// The part of it in which threads went round in loops that wait.
    pub spinning: Cost,
    /// Lines dropped to stay within the bound; one that came back and left again counts twice.
    pub evicted_lines: u64,
    /// Accesses on those.
    pub evicted_touches: u64,
    /// Cost on those.
    pub evicted_cost: Cost,
    /// Of the dropped lines, those that several threads had touched: their sharing is lost.
    pub evicted_shared_lines: u64,
    /// What a PMU measured of all loads.
    pub pmu_loads: PmuCounts,
    /// What a PMU measured of all stores.
    pub pmu_stores: PmuCounts,
}

impl Totals {
    /// Stores sampled without a latency.
    pub fn untimed_stores(&self) -> u64 {
        self.pmu_stores.sampled - self.pmu_stores.timed
    }

    /// Counts an access; all but its touches.
    pub(crate) fn count(&mut self, access: &Access, costs: &[Cost<u32>]) {
        self.accesses = self.accesses.saturating_add(access.executions());
        self.count_pmu(access);
        let cost: Cost = if costs.is_empty() {
            access.cost.into()
        } else {
            costs.iter().sum()
        };
        self.cost += cost;
        if access.wait == Wait::InSpinLoop {
            self.spinning += cost;
        }
    }

    fn evict(&mut self, line: &Line) {
        self.evicted_lines += 1;
        self.evicted_shared_lines += u64::from(line.several_threads());
        self.evicted_touches += line.accesses();
        self.evicted_cost += line.cost();
    }

    fn count_pmu(&mut self, access: &Access) {
        if is_store_sample(access) {
            self.pmu_stores.count(access);
        } else {
            self.pmu_loads.count(access);
        }
    }
}

/// Per-line tables of a run. Feed it accesses in order of time; look at any time.
#[derive(Clone, Debug)]
pub struct LineTable {
    options: AnalysisOptions,
    slice_ns: u64,
    /// Boxed, so that growing the map does not copy the lines.
    lines: FxHashMap<LineKey, Box<Line>>,
    sites: usize,
    newest_slice: Slice,
    totals: Totals,
}

impl LineTable {
    /// An empty table.
    pub fn new(options: AnalysisOptions) -> LineTable {
        LineTable {
            slice_ns: options.slice_ns(),
            options,
            lines: FxHashMap::default(),
            sites: 0,
            newest_slice: 0,
            totals: Totals::default(),
        }
    }

    /// Counts an access at its resolved place. `space` is the address space of the executing process.
    ///
    /// An access that crosses lines touches each of them; its cost goes to the first. A size of 0
    /// (not known to the decoder) counts as the one byte that is certain.
    pub fn observe(&mut self, access: &Access, place: Place, space: SpaceId) {
        self.observe_costed(access, place, space, &[]);
    }

    /// The same, with the cost on each line where that is known; none for that of the access.
    pub fn observe_costed(
        &mut self,
        access: &Access,
        place: Place,
        space: SpaceId,
        costs: &[Cost<u32>],
    ) {
        let line_size = self.options.line_size;
        let slice = slice_of(access.time_ns, self.slice_ns);
        self.newest_slice = self.newest_slice.max(slice);
        self.totals.count(access, costs);
        split_by_line(access, place, line_size, costs, |key, piece| {
            self.observe_piece(access, key, piece, space, slice);
        });
    }

    fn observe_piece(
        &mut self,
        access: &Access,
        key: LineKey,
        piece: Piece,
        space: SpaceId,
        slice: Slice,
    ) {
        self.totals.touches = self.totals.touches.saturating_add(access.executions());
        let line = (self.lines.entry(key)).or_insert_with(|| Box::new(Line::new(slice)));
        let before = line.site_count();
        let site = SiteKey::new(access, space, piece.offset, piece.size);
        line.observe(access, piece, site, slice, self.options.line_size);
        self.sites = self.sites + line.site_count() - before;
        if self.lines.len() > self.options.max_lines || self.sites > self.options.max_sites {
            self.evict();
        }
    }

    /// Drops lines until half of each bound is free: first those of one thread that no window can pair
    /// any more, which costs no verdict; then others that show no sharing, the longest untouched
    /// first; then the rest, the least shared first.
    fn evict(&mut self) {
        let lines_left = self.options.max_lines / 2;
        let sites_left = self.options.max_sites / 2;
        let mut order: Vec<(u8, u64, LineKey)> = Vec::with_capacity(self.lines.len());
        for (key, line) in &mut self.lines {
            let untouched = self.newest_slice.saturating_sub(line.last_slice());
            let quiet = untouched > MAX_WINDOW_SLICES;
            if quiet {
                line.end_window(self.options.line_size);
            }
            let age_rank = u64::from(line.last_slice());
            let (class, rank) = match (line.shared_rank(), line.several_threads()) {
                (Some(rank), _) => (2, rank),
                (None, true) if !quiet => (2, 0),
                (None, false) if quiet => (0, age_rank),
                (None, _) => (1, age_rank),
            };
            order.push((class, rank, *key));
        }
        // The key makes it the same lines at every replay.
        order.sort_unstable();
        for (_, _, key) in order {
            if self.lines.len() <= lines_left && self.sites <= sites_left {
                break;
            }
            if let Some(line) = self.lines.remove(&key) {
                self.sites -= line.site_count();
                self.totals.evict(&line);
            }
        }
    }

    /// Drops the private lines of address spaces that nobody will access any more.
    pub fn retire(&mut self, spaces: &FxHashSet<SpaceId>) {
        let gone = self.lines.extract_if(|key, _| key.0.is_of(spaces));
        for (_, line) in gone {
            self.sites -= line.site_count();
            self.totals.evict(&line);
        }
    }

    /// What was fed and what was dropped.
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// The granule that lines are cut by.
    pub fn line_size(&self) -> LineSize {
        self.options.line_size
    }

    /// Number of lines held.
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// Whether no line is held.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// The lines held, in no particular order.
    pub fn lines(&self) -> impl Iterator<Item = (LineKey, &Line)> {
        self.lines.iter().map(|(key, line)| (*key, &**line))
    }

    /// One line.
    pub fn get(&self, key: LineKey) -> Option<&Line> {
        self.lines.get(&key).map(|line| &**line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::{Basis, Cpu, Op, Pid, Tid};

    fn access(time_ns: u64, addr: u64, tid: u32) -> Access {
        Access {
            time_ns,
            addr,
            ip: 0x401000,
            cost: Cost(1000),
            pid: Pid(1),
            tid: Tid(tid),
            cpu: Cpu(tid),
            size: 8,
            op: Op::Rmw,
            basis: Basis::Stalled,
            locked: false,
            kernel: false,
            ..Access::BLANK
        }
    }

    fn observe(table: &mut LineTable, access: &Access) {
        let place = Place::Private {
            space: SpaceId(0),
            addr: access.addr,
        };
        table.observe(access, place, SpaceId(0));
    }

    fn key(addr: u64) -> LineKey {
        LineKey(Place::Private {
            space: SpaceId(0),
            addr,
        })
    }

    fn accounted(table: &LineTable) {
        let totals = table.totals();
        let held: u64 = table.lines().map(|(_, line)| line.accesses()).sum();
        let cost: Cost = table.lines().map(|(_, line)| line.cost()).sum();
        assert_eq!(totals.touches, totals.evicted_touches + held);
        assert_eq!(totals.cost, totals.evicted_cost + cost);
        let sites: usize = table.lines().map(|(_, line)| line.site_count()).sum();
        assert_eq!(table.sites, sites);
    }

    #[test]
    fn an_access_across_a_boundary_touches_both_lines_and_costs_once() {
        let mut table = LineTable::new(AnalysisOptions::default());
        observe(&mut table, &access(1, 0x103c, 1));
        let first = &table.get(key(0x1000)).unwrap().sites()[0];
        let second = &table.get(key(0x1040)).unwrap().sites()[0];
        assert_eq!(
            (first.site.offset, first.site.size, first.cost),
            (60, 4, Cost(1000))
        );
        assert_eq!(
            (second.site.offset, second.site.size, second.cost),
            (0, 4, Cost(0))
        );
        assert_eq!((table.totals().accesses, table.totals().touches), (1, 2));
        accounted(&table);
    }

    #[test]
    fn an_access_of_many_lines_touches_each_and_ends_at_the_end_of_memory() {
        let mut table = LineTable::new(AnalysisOptions::default());
        let long = Access {
            size: 512,
            ..access(1, 0x1010, 1)
        };
        observe(&mut table, &long);
        assert_eq!(table.len(), 9);
        let last = Access {
            size: 512,
            ..access(2, u64::MAX - 7, 1)
        };
        observe(&mut table, &last);
        assert_eq!(table.len(), 10);
        accounted(&table);
    }

    #[test]
    fn an_access_beyond_its_page_touches_no_physical_line_there() {
        let mut table = LineTable::new(AnalysisOptions::default());
        for (offset, lines) in [(0x1ffc, 1), (0x103c, 3)] {
            let place = Place::Physical { addr: offset };
            table.observe(&access(1, 0x7f00_0000 + offset, 1), place, SpaceId(0));
            assert_eq!(table.len(), lines);
        }
    }

    #[test]
    fn an_unknown_size_counts_as_the_one_byte_that_is_certain() {
        let mut table = LineTable::new(AnalysisOptions::default());
        let unknown = Access {
            size: 0,
            ..access(1, 0x1010, 1)
        };
        observe(&mut table, &unknown);
        assert_eq!(table.get(key(0x1000)).unwrap().sites()[0].site.size, 1);
    }

    #[test]
    fn quiet_private_lines_leave_first_and_stay_in_the_totals() {
        let options = AnalysisOptions {
            max_lines: 1000,
            ..AnalysisOptions::default()
        };
        let mut table = LineTable::new(options);
        for n in 0..100u64 {
            observe(&mut table, &access(n * 1_000_000, 0x1000, n as u32 % 2));
        }
        for n in 0..10_000u64 {
            observe(
                &mut table,
                &access(1_000_000_000 + n * 1_000_000, 0x10_0000 + n * 64, 3),
            );
        }
        assert!(table.len() <= 1000);
        let totals = table.totals();
        assert!(totals.evicted_lines >= 9000);
        assert_eq!(totals.evicted_shared_lines, 0);
        assert!(table.get(key(0x1000)).is_some());
        accounted(&table);
    }

    #[test]
    fn the_bounds_hold_when_every_line_is_busy_and_shared() {
        let options = AnalysisOptions {
            max_lines: 64,
            max_sites: 200,
            ..AnalysisOptions::default()
        };
        let mut table = LineTable::new(options);
        for n in 0..20_000u64 {
            observe(&mut table, &access(n * 1000, n % 500 * 64, n as u32 % 7));
            assert!(table.len() <= 64 && table.sites <= 200);
        }
        assert!(table.totals().evicted_shared_lines > 0);
        accounted(&table);
    }

    #[test]
    fn a_line_with_endless_threads_keeps_its_frequent_sites() {
        let mut table = LineTable::new(AnalysisOptions::default());
        for n in 0..20_000u64 {
            observe(&mut table, &access(n * 1_000_000, 0x1000, 1));
            observe(&mut table, &access(n * 1_000_000, 0x1000, 1000 + n as u32));
        }
        let line = table.get(key(0x1000)).unwrap();
        assert!(line.site_count() <= 4096);
        let sites = line.sites();
        assert_eq!((sites[0].site.tid, sites[0].stalled), (Tid(1), 20_000));
        let evidence = line.evidence(line.shared(LineSize::B64), LineSize::B64, &[]);
        let listed: u64 = sites.iter().map(super::super::SiteCounts::accesses).sum();
        assert_eq!(evidence.accesses, listed + evidence.folded);
        accounted(&table);
    }

    #[test]
    fn a_clock_that_steps_back_neither_panics_nor_loses() {
        let mut table = LineTable::new(AnalysisOptions::default());
        for time_ns in [u64::MAX, 0, 5_000_000_000, 1, u64::MAX] {
            observe(&mut table, &access(time_ns, 0x1000, (time_ns % 3) as u32));
        }
        assert_eq!(table.get(key(0x1000)).unwrap().accesses(), 5);
        accounted(&table);
    }
}
