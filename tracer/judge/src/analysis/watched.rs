//! The fold over watch windows: trapped accesses in, lines with their complete orders out.
//! [`WatchedLines::observe`] keeps trapped accesses until [`WatchedLines::close`] says whose they are.

use rustc_hash::{FxHashMap, FxHashSet};

use super::{watched_line::WatchedLine, window_accesses::WindowAccesses, window_order::Trapped};
use crate::{
    access::{Access, LineKey, LineSize, Place, SpaceId},
    event::{WatchedWord, Window},
};

/// How much is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatchBounds {
    /// Lines; windows on more are counted and dropped.
    pub lines: usize,
    /// Accesses that wait for their window.
    pub pending: usize,
}

impl Default for WatchBounds {
    /// 4,096 lines, of which a planner watches a few dozen; 65,536 accesses, of which a window has hundreds.
    fn default() -> Self {
        WatchBounds {
            lines: 4096,
            pending: 1 << 16,
        }
    }
}

/// What was fed and where it went: `observed` is the sum of the other accesses here, of those still
/// [pending](WatchedLines::pending), and of the lines' `accesses`, `strays` and `outside`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WatchedTotals {
    /// Accesses observed.
    pub observed: u64,
    /// Accesses that found no room to wait in; the windows they belong to are not complete.
    pub dropped: u64,
    /// Accesses of no window, to no watched line, or of windows that were dropped.
    pub unclaimed: u64,
    /// Accesses to lines of address spaces that were left, which were let go.
    pub retired: u64,
    /// Windows observed.
    pub windows: u64,
    /// Windows whose line is not known, or that found no room.
    pub dropped_windows: u64,
}

/// All watched lines of a run. Feed it accesses in order of time, and windows in order of their end.
#[derive(Clone, Debug)]
pub struct WatchedLines {
    line_size: LineSize,
    bounds: WatchBounds,
    pending: WindowAccesses,
    lines: FxHashMap<LineKey, Box<WatchedLine>>,
    totals: WatchedTotals,
}

impl Default for WatchedLines {
    /// 64-byte lines.
    fn default() -> Self {
        WatchedLines::new(LineSize::B64, WatchBounds::default())
    }
}

impl WatchedLines {
    /// Nothing watched yet.
    pub fn new(line_size: LineSize, bounds: WatchBounds) -> WatchedLines {
        WatchedLines {
            line_size,
            bounds,
            pending: WindowAccesses::new(line_size, bounds.pending),
            lines: FxHashMap::default(),
            totals: WatchedTotals::default(),
        }
    }

    /// Keeps a trapped access until its window comes.
    pub fn observe(&mut self, access: &Access, place: Place, space: SpaceId) {
        self.totals.observed += 1;
        let kept = self.pending.push(Trapped {
            access: *access,
            place,
            space,
        });
        self.totals.dropped += u64::from(!kept);
    }

    /// Folds a window that is over, whose accesses have been observed, and returns its line. `place_of` is as
    /// in [`WindowAccesses::close`].
    pub fn close(
        &mut self,
        window: &Window,
        place_of: impl FnOnce(WatchedWord) -> Place,
    ) -> Option<LineKey> {
        let order = self.pending.close(window, place_of);
        match order.line {
            Some(line) => self.take(window, line, &order.inside, order.whole),
            None => self.drop_window(order.inside.len()),
        }
        for trapped in &order.outside {
            self.take_outside(trapped);
        }
        order.line
    }

    fn take(&mut self, window: &Window, line: LineKey, accesses: &[Trapped], whole: bool) {
        let room = self.lines.len() < self.bounds.lines;
        if !room && !self.lines.contains_key(&line) {
            self.drop_window(accesses.len());
            return;
        }
        self.totals.windows += 1;
        let entry = self.lines.entry(line);
        let watched = entry.or_insert_with(|| Box::new(WatchedLine::new(line, self.line_size)));
        watched.take(window, accesses, whole);
    }

    fn drop_window(&mut self, accesses: usize) {
        self.totals.windows += 1;
        self.totals.dropped_windows += 1;
        self.totals.unclaimed += accesses as u64;
    }

    fn take_outside(&mut self, trapped: &Trapped) {
        match self.lines.get_mut(&trapped.place.line(self.line_size)) {
            Some(line) => line.take_outside(trapped),
            None => self.totals.unclaimed += 1,
        }
    }

    /// Lets go of the private lines of address spaces that nobody will access any more.
    pub fn retire(&mut self, spaces: &FxHashSet<SpaceId>) {
        for (_, line) in self.lines.extract_if(|key, _| key.0.is_of(spaces)) {
            let counts = line.counts();
            self.totals.retired += counts.accesses + counts.strays + counts.outside;
        }
    }

    /// Whether half of the room for lines is taken.
    pub fn is_half_full(&self) -> bool {
        self.lines.len() >= self.bounds.lines / 2
    }

    /// Accesses that wait for their window.
    pub fn pending(&self) -> usize {
        self.pending.len()
    }

    /// What was fed and where it went.
    pub fn totals(&self) -> WatchedTotals {
        self.totals
    }

    /// The granule that lines are cut by.
    pub fn line_size(&self) -> LineSize {
        self.line_size
    }

    /// The watched lines, in no particular order.
    pub fn lines(&self) -> impl Iterator<Item = &WatchedLine> {
        self.lines.values().map(|line| &**line)
    }

    /// One line.
    pub fn get(&self, key: LineKey) -> Option<&WatchedLine> {
        self.lines.get(&key).map(|line| &**line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        access::{Cpu, Op, Pid, Tid},
        analysis::watched_fixture::{
            BASE, HIT_NS, STEP_NS, Watch, key, load, repeated, rmw, store,
        },
    };

    fn accounted(lines: &WatchedLines) {
        let totals = lines.totals();
        let held = lines.lines().map(|line| {
            let counts = line.counts();
            counts.accesses + counts.strays + counts.outside
        });
        let gone = totals.dropped + totals.unclaimed + totals.retired + lines.pending() as u64;
        assert_eq!(totals.observed, gone + held.sum::<u64>());
    }

    #[test]
    fn accesses_outside_of_the_window_or_its_line_enter_no_order() {
        let mut watch = Watch::new();
        watch.access(&rmw(2, 0));
        watch.window(&[0], &[rmw(1, 0), rmw(1, 64), rmw(1, 0)], |_| {});
        watch.access(&rmw(2, 8));
        watch.window(&[0], &[rmw(1, 0)], |window| window.open_ns -= STEP_NS / 2);
        watch.access(&rmw(3, 0));
        let counts = watch.line().counts();
        assert_eq!((counts.accesses, counts.strays, counts.outside), (3, 1, 2));
        assert_eq!(counts.touched.0, 0xffff);
        assert_eq!(watch.lines.pending(), 1);
        accounted(&watch.lines);
        assert_eq!(watch.line().threads().len(), 1);
    }

    #[test]
    fn accesses_of_the_next_window_wait_for_its_record() {
        let mut watch = Watch::new();
        // The record of the first window comes when the second has begun.
        let first_end = watch.now_ns + STEP_NS;
        watch.window(&[0], &[rmw(1, 0), rmw(2, 0), store(1, 0)], |window| {
            window.end_ns = first_end;
        });
        assert_eq!(watch.lines.pending(), 1);
        assert_eq!(watch.line().counts().accesses, 2);
        let open_ns = first_end + 1;
        watch.window(&[0], &[], |window| window.open_ns = open_ns);
        let counts = watch.line().counts();
        assert_eq!((counts.windows, counts.busy_windows), (2, 2));
        assert_eq!((counts.accesses, counts.outside), (3, 0));
    }

    #[test]
    fn a_windows_line_is_told_by_its_accesses_and_asked_for_only_without_any() {
        let mut watch = Watch::new();
        let wide = rmw(1, 60);
        watch.window(&[56], &[wide], |_| {});
        let word = WatchedWord {
            pid: Pid(1),
            addr: BASE,
            len: 8,
        };
        let mut window = None;
        watch.window(&[0], &[], |last| window = Some(last.clone()));
        let mut window = window.unwrap();
        window.words = vec![word];
        window.open_ns = 0;
        watch.access(&rmw(1, 0));
        window.end_ns = watch.now_ns;
        watch.lines.close(&window, |_| panic!("an access tells"));
        assert_eq!(watch.lines.lines().count(), 1);
        window.words.clear();
        watch.lines.close(&window, |_| key().0);
        assert_eq!(watch.lines.totals().dropped_windows, 1);
        accounted(&watch.lines);
    }

    #[test]
    fn beyond_the_bounds_lines_and_accesses_are_dropped_and_counted() {
        let bounds = WatchBounds {
            lines: 1,
            pending: 2,
        };
        let mut watch = Watch::new();
        watch.lines = WatchedLines::new(LineSize::B64, bounds);
        watch.window(&[0], &[rmw(1, 0), rmw(2, 0), rmw(1, 0)], |_| {});
        assert_eq!(watch.line().counts().complete_windows, 0);
        watch.window(&[0], &[rmw(1, 0)], |_| {});
        assert_eq!(watch.line().counts().complete_windows, 1);
        watch.window(&[64], &[rmw(1, 64)], |_| {});
        let totals = watch.lines.totals();
        assert_eq!((totals.dropped, totals.unclaimed), (1, 1));
        assert_eq!((totals.windows, totals.dropped_windows), (3, 1));
        accounted(&watch.lines);
    }

    #[test]
    fn sites_and_threads_are_counted_with_their_cpus() {
        let acts = [rmw(1, 0), rmw(1, 0).on(5), load(2, 8), rmw(1, 0)];
        let watch = Watch::new().windows(2, &[0, 8], &acts);
        let sites = watch.line().sites();
        assert_eq!(sites.len(), 2);
        assert_eq!((sites[0].trapped, sites[0].site.op), (6, Op::Rmw));
        assert_eq!(sites[0].cpus.iter().collect::<Vec<_>>(), [Cpu(1), Cpu(5)]);
        let threads = watch.line().threads();
        let counts = threads.iter().map(|t| (t.tid, t.accesses, t.stores));
        assert_eq!(counts.collect::<Vec<_>>(), [(Tid(1), 6, 6), (Tid(2), 2, 0)]);
    }

    #[test]
    fn requests_and_messages_are_those_of_the_protocol() {
        // READ_SHAR; READ_PRIV of the only sharer; READ_SHAR of a dirty line; READ_PRIV with one other sharer.
        let acts = [load(1, 0), store(1, 0), load(2, 0), store(2, 0)];
        let watch = Watch::new().windows(3, &[0], &acts);
        let requests = watch.line().counts().requests;
        assert_eq!((requests.read_shar, requests.read_priv), (6, 6));
        assert_eq!(requests.cold, 6);
        assert_eq!((requests.recall_priv, requests.recall_shar), (3, 3));
        assert_eq!(requests.transactions, 3 * (2 + 2 + 4 + 4));
    }

    #[test]
    fn rates_are_of_the_windows_time_and_of_what_the_traps_leave_of_it() {
        // A hit costs a fifth of a step; thread 1 has two of three.
        let acts = repeated(30, &[rmw(1, 0), rmw(1, 0), rmw(2, 8)]);
        let watch = Watch::new().windows(2, &[0, 8], &acts);
        let counts = watch.line().counts();
        assert_eq!(counts.span_ns, 2 * 90 * STEP_NS);
        assert_eq!(counts.native_ns, 2 * (90 * STEP_NS - 60 * HIT_NS));
        assert_eq!(counts.hand_offs, 2 * 59);
        let per_s = counts.hand_offs_per_s().unwrap();
        assert!((per_s - 118.0 / 1.8e-3).abs() < 1.0, "{per_s}");
        let native = counts.native_hand_offs_per_s().unwrap();
        assert!((native - 118.0 / 1.56e-3).abs() < 1.0, "{native}");
    }

    #[test]
    fn no_native_rate_is_given_when_the_traps_took_most_of_the_time() {
        let mut watch = Watch::new();
        let acts = repeated(30, &[rmw(1, 0), rmw(2, 8)]);
        watch.window(&[0, 8], &acts, |window| window.cost_ns *= 8);
        let counts = watch.line().counts();
        assert_eq!(counts.native_hand_offs_per_s(), None);
        assert!(counts.hand_offs_per_s().is_some());
    }
}
