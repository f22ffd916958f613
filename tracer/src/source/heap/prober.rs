//! Puts probes into the targets' allocators and takes them out again, in a thread of its own: opening an event
//! takes milliseconds, closing one 80 of them.

use std::{
    fs::File,
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{self, Receiver, RecvTimeoutError, Sender},
    },
    thread::JoinHandle,
    time::Duration,
};

use tracer_ebpf::HeapStats;

use super::{allocators::Probe, governor::Governor};
use crate::{
    access::{Pid, Tid},
    event::AllocationKind,
    sys::{
        bpf::{HeapPrograms, HeapStatsMap},
        clock,
        heap_cost::HeapCosts,
        perf_event::{OpenError, PerfEvent, Scope},
        uprobe::UprobePmu,
    },
};

/// How often hits are counted: a storm costs all of the time until it is noticed.
const TICK: Duration = Duration::from_millis(5);
/// Events of processes that ended, which wait to be closed; while there are more, no new process is followed. Five
/// seconds' worth, as the tool cannot end before.
const MOST_WAITING: usize = 64;
/// Events open at once.
const MOST_EVENTS: usize = 512;

/// An allocator's file.
#[derive(Debug)]
pub struct ProbedFile {
    /// Held open: the probes are on this very file, whatever its path is now.
    pub file: File,
    /// Those hit most first.
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
pub enum Note {
    /// Something for the stream: [`AllocationKind::Unseen`] or [`AllocationKind::Seen`], of a process or of all.
    Sight(u64, Option<Pid>, AllocationKind),
    /// A process was not followed.
    NotFollowed(Option<String>),
}

/// Sums since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Records that found no room.
    pub dropped: u64,
    /// Time that the probes took from the targets, nanoseconds.
    pub cost_ns: u64,
    /// Time without probes, nanoseconds.
    pub off_ns: u64,
}

/// The thread, from outside. It ends with the value, and waits for the probes to come out.
pub struct Prober {
    commands: Option<Sender<Command>>,
    /// What it tells.
    pub notes: Receiver<Note>,
    totals: Arc<Mutex<Totals>>,
    thread: Option<JoinHandle<()>>,
}

/// What the thread works with.
pub struct Means {
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
    pub fn start(means: Means) -> std::io::Result<Prober> {
        let (commands, inbox) = mpsc::channel();
        let (outbox, notes) = mpsc::channel();
        let totals = Arc::new(Mutex::new(Totals::default()));
        let shared = totals.clone();
        let thread = std::thread::Builder::new()
            .name("heap-probes".to_owned())
            .spawn(move || Worker::new(means, outbox, shared).run(&inbox))?;
        Ok(Prober {
            commands: Some(commands),
            notes,
            totals,
            thread: Some(thread),
        })
    }

    /// Follows a file in a process.
    pub fn follow(&self, pid: Pid, file: Arc<ProbedFile>) {
        self.tell(Command::Follow(pid, file));
    }

    /// Follows in a forked child what is followed in its parent.
    pub fn inherit(&self, parent: Pid, child: Pid) {
        self.tell(Command::Inherit { parent, child });
    }

    /// A process ended.
    pub fn forget(&self, pid: Pid) {
        self.tell(Command::Forget(pid));
    }

    /// Waits until all that was told is done, at most so long.
    pub fn wait(&self, limit: Duration) {
        let (answer, answered) = mpsc::channel();
        self.tell(Command::Answer(answer));
        // Whoever waits goes on anyway: what is late is seen late.
        let _ = answered.recv_timeout(limit);
    }

    /// Sums so far.
    pub fn totals(&self) -> Totals {
        *self.totals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes all probes out, without waiting for it.
    pub fn stop(&mut self) {
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
    /// The event whose probe is hit most of those that are left.
    fn hottest(&mut self) -> Option<PerfEvent> {
        let at = (0..self.events.len()).min_by_key(|at| self.events[*at].0)?;
        Some(self.events.swap_remove(at).1)
    }

    fn all(self) -> impl Iterator<Item = PerfEvent> {
        self.events.into_iter().map(|(_, event)| event)
    }
}

struct Worker {
    means: Means,
    notes: Sender<Note>,
    totals: Arc<Mutex<Totals>>,
    governor: Governor,
    before: HeapStats,
    followed: Vec<Followed>,
    on: bool,
    counted_ns: u64,
    cost_ns: u64,
    /// Closes what belonged to processes that ended.
    closing: Closing,
}

impl Worker {
    fn new(means: Means, notes: Sender<Note>, totals: Arc<Mutex<Totals>>) -> Worker {
        // What the measurement of the costs left behind.
        let before = means.stats.sum().unwrap_or_default();
        Worker {
            before,
            governor: Governor::new(means.share),
            means,
            notes,
            totals,
            followed: Vec::new(),
            on: true,
            counted_ns: clock::monotonic_ns(),
            cost_ns: 0,
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
            if self.on && self.governor.is_spent() {
                self.take_out();
            } else if !self.on && self.governor.may_resume() {
                self.put_in();
            }
        }
        // In the order in which they are hit most, for whoever runs on.
        self.take_out();
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
                self.tell(Some(child), AllocationKind::Unseen);
                for file in files {
                    self.follow(child, file);
                }
                if self.followed.iter().any(|followed| followed.pid == child) {
                    self.tell(Some(child), AllocationKind::Seen);
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
        let mut followed = Followed {
            pid,
            file,
            events: Vec::new(),
        };
        if self.on
            && let Err(error) = self.open(&mut followed)
        {
            self.closing.close(followed.all().collect());
            // It ended meanwhile: nothing is missed.
            if !matches!(error, OpenError::NoThread { .. }) {
                self.not_followed(Some(chain(&error)));
            }
            return;
        }
        self.followed.push(followed);
    }

    fn open(&self, followed: &mut Followed) -> Result<(), OpenError> {
        let scope = Scope::Thread(Tid(followed.pid.0));
        // Frees first: of no allocation that is seen is the free missed.
        let probes = || followed.file.probes.iter().enumerate();
        let frees = probes().filter(|(_, probe)| probe.is_free());
        let others = probes().filter(|(_, probe)| !probe.is_free());
        for (at, probe) in frees.chain(others) {
            let Some(program) = self.means.programs.get(probe.program) else {
                continue;
            };
            let file = &followed.file.file;
            let event = (self.means.pmu).open(file, probe.offset, probe.moment, scope, program)?;
            followed.events.push((at, event));
        }
        Ok(())
    }

    fn take_out(&mut self) {
        self.on = false;
        self.tell(None, AllocationKind::Unseen);
        while self
            .followed
            .iter()
            .any(|followed| !followed.events.is_empty())
        {
            for followed in &mut self.followed {
                drop(followed.hottest());
            }
            self.count();
        }
    }

    fn put_in(&mut self) {
        let mut followed = std::mem::take(&mut self.followed);
        followed.retain_mut(|followed| match self.open(followed) {
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
        self.on = true;
        self.tell(None, AllocationKind::Seen);
    }

    /// What the hits since the last time cost.
    fn count(&mut self) {
        let now_ns = clock::monotonic_ns();
        let elapsed_ns = now_ns.saturating_sub(self.counted_ns);
        self.counted_ns = now_ns;
        let Ok(stats) = self.means.stats.sum() else {
            return;
        };
        let costs = self.means.costs;
        let before = self.before;
        let entries = stats.entries.saturating_sub(before.entries);
        let returns = stats.returns.saturating_sub(before.returns);
        let frees = stats.frees.saturating_sub(before.frees);
        let mut cost_ns = entries.midpoint(returns) * costs.allocation_ns + frees * costs.free_ns;
        let mut probes = (self.followed.iter()).flat_map(|followed| &followed.file.probes);
        if probes.any(|probe| probe.stepped) {
            // Which ones were hit is not counted: as if all were such.
            cost_ns += (entries + frees) * costs.step_ns;
        }
        let cost_ns = cost_ns.max(self.cost_ns);
        self.governor.account(elapsed_ns, cost_ns - self.cost_ns);
        self.cost_ns = cost_ns;
        let mut totals = self.totals.lock().unwrap_or_else(PoisonError::into_inner);
        totals.dropped = stats.dropped.saturating_sub(before.dropped);
        totals.cost_ns = cost_ns;
        if !self.on {
            totals.off_ns += elapsed_ns;
        }
    }

    fn tell(&self, pid: Option<Pid>, kind: AllocationKind) {
        let _ = (self.notes).send(Note::Sight(clock::monotonic_ns(), pid, kind));
    }

    fn not_followed(&self, why: Option<String>) {
        let _ = self.notes.send(Note::NotFollowed(why));
    }
}

/// An error with its reasons.
fn chain(error: &OpenError) -> String {
    let reasons = std::iter::successors(std::error::Error::source(error), |reason| reason.source());
    let words = std::iter::once(error.to_string()).chain(reasons.map(ToString::to_string));
    words.collect::<Vec<_>>().join(": ")
}

/// Closes events one after the other, in a thread of its own.
#[derive(Default)]
struct Closing {
    thread: Option<(Sender<PerfEvent>, JoinHandle<()>)>,
    waiting: Arc<Mutex<usize>>,
}

impl Closing {
    fn waiting(&self) -> usize {
        *self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn close(&mut self, events: Vec<PerfEvent>) {
        let add = |waiting: &Mutex<usize>, done: bool| {
            let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
            *waiting = if done {
                waiting.saturating_sub(1)
            } else {
                *waiting + 1
            };
        };
        if self.thread.is_none() && !events.is_empty() {
            let (sender, inbox) = mpsc::channel::<PerfEvent>();
            let waiting = self.waiting.clone();
            let thread = std::thread::Builder::new()
                .name("heap-closing".to_owned())
                .spawn(move || {
                    for event in inbox {
                        drop(event);
                        add(&waiting, true);
                    }
                });
            self.thread = thread.ok().map(|thread| (sender, thread));
        }
        for event in events {
            add(&self.waiting, false);
            // Without a thread it is dropped here.
            match &self.thread {
                Some((sender, _)) => drop(sender.send(event)),
                None => add(&self.waiting, true),
            }
        }
    }
}

impl Drop for Closing {
    fn drop(&mut self) {
        if let Some((sender, thread)) = self.thread.take() {
            drop(sender);
            let _ = thread.join();
        }
    }
}
