//! Programs run on caches that follow the MESI rules, and sampled as a PMU does: one in so many loads, if it took long
//! enough, and one in so many stores, each with what served it. Which loads find a line modified elsewhere comes out of
//! the caches, not out of what is tested. Deterministic by seed.

use std::{
    collections::{BTreeMap, BTreeSet},
    num::{NonZeroU32, NonZeroU64},
};

use super::programs::{BASE, BUSY, Random, Step, Worker};
use crate::{
    access::{Access, Basis, Cost, Cpu, Measured, Op, Pid, Tid},
    data_source::DataSource,
    event::Batch,
};

/// Between two instructions of a CPU, nanoseconds.
const STEP_NS: u64 = 1_000;
const STEPS_OF_MS: u64 = 1_000_000 / STEP_NS;

/// What the PMU can do.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a thing that some PMU can and another cannot"
)]
#[derive(Clone, Copy, Debug)]
pub(super) struct Pmu {
    /// One in so many loads of enough latency; 0 for none.
    pub(super) loads: u64,
    /// One in so many stores; 0 for none.
    pub(super) stores: u64,
    /// Stores have a latency.
    pub(super) times_stores: bool,
    /// It tells modified from unmodified lines of other caches; Arm SPE does not.
    pub(super) tells_hitm: bool,
    /// Sizes are known.
    pub(super) sizes: bool,
    /// Physical addresses are known.
    pub(super) physical: bool,
    /// One in so many samples has no data source; 0 for none.
    pub(super) not_available: u64,
}

/// Haswell to Ice Lake.
pub(super) const PEBS: Pmu = Pmu {
    loads: 20,
    stores: 50,
    times_stores: false,
    tells_hitm: true,
    sizes: true,
    physical: false,
    not_available: 0,
};

/// Loads of lines that a CPU has are shorter, and are not sampled (`ldlat=30`).
const LEAST_LATENCY: u32 = 30;

const L1: (u64, u32) = (0x6810_0142, 5);
const L3: (u64, u32) = (0x6_6810_0842, 45);
const LOCAL_HITM: (u64, u32) = (0x6_2980_0842, 120);
const REMOTE_HITM: (u64, u32) = (0x26_2980_8042, 300);
const PEER: (u64, u32) = (0x86_6810_0842, 120);
const STORE: (u64, u32) = (0x2_2908_0144, 0);

#[derive(Default)]
struct Line {
    modified: Option<usize>,
    readers: BTreeSet<usize>,
}

/// Runs the threads, each on a CPU of its own, all the time that they are active, and returns the samples with the sum of
/// their latencies.
pub(super) fn run(threads: &[Worker], pmu: Pmu, duration_ms: u64, seed: u64) -> Batch {
    let mut random = Random::new(seed);
    let mut lines: BTreeMap<u64, Line> = BTreeMap::new();
    let mut batch = Batch::default();
    let mut next = vec![0usize; threads.len()];
    for step in 0..duration_ms * STEPS_OF_MS {
        // Who is first in a step is by lot.
        let first = random.below(threads.len() as u64) as usize;
        for n in 0..threads.len() {
            let cpu = (first + n) % threads.len();
            let thread = &threads[cpu];
            // Of a thread that is seldom there, every so many steps.
            let every = (BUSY / thread.busy).round() as u64;
            if !thread.runs_at(step / STEPS_OF_MS) || step % every != 0 {
                continue;
            }
            let at = next[cpu] % thread.steps.len();
            next[cpu] += 1;
            let Step { op, at: addr, .. } = thread.steps[at];
            let line = lines.entry(addr / 64).or_default();
            let (mut source, mut latency) = line.access(cpu, op, threads, pmu.tells_hitm);
            let one_in = if op == Op::Store {
                pmu.stores
            } else {
                pmu.loads
            };
            if one_in == 0 || random.below(one_in) > 0 {
                continue;
            }
            if op != Op::Store && latency < LEAST_LATENCY {
                continue;
            }
            if op == Op::Store && pmu.times_stores {
                latency = 60;
            }
            if pmu.not_available > 0 && random.below(pmu.not_available) == 0 {
                source = DataSource::NOT_AVAILABLE;
            }
            batch.tally.samples += 1;
            batch.tally.cost += Cost(u64::from(latency));
            batch.accesses.push(Access {
                time_ns: 10_000_000_000 + step * STEP_NS + n as u64,
                addr: BASE + thread.mapped + addr,
                ip: 0x401000 + cpu as u64 * 0x100 + at as u64 * 4,
                cost: Cost(latency),
                pid: Pid(thread.pid),
                tid: Tid(1000 + cpu as u32),
                cpu: Cpu(cpu as u32),
                size: if pmu.sizes { 8 } else { 0 },
                op,
                basis: Basis::Sampled,
                locked: false,
                kernel: false,
                measured: Measured {
                    source: DataSource::new(source),
                    latency_cycles: NonZeroU32::new(latency),
                    phys_addr: NonZeroU64::new(0x1_2340_0000 + addr).filter(|_| pmu.physical),
                    repeats: 0,
                },
                ..Access::BLANK
            });
        }
    }
    batch.tally.produced = batch.tally.samples;
    batch.tally.attributed = batch.tally.samples;
    batch
}

impl Line {
    /// What serves it, and how long it takes; the caches afterwards.
    fn access(&mut self, cpu: usize, op: Op, threads: &[Worker], hitm: bool) -> (u64, u32) {
        let had = self.modified == Some(cpu) || self.readers.contains(&cpu);
        let served = match self.modified {
            _ if had => L1,
            Some(_) if !hitm => PEER,
            Some(other) if threads[other].node == threads[cpu].node => LOCAL_HITM,
            Some(_) => REMOTE_HITM,
            None => L3,
        };
        if op.stores() {
            self.readers.clear();
            self.modified = Some(cpu);
        } else if !had {
            self.readers.extend(self.modified.take());
            self.readers.insert(cpu);
        }
        if op == Op::Store { STORE } else { served }
    }
}
