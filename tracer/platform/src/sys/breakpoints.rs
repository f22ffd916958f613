//! Data breakpoints for watch windows: slots that stay reserved, and are armed for one window at a time.
//!
//! ```text
//!   open ──► idle ──arm──► words move in, breakpoints on, control opens ──► window
//!             ▲                                                                │
//!             └── breakpoints off, control closed ◄──────────disarm───────────┘
//! ```
//!
//! A window opens only when every breakpoint is on and closes before the first is taken off, so that its
//! order is complete on all CPUs.

use std::{
    io,
    os::fd::{AsFd as _, BorrowedFd},
    time::Duration,
};

use tracer_ebpf::{WATCH_SLOTS, WatchStats};

use super::{
    bpf::{BpfError, KernelHalf, Watch},
    breakpoint_cost::{self, HitCost},
    breakpoint_slots::{Arming, Slots, idle},
    clock::monotonic_ns,
    perf_event::{self, Attributes, OpenError},
    watch_control::open_value,
};
use crate::{
    access::{Cpu, Tid},
    event::{Breadth, WatchedWord, WindowEnd},
};

/// Rounds in which the cost of arming is measured.
const COST_ROUNDS: usize = 8;

/// Why words cannot be watched, and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BreakpointError {
    /// A breakpoint could not be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The kernel half refused.
    #[error(transparent)]
    Bpf(#[from] BpfError),
    /// The window's plan cannot be.
    #[error("the watch window cannot be: {0}")]
    Plan(&'static str),
    /// None of the threads to watch is there any more.
    #[error("the threads to watch have ended")]
    NoThread,
    /// A system call on an open breakpoint failed.
    #[error("{what} failed")]
    System {
        /// What was done.
        what: &'static str,
        /// The kernel's answer.
        source: io::Error,
    },
}

/// What a window shall be.
#[derive(Debug, Clone, Copy)]
pub struct WindowPlan<'a> {
    /// Its number in the run, from 0.
    pub number: u64,
    /// What to watch, at most [`WATCH_SLOTS`] words at no more than [`Breakpoints::slots`] addresses. Words
    /// of the same address share a slot. Pid 0: the hits of every target.
    pub words: &'a [WatchedWord],
    /// Whom to watch where breakpoints cannot be on CPUs; ignored elsewhere.
    pub threads: &'a [Tid],
    /// Ends after this many hits, at least 1.
    pub hit_limit: u64,
    /// Ends after this time, nanoseconds, at least 1.
    pub duration_ns: u64,
}

/// A window that is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Closed {
    /// From here on every hit was recorded; CLOCK_MONOTONIC, nanoseconds. May be a little before what
    /// [`Breakpoints::arm`] returned.
    pub open_ns: u64,
    /// Up to here every hit was recorded or counted in `dropped`; not before `open_ns`.
    pub end_ns: u64,
    /// Hits, on all CPUs.
    pub hits: u64,
    /// Of those, hits that found no room in their CPU's ring.
    pub dropped: u64,
    /// Traps that are no hits: others' at the same address, while arming and disarming, and after the end.
    /// They cost the threads that made them as much as a hit.
    pub other_traps: u64,
    /// Why it ended. The caller knows better when it is [`WindowEnd::Asked`].
    pub end: WindowEnd,
}

/// What watching costs here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Costs {
    /// Time that one hit takes from the thread that made it, nanoseconds.
    pub hit_ns: u64,
    /// Time that arming took the last time, nanoseconds.
    pub arm_ns: u64,
    /// Time that disarming took the last time, nanoseconds.
    pub disarm_ns: u64,
}

/// The reserved breakpoints. Everything is held by descriptors: when the value or the process goes, the
/// slots are free.
#[derive(Debug)]
pub struct Breakpoints {
    watch: Watch,
    slots: Slots,
    /// A skipped hit disables its event by itself; see [`breakpoint_cost::HitCost::limit_by_program`].
    pub(super) limit_by_program: bool,
    costs: Costs,
    /// The kernel half's counts when nothing was armed last.
    seen: Vec<(Cpu, WatchStats)>,
    window: Option<OpenWindow>,
}

#[derive(Debug, Clone, Copy)]
struct OpenWindow {
    number: u64,
    open_ns: u64,
    deadline_ns: u64,
    hit_limit: u64,
}

impl Breakpoints {
    /// Reserves up to `wanted` slots on all the CPUs, as many as there are: what debuggers hold is not to
    /// be had. Where there is none, or CPUs may not be watched, falls back to threads, as
    /// [`Self::open_on_threads`]. Measures the costs first, which takes some 10 ms.
    ///
    /// At most one value of a [`KernelHalf`] may be in use.
    pub fn open(
        kernel: &mut KernelHalf,
        cpus: &[Cpu],
        wanted: usize,
    ) -> Result<Breakpoints, BreakpointError> {
        let watch = kernel.watch()?;
        let hit = breakpoint_cost::measure(&watch.program)?;
        let wanted = wanted.min(WATCH_SLOTS);
        let slots = match Slots::on_cpus(&watch.program, cpus, wanted)? {
            Some(slots) => slots,
            None => Slots::on_threads(wanted)?,
        };
        Breakpoints::with(watch, slots, hit)
    }

    /// Reserves anew: on other CPUs, or another number of slots. No window may be open. After an error there is no slot.
    pub fn reopen(&mut self, cpus: &[Cpu], wanted: usize) -> Result<(), BreakpointError> {
        if self.window.is_some() {
            return Err(BreakpointError::Plan("another one is open"));
        }
        // What is held is given back first: it is the same registers.
        self.slots = Slots::none();
        let wanted = wanted.min(WATCH_SLOTS);
        self.slots = match Slots::on_cpus(&self.watch.program, cpus, wanted)? {
            Some(slots) => slots,
            None => Slots::on_threads(wanted)?,
        };
        self.seen = self.watch.stats()?;
        Ok(())
    }

    /// Watches single threads instead of CPUs: each window opens its breakpoints anew, and threads that are
    /// born in it are not seen. Reserves nothing; there are as many slots as our own thread could have.
    pub fn open_on_threads(
        kernel: &mut KernelHalf,
        wanted: usize,
    ) -> Result<Breakpoints, BreakpointError> {
        let watch = kernel.watch()?;
        let hit = breakpoint_cost::measure(&watch.program)?;
        Breakpoints::with(watch, Slots::on_threads(wanted.min(WATCH_SLOTS))?, hit)
    }

    /// Arms and disarms where nobody touches anything, for the costs.
    fn with(watch: Watch, slots: Slots, hit: HitCost) -> Result<Breakpoints, BreakpointError> {
        let mut breakpoints = Breakpoints {
            seen: watch.stats()?,
            watch,
            slots,
            limit_by_program: hit.limit_by_program,
            costs: Costs {
                hit_ns: hit.hit_ns,
                arm_ns: 0,
                disarm_ns: 0,
            },
            window: None,
        };
        let places = vec![idle(); breakpoints.slots()];
        let own_thread = [Tid(0)];
        // What is not this thread's waiting for a CPU: the least of some rounds.
        let (mut least_arm, mut least_disarm) = (u64::MAX, u64::MAX);
        for _ in 0..COST_ROUNDS {
            let start = monotonic_ns();
            let armed = breakpoints.arm_slots(places.clone(), false, &own_thread, monotonic_ns)?;
            breakpoints.slots.disarm()?;
            least_arm = least_arm.min(armed - start);
            least_disarm = least_disarm.min(monotonic_ns() - armed);
        }
        breakpoints.costs.arm_ns = least_arm;
        breakpoints.costs.disarm_ns = least_disarm;
        Ok(breakpoints)
    }

    /// Addresses that can be watched at once, at least 1.
    pub fn slots(&self) -> usize {
        self.slots.len()
    }

    /// Where breakpoints are armed.
    pub fn breadth(&self) -> Breadth {
        self.slots.breadth()
    }

    /// What watching costs here.
    pub fn costs(&self) -> Costs {
        self.costs
    }

    /// Whether a breakpoint goes off by itself when its window is over. Otherwise (before about Linux 6.10)
    /// each further touch costs a trap until [`Self::disarm`].
    pub fn end_by_themselves(&self) -> bool {
        self.limit_by_program
    }

    /// Opens a window and returns since when it is open, at the latest; CLOCK_MONOTONIC, nanoseconds.
    ///
    /// [`BreakpointError::Open`] with [`OpenError::NoSlot`] when a debugger holds a slot of one of the
    /// threads: fewer words may do. After an error nothing is armed.
    pub fn arm(&mut self, plan: &WindowPlan<'_>) -> Result<u64, BreakpointError> {
        if self.window.is_some() {
            return Err(BreakpointError::Plan("another one is open"));
        }
        if plan.hit_limit == 0 || plan.duration_ns == 0 {
            return Err(BreakpointError::Plan("it has no hit or no time to live"));
        }
        let (words, places) = placed(plan.words, self.slots())?;
        let start = monotonic_ns();
        self.watch.control.prepare(&words, plan.hit_limit);
        let control = self.watch.control.clone();
        let (number, duration_ns) = (plan.number, plan.duration_ns);
        let open = move || control.open(number, duration_ns);
        let open_ns = self.arm_slots(places, true, plan.threads, open)?;
        self.costs.arm_ns = open_ns - start;
        self.window = Some(OpenWindow {
            number: plan.number,
            open_ns,
            deadline_ns: open_ns.saturating_add(plan.duration_ns),
            hit_limit: plan.hit_limit,
        });
        Ok(open_ns)
    }

    /// Becomes readable when the open window has had its hits.
    pub fn told(&self) -> BorrowedFd<'_> {
        self.watch.limits.as_fd()
    }

    /// Time until the open window is over whatever comes; `None` when none is open.
    pub fn time_left(&self) -> Option<Duration> {
        let left_ns = self.window?.deadline_ns.saturating_sub(monotonic_ns());
        Some(Duration::from_nanos(left_ns))
    }

    /// Whether the open window has come to its end; from then on it only waits to be disarmed. `None` also
    /// when none is open.
    pub fn over(&self) -> Option<WindowEnd> {
        let window = self.window?;
        if self.watch.control.hits() >= window.hit_limit {
            return Some(WindowEnd::Hits);
        }
        (monotonic_ns() >= window.deadline_ns).then_some(WindowEnd::Time)
    }

    /// Closes the open window, and takes its breakpoints off; the slots stay reserved. When it returns, all
    /// its hits are in the rings. After an error the window is closed too, and its hits are unknown.
    pub fn disarm(&mut self) -> Result<Closed, BreakpointError> {
        let Some(window) = self.window.take() else {
            return Err(BreakpointError::Plan("none is open"));
        };
        let still_open_ns = self.watch.control.close();
        let disarmed = self.slots.disarm();
        self.costs.disarm_ns = monotonic_ns() - still_open_ns;
        self.watch.control.settle();
        self.watch.limits.clear();
        let stats = self.watch.stats()?;
        let of_window = stats
            .iter()
            .filter(|(_, stats)| stats.window == open_value(window.number));
        self.slots
            .limits_reached(of_window.map(|(cpu, stats)| (*cpu, stats.fired)));
        let before = std::mem::replace(&mut self.seen, stats);
        disarmed?;
        Ok(closed(window, still_open_ns, &before, &self.seen))
    }

    fn arm_slots<R: Send + 'static>(
        &mut self,
        places: Vec<Attributes>,
        together: bool,
        threads: &[Tid],
        then: impl Fn() -> R + Clone + Send + 'static,
    ) -> Result<R, BreakpointError> {
        let arming = Arming {
            places,
            limited: self.limit_by_program,
            together,
        };
        let armed = self.slots.arm(&self.watch.program, &arming, threads, then);
        if armed.is_err() {
            // What is on goes off; why it could not all go on is the answer.
            let _ = self.slots.disarm();
        }
        armed
    }
}

impl Drop for Breakpoints {
    fn drop(&mut self) {
        // Whatever is still armed goes off with its descriptor, after this.
        self.watch.control.close();
        self.watch.control.settle();
    }
}

/// What the kernel half counted between two moments when nothing was armed.
fn closed(
    window: OpenWindow,
    still_open_ns: u64,
    before: &[(Cpu, WatchStats)],
    after: &[(Cpu, WatchStats)],
) -> Closed {
    let mut closed = Closed {
        open_ns: window.open_ns,
        // At the deadline itself a hit is skipped already.
        end_ns: still_open_ns.min(window.deadline_ns - 1),
        hits: 0,
        dropped: 0,
        other_traps: 0,
        end: WindowEnd::Asked,
    };
    for ((_, before), (_, after)) in before.iter().zip(after) {
        closed.hits += after.hits - before.hits;
        closed.dropped += after.dropped - before.dropped;
        let others = |stats: &WatchStats| stats.skipped + stats.foreign + stats.outside;
        closed.other_traps += others(after) - others(before);
        if after.window != open_value(window.number) {
            continue;
        }
        // A hit that was recorded proves that the window was open before our clock said so: every later
        // hit was recorded too.
        if after.first_hit_ns != 0 {
            closed.open_ns = closed.open_ns.min(after.first_hit_ns);
        }
        if after.first_skipped_ns != 0 {
            closed.end_ns = closed.end_ns.min(after.first_skipped_ns - 1);
        }
    }
    closed.end_ns = closed.end_ns.max(closed.open_ns);
    if closed.hits >= window.hit_limit {
        closed.end = WindowEnd::Hits;
    } else if still_open_ns >= window.deadline_ns {
        closed.end = WindowEnd::Time;
    }
    closed
}

/// The words in the order of the kernel half's slots, and the breakpoints of the first of them: one for
/// each address.
fn placed(
    words: &[WatchedWord],
    slots: usize,
) -> Result<(Vec<WatchedWord>, Vec<Attributes>), BreakpointError> {
    if words.is_empty() || words.len() > WATCH_SLOTS {
        return Err(BreakpointError::Plan("it has no word or too many"));
    }
    let (mut first, mut again): (Vec<WatchedWord>, Vec<WatchedWord>) = (Vec::new(), Vec::new());
    for word in words {
        let is_aligned = matches!(word.len, 1 | 2 | 4 | 8) && word.addr % u64::from(word.len) == 0;
        if !is_aligned || word.addr == 0 {
            return Err(BreakpointError::Plan(
                "a word is not 1, 2, 4 or 8 bytes at a multiple of its length",
            ));
        }
        match first.iter().find(|other| other.addr == word.addr) {
            None => first.push(*word),
            Some(other) if other.len == word.len => again.push(*word),
            Some(_) => {
                return Err(BreakpointError::Plan(
                    "two words of different lengths have the same address",
                ));
            }
        }
    }
    if first.len() > slots {
        return Err(BreakpointError::Plan("it has more addresses than slots"));
    }
    let places = first
        .iter()
        .map(|word| perf_event::data_breakpoint(word.addr, word.len))
        .collect();
    first.append(&mut again);
    Ok((first, places))
}

#[cfg(test)]
mod tests;
