//! Puts probes into the targets' allocators and takes them out again, in a thread of its own: opening an event
//! takes milliseconds, closing one 80 of them.

use std::{
    cmp::Reverse,
    fs::File,
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{self, Receiver, RecvTimeoutError, Sender},
    },
    thread::JoinHandle,
    time::Duration,
};

use tracer_ebpf::{HeapStats, programs};

use super::{
    allocators::{Probe, is_free, is_mapping},
    closing::Closing,
    governor::Governor,
};
use crate::{
    access::{Pid, Tid},
    event::{AllocationKind, HeapPart},
    machine::{Capabilities, Capability},
    sys::{
        bpf::{HeapPrograms, HeapStatsMap},
        capabilities, clock,
        heap_cost::HeapCosts,
        perf_event::{OpenError, PerfEvent, Scope},
        uprobe::UprobePmu,
    },
};

/// What putting probes into processes of others takes.
const RIGHTS: [Capability; 5] = [
    Capability::SYS_ADMIN,
    Capability::PERFMON,
    Capability::BPF,
    Capability::SYS_PTRACE,
    Capability::DAC_READ_SEARCH,
];
/// How often hits are counted: a storm costs all of the time until it is noticed.
const TICK: Duration = Duration::from_millis(5);
/// Events of processes that ended, which wait to be closed; while there are more, no new process is followed. Five
/// seconds' worth, as the tool cannot end before.
const MOST_WAITING: usize = 64;
/// Events open at once.
const MOST_EVENTS: usize = 512;

/// Of the budget, what the probes on `mmap` and its kin may take. They are seldom hit: while a storm of allocations
/// has the others out, these stay in.
const MAPPINGS_SHARE: f64 = 0.5;

/// A count for each program at an entry.
type Hits = [u64; programs::HEAP_ENTRIES.len()];

/// An allocator's file.
#[derive(Debug)]
pub(super) struct ProbedFile {
    /// Held open: the probes are on this very file, whatever its path is now.
    pub file: File,
    /// Those that most programs hit most first.
    pub probes: Vec<Probe>,
}

/// What the thread is told.
enum Command {
    /// A process has the file mapped, or will have.
    Follow(Pid, Arc<ProbedFile>),
    /// A process was forked.
    Inherit { parent: Pid, child: Pid },
    /// A process ended.
    Forget(Pid),
    /// Answer when all of the above is done.
    Answer(Sender<()>),
}

/// What the thread tells.
#[derive(Debug)]
pub(super) enum Note {
    /// Something for the stream: [`AllocationKind::Unseen`] or [`AllocationKind::Seen`], of one process or all of them.
    Sight(u64, Option<Pid>, AllocationKind),
    /// A process was not followed.
    NotFollowed(Option<String>),
}

/// Sums since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    /// Records that found no room.
    pub dropped: u64,
    /// Time that the probes took from the targets, nanoseconds.
    pub cost_ns: u64,
    /// Time in which some probes were out, nanoseconds.
    pub off_ns: u64,
}

/// The thread, from outside. It ends with the value, and waits for the probes to come out.
pub(super) struct Prober {
    commands: Option<Sender<Command>>,
    /// What it tells.
    pub notes: Receiver<Note>,
    totals: Arc<Mutex<Totals>>,
    thread: Option<JoinHandle<()>>,
}

/// What the thread works with.
pub(super) struct Means {
    /// Where probes are opened.
    pub pmu: UprobePmu,
    /// What runs on them.
    pub programs: HeapPrograms,
    /// What they count.
    pub stats: HeapStatsMap,
    /// What a hit costs.
    pub costs: HeapCosts,
    /// What hits may cost, a share of the wall time.
    pub share: f64,
}

impl Prober {
    /// Starts the thread.
    pub(super) fn start(means: Means) -> std::io::Result<Prober> {
        let (commands, inbox) = mpsc::channel();
        let (outbox, notes) = mpsc::channel();
        let totals = Arc::new(Mutex::new(Totals::default()));
        let shared = totals.clone();
        let thread = std::thread::Builder::new()
            .name("heap-probes".to_owned())
            .spawn(move || {
                // Where none can be given up, no other is used.
                let _ = capabilities::keep(Capabilities::of(&RIGHTS));
                Worker::new(means, outbox, shared).run(&inbox);
            })?;
        Ok(Prober {
            commands: Some(commands),
            notes,
            totals,
            thread: Some(thread),
        })
    }

    /// Follows a file in a process.
    pub(super) fn follow(&self, pid: Pid, file: Arc<ProbedFile>) {
        self.tell(Command::Follow(pid, file));
    }

    /// Follows in a forked child what is followed in its parent.
    pub(super) fn inherit(&self, parent: Pid, child: Pid) {
        self.tell(Command::Inherit { parent, child });
    }

    /// A process ended.
    pub(super) fn forget(&self, pid: Pid) {
        self.tell(Command::Forget(pid));
    }

    /// Waits until all that was told is done, at most so long.
    pub(super) fn wait(&self, limit: Duration) {
        let (answer, answered) = mpsc::channel();
        self.tell(Command::Answer(answer));
        // Whoever waits goes on anyway: what is late is seen late.
        let _ = answered.recv_timeout(limit);
    }

    /// Sums so far.
    pub(super) fn totals(&self) -> Totals {
        *self.totals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes all probes out, without waiting for it.
    pub(super) fn stop(&mut self) {
        self.commands = None;
    }

    fn tell(&self, command: Command) {
        if let Some(commands) = &self.commands {
            // Its end shows in the notes.
            let _ = commands.send(command);
        }
    }
}

impl Drop for Prober {
    fn drop(&mut self) {
        self.commands = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A file in a process.
struct Followed {
    pid: Pid,
    file: Arc<ProbedFile>,
    /// Each with the position of its probe. Empty while nothing is followed.
    events: Vec<(usize, PerfEvent)>,
}

impl Followed {
    /// The event of a part whose probe was hit most of those that are left.
    fn hottest(&mut self, part: HeapPart, hits: &Hits) -> Option<PerfEvent> {
        let of_part = |(_, (number, _)): &(usize, &(usize, PerfEvent))| {
            is_of(&self.file.probes[*number], part)
        };
        let heat = |(_, (number, _)): &(usize, &(usize, PerfEvent))| {
            let hits = position(self.file.probes[*number].entry).map_or(0, |entry| hits[entry]);
            (Reverse(hits), *number)
        };
        let events = self.events.iter().enumerate();
        let (at, _) = events.filter(of_part).min_by_key(heat)?;
        Some(self.events.swap_remove(at).1)
    }

    fn all(self) -> impl Iterator<Item = PerfEvent> {
        self.events.into_iter().map(|(_, event)| event)
    }
}

/// Whether a probe is one of a part's.
fn is_of(probe: &Probe, part: HeapPart) -> bool {
    match part {
        HeapPart::All => true,
        HeapPart::Allocations => !probe.is_mapping(),
        HeapPart::Mappings => probe.is_mapping(),
    }
}

/// Where the hits of a program are counted.
fn position(entry: &str) -> Option<usize> {
    (programs::HEAP_ENTRIES.iter()).position(|name| *name == entry)
}

/// Probes that come out and in together.
struct Group {
    part: HeapPart,
    governor: Governor,
    on: bool,
}

struct Worker {
    means: Means,
    notes: Sender<Note>,
    totals: Arc<Mutex<Totals>>,
    /// The first one's budget is the whole, for what both cost.
    groups: [Group; 2],
    before: HeapStats,
    /// As they were when probes last came in.
    put_in: Hits,
    /// Programs that run on some probe whose instruction is single-stepped.
    stepped: [bool; programs::HEAP_ENTRIES.len()],
    followed: Vec<Followed>,
    counted_ns: u64,
    /// Closes what belonged to processes that ended.
    closing: Closing,
}

impl Worker {
    fn new(means: Means, notes: Sender<Note>, totals: Arc<Mutex<Totals>>) -> Worker {
        // What the measurement of the costs left behind.
        let before = means.stats.sum().unwrap_or_default();
        let group = |part, share| Group {
            part,
            governor: Governor::new(share),
            on: true,
        };
        Worker {
            before,
            put_in: before.entries,
            stepped: [false; programs::HEAP_ENTRIES.len()],
            groups: [
                group(HeapPart::Allocations, means.share),
                group(HeapPart::Mappings, means.share * MAPPINGS_SHARE),
            ],
            means,
            notes,
            totals,
            followed: Vec::new(),
            counted_ns: clock::monotonic_ns(),
            closing: Closing::default(),
        }
    }

    fn run(mut self, inbox: &Receiver<Command>) {
        loop {
            match inbox.recv_timeout(TICK) {
                Ok(command) => self.obey(command),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            self.count();
            for at in 0..self.groups.len() {
                let Group { part, on, .. } = self.groups[at];
                if on && self.groups[at].governor.is_spent() {
                    self.groups[at].on = false;
                    self.take_out(part);
                } else if !on && self.groups[at].governor.may_resume() {
                    self.put_in(part);
                    self.groups[at].on = true;
                }
            }
        }
        for group in &mut self.groups {
            group.on = false;
        }
        // In the order in which they are hit most, for whoever runs on.
        self.take_out(HeapPart::All);
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Follow(pid, file) => self.follow(pid, file),
            Command::Inherit { parent, child } => {
                let files: Vec<Arc<ProbedFile>> = (self.followed.iter())
                    .filter(|followed| followed.pid == parent)
                    .map(|followed| followed.file.clone())
                    .collect();
                if files.is_empty() {
                    return;
                }
                self.tell(Some(child), AllocationKind::Unseen(HeapPart::All));
                for file in files {
                    self.follow(child, file);
                }
                if self.followed.iter().any(|followed| followed.pid == child) {
                    self.tell(Some(child), AllocationKind::Seen(HeapPart::All));
                }
            }
            Command::Forget(pid) => {
                let gone = self.followed.extract_if(.., |followed| followed.pid == pid);
                for followed in gone {
                    self.closing.close(followed.all().collect());
                }
            }
            Command::Answer(answer) => {
                let _ = answer.send(());
            }
        }
    }

    fn follow(&mut self, pid: Pid, file: Arc<ProbedFile>) {
        let known = |followed: &Followed| followed.pid == pid && Arc::ptr_eq(&followed.file, &file);
        if self.followed.iter().any(known) {
            return;
        }
        let open: usize = self
            .followed
            .iter()
            .map(|followed| followed.events.len())
            .sum();
        if open + file.probes.len() > MOST_EVENTS || self.closing.waiting() > MOST_WAITING {
            self.not_followed(None);
            return;
        }
        for probe in file.probes.iter().filter(|probe| probe.stepped) {
            if let Some(entry) = position(probe.entry) {
                self.stepped[entry] = true;
            }
        }
        let mut followed = Followed {
            pid,
            file,
            events: Vec::new(),
        };
        let mut on = self.groups.iter().filter(|group| group.on);
        let opened = on.try_for_each(|group| self.open(&mut followed, group.part));
        if let Err(error) = opened {
            self.closing.close(followed.all().collect());
            // It ended meanwhile: nothing is missed.
            if !matches!(error, OpenError::NoThread { .. }) {
                self.not_followed(Some(chain(&error)));
            }
            return;
        }
        self.followed.push(followed);
    }

    fn open(&self, followed: &mut Followed, part: HeapPart) -> Result<(), OpenError> {
        let scope = Scope::Thread(Tid(followed.pid.0));
        // Frees first: of no allocation that is seen is the free missed.
        let probes = || {
            let probes = followed.file.probes.iter().enumerate();
            probes.filter(|(_, probe)| is_of(probe, part))
        };
        let frees = probes().filter(|(_, probe)| probe.is_free());
        let others = probes().filter(|(_, probe)| !probe.is_free());
        for (at, probe) in frees.chain(others) {
            let Some(program) = self.means.programs.get(probe.program()) else {
                continue;
            };
            let file = &followed.file.file;
            let event = (self.means.pmu).open(file, probe.offset, probe.moment, scope, program)?;
            followed.events.push((at, event));
        }
        Ok(())
    }

    fn take_out(&mut self, part: HeapPart) {
        self.tell(None, AllocationKind::Unseen(part));
        loop {
            let mut hits = self.before.entries;
            for (hits, before) in hits.iter_mut().zip(self.put_in) {
                *hits = hits.saturating_sub(before);
            }
            let mut any = false;
            for followed in &mut self.followed {
                let event = followed.hottest(part, &hits);
                any |= event.is_some();
                // Closed here.
                drop(event);
            }
            if !any {
                return;
            }
            self.count();
        }
    }

    fn put_in(&mut self, part: HeapPart) {
        self.put_in = self.before.entries;
        let mut followed = std::mem::take(&mut self.followed);
        followed.retain_mut(|followed| match self.open(followed, part) {
            Ok(()) => true,
            Err(error) => {
                let events = std::mem::take(&mut followed.events);
                (self.closing).close(events.into_iter().map(|(_, event)| event).collect());
                if !matches!(error, OpenError::NoThread { .. }) {
                    self.not_followed(Some(chain(&error)));
                }
                false
            }
        });
        self.followed = followed;
        self.count();
        self.tell(None, AllocationKind::Seen(part));
    }

    /// What the hits since the last time cost.
    fn count(&mut self) {
        let now_ns = clock::monotonic_ns();
        let elapsed_ns = now_ns.saturating_sub(self.counted_ns);
        self.counted_ns = now_ns;
        let Ok(stats) = self.means.stats.sum() else {
            return;
        };
        let cost = self.cost(&stats);
        let dropped = stats.dropped.saturating_sub(self.before.dropped);
        self.before = stats;
        self.groups[0].governor.account(elapsed_ns, cost.all_ns);
        self.groups[1]
            .governor
            .account(elapsed_ns, cost.mappings_ns);
        let mut totals = self.totals.lock().unwrap_or_else(PoisonError::into_inner);
        totals.dropped += dropped;
        totals.cost_ns += cost.all_ns;
        if !self.groups.iter().all(|group| group.on) {
            totals.off_ns += elapsed_ns;
        }
        drop(totals);
        if dropped > 0 {
            // Which ones is not known, so that all that is alive may be gone.
            self.tell(None, AllocationKind::Unseen(HeapPart::All));
            for group in self.groups.iter().filter(|group| group.on) {
                self.tell(None, AllocationKind::Seen(group.part));
            }
        }
    }

    /// What the hits since the last time cost, by the program of each.
    fn cost(&self, stats: &HeapStats) -> Cost {
        let costs = self.means.costs;
        let (mut all_ns, mut mappings_ns, mut allocating) = (0, 0, 0);
        for (at, entry) in programs::HEAP_ENTRIES.iter().enumerate() {
            let hits = stats.entries[at].saturating_sub(self.before.entries[at]);
            let step_ns = if self.stepped[at] { costs.step_ns } else { 0 };
            all_ns += hits * step_ns;
            let hit_ns = if is_free(entry) {
                all_ns += hits * costs.free_ns;
                costs.free_ns
            } else {
                allocating += hits;
                costs.allocation_ns
            };
            if is_mapping(entry) {
                mappings_ns += hits * (hit_ns + step_ns);
            }
        }
        // One half at the entry, one at the return.
        let returns = stats.returns.saturating_sub(self.before.returns);
        all_ns += (allocating + returns) * costs.allocation_ns / 2;
        Cost {
            all_ns,
            mappings_ns,
        }
    }

    fn tell(&self, pid: Option<Pid>, kind: AllocationKind) {
        let _ = (self.notes).send(Note::Sight(clock::monotonic_ns(), pid, kind));
    }

    fn not_followed(&self, why: Option<String>) {
        let _ = self.notes.send(Note::NotFollowed(why));
    }
}

/// What hits took from the targets, nanoseconds.
struct Cost {
    all_ns: u64,
    /// Of that, those on `mmap` and its kin.
    mappings_ns: u64,
}

/// An error with its reasons.
fn chain(error: &OpenError) -> String {
    let reasons = std::iter::successors(std::error::Error::source(error), |reason| reason.source());
    let words = std::iter::once(error.to_string()).chain(reasons.map(ToString::to_string));
    words.collect::<Vec<_>>().join(": ")
}
