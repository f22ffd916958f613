//! The one way from events to a report, for live and recorded input alike.

mod lines;
mod retire;
mod two_threads;

use rustc_hash::FxHashMap;

use crate::{
    access::{Access, Basis, Cost, LineKey, LineSize, Place, SpaceId},
    analysis::{
        AnalysisOptions, LineTable, OrderBounds, OrderedLines, OwnWord, Paces, Totals, Transfers,
        WatchBounds, WatchedLines,
    },
    event::{Allocation, Batch, Context, ContextKind, Due, Tally, WatchTally, Window},
    finding::{
        Judged, JudgedPair, Judgement, Moved, Orders, Thresholds, WindowVerdict, judge_pairs, shown,
    },
    heap::HeapIndex,
    space::AddressSpaces,
    spill::{SortedLines, SpillError, SpillOptions},
};
use lines::{JudgedLines, Lines};
use retire::Retiring;

/// Folds a stream of batches. Of a live stream it can be asked at any time what it judges, and drops lines to stay
/// within bounds ([`new`](Pipeline::new)); a recorded one is judged at its end, from all of it
/// ([`sorted`](Pipeline::sorted)). Where nothing was dropped, both judge the same.
pub struct Pipeline {
    /// Meaning of addresses so far.
    pub spaces: AddressSpaces,
    /// Sum of the batches' counts.
    pub tally: Tally,
    /// Sum of the windows.
    pub watch_tally: WatchTally,
    /// Accesses fed.
    pub accesses: u64,
    /// Whose memory the heap is, where that was followed.
    pub heap: HeapIndex,
    lines: Lines,
    watched: WatchedLines,
    transfers: Transfers,
    ordered: OrderedLines,
    paces: Paces,
    /// Of the access that is taken, by line.
    costs: Vec<Cost<u32>>,
    /// Since which window's end (CLOCK_MONOTONIC, nanoseconds) a watched line shows what it shows.
    shown: FxHashMap<LineKey, (WindowVerdict, u64)>,
    thresholds: Thresholds,
    retiring: Retiring,
}

impl Pipeline {
    /// Nothing observed yet.
    pub fn new(options: AnalysisOptions, thresholds: Thresholds) -> Pipeline {
        Pipeline::onto(Lines::Table(LineTable::new(options)), &options, thresholds)
    }

    /// Nothing observed yet; judges when [`finish`](Pipeline::finish) is called, and nothing before.
    pub fn sorted(
        options: AnalysisOptions,
        thresholds: Thresholds,
        spill: SpillOptions,
    ) -> Pipeline {
        let lines = Lines::Sorting(Box::new(SortedLines::new(&options, spill)));
        Pipeline::onto(lines, &options, thresholds)
    }

    fn onto(lines: Lines, options: &AnalysisOptions, thresholds: Thresholds) -> Pipeline {
        Pipeline {
            spaces: AddressSpaces::default(),
            tally: Tally::default(),
            watch_tally: WatchTally::default(),
            accesses: 0,
            heap: HeapIndex::default(),
            lines,
            watched: WatchedLines::new(options.line_size, WatchBounds::default()),
            transfers: Transfers::new(options.line_size),
            ordered: OrderedLines::new(options.line_size, OrderBounds::default()),
            paces: Paces::default(),
            costs: Vec::new(),
            shown: FxHashMap::default(),
            thresholds,
            retiring: Retiring::default(),
        }
    }

    /// Takes in the next batch, context before accesses of the same time. Trapped accesses are no samples:
    /// they go to the watched lines, and count there when their window comes. Emulated ones are all that there are:
    /// what the protocol sends for each is its cost, and the tally has their executions and no samples.
    pub fn feed(&mut self, batch: &Batch) {
        self.tally.add(&batch.tally);
        self.accesses += batch.accesses.len() as u64;
        if !two_threads::pays(batch) || !self.feed_by_two_threads(batch) {
            for due in batch.in_order() {
                if let Some((access, place, space)) = self.take(due) {
                    self.lines.observe(access, place, space, &self.costs);
                }
            }
        }
        for window in &batch.windows {
            self.close(window);
        }
        if !self.ordered.is_empty() {
            let executions = self.ordered.totals().executions;
            self.tally.samples = 0;
            self.tally.executions = executions;
            self.tally.attributed = executions;
            self.tally.produced = executions.saturating_add(self.tally.lost_total());
        }
        self.retire();
    }

    /// Takes in the next of the stream, all but the lines: an access that they are to observe comes back, its costs
    /// are in `costs`.
    fn take<'a>(&mut self, due: Due<'a>) -> Option<(&'a Access, Place, SpaceId)> {
        match due {
            Due::Context(context) => self.take_context(context),
            Due::Allocation(allocation) => self.take_allocation(allocation),
            Due::Access(access) => {
                let (space, place) = self.take_access(access)?;
                return Some((access, place, space));
            }
        }
        None
    }

    fn take_access(&mut self, access: &Access) -> Option<(SpaceId, Place)> {
        let (space, place) = self.spaces.place_of(access);
        if matches!(place, Place::Private { .. } | Place::Shared { .. }) {
            self.heap.touch(space, access.addr);
        }
        self.costs.clear();
        match access.basis {
            Basis::Trapped => {
                self.watched.observe(access, place, space);
                return None;
            }
            Basis::Emulated => {
                (self.ordered).observe(access, place, space, &mut self.costs);
                let sent: Cost = self.costs.iter().sum();
                self.tally.messages = self.tally.messages.saturating_add(sent.0);
            }
            Basis::Stalled | Basis::Decoded | Basis::Harvested => {
                self.transfers.observe(access, place, space);
            }
            Basis::Sampled => {}
        }
        Some((space, place))
    }

    fn take_context(&mut self, context: &Context) {
        self.spaces.apply(context);
        if let ContextKind::Pace(read) = &context.kind {
            let line_size = self.line_size();
            let mut line = |addr| self.spaces.place(read.pid, addr).1.line(line_size);
            let (line, word) = (line(read.line_addr), line(read.addr));
            self.paces.observe(line, word, read);
        }
        self.retiring.now_ns = self.retiring.now_ns.max(context.time_ns);
        if let ContextKind::Fork {
            pid, parent_pid, ..
        } = context.kind
            && pid != parent_pid
            && !self.heap.is_empty()
        {
            let [parent, child] = [parent_pid, pid].map(|pid| self.spaces.space(pid));
            self.heap.fork(parent, child);
        }
    }

    fn take_allocation(&mut self, event: &Allocation) {
        let space = self.spaces.of_allocation(event);
        self.heap.apply(space, event);
    }

    fn close(&mut self, window: &Window) {
        self.watch_tally.add(window);
        let spaces = &mut self.spaces;
        let line = (self.watched).close(window, |word| spaces.place(word.pid, word.addr).1);
        if let Some(watched) = line.and_then(|line| self.watched.get(line)) {
            let groups = watched.groups();
            let now = shown(watched, &groups, &self.thresholds.watch).shown;
            let known = self.shown.entry(watched.key());
            let known = known.or_insert((now, window.end_ns));
            if known.0 != now {
                *known = (now, window.end_ns);
            }
        }
    }

    /// Ends the stream: what is being sorted is folded and judged. Nothing may be fed after. Of a pipeline that does
    /// not sort, nothing.
    pub fn finish(&mut self) -> Result<(), SpillError> {
        let line_size = self.line_size();
        let moved = self.moved();
        let lines = Lines::Table(LineTable::new(AnalysisOptions::default()));
        self.lines = match std::mem::replace(&mut self.lines, lines) {
            Lines::Sorting(sorting) => Lines::Judged(JudgedLines::of(
                sorting.finish()?,
                line_size,
                &Orders {
                    watched: &self.watched,
                    moved: &moved,
                    ordered: &self.ordered,
                },
                self.tally.whole_cost(),
                &self.thresholds,
            )?),
            others => others,
        };
        Ok(())
    }

    /// Whether feeding more is in vain; [`finish`](Pipeline::finish) says why.
    pub fn has_failed(&self) -> bool {
        matches!(&self.lines, Lines::Sorting(sorting) if sorting.has_failed())
    }

    /// Judges what was seen so far, line by line; ranked by cost. May be asked at any time.
    pub fn judge(&self) -> Vec<Judgement> {
        self.judged(false).judgements
    }

    /// Judges what was seen so far, with all that it takes to judge lines together that belong together.
    pub fn judge_all(&self) -> Judged {
        self.judged(true)
    }

    fn judged(&self, with_members: bool) -> Judged {
        let whole = self.tally.whole_cost();
        let orders = Orders {
            watched: &self.watched,
            moved: &self.moved(),
            ordered: &self.ordered,
        };
        let thresholds = &self.thresholds;
        let mut judged = (self.lines).judge(&orders, whole, thresholds, with_members);
        for judgement in &mut judged.judgements {
            if let Some(watched) = &mut judgement.watched {
                watched.since_ns = self
                    .shown
                    .get(&judgement.key)
                    .map(|(_, since_ns)| *since_ns);
            }
        }
        judged
    }

    /// What windows have shown of lines that loads only seemed to wait for.
    fn moved(&self) -> Moved {
        Moved::new(
            &self.transfers,
            &self.watched,
            self.line_size(),
            self.tally.whole_cost(),
            &self.thresholds,
        )
    }

    /// Cost of loads of memory that nobody was seen to store to: what the CPU waited for there is not known.
    pub fn undecided_cost(&self) -> Cost {
        self.moved().undecided_cost()
    }

    /// Read-then-write pairs of the watched lines and of those whose order is complete, those with a hint first.
    pub fn pairs(&self) -> Vec<JudgedPair> {
        let sampled = |key| self.lines.sampled(key);
        let orders = Orders {
            watched: &self.watched,
            moved: &Moved::default(),
            ordered: &self.ordered,
        };
        judge_pairs(&orders, sampled, &self.thresholds.pairs)
    }

    /// What the complete order of an emulated program has shown so far.
    pub fn ordered(&self) -> &OrderedLines {
        &self.ordered
    }

    /// Of each thread a word that it alone stores to, of a live stream.
    pub fn own_words(&self) -> Vec<OwnWord> {
        self.lines.own_words()
    }

    /// How fast threads were beside the others of a line, and without them.
    pub fn paces(&self) -> &Paces {
        &self.paces
    }

    /// What watch windows have shown so far.
    pub fn watched(&self) -> &WatchedLines {
        &self.watched
    }

    /// What the table of lines was fed and dropped.
    pub fn totals(&self) -> Totals {
        self.lines.totals()
    }

    /// Lines in the table.
    pub fn lines(&self) -> u64 {
        self.lines.lines()
    }

    /// Of those, touched by several threads.
    pub fn shared_lines(&self) -> u64 {
        self.lines.shared_lines()
    }

    /// The limits in force.
    pub fn thresholds(&self) -> &Thresholds {
        &self.thresholds
    }

    /// Line size of the analysis.
    pub fn line_size(&self) -> LineSize {
        self.lines.line_size()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::{
        access::{Cpu, Op, Pid, Tid},
        event::{Breadth, WatchedWord, WindowEnd},
    };

    const ADDR: u64 = 0x7f00_0000_1008;

    fn access(time_ns: u64, basis: Basis) -> Access {
        Access {
            time_ns,
            addr: ADDR,
            ip: 0x401000,
            pid: Pid(7),
            tid: Tid(7),
            cpu: Cpu(0),
            size: 8,
            op: Op::Rmw,
            basis,
            locked: false,
            kernel: false,
            ..Access::BLANK
        }
    }

    fn window(open_ns: u64, end_ns: u64) -> Window {
        Window {
            number: 0,
            open_ns,
            end_ns,
            words: vec![WatchedWord {
                pid: Pid(7),
                addr: ADDR,
                len: 8,
            }],
            everyone: false,
            hits: 2,
            lost: 0,
            unresolved: BTreeMap::new(),
            inferred: 0,
            cost_ns: 0,
            breadth: Breadth::Cpus,
            end: WindowEnd::Time,
        }
    }

    #[test]
    fn trapped_accesses_go_to_their_window_and_samples_to_the_table() {
        let mut pipeline = Pipeline::new(AnalysisOptions::default(), Thresholds::default());
        let mut batch = Batch {
            accesses: vec![
                access(10, Basis::Trapped),
                access(11, Basis::Stalled),
                access(12, Basis::Trapped),
            ],
            ..Batch::default()
        };
        pipeline.feed(&batch);
        assert_eq!(pipeline.totals().accesses, 1);
        assert_eq!(pipeline.watched().pending(), 2);
        batch.clear();
        batch.windows = vec![window(10, 20), window(30, 40)];
        pipeline.feed(&batch);
        let line = pipeline.watched().lines().next().unwrap();
        let Lines::Table(table) = &pipeline.lines else {
            panic!("a live pipeline keeps a table");
        };
        let (table_key, _) = table.lines().next().unwrap();
        assert_eq!(line.key(), table_key);
        assert_eq!((line.counts().windows, line.counts().accesses), (2, 2));
    }
}
