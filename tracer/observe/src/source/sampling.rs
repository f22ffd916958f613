//! What live sources have in common, whatever takes the samples: targets, side-band, watch windows, heap, and
//! one order of all of it.
//!
//! A perf event per online CPU runs the kernel half, which copies what it sees of targets into that CPU's ring.
//! A second event per CPU carries perf's own records of mappings, names, forks and exits into a ring of its own,
//! so that a flood of samples never displaces what gives them meaning.

mod upkeep;

use std::{
    os::fd::{AsFd, BorrowedFd},
    sync::Arc,
    time::Duration,
};

use rustc_hash::FxHashMap;
use tracer_ebpf::Stats;

use super::{
    Progress, Source, SourceError, SourceOptions, Target, Watching,
    cpu_events::{CpuRings, context_of},
    heap::{self, HeapTracker},
    keep_up::{Aside, KeepUp},
    live::Live,
    order::TimeOrder,
    pointers::Pointers,
    presence::Presence,
    retiring::{Retiring, Unmapped},
    threads::Threads,
    watch::{Hit, Watcher},
    watchdog::Watchdog,
};
use crate::{
    access::{Cpu, Pid},
    event::{Batch, Context, ContextKind, Pace, Tally, Window, WindowEnd},
    machine::{Machine, btf::KernelOffsets},
    module::{ModuleStore, Stamps},
    perf_format::ring_record::{self, RecordKind},
    space::MappedFiles,
    sys::{
        bpf::{KernelHalf, Told},
        clock, perf_event,
        poll::Descriptors,
    },
};
use upkeep::{Announced, left_to_debugger};

/// What takes samples: opens events on CPUs, and makes accesses of what the kernel half wrote of them.
pub(super) trait Sampler {
    /// What the kernel half writes of a sample.
    type Record;

    /// The CPUs that can be sampled, of those online.
    fn cpus(&self, machine: &Machine) -> Vec<Cpu> {
        machine.online_cpus().to_vec()
    }
    /// Whether this CPU can be sampled when it comes online.
    fn covers(&self, _cpu: Cpu) -> bool {
        true
    }
    /// Time between two samples of a CPU that is not idle, nanoseconds, where that is fixed.
    fn period_ns(&self) -> Option<u64> {
        None
    }
    /// Opens the events of a CPU, off at first, and has the kernel half run on them.
    fn open_on(&mut self, cpu: Cpu, kernel: &mut KernelHalf) -> Result<(), SourceError>;
    /// Ends the events of a CPU, if there are any.
    fn close_on(&mut self, cpu: Cpu);
    /// Starts all events; those that run already go on.
    fn start(&self) -> Result<(), SourceError>;
    /// Ends all events. One whose CPU went offline has nothing left to end.
    fn stop(&self);
    /// The record and its time, CLOCK_MONOTONIC nanoseconds; `None` for bytes that are none.
    fn parse(raw: &[u8]) -> Option<(u64, Self::Record)>;
    /// Whose sample it is.
    fn pid(record: &Self::Record) -> Pid;
    /// Makes accesses of a sample. Everything older has been taken.
    fn take(&mut self, time_ns: u64, record: &Self::Record, to: &mut Taking<'_>);
    /// What was counted in the kernel half since the last time on all CPUs, or in all, that no tally has.
    fn count(&mut self, _not_memory: u64) {}
    /// What could not be seen, in sentences for the report.
    fn caveats(&self) -> Vec<String> {
        Vec::new()
    }
}

/// What a sample is held against, and where its accesses go.
pub(super) struct Taking<'a> {
    /// Meaning of addresses up to now, and the kernel half.
    pub live: &'a mut Live,
    /// What was told of threads.
    pub threads: &'a mut Threads,
    /// Takes accesses, context and counts.
    pub batch: &'a mut Batch,
}

enum Pending<R> {
    Context(ContextKind),
    // Boxed: a sample is ten times a context.
    Sample(Box<R>),
    Hit(Box<Hit>),
    /// A closed window, after its last hit.
    Window(Box<Window>),
    Heap(heap::Pending),
}

/// A running observation by such samples.
pub(super) struct Sampling<S: Sampler> {
    live: Live,
    sampler: S,
    /// Lent to the keeper while something else is done than taking and waiting.
    rings: Vec<CpuRings>,
    keep_up: KeepUp<Vec<CpuRings>>,
    /// Taken out of the rings since they were lent.
    aside: Aside,
    cpus: u32,
    started_ns: u64,
    stopped: bool,
    ended: bool,
    order: TimeOrder<Pending<S::Record>>,
    threads: Threads,
    pointers: Pointers,
    watcher: Option<Watcher>,
    heap: Option<HeapTracker>,
    stats: FxHashMap<Cpu, Stats>,
    stamps: Stamps,
    ring_bytes: usize,
    presence: Presence,
    announced: Announced,
    watchdog: Option<Watchdog>,
    /// Breakpoint registers that are ours to take, before a debugger comes.
    slots: usize,
    left_to_debugger: usize,
    debuggers_looked_ns: u64,
    modules: Arc<ModuleStore>,
    retiring: Retiring,
    descriptors: Descriptors,
    /// How long may pass until the next look.
    pause: Duration,
    /// Of all that was ever taken out of the rings.
    newest_ns: u64,
}

/// Between two looks while there is something to see: short enough for live figures.
const BUSY: Duration = Duration::from_millis(50);
/// The same while there is not.
const QUIET: Duration = Duration::from_millis(200);

impl<S: Sampler> Sampling<S> {
    /// Opens everything, and starts.
    pub(super) fn open(
        target: &Target,
        options: &SourceOptions,
        machine: &Machine,
        offsets: &KernelOffsets,
        modules: &Arc<ModuleStore>,
        mut sampler: S,
    ) -> Result<Sampling<S>, SourceError> {
        let heap_least = options.heap.as_ref().map(|heap| heap.least_bytes);
        let mut live = Live::load(target, machine, offsets, heap_least, options.tells)?;
        // Before the first CPU is opened: of those that change from here on it tells.
        let announced = Announced::listen();
        let mut rings = Vec::new();
        for cpu in sampler.cpus(machine) {
            let opened = CpuRings::open(cpu, options.ring_bytes, &live.kernel)
                .and_then(|opened| sampler.open_on(cpu, &mut live.kernel).map(|()| opened));
            match opened {
                Ok(opened) => rings.push(opened),
                // It went offline since the list was read.
                Err(SourceError::PerfEvent(perf_event::OpenError::NoCpu { cpu, .. })) => {
                    live.caveat(format!("CPU {cpu} went offline and was not sampled"));
                }
                Err(error) => return Err(error),
            }
        }
        if rings.is_empty() {
            return Err(SourceError::NoCpus);
        }
        let leave = left_to_debugger(target);
        let watcher = match options.watch {
            Watching::Off => None,
            Watching::IfPossible | Watching::Required => {
                let online: Vec<Cpu> = rings.iter().map(|rings| rings.cpu).collect();
                let slots = upkeep::slots(options.slots, leave);
                match Watcher::open(&mut live, &online, slots, modules.clone()) {
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
        let mut stamps = Stamps::new("/".into());
        for mut context in live.find_targets(target)? {
            stamps.complete_told(context.time_ns, &mut context.kind);
            if let Some(heap) = &mut heap {
                heap.notice(&context.kind);
            }
            order.push(context.time_ns, Pending::Context(context.kind));
        }
        if let Some(heap) = &heap {
            heap.wait();
        }
        let keep_up = KeepUp::start().map_err(|source| SourceError::System {
            what: "starting the thread that empties the rings",
            source,
        })?;
        let mut sampling = Sampling {
            live,
            sampler,
            cpus: rings.len() as u32,
            rings: Vec::new(),
            keep_up,
            aside: Aside::default(),
            started_ns: clock::monotonic_ns(),
            stopped: false,
            ended: false,
            order,
            threads: Threads::new(modules.clone()),
            pointers: Pointers::new(modules.clone()),
            watcher,
            heap,
            stats: FxHashMap::default(),
            stamps,
            ring_bytes: options.ring_bytes,
            presence: Presence::new([], 0),
            announced,
            watchdog: None,
            slots: options.slots,
            left_to_debugger: leave,
            debuggers_looked_ns: 0,
            modules: modules.clone(),
            retiring: Retiring::default(),
            descriptors: Descriptors::new().map_err(waiting)?,
            pause: BUSY,
            newest_ns: 0,
        };
        if leave > 0 && sampling.watcher.is_some() {
            sampling.tell_of_debugger();
        }
        let open = rings.iter().map(|rings| rings.cpu);
        sampling.presence = Presence::new(open, clock::monotonic_ns());
        sampling.watchdog = sampling.sampler.period_ns().map(Watchdog::new);
        sampling.started_ns = clock::monotonic_ns();
        sampling.sampler.start()?;
        sampling.rings = rings;
        sampling.wait_for_all()?;
        Ok(sampling)
    }

    /// Takes everything out of the rings. Samples first: every mapping that an already taken sample
    /// needs is then in the side-band rings.
    fn drain(&mut self, tally: &mut Tally) {
        let aside = std::mem::take(&mut self.aside);
        let mut samples = Vec::new();
        let mut take_sample = |bytes: &[u8]| {
            if let Ok(record) = ring_record::parse(bytes)
                && let RecordKind::Raw(raw) = record.kind
                && let Some((time_ns, sample)) = S::parse(raw)
            {
                samples.push((time_ns, Box::new(sample)));
            }
        };
        aside.samples.iter().for_each(&mut take_sample);
        for rings in &mut self.rings {
            rings.samples.drain(&mut take_sample);
        }
        let hits = self.hits(self.stopped);
        let mut take_context = |bytes: &[u8]| match ring_record::parse(bytes) {
            Ok(record) => {
                if let RecordKind::Lost(count) = record.kind {
                    tally.lost_context += count;
                }
                if let Some((id, mut kind)) = record.id.zip(context_of(record.kind)) {
                    if is_of_target(&self.live, &kind) {
                        self.stamps.complete_told(id.time_ns, &mut kind);
                        if let Some(heap) = &mut self.heap {
                            heap.notice(&kind);
                        }
                    }
                    self.order.push(id.time_ns, Pending::Context(kind));
                }
            }
            Err(_) => tally.lost_context += 1,
        };
        aside.sideband.iter().for_each(&mut take_context);
        for rings in &mut self.rings {
            rings.sideband.drain(&mut take_context);
        }
        if let Some(heap) = &mut self.heap {
            heap.drain(|time_ns, pending| self.order.push(time_ns, Pending::Heap(pending)));
        }
        for (time_ns, sample) in samples {
            self.order.push(time_ns, Pending::Sample(sample));
        }
        for (time_ns, hit) in hits {
            self.order.push(time_ns, Pending::Hit(hit));
        }
    }

    /// Has all that is open now end a wait.
    fn wait_for_all(&self) -> Result<(), SourceError> {
        let rings = (self.rings.iter()).flat_map(|c| [c.samples.event(), c.sideband.event()]);
        let watcher = self.watcher.iter();
        let hits = watcher.flat_map(|watcher| watcher.rings().chain([watcher.told()]));
        let heap = self.heap.iter().map(HeapTracker::told);
        let all = rings.map(AsFd::as_fd).chain(hits).chain(heap);
        for fd in all.chain(self.announced.descriptor()) {
            self.descriptors.add(fd).map_err(waiting)?;
        }
        Ok(())
    }

    /// Takes the hits out of their rings; `last`: nothing will follow.
    fn hits(&mut self, last: bool) -> Vec<(u64, Box<Hit>)> {
        let mut hits = Vec::new();
        if let Some(watcher) = &mut self.watcher {
            watcher.drain(last, |time_ns, hit| hits.push((time_ns, Box::new(hit))));
        }
        hits
    }

    /// Takes the last hits of rings that will be closed.
    fn drain_hits(&mut self) {
        for (time_ns, hit) in self.hits(true) {
            self.order.push(time_ns, Pending::Hit(hit));
        }
    }

    fn take(&mut self, time_ns: u64, pending: Pending<S::Record>, batch: &mut Batch) {
        match pending {
            Pending::Context(kind) => {
                self.end_watching_of_the_gone(&kind);
                self.retiring.notice(&kind, &self.live.spaces);
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
            Pending::Sample(sample) => {
                let pid = S::pid(&sample);
                self.pointers.tell(time_ns, pid, &mut self.live, batch);
                let mut to = Taking {
                    live: &mut self.live,
                    threads: &mut self.threads,
                    batch,
                };
                self.sampler.take(time_ns, &sample, &mut to);
            }
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
            Ok(Some(mut window)) => {
                if !self.all_cpus_were_there() {
                    window.end = WindowEnd::CpusChanged;
                }
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

    /// Has the rings back, with what was taken out of them meanwhile.
    fn take_back(&mut self) -> Result<(), SourceError> {
        if !self.rings.is_empty() {
            return Ok(());
        }
        let (rings, aside) = self.keep_up.take_back().ok_or(SourceError::System {
            what: "taking back the rings from the thread that empties them",
            source: std::io::ErrorKind::BrokenPipe.into(),
        })?;
        (self.rings, self.aside) = (rings, aside);
        Ok(())
    }

    /// Forgets what ended; `lost` context was lost since the last time.
    fn retire(&mut self, now_ns: u64, lost: u64) {
        let unseen = (self.retiring).unseen_ends(now_ns, lost, &self.live.spaces);
        for kind in unseen {
            self.order.push(now_ns, Pending::Context(kind));
        }
        let retired = self.retiring.retire(now_ns, &mut self.live.spaces);
        self.live.forget(&retired.processes);
        self.threads.forget(&retired.threads);
        self.pointers.forget(&retired.processes);
        self.modules.jit().end(&retired.processes);
    }

    fn count(&mut self, tally: &mut Tally) {
        if let Some(heap) = &mut self.heap {
            heap.count(&mut tally.heap);
        }
        let Ok(stats) = self.live.kernel.stats() else {
            return;
        };
        let mut not_memory = 0;
        for (cpu, now) in stats {
            let before = self.stats.insert(cpu, now).unwrap_or_default();
            tally.produced += now.produced - before.produced;
            tally.filtered += now.filtered - before.filtered;
            let dropped = now.dropped - before.dropped;
            if dropped > 0 {
                *tally.lost.entry(cpu).or_default() += dropped;
            }
            not_memory += now.not_memory - before.not_memory;
        }
        self.sampler.count(not_memory);
    }
}

impl<S: Sampler> Source for Sampling<S> {
    fn take(&mut self, batch: &mut Batch) -> Result<Progress, SourceError> {
        if self.ended {
            return Ok(Progress::End);
        }
        self.take_back()?;
        self.descriptors.clear().map_err(waiting)?;
        let closed = self.watcher.as_mut().map_or(Ok(None), Watcher::settle);
        self.window_closed(closed);
        let round_ns = clock::monotonic_ns();
        let mut tally = Tally::default();
        self.drain(&mut tally);
        self.count(&mut tally);
        self.pause = match self.order.newest_ns() {
            newest_ns if newest_ns == self.newest_ns => QUIET.min(2 * self.pause),
            newest_ns => {
                self.newest_ns = newest_ns;
                BUSY
            }
        };
        if !self.stopped {
            // After what they gave was taken: what ended with its CPU is closed.
            self.check_clocks(&mut tally);
            self.follow_cpus(&mut tally);
            self.leave_to_debuggers();
        }
        batch.tally.add(&tally);
        self.keep_up.lend(std::mem::take(&mut self.rings));
        let released: Vec<_> = if self.stopped {
            self.ended = true;
            self.order.finish().collect()
        } else {
            self.order.end_round(round_ns).collect()
        };
        for (time_ns, pending) in released {
            self.take(time_ns, pending, batch);
        }
        self.retire(round_ns, tally.lost_context);
        Ok(if self.ended {
            Progress::End
        } else {
            Progress::Running
        })
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.descriptors.as_fd())
    }

    /// What was kept aside meanwhile is taken at once; then nobody has to empty the rings.
    fn idle(&mut self) -> Result<Duration, SourceError> {
        self.take_back()?;
        Ok(if self.aside.is_empty() {
            self.pause
        } else {
            Duration::ZERO
        })
    }

    fn take_told(&mut self) -> Vec<Told> {
        self.live.kernel.take_told()
    }

    fn stop(&mut self) {
        self.sampler.stop();
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
        self.cpus
    }

    fn watcher(&mut self) -> Option<&mut Watcher> {
        self.watcher.as_mut()
    }

    fn heap(&self) -> Option<&HeapTracker> {
        self.heap.as_ref()
    }

    fn mapped_files(&self, files: &mut MappedFiles) -> bool {
        self.live.spaces.files(files);
        true
    }

    fn keep_files(&mut self, files: &MappedFiles) {
        self.threads.keep_files(files);
        if let Some(heap) = &mut self.heap {
            heap.keep_files(files);
        }
    }

    fn take_unmapped(&mut self) -> Vec<Unmapped> {
        self.retiring.take_unmapped()
    }

    fn caveats(&self) -> Vec<String> {
        let heap = self.heap.as_ref().and_then(HeapTracker::caveat);
        let own = self.live.caveats().iter().cloned();
        let watchdog = self.watchdog.iter().flat_map(Watchdog::caveats);
        own.chain(self.sampler.caveats())
            .chain(heap)
            .chain(self.presence.caveats())
            .chain(watchdog)
            .collect()
    }
}

fn waiting(source: std::io::Error) -> SourceError {
    SourceError::System {
        what: "waiting for samples",
        source,
    }
}

/// Whether what happened concerns a target.
fn is_of_target(live: &Live, kind: &ContextKind) -> bool {
    match kind {
        ContextKind::Fork { parent_pid, .. } => live.is_target(*parent_pid),
        ContextKind::Mapping { pid, .. }
        | ContextKind::Comm { pid, .. }
        | ContextKind::Exit { pid, .. }
        | ContextKind::Thread { pid, .. }
        | ContextKind::LocalStorage { pid, .. }
        | ContextKind::Pace(Pace { pid, .. }) => live.is_target(*pid),
        ContextKind::Memory { pid, .. } => pid.is_none_or(|pid| live.is_target(pid)),
    }
}
