//! The counts of read-then-write pairs, by the two instructions.

use std::cmp::Reverse;

use super::{
    pair::{Instruction, Left, Pair, PairSide},
    served::{OnLine, OrderFacts, Served},
    small_map::SmallMap,
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
    fn add(&mut self, access: &OnLine, line_size: LineSize) {
        let within = access.within;
        if self.first.is_none_or(|(_, _, first, _)| first > within) {
            self.first = Some((access.offset, access.size, within, access.op));
        }
        self.bytes |= access.reach(line_size).0;
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

    fn note_order(&mut self, order: &OrderFacts) {
        self.complete &= order.complete;
        self.watched &= order.watched.0;
    }

    fn note_left(&mut self, store: &Served) {
        match store.found {
            Found::Dirty(_) => self.left.dirty += 1,
            Found::Clean(_) => self.left.clean += 1,
            Found::Shared { others: 0 } | Found::Own => self.left.own += 1,
            Found::Shared { .. } => self.left.shared += 1,
            Found::Idle => {}
        }
    }
}

/// The pairs of one line, by load and store.
#[derive(Clone, Debug, Default)]
pub(super) struct PairRecords {
    loads: SmallMap<Instruction, LoadRecord>,
    forgotten: u64,
}

impl PairRecords {
    /// Loading instructions kept.
    pub(super) fn loads(&self) -> usize {
        self.loads.len()
    }

    fn load(&mut self, load: &Served, order: &OrderFacts) -> &mut LoadRecord {
        if self.loads.len() >= order.most_loads {
            self.forgotten += self.loads.forget_rare(|load| load.executions);
        }
        let slot = self.loads.slot(load.access.instruction, usize::MAX);
        let record = slot.expect("a map without a bound takes every key");
        record.extent.add(&load.access, order.line_size);
        record
    }

    fn slot(&mut self, load: &Served, store: &Served, order: &OrderFacts) -> &mut StoreRecord {
        let record = self.load(load, order);
        if record.stores.len() >= MAX_STORES {
            record.stores.forget_rare(StoreRecord::weight);
        }
        let slot = record.stores.slot(store.access.instruction, usize::MAX);
        let record = slot.expect("a map without a bound takes every key");
        record.extent.add(&store.access, order.line_size);
        record
    }

    /// All executions of a load that one access stands for; `among_readers` of them came when another CPU had
    /// merely read the line.
    pub(super) fn executed(&mut self, load: &Served, among_readers: u64, order: &OrderFacts) {
        let record = self.load(load, order);
        record.executions = record.executions.saturating_add(load.access.executions());
        record.requests += u64::from(load.is_known_request());
        record.among_readers = record.among_readers.saturating_add(among_readers);
    }

    /// A store that follows a load; `times` of the executions, of which only the first can have found anything.
    pub(super) fn pair(
        &mut self,
        load: &Served,
        store: &Served,
        between: Between,
        times: u64,
        order: &OrderFacts,
    ) {
        let record = self.slot(load, store, order);
        record.count = record.count.saturating_add(times);
        record.same_instruction |= load.access.op == Op::Rmw;
        record.taken_by_writes += u64::from(between.writes);
        record.taken_by_reads += u64::from(between.reads && !between.writes);
        record.mere_reads += u64::from(between.mere_reads);
        record.note_left(store);
        record.left.own = record.left.own.saturating_add(times.saturating_sub(1));
        record.threads.slot(store.access.tid, MAX_THREADS);
        record.note_order(order);
    }

    /// A request for a copy and then one for ownership, adjacent in the line's log: SWIFT's filter.
    pub(super) fn adjacent(&mut self, load: &Served, store: &Served, order: &OrderFacts) {
        let record = self.slot(load, store, order);
        record.global_count += 1;
        record.note_order(order);
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
