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
    Evidence, Progress, Source, SourceError, SourceKind, SourceOptions, Target, Watching,
    cpu_events::{CpuEvents, context_of},
    heap::{self, HeapTracker},
    live::{Live, read_kernel},
    local_storage::LocalStorage,
    order::TimeOrder,
    perf_record::{self, RecordKind},
    proc_snapshot,
    sampled_code::SampledCode,
    watch::{Hit, Watcher},
};
use crate::{
    access::{Access, Basis, Cpu, Measured, Pid, Tid},
    decode::{Registers, Stall, Touch},
    event::{Batch, Context, ContextKind, Tally, Unresolved, Window, WindowEnd},
    machine::{Machine, btf::TaskOffsets},
    module::ModuleStore,
    sys::{clock, perf_event, poll, process_memory},
};

/// A stack pointer that moved by more than this is told anew (another stack, a coroutine).
const STACK_MOVED_BYTES: u64 = 1 << 20;

/// Breakpoint registers left to a debugger that is attached to a target.
const LEFT_TO_DEBUGGER: usize = 2;

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
    Hit(Box<Hit>),
    /// A closed window, after its last hit.
    Window(Box<Window>),
    Heap(heap::Pending),
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
    local_storage: LocalStorage,
    watcher: Option<Watcher>,
    heap: Option<HeapTracker>,
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
        let heap_least = options.heap.as_ref().map(|heap| heap.least_bytes);
        let mut live = Live::load(target, machine, offsets, heap_least)?;
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
        let watcher = match options.watch {
            Watching::Off => None,
            Watching::IfPossible | Watching::Required => {
                let online: Vec<Cpu> = cpus.iter().map(|events| events.cpu).collect();
                match watcher(&mut live, &online, target, &modules) {
                    Ok(watcher) => Some(watcher),
                    Err(error) if options.watch == Watching::Required => return Err(error),
                    Err(error) => {
                        live.caveat(format!(
                            "no line was watched, so nothing is confirmed: {error}"
                        ));
                        None
                    }
                }
            }
        };
        let mut heap = (options.heap.as_ref())
            .map(|options| HeapTracker::open(&mut live, target, options, modules.clone()))
            .transpose()?;
        let mut order = TimeOrder::default();
        for context in live.find_targets(target)? {
            if let Some(heap) = &mut heap {
                heap.notice(&context.kind);
            }
            order.push(context.time_ns, Pending::Context(context.kind));
        }
        if let Some(heap) = &heap {
            heap.wait();
        }
        let mut timer = Timer {
            live,
            cpus,
            period_ns,
            started_ns: clock::monotonic_ns(),
            stopped: false,
            ended: false,
            order,
            local_storage: LocalStorage::new(modules.clone()),
            code: SampledCode::new(modules),
            told: FxHashMap::default(),
            watcher,
            heap,
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
        let mut hits = Vec::new();
        if let Some(watcher) = &mut self.watcher {
            watcher.drain(self.stopped, |time_ns, hit| {
                hits.push((time_ns, Box::new(hit)));
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
                            if let Some(heap) = &mut self.heap
                                && is_of_target(&self.live, &kind)
                            {
                                heap.notice(&kind);
                            }
                            self.order.push(id.time_ns, Pending::Context(kind));
                        }
                    }
                    Err(_) => tally.lost_context += 1,
                });
        }
        if let Some(heap) = &mut self.heap {
            heap.drain(|time_ns, pending| self.order.push(time_ns, Pending::Heap(pending)));
        }
        for sample in samples {
            self.order.push(sample.time_ns, Pending::Sample(sample));
        }
        for (time_ns, hit) in hits {
            self.order.push(time_ns, Pending::Hit(hit));
        }
    }

    fn take(&mut self, time_ns: u64, pending: Pending, batch: &mut Batch) {
        match pending {
            Pending::Context(kind) => {
                self.end_watching_of_the_gone(&kind);
                self.live.take_context(Context { time_ns, kind }, batch);
            }
            Pending::Hit(hit) => {
                if let Some(watcher) = &mut self.watcher {
                    watcher.take_hit(time_ns, &hit, &mut self.live, batch);
                }
            }
            Pending::Window(window) => {
                if let Some(watcher) = &mut self.watcher {
                    watcher.take_window(*window, batch);
                }
            }
            Pending::Heap(pending) => {
                if let Some(heap) = &mut self.heap {
                    heap.take(time_ns, pending, &self.live, batch);
                }
            }
            Pending::Sample(sample) => self.take_sample(time_ns, &sample, batch),
        }
    }

    /// A process that ended or became another program is not watched on: its address means something else.
    fn end_watching_of_the_gone(&mut self, kind: &ContextKind) {
        let gone = match kind {
            ContextKind::Comm {
                pid, exec: true, ..
            } => Some(*pid),
            ContextKind::Exit { pid, tid } if pid.0 == tid.0 => Some(*pid),
            _ => None,
        };
        if let (Some(pid), Some(watcher)) = (gone, &mut self.watcher)
            && watcher.watches(pid)
        {
            let closed = watcher.close(Some(WindowEnd::Gone));
            self.window_closed(closed);
        }
    }

    /// Puts a closed window behind all of its hits, which are in the rings by now.
    fn window_closed(&mut self, window: Result<Option<Window>, SourceError>) {
        match window {
            Ok(Some(window)) => {
                let time_ns = clock::monotonic_ns();
                self.order.push(time_ns, Pending::Window(Box::new(window)));
            }
            Ok(None) => {}
            // What was not disarmed goes with its descriptors. Sampling goes on.
            Err(error) => {
                self.watcher = None;
                self.live.caveat(format!("watching ended early: {error}"));
            }
        }
    }

    fn take_sample(&mut self, time_ns: u64, sample: &SampleRecord, batch: &mut Batch) {
        let tally = &mut batch.tally;
        tally.samples += 1;
        tally.sampled_ns += self.period_ns;
        let (pid, tid, cpu) = (Pid(sample.pid), Tid(sample.tid), Cpu(sample.cpu));
        let in_kernel = sample.flags & SAMPLE_KERNEL != 0;
        let registers = registers(sample);
        if in_kernel {
            tally.kernel_samples += 1;
        } else if let Some(context) = self.thread_context(time_ns, pid, tid, &registers) {
            self.live.spaces.apply(&context);
            batch.context.push(context);
        }
        if let (false, Some(tp)) = (in_kernel, registers.fs_base) {
            self.tell_local_storage(time_ns, (pid, tid, tp), batch);
        }
        let tally = &mut batch.tally;
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
                measured: Measured::default(),
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

    /// News of where the thread has its thread-local variables.
    fn tell_local_storage(&mut self, time_ns: u64, thread: (Pid, Tid, u64), batch: &mut Batch) {
        let (pid, tid, tp) = thread;
        if !self.local_storage.is_due(time_ns, tid, tp) {
            return;
        }
        let mut read = |address| {
            let mut word = [0; 8];
            let read = process_memory::read(pid, address, &mut word).ok()?;
            (read == word.len()).then(|| u64::from_le_bytes(word))
        };
        let blocks = (self.local_storage).look(time_ns, thread, &self.live.spaces, &mut read);
        for block in blocks {
            let kind = ContextKind::LocalStorage { pid, tid, block };
            let context = Context { time_ns, kind };
            self.live.spaces.apply(&context);
            batch.context.push(context);
        }
    }

    fn count(&mut self, tally: &mut Tally) {
        if let Some(heap) = &mut self.heap {
            heap.count(&mut tally.heap);
        }
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
        let closed = self.watcher.as_mut().map_or(Ok(None), Watcher::settle);
        self.window_closed(closed);
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
        let closed = (self.watcher.as_mut())
            .map_or(Ok(None), |watcher| watcher.close(Some(WindowEnd::Asked)));
        self.window_closed(closed);
        if let Some(heap) = &mut self.heap {
            heap.stop();
        }
        self.stopped = true;
    }

    fn started_ns(&self) -> u64 {
        self.started_ns
    }

    fn cpus(&self) -> u32 {
        self.cpus.len() as u32
    }

    fn watcher(&mut self) -> Option<&mut Watcher> {
        self.watcher.as_mut()
    }

    fn heap(&self) -> Option<&HeapTracker> {
        self.heap.as_ref()
    }

    fn caveats(&self) -> Vec<String> {
        let heap = self.heap.as_ref().and_then(HeapTracker::caveat);
        self.live.caveats().iter().cloned().chain(heap).collect()
    }
}

/// The watcher, which leaves breakpoint registers to a debugger that holds a target.
fn watcher(
    live: &mut Live,
    cpus: &[Cpu],
    target: &Target,
    modules: &Arc<ModuleStore>,
) -> Result<Watcher, SourceError> {
    let traced = |pids: &Vec<Pid>| {
        let proc = Path::new("/proc");
        pids.iter().any(|pid| proc_snapshot::is_traced(proc, *pid))
    };
    let leave = match target {
        Target::Trees(pids) if traced(pids) => LEFT_TO_DEBUGGER,
        _ => 0,
    };
    if leave > 0 {
        live.caveat(format!(
            "a debugger is attached to a target: {leave} of the breakpoint registers were left to it"
        ));
    }
    Watcher::open(live, cpus, leave, modules.clone())
}

/// Whether what happened concerns a target.
fn is_of_target(live: &Live, kind: &ContextKind) -> bool {
    match kind {
        ContextKind::Fork { parent_pid, .. } => live.is_target(*parent_pid),
        ContextKind::Mapping { pid, .. }
        | ContextKind::Comm { pid, .. }
        | ContextKind::Exit { pid, .. }
        | ContextKind::Thread { pid, .. }
        | ContextKind::LocalStorage { pid, .. } => live.is_target(*pid),
    }
}

/// The registers of a sample or hit.
pub(super) fn registers(sample: &SampleRecord) -> Registers {
    Registers {
        gpr: sample.regs,
        ip: sample.ip,
        fs_base: (sample.flags & SAMPLE_FS_BASE != 0).then_some(sample.fs_base),
        gs_base: None,
    }
}

#[cfg(test)]
mod tests;
