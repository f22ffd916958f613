//! The `timer` source: cpu-clock samples by BPF on every CPU, decoded to the accesses around them.
//! Needs no PMU.
//!
//! One perf event per online CPU runs the kernel half, which copies the registers of targets into that
//! CPU's ring. A second event per CPU carries perf's own records of mappings, names, forks and exits into
//! a ring of its own, so that a flood of samples never displaces what gives them meaning.

use std::{os::fd::AsFd, sync::Arc, time::Duration};

use rustc_hash::FxHashMap;
use tracer_ebpf::{SAMPLE_32BIT, SAMPLE_FS_BASE, SAMPLE_KERNEL, SampleRecord, Stats};
use zerocopy::FromBytes;

use super::{
    Evidence, Progress, Source, SourceError, SourceKind, SourceOptions, Target,
    cpu_events::{CpuEvents, context_of},
    live::{Live, read_kernel},
    order::TimeOrder,
    perf_record::{self, RecordKind},
    sampled_code::SampledCode,
};
use crate::{
    access::{Access, Basis, Cpu, Pid, Tid},
    decode::{Registers, Stall, Touch},
    event::{Batch, Context, ContextKind, Tally, Unresolved},
    machine::{Machine, btf::TaskOffsets},
    module::ModuleStore,
    sys::{clock, perf_event, poll},
};

/// A stack pointer that moved by more than this is told anew (another stack, a coroutine).
const STACK_MOVED_BYTES: u64 = 1 << 20;

/// Position of the stack pointer among x86-64's registers.
const RSP: usize = 4;

/// The registered kind.
pub static KIND: Kind = Kind;

/// Describes and opens the timer source.
pub struct Kind;

impl SourceKind for Kind {
    fn name(&self) -> &'static str {
        "timer"
    }

    fn about(&self) -> &'static str {
        "cpu-clock samples and instruction decoding; needs no PMU"
    }

    fn evidence(&self) -> Evidence {
        Evidence::DATA_ADDR
            .and(Evidence::EXACT_IP)
            .and(Evidence::STORES)
            .and(Evidence::COST)
    }

    fn open(
        &self,
        target: &Target,
        options: &SourceOptions,
        machine: &Machine,
        modules: Arc<ModuleStore>,
    ) -> Result<Box<dyn Source>, SourceError> {
        // Without BTF the kernel half does without: later children, no thread pointers.
        let offsets = TaskOffsets::of_running_kernel().unwrap_or_default();
        let timer = Timer::open(target, options, machine, offsets, modules)?;
        Ok(Box::new(timer))
    }
}

enum Pending {
    Context(ContextKind),
    // Boxed: a sample is ten times a context.
    Sample(Box<SampleRecord>),
}

/// What was last told of a thread.
struct ToldThread {
    sp: u64,
    tp: Option<u64>,
}

struct Timer {
    live: Live,
    cpus: Vec<CpuEvents>,
    period_ns: u64,
    started_ns: u64,
    stopped: bool,
    ended: bool,
    order: TimeOrder<Pending>,
    code: SampledCode,
    told: FxHashMap<Tid, ToldThread>,
    stats: FxHashMap<Cpu, Stats>,
    touches: Vec<Touch>,
}

impl Timer {
    fn open(
        target: &Target,
        options: &SourceOptions,
        machine: &Machine,
        offsets: TaskOffsets,
        modules: Arc<ModuleStore>,
    ) -> Result<Timer, SourceError> {
        let mut live = Live::load(target, machine, offsets)?;
        let mut cpus = Vec::new();
        let period_ns = 1_000_000_000 / options.frequency_hz.max(1);
        for &cpu in machine.online_cpus() {
            match CpuEvents::open(cpu, period_ns, options.ring_bytes, &mut live.kernel) {
                Ok(events) => cpus.push(events),
                // It went offline since the list was read.
                Err(SourceError::PerfEvent(perf_event::OpenError::NoCpu { cpu, .. })) => {
                    live.caveat(format!("CPU {cpu} went offline and was not sampled"));
                }
                Err(error) => return Err(error),
            }
        }
        if cpus.is_empty() {
            return Err(SourceError::NoCpus);
        }
        let mut order = TimeOrder::default();
        for context in live.find_targets(target)? {
            order.push(context.time_ns, Pending::Context(context.kind));
        }
        let mut timer = Timer {
            live,
            cpus,
            period_ns,
            started_ns: clock::monotonic_ns(),
            stopped: false,
            ended: false,
            order,
            code: SampledCode::new(modules),
            told: FxHashMap::default(),
            stats: FxHashMap::default(),
            touches: Vec::new(),
        };
        timer.started_ns = clock::monotonic_ns();
        for events in &timer.cpus {
            events
                .clock
                .enable()
                .map_err(|source| SourceError::System {
                    what: "starting the cpu-clock",
                    source,
                })?;
        }
        Ok(timer)
    }

    /// Takes everything out of the rings. Samples first: every mapping that an already taken sample
    /// needs is then in the side-band rings.
    fn drain(&mut self, tally: &mut Tally) {
        let mut samples = Vec::new();
        for events in &mut self.cpus {
            events.samples.drain(|bytes| {
                if let Ok(record) = perf_record::parse(bytes)
                    && let RecordKind::Raw(raw) = record.kind
                    && let Ok((sample, _)) = SampleRecord::read_from_prefix(raw)
                {
                    samples.push(Box::new(sample));
                }
            });
        }
        for events in &mut self.cpus {
            events
                .sideband
                .drain(|bytes| match perf_record::parse(bytes) {
                    Ok(record) => {
                        if let RecordKind::Lost(count) = record.kind {
                            tally.lost_context += count;
                        }
                        if let Some((id, kind)) = record.id.zip(context_of(record.kind)) {
                            self.order.push(id.time_ns, Pending::Context(kind));
                        }
                    }
                    Err(_) => tally.lost_context += 1,
                });
        }
        for sample in samples {
            self.order.push(sample.time_ns, Pending::Sample(sample));
        }
    }

    fn take(&mut self, time_ns: u64, pending: Pending, batch: &mut Batch) {
        match pending {
            Pending::Context(kind) => self.live.take_context(Context { time_ns, kind }, batch),
            Pending::Sample(sample) => self.take_sample(time_ns, &sample, batch),
        }
    }

    fn take_sample(&mut self, time_ns: u64, sample: &SampleRecord, batch: &mut Batch) {
        let tally = &mut batch.tally;
        tally.samples += 1;
        tally.sampled_ns += self.period_ns;
        let (pid, tid, cpu) = (Pid(sample.pid), Tid(sample.tid), Cpu(sample.cpu));
        let in_kernel = sample.flags & SAMPLE_KERNEL != 0;
        let fs_base = (sample.flags & SAMPLE_FS_BASE != 0).then_some(sample.fs_base);
        let registers = registers(sample, fs_base);
        if in_kernel {
            tally.kernel_samples += 1;
        } else if let Some(context) = self.thread_context(time_ns, pid, tid, &registers) {
            self.live.spaces.apply(&context);
            batch.context.push(context);
        }
        self.touches.clear();
        if sample.flags & SAMPLE_32BIT != 0 {
            *tally.unresolved.entry(Unresolved::Code32Bit).or_default() += 1;
            return;
        }
        let kernel = &mut self.live.kernel;
        let harvest = self.code.harvest(
            &mut self.live.spaces,
            pid,
            &registers,
            &mut |addr, len| read_kernel(kernel, addr, len),
            &mut self.touches,
        );
        tally.operands_unknown += u64::from(harvest.operands_unknown);
        let mut cost_ns = 0;
        match harvest.stall {
            Stall::Attributed => {
                tally.attributed += 1;
                cost_ns = self.period_ns as u32;
            }
            Stall::Unresolved(reason) => *tally.unresolved.entry(reason).or_default() += 1,
        }
        for touch in &self.touches {
            // An instruction with two memory operands stalled once.
            let cost_ns = if touch.basis == Basis::Stalled {
                std::mem::take(&mut cost_ns)
            } else {
                0
            };
            batch.accesses.push(Access {
                time_ns,
                addr: touch.addr,
                ip: touch.ip,
                cost_ns,
                pid,
                tid,
                cpu,
                size: touch.size,
                op: touch.op,
                basis: touch.basis,
                locked: touch.locked,
                kernel: in_kernel,
            });
        }
    }

    /// News of where the thread keeps its stack and its local storage, if it is news.
    fn thread_context(
        &mut self,
        time_ns: u64,
        pid: Pid,
        tid: Tid,
        registers: &Registers,
    ) -> Option<Context> {
        let sp = registers.gpr[RSP];
        let tp = registers.fs_base;
        let told = self.told.get(&tid);
        if told.is_some_and(|t| t.tp == tp && t.sp.abs_diff(sp) < STACK_MOVED_BYTES) {
            return None;
        }
        self.told.insert(tid, ToldThread { sp, tp });
        Some(Context {
            time_ns,
            kind: ContextKind::Thread { pid, tid, sp, tp },
        })
    }

    fn count(&mut self, tally: &mut Tally) {
        let Ok(stats) = self.live.kernel.stats() else {
            return;
        };
        for (cpu, now) in stats {
            let before = self.stats.insert(cpu, now).unwrap_or_default();
            tally.produced += now.produced - before.produced;
            tally.filtered += now.filtered - before.filtered;
            let dropped = now.dropped - before.dropped;
            if dropped > 0 {
                *tally.lost.entry(cpu).or_default() += dropped;
            }
        }
    }
}

impl Source for Timer {
    fn poll(&mut self, batch: &mut Batch, wait: Duration) -> Result<Progress, SourceError> {
        if self.ended {
            return Ok(Progress::End);
        }
        if !self.stopped {
            let rings: Vec<_> = self
                .cpus
                .iter()
                .flat_map(|c| [c.samples.event().as_fd(), c.sideband.event().as_fd()])
                .collect();
            poll::wait_readable(&rings, wait).map_err(|source| SourceError::System {
                what: "waiting for samples",
                source,
            })?;
        }
        let round_ns = clock::monotonic_ns();
        let mut tally = Tally::default();
        self.drain(&mut tally);
        self.count(&mut tally);
        batch.tally.add(&tally);
        let released: Vec<_> = if self.stopped {
            self.ended = true;
            self.order.finish().collect()
        } else {
            self.order.end_round(round_ns).collect()
        };
        for (time_ns, pending) in released {
            self.take(time_ns, pending, batch);
        }
        Ok(if self.ended {
            Progress::End
        } else {
            Progress::Running
        })
    }

    fn stop(&mut self) {
        for events in &self.cpus {
            // A CPU that went offline has nothing left to disable.
            let _ = events.clock.disable();
        }
        self.stopped = true;
    }

    fn started_ns(&self) -> u64 {
        self.started_ns
    }

    fn cpus(&self) -> u32 {
        self.cpus.len() as u32
    }

    fn caveats(&self) -> Vec<String> {
        self.live.caveats().to_vec()
    }
}

fn registers(sample: &SampleRecord, fs_base: Option<u64>) -> Registers {
    Registers {
        gpr: sample.regs,
        ip: sample.ip,
        fs_base,
        gs_base: None,
    }
}

#[cfg(test)]
mod tests;
