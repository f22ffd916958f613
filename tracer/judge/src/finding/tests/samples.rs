//! Sampled access streams of known programs: 1 kHz on each CPU unless said otherwise, threads scheduled in quanta, 60 % of
//! the samples stalled, now and then a harvested access. Deterministic by seed.

use super::programs::{BASE, Program, Random};
use crate::{
    access::{Access, Basis, Cost, Cpu, LineSize, Pid, Place, SpaceId, Tid},
    analysis::{AnalysisOptions, LineTable, WatchedLines},
    finding::{Judgement, Thresholds, table_fixture::judge_all},
};

const MS_NS: u64 = 1_000_000;
const QUANTUM_MS: u64 = 3;

/// Accesses and the time they stand for.
#[derive(Clone, Debug)]
pub(super) struct Stream {
    pub(super) accesses: Vec<Access>,
    pub(super) whole: Cost,
    pub(super) period_ns: u64,
    pub(super) shared_memory: bool,
    pub(super) line_size: LineSize,
}

impl Program {
    /// Samples the program.
    pub(super) fn sample(&self, seed: u64) -> Stream {
        let mut random = Random::new(seed);
        let period_ns = self.period_ms * MS_NS;
        let offsets: Vec<u64> = (0..self.cpus).map(|_| random.below(period_ns)).collect();
        let mut running: Vec<Option<usize>> = Vec::new();
        let mut quantum = None;
        let mut accesses = Vec::new();
        let mut samples = 0;
        for ms in (0..self.duration_ms).step_by(self.period_ms as usize) {
            if quantum.replace(ms / QUANTUM_MS) != Some(ms / QUANTUM_MS) {
                running = self.schedule(ms, &mut random);
            }
            for (cpu, tid) in running.iter().enumerate() {
                let Some(tid) = tid.filter(|&tid| self.workers[tid].runs_at(ms)) else {
                    continue;
                };
                let jitter_ns = random.below(period_ns / 20);
                let time_ns = 10_000_000_000 + ms * MS_NS + offsets[cpu] + jitter_ns;
                samples += 1;
                self.sample_once(time_ns, cpu, tid, &mut random, &mut accesses);
            }
        }
        accesses.sort_by_key(|access: &Access| access.time_ns);
        Stream {
            accesses,
            whole: Cost(samples * period_ns),
            period_ns,
            shared_memory: self.shared_memory,
            line_size: self.line_size,
        }
    }

    /// A thread per CPU: each on its own while there are CPUs enough, except for rare migrations;
    /// drawn by lot otherwise.
    fn schedule(&self, ms: u64, random: &mut Random) -> Vec<Option<usize>> {
        let mut ready: Vec<usize> = (0..self.workers.len())
            .filter(|&tid| (ms..ms + QUANTUM_MS).any(|ms| self.workers[tid].runs_at(ms)))
            .collect();
        if ready.len() > self.cpus as usize || random.chance(0.02) {
            for n in (1..ready.len()).rev() {
                ready.swap(n, random.below(n as u64 + 1) as usize);
            }
        }
        (0..self.cpus as usize)
            .map(|cpu| ready.get(cpu).copied())
            .collect()
    }

    fn sample_once(
        &self,
        time_ns: u64,
        cpu: usize,
        tid: usize,
        random: &mut Random,
        accesses: &mut Vec<Access>,
    ) {
        let worker = &self.workers[tid];
        if !random.chance(worker.busy) {
            return;
        }
        let stalls: u64 = worker.steps.iter().map(|s| s.stall).sum();
        let mut left = random.below(stalls);
        let stalled = random.chance(0.6).then(|| {
            let at = worker.steps.iter().position(|s| {
                let here = left < s.stall;
                left = left.saturating_sub(s.stall);
                here
            });
            at.expect("the lot is below the sum")
        });
        for (n, step) in worker.steps.iter().enumerate() {
            let basis = if stalled == Some(n) {
                Basis::Stalled
            } else if random.chance(self.harvested) {
                Basis::Harvested
            } else {
                Basis::Decoded
            };
            accesses.push(Access {
                time_ns,
                addr: BASE + step.at,
                ip: 0x401000 + tid as u64 * 0x100 + n as u64 * 4,
                cost: if basis == Basis::Stalled {
                    Cost((self.period_ms * MS_NS) as u32)
                } else {
                    Cost(0)
                },
                pid: Pid(worker.pid),
                tid: Tid(1000 + tid as u32),
                cpu: Cpu(cpu as u32),
                size: step.size,
                op: step.op,
                basis,
                locked: false,
                kernel: false,
                ..Access::BLANK
            });
        }
    }
}

impl Stream {
    pub(super) fn observe(&self, table: &mut LineTable, accesses: &[Access]) {
        for access in accesses {
            let space = SpaceId(access.pid.0);
            let addr = access.addr;
            let place = if self.shared_memory {
                Place::Shared {
                    dev: 1,
                    inode: 7,
                    offset: addr,
                }
            } else {
                Place::Private { space, addr }
            };
            table.observe(access, place, space);
        }
    }

    pub(super) fn table(&self) -> LineTable {
        LineTable::new(AnalysisOptions {
            line_size: self.line_size,
            sample_period_ns: self.period_ns,
            ..AnalysisOptions::default()
        })
    }

    pub(super) fn judge(&self) -> Vec<Judgement> {
        let mut table = self.table();
        self.observe(&mut table, &self.accesses);
        judge_all(
            &table,
            &WatchedLines::default(),
            self.whole,
            &Thresholds::default(),
        )
    }
}
