//! The language in which tests write programs: threads, each a loop over loads, stores and additions at offsets of a line.
//!
//! A program is seen by samples (`samples`), by a PMU (`pmu`), by watch windows and in its complete order (`known`).

use std::ops::Range;

use crate::access::{LineSize, Op};

/// Of a line; fields below are given relative to it.
pub(super) const BASE: u64 = 0x7f00_0000_1000;

/// SplitMix64 (Steele, Lea, Flood 2014, figure 20).
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Random {
        Random(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(super) fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    pub(super) fn chance(&mut self, p: f64) -> bool {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64 <= p
    }
}

/// One memory instruction of a loop.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) at: u64,
    pub(super) size: u16,
    pub(super) op: Op,
    /// How often the loop is stalled here, relative to its other steps.
    pub(super) stall: u64,
}

pub(super) fn add(at: u64) -> Step {
    step(at, Op::Rmw, 10)
}

pub(super) fn load(at: u64) -> Step {
    step(at, Op::Load, 5)
}

pub(super) fn store(at: u64) -> Step {
    step(at, Op::Store, 2)
}

fn step(at: u64, op: Op, stall: u64) -> Step {
    Step {
        at,
        size: 8,
        op,
        stall,
    }
}

/// Share of its samples that a thread's loop has unless said otherwise.
pub(super) const BUSY: f64 = 0.9;

/// A thread: a loop that runs at certain times.
#[derive(Clone, Debug)]
pub(super) struct Worker {
    pub(super) steps: Vec<Step>,
    /// Share of its samples that fall into this loop.
    pub(super) busy: f64,
    /// Times at which it can run, milliseconds; always when empty.
    pub(super) active_ms: Vec<Range<u64>>,
    pub(super) pid: u32,
    /// Node of its CPU, where it has one of its own.
    pub(super) node: u32,
    /// Where it has the memory, relative to the others.
    pub(super) mapped: u64,
}

pub(super) fn worker(steps: &[Step]) -> Worker {
    Worker {
        steps: steps.to_vec(),
        busy: BUSY,
        active_ms: Vec::new(),
        pid: 100,
        node: 0,
        mapped: 0,
    }
}

impl Worker {
    pub(super) fn busy(mut self, share: f64) -> Worker {
        self.busy = share;
        self
    }

    pub(super) fn during(mut self, ms: Range<u64>) -> Worker {
        self.active_ms.push(ms);
        self
    }

    pub(super) fn only_during(&mut self, ms: Range<u64>) {
        self.active_ms.clear();
        self.active_ms.push(ms);
    }

    /// Active in every second stretch of `length_ms`, beginning with the first when `first`.
    pub(super) fn alternating(mut self, length_ms: u64, first: bool) -> Worker {
        let start = |n: u64| (2 * n + u64::from(!first)) * length_ms;
        self.active_ms = (0..1000).map(|n| start(n)..start(n) + length_ms).collect();
        self
    }

    pub(super) fn of_process(mut self, pid: u32) -> Worker {
        self.pid = pid;
        self
    }

    pub(super) fn runs_at(&self, ms: u64) -> bool {
        let active = &self.active_ms;
        active.is_empty() || active.iter().any(|range| range.contains(&ms))
    }
}

/// A program and the machine it runs on.
#[derive(Clone, Debug)]
pub(super) struct Program {
    pub(super) workers: Vec<Worker>,
    pub(super) cpus: u32,
    pub(super) duration_ms: u64,
    /// Between two samples of a CPU.
    pub(super) period_ms: u64,
    /// Of the accesses beside the stalled one.
    pub(super) harvested: f64,
    /// Memory shared between processes.
    pub(super) shared_memory: bool,
    pub(super) line_size: LineSize,
}

pub(super) fn program(workers: impl IntoIterator<Item = Worker>) -> Program {
    Program {
        workers: workers.into_iter().collect(),
        cpus: 2,
        duration_ms: 3000,
        period_ms: 1,
        harvested: 0.2,
        shared_memory: false,
        line_size: LineSize::B64,
    }
}
