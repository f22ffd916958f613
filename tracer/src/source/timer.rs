//! The `timer` source: cpu-clock samples by BPF on every CPU, decoded to the accesses around them.
//! Needs no PMU.
//!
//! One perf event per online CPU runs the kernel half, which copies the registers of targets into that
//! CPU's ring. A second event per CPU carries perf's own records of mappings, names, forks and exits into
//! a ring of its own, so that a flood of samples never displaces what gives them meaning.

use std::{os::fd::AsFd, path::Path, sync::Arc, time::Duration};

use rustc_hash::FxHashMap;
use tracer_ebpf::{SAMPLE_32BIT, SAMPLE_FS_BASE, SAMPLE_KERNEL, SampleRecord, Stats};
use zerocopy::FromBytes;

use super::{
    Evidence, Progress, Source, SourceError, SourceKind, SourceOptions, Target,
    cpu_events::{CpuEvents, context_of},
    order::TimeOrder,
    perf_record::{self, RecordKind},
    proc_snapshot,
    sampled_code::SampledCode,
    tracked::Tracked,
};
use crate::{
    access::{Access, Basis, Cpu, Pid, Tid},
    decode::{Registers, Stall, Touch},
    event::{Batch, Context, ContextKind, Tally, Unresolved},
    machine::{Machine, btf::TaskOffsets},
    module::ModuleStore,
    space::AddressSpaces,
    sys::{
        bpf::{self, KernelHalf},
        clock, perf_event, poll,
    },
};

/// Where `kernel.pid_max` is unknown: the most that 64-bit kernels allow (PID_MAX_LIMIT,
/// include/linux/threads.h).
const PID_MAX_LIMIT: u32 = 4 << 20;
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
    kernel: KernelHalf,
    /// The kernel half keeps its targets up to date itself.
    follows_forks: bool,
    cpus: Vec<CpuEvents>,
    period_ns: u64,
    started_ns: u64,
    stopped: bool,
    ended: bool,
    order: TimeOrder<Pending>,
    spaces: AddressSpaces,
    code: SampledCode,
    tracked: Tracked,
    told: FxHashMap<Tid, ToldThread>,
    stats: FxHashMap<Cpu, Stats>,
    touches: Vec<Touch>,
    caveats: Vec<String>,
}

impl Timer {
    fn open(
        target: &Target,
        options: &SourceOptions,
        machine: &Machine,
        offsets: TaskOffsets,
        modules: Arc<ModuleStore>,
    ) -> Result<Timer, SourceError> {
        if machine.privileges.initial_pid_namespace == Some(false) {
            return Err(SourceError::PidNamespace);
        }
        let own_pid = Pid(std::process::id());
        let mut caveats = Vec::new();
        let mut kernel = KernelHalf::load(&bpf::Options {
            all_processes: *target == Target::Everything,
            pid_max: machine
                .kernel
                .pid_max
                .map_or(PID_MAX_LIMIT, |max| max as u32),
            tgid_offset: offsets.tgid,
            thread_pointer_offset: offsets.thread_pointer,
        })?;
        let mut cpus = Vec::new();
        let period_ns = 1_000_000_000 / options.frequency_hz.max(1);
        for &cpu in machine.online_cpus() {
            match CpuEvents::open(cpu, period_ns, options.ring_bytes, &mut kernel) {
                Ok(events) => cpus.push(events),
                // It went offline since the list was read.
                Err(SourceError::PerfEvent(perf_event::OpenError::NoCpu { cpu, .. })) => {
                    caveats.push(format!("CPU {cpu} went offline and was not sampled"));
                }
                Err(error) => return Err(error),
            }
        }
        if cpus.is_empty() {
            return Err(SourceError::NoCpus);
        }
        let follows_forks = kernel.attach_fork()?;
        if !follows_forks && *target != Target::Everything {
            caveats.push(
                "children of the targets were noticed late, because this kernel has no BTF: some of \
                 their first samples are missing"
                    .to_owned(),
            );
        }
        let mut timer = Timer {
            kernel,
            follows_forks,
            cpus,
            period_ns,
            started_ns: clock::monotonic_ns(),
            stopped: false,
            ended: false,
            order: TimeOrder::default(),
            spaces: AddressSpaces::default(),
            code: SampledCode::new(modules),
            tracked: Tracked::new(target, own_pid),
            told: FxHashMap::default(),
            stats: FxHashMap::default(),
            touches: Vec::new(),
            caveats,
        };
        timer.snapshot(target);
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

    /// Tells the kernel half its targets and takes in what they have mapped. The side-band events run
    /// already, so whatever changes from here on is seen as well.
    fn snapshot(&mut self, target: &Target) {
        let proc = Path::new("/proc");
        let pids = match target {
            Target::Everything => proc_snapshot::pids(proc),
            Target::Trees(roots) => {
                for root in roots {
                    self.aim_at(*root);
                }
                let mut found = roots.clone();
                // A target may fork while the list is read, before its own byte was set: read again
                // until nothing new turns up.
                loop {
                    let new: Vec<Pid> = proc_snapshot::pids(proc)
                        .into_iter()
                        .filter(|pid| !found.contains(pid))
                        .filter(|pid| {
                            proc_snapshot::parent(proc, *pid).is_some_and(|p| found.contains(&p))
                        })
                        .collect();
                    if new.is_empty() {
                        break found;
                    }
                    for pid in new {
                        self.aim_at(pid);
                        self.tracked.add(pid);
                        found.push(pid);
                    }
                }
            }
        };
        let now_ns = clock::monotonic_ns();
        for pid in pids.into_iter().filter(|pid| self.tracked.contains(*pid)) {
            for context in proc_snapshot::process(proc, pid, now_ns) {
                self.order
                    .push(context.time_ns, Pending::Context(context.kind));
            }
        }
    }

    fn aim_at(&mut self, pid: Pid) {
        if !self.kernel.set_target(pid, true) {
            self.caveats.push(format!(
                "process {} is above kernel.pid_max and was not sampled",
                pid.0
            ));
        }
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
            Pending::Context(kind) => {
                let context = Context { time_ns, kind };
                let tracked = self.tracked.follow(&context);
                if let ContextKind::Fork {
                    pid, parent_pid, ..
                } = context.kind
                    && pid != parent_pid
                    && !self.follows_forks
                {
                    // Above kernel.pid_max there is nothing to set, and no process either.
                    let _ = self.kernel.set_target(pid, tracked);
                }
                if tracked {
                    self.spaces.apply(&context);
                    batch.context.push(context);
                }
            }
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
            self.spaces.apply(&context);
            batch.context.push(context);
        }
        self.touches.clear();
        if sample.flags & SAMPLE_32BIT != 0 {
            *tally.unresolved.entry(Unresolved::Code32Bit).or_default() += 1;
            return;
        }
        let kernel = &mut self.kernel;
        let harvest = self.code.harvest(
            &mut self.spaces,
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
        let Ok(stats) = self.kernel.stats() else {
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
        self.caveats.clone()
    }
}

/// Kernel text of any length, a piece at a time.
fn read_kernel(kernel: &mut KernelHalf, addr: u64, len: usize) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(len);
    while bytes.len() < len {
        let piece = kernel
            .read_kernel(addr + bytes.len() as u64, len - bytes.len())
            .ok()?;
        if piece.is_empty() {
            return None;
        }
        bytes.extend(piece);
    }
    Some(bytes)
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
