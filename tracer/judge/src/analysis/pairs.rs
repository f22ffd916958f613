//! Read-then-write pairs: a load, and the next access to the line by the same thread is a store.
//!
//! ```text
//!   thread 1   load p ───────────── store q      a pair (p, q) in thread order
//!   thread 2           load r               ...  in between another CPU only read
//!   the log    READ_SHAR p, READ_SHAR r, READ_PRIV q      not adjacent: no pair by SWIFT's filter
//! ```
//!
//! The order within a thread is exact; that between threads is disturbed by the traps, which stretch the time
//! between load and store from a few cycles to microseconds. So a pair counts by its thread's order, and what
//! others did in between is told beside it. A read of another thread that is itself followed by that thread's
//! store is that thread's own pair, pulled into this one by the traps; every other read is a *mere* one.
//!
//! An instruction that reads and writes at once is a pair with itself.

use std::cmp::Reverse;

use super::{
    pair::{Instruction, Left, Pair, PairSide},
    pair_flow::{Flow, PairStep},
    small_map::SmallMap,
    window_order::Step,
};
use crate::{
    access::{ByteSet, LineSize, Op, Tid},
    coherence::Found,
};

/// Loading instructions kept per line; the rarer half leaves beyond it.
pub(super) const MAX_LOADS: usize = 256;

/// Storing instructions kept per load, likewise.
const MAX_STORES: usize = 32;

/// Threads told apart per pair.
const MAX_THREADS: usize = 4096;

/// The bytes that an instruction touches.
#[derive(Clone, Copy, Debug, Default)]
struct Extent {
    /// The first access, or the first of those of which the bytes are known.
    first: Option<(u8, u8, u8, Op)>,
    bytes: u128,
}

impl Extent {
    fn add(&mut self, step: &PairStep, line_size: LineSize) {
        if self
            .first
            .is_none_or(|(_, _, within, _)| within > step.within)
        {
            self.first = Some((step.offset, step.size, step.within, step.op));
        }
        let reach = step.size.max(step.within);
        self.bytes |= ByteSet::range(step.offset, u16::from(reach), line_size).0;
    }

    fn side(&self, instruction: Instruction) -> PairSide {
        let (offset, size, within, op) = self.first.unwrap_or((0, 0, 0, Op::Load));
        PairSide {
            instruction,
            op,
            offset,
            size,
            within,
            bytes: ByteSet(self.bytes),
        }
    }
}

#[derive(Clone, Debug, Default)]
struct LoadRecord {
    extent: Extent,
    executions: u64,
    requests: u64,
    among_readers: u64,
    stores: SmallMap<Instruction, StoreRecord>,
}

#[derive(Clone, Debug)]
struct StoreRecord {
    extent: Extent,
    same_instruction: bool,
    count: u64,
    global_count: u64,
    taken_by_reads: u64,
    taken_by_writes: u64,
    mere_reads: u64,
    left: Left,
    threads: SmallMap<Tid, ()>,
    complete: bool,
    /// Bytes that all its windows watched.
    watched: u128,
}

impl Default for StoreRecord {
    fn default() -> Self {
        StoreRecord {
            extent: Extent::default(),
            same_instruction: false,
            count: 0,
            global_count: 0,
            taken_by_reads: 0,
            taken_by_writes: 0,
            mere_reads: 0,
            left: Left::default(),
            threads: SmallMap::default(),
            complete: true,
            watched: u128::MAX,
        }
    }
}

impl StoreRecord {
    fn weight(&self) -> u64 {
        self.count + self.global_count
    }

    fn note_window(&mut self, window: &WindowFacts) {
        self.complete &= window.complete;
        self.watched &= window.watched.0;
    }

    fn note_left(&mut self, store: &PairStep) {
        match store.found {
            Found::Dirty(_) => self.left.dirty += 1,
            Found::Clean(_) => self.left.clean += 1,
            Found::Shared { others: 0 } | Found::Own => self.left.own += 1,
            Found::Shared { .. } => self.left.shared += 1,
            Found::Idle => {}
        }
    }
}

/// What the pairs must know of a window besides its order.
#[derive(Clone, Copy, Debug)]
pub(super) struct WindowFacts {
    pub(super) line_size: LineSize,
    pub(super) complete: bool,
    pub(super) watched: ByteSet,
    /// Loading instructions to keep.
    pub(super) most_loads: usize,
}

/// The pairs of one line, window by window.
#[derive(Clone, Debug, Default)]
pub(super) struct Pairs {
    loads: SmallMap<Instruction, LoadRecord>,
    forgotten: u64,
}

impl Pairs {
    /// Adds the pairs of one window.
    pub(super) fn observe(&mut self, steps: &[Step], window: &WindowFacts) {
        let mere = mere_reads(steps);
        let mut flow = Flow::default();
        for (step, mere) in steps.iter().zip(mere) {
            flow.take(&PairStep::of(step), mere, self, window);
        }
    }

    /// Loading instructions kept.
    pub(super) fn loads(&self) -> usize {
        self.loads.len()
    }

    fn load(&mut self, load: &PairStep, window: &WindowFacts) -> &mut LoadRecord {
        if self.loads.len() >= window.most_loads {
            self.forgotten += self.loads.forget_rare(|load| load.executions);
        }
        let slot = self.loads.slot(load.instruction, usize::MAX);
        let record = slot.expect("a map without a bound takes every key");
        record.extent.add(load, window.line_size);
        record
    }

    fn slot(
        &mut self,
        load: &PairStep,
        store: &PairStep,
        window: &WindowFacts,
    ) -> &mut StoreRecord {
        let record = self.load(load, window);
        if record.stores.len() >= MAX_STORES {
            record.stores.forget_rare(StoreRecord::weight);
        }
        let slot = record.stores.slot(store.instruction, usize::MAX);
        let record = slot.expect("a map without a bound takes every key");
        record.extent.add(store, window.line_size);
        record
    }

    /// All executions of a load that one access stands for; `among_readers` of them came when another CPU had
    /// merely read the line.
    pub(super) fn executed(&mut self, load: &PairStep, among_readers: u64, window: &WindowFacts) {
        let record = self.load(load, window);
        record.executions = record.executions.saturating_add(load.executions());
        record.requests += u64::from(load.is_known_request());
        record.among_readers = record.among_readers.saturating_add(among_readers);
    }

    /// A store that follows a load; `times` of the executions, of which only the first can have found anything.
    pub(super) fn pair(
        &mut self,
        load: &PairStep,
        store: &PairStep,
        between: Between,
        times: u64,
        window: &WindowFacts,
    ) {
        let record = self.slot(load, store, window);
        record.count = record.count.saturating_add(times);
        record.same_instruction |= load.op == Op::Rmw;
        record.taken_by_writes += u64::from(between.writes);
        record.taken_by_reads += u64::from(between.reads && !between.writes);
        record.mere_reads += u64::from(between.mere_reads);
        record.note_left(store);
        record.left.own = record.left.own.saturating_add(times.saturating_sub(1));
        record.threads.slot(store.tid, MAX_THREADS);
        record.note_window(window);
    }

    /// A request for a copy and then one for ownership, adjacent in the line's log: SWIFT's filter.
    pub(super) fn adjacent(&mut self, load: &PairStep, store: &PairStep, window: &WindowFacts) {
        let record = self.slot(load, store, window);
        record.global_count += 1;
        record.note_window(window);
    }

    /// Executions whose load is no longer kept.
    pub(super) fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// The pairs, most frequent first. `active` are the bytes of the line that are known to be accessed.
    pub(super) fn ranked(&self, active: ByteSet) -> Vec<Pair> {
        let all = self.loads.iter().flat_map(|(load, record)| {
            let stores = record.stores.iter();
            stores.map(move |(store, pair)| record.with(*load, *store, pair, active))
        });
        let mut pairs: Vec<Pair> = all.collect();
        pairs.sort_by_key(|pair| {
            let counts = Reverse((pair.count, pair.global_count));
            (counts, pair.load.instruction, pair.store.instruction)
        });
        pairs
    }
}

impl LoadRecord {
    fn with(
        &self,
        load: Instruction,
        store: Instruction,
        pair: &StoreRecord,
        active: ByteSet,
    ) -> Pair {
        let executions = self.executions;
        Pair {
            load: self.extent.side(load),
            store: pair.extent.side(store),
            same_instruction: pair.same_instruction,
            count: pair.count,
            global_count: pair.global_count,
            executions,
            share_of_load: (executions > 0).then(|| pair.count as f64 / executions as f64),
            load_requests: self.requests,
            among_readers: self.among_readers,
            taken_by_reads: pair.taken_by_reads,
            taken_by_writes: pair.taken_by_writes,
            mere_reads: pair.mere_reads,
            left: pair.left,
            threads: pair.threads.len(),
            complete_order: pair.complete && active.0 & !pair.watched == 0,
        }
    }
}

/// What other CPUs did between load and store.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Between {
    pub(super) reads: bool,
    pub(super) writes: bool,
    pub(super) mere_reads: bool,
}

/// For each step, whether it is a load that its thread does not follow with a store. The last load of a
/// thread is one: when in doubt, a reader is a reader.
fn mere_reads(steps: &[Step]) -> Vec<bool> {
    let mut mere = vec![false; steps.len()];
    let mut stores_next: SmallMap<Tid, bool> = SmallMap::default();
    for (step, mere) in steps.iter().zip(&mut mere).rev() {
        let Some(next) = stores_next.slot(step.access.tid, usize::MAX) else {
            continue;
        };
        *mere = step.access.op == Op::Load && !*next;
        *next = step.access.op.stores();
    }
    mere
}
