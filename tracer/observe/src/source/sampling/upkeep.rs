//! What changes around a run: CPUs that come and go, clocks that stop, debuggers that want breakpoint registers.

use std::{
    collections::BTreeSet,
    fs,
    os::fd::{AsFd as _, BorrowedFd},
    path::Path,
};

use super::{Sampler, Sampling};
use crate::{
    access::{Cpu, Pid},
    event::{Tally, WindowEnd},
    machine::Machine,
    source::{Target, cpu_events::CpuRings},
    sys::{clock, cpu_changes::CpuChanges, proc_snapshot},
};

/// Breakpoint registers left to a debugger that is attached to a target.
const LEFT_TO_DEBUGGER: usize = 2;
/// How often all targets are looked at for a debugger; those that are watched are at each poll. Nanoseconds.
const DEBUGGERS_NS: u64 = 200_000_000;
/// Targets looked at: a look takes some 20 microseconds.
const MOST_LOOKED_AT: usize = 256;

/// CPUs that were announced to have gone or come, and are not dealt with yet.
#[derive(Debug, Default)]
pub(super) struct Announced {
    changes: Option<CpuChanges>,
    cpus: BTreeSet<Cpu>,
    /// There were too many announcements to know.
    overrun: bool,
}

impl Announced {
    /// Hears them from now on.
    pub(super) fn listen() -> Announced {
        Announced {
            changes: CpuChanges::listen().ok(),
            ..Announced::default()
        }
    }

    /// Becomes readable when something is announced.
    pub(super) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.changes.as_ref().map(CpuChanges::as_fd)
    }

    /// Whether any CPU went or came, or may have, that was not dealt with.
    fn any(&mut self) -> bool {
        match self.changes.as_mut().map(CpuChanges::take) {
            Some(Some(cpus)) => self.cpus.extend(cpus),
            Some(None) => self.overrun = true,
            None => {}
        }
        self.overrun || !self.cpus.is_empty()
    }

    fn take(&mut self) -> BTreeSet<Cpu> {
        self.any();
        self.overrun = false;
        std::mem::take(&mut self.cpus)
    }
}

/// Breakpoint registers to leave to a debugger that holds a target.
pub(super) fn left_to_debugger(target: &Target) -> usize {
    let proc = Path::new("/proc");
    match target {
        Target::Trees(pids) if pids.iter().any(|pid| proc_snapshot::is_traced(proc, *pid)) => {
            LEFT_TO_DEBUGGER
        }
        _ => 0,
    }
}

/// Those that windows take of so many, with some left to others; a window needs one.
pub(super) fn slots(all: usize, left: usize) -> usize {
    all.saturating_sub(left).max(1)
}

impl<S: Sampler> Sampling<S> {
    /// Whether every thread of the targets ran on CPUs that are watched since the last look.
    pub(super) fn all_cpus_were_there(&mut self) -> bool {
        !self.announced.any() && self.presence.is_whole()
    }

    /// Lets go what is open on CPUs that went, and opens those that came.
    pub(super) fn follow_cpus(&mut self, tally: &mut Tally) {
        let announced = self.announced.take();
        let Some(online) = Machine::online_now(Path::new("/")) else {
            return;
        };
        let online = online.into_iter().filter(|cpu| self.sampler.covers(*cpu));
        let now_ns = clock::monotonic_ns();
        let change = (self.presence).look(&online.collect(), &announced, now_ns, tally);
        if change.closed.is_empty() && change.to_open.is_empty() {
            return;
        }
        let closed = (self.watcher.as_mut()).map_or(Ok(None), |watcher| {
            watcher.close(Some(WindowEnd::CpusChanged))
        });
        self.window_closed(closed);
        for cpu in change.closed.iter().chain(&change.to_open) {
            self.rings.retain(|rings| rings.cpu != *cpu);
            self.sampler.close_on(*cpu);
        }
        for cpu in change.to_open {
            let opened =
                CpuRings::open(cpu, self.ring_bytes, &self.live.kernel).and_then(|rings| {
                    self.sampler
                        .open_on(cpu, &mut self.live.kernel)
                        .map(|()| rings)
                });
            let started = opened.and_then(|rings| self.sampler.start().map(|()| rings));
            // Why not may be gone by the next try; that it was not seen is told.
            if let Ok(rings) = started {
                self.rings.push(rings);
                self.presence.opened(cpu, clock::monotonic_ns(), tally);
            } else {
                self.sampler.close_on(cpu);
                self.presence.failed(cpu, now_ns);
            }
        }
        self.cpus = self.cpus.max(self.rings.len() as u32);
        self.reopen_watcher();
    }

    /// Notes CPUs whose clocks do not give what they should.
    pub(super) fn check_clocks(&mut self, tally: &mut Tally) {
        let Some(watchdog) = &mut self.watchdog else {
            return;
        };
        let now_ns = clock::monotonic_ns();
        if !watchdog.is_due(now_ns) {
            return;
        }
        let text = fs::read_to_string("/proc/stat").unwrap_or_default();
        let given = |cpu| {
            let stats = self.stats.get(&cpu)?;
            Some(stats.produced + stats.filtered)
        };
        let open: Vec<Cpu> = self.presence.open().collect();
        for (cpu, blind_ns, is_dead) in watchdog.look(now_ns, &open, &text, given) {
            *tally.blind_ns.entry(cpu).or_default() += blind_ns;
            if is_dead {
                self.presence.found_dead(cpu);
            }
        }
    }

    /// Leaves registers to a debugger as soon as one is attached to a target, and takes them back when it is gone.
    pub(super) fn leave_to_debuggers(&mut self) {
        let Some(watcher) = &self.watcher else { return };
        let now_ns = clock::monotonic_ns();
        let proc = Path::new("/proc");
        let traced = |pid: Pid| proc_snapshot::is_traced(proc, pid);
        let mut is_traced = watcher.watched().any(traced);
        if !is_traced {
            if now_ns.saturating_sub(self.debuggers_looked_ns) < DEBUGGERS_NS {
                return;
            }
            is_traced = self.live.targets().take(MOST_LOOKED_AT).any(traced);
        }
        self.debuggers_looked_ns = now_ns;
        let leave = if is_traced { LEFT_TO_DEBUGGER } else { 0 };
        if leave == self.left_to_debugger {
            return;
        }
        let closed = (self.watcher.as_mut())
            .map_or(Ok(None), |watcher| watcher.close(Some(WindowEnd::Asked)));
        self.window_closed(closed);
        self.left_to_debugger = leave;
        if leave > 0 {
            self.tell_of_debugger();
        }
        self.reopen_watcher();
    }

    /// Says once that a debugger was seen.
    pub(super) fn tell_of_debugger(&mut self) {
        let text = format!(
            "a debugger is attached to a target: {LEFT_TO_DEBUGGER} of the breakpoint registers were left to it"
        );
        if !self.live.caveats().contains(&text) {
            self.live.caveat(text);
        }
    }

    /// Watches on the CPUs that are open now, with the registers that are ours. No window is open.
    fn reopen_watcher(&mut self) {
        // Hits of the last window.
        self.drain_hits();
        let cpus: Vec<Cpu> = self.rings.iter().map(|rings| rings.cpu).collect();
        let slots = slots(self.slots, self.left_to_debugger);
        if let Some(watcher) = &mut self.watcher
            && let Err(error) = watcher.reopen(&mut self.live, &cpus, slots)
        {
            self.watcher = None;
            self.live.caveat(format!("watching ended early: {error}"));
        }
        if let Err(error) = self.wait_for_all() {
            // It is looked at often enough without being told.
            self.live.caveat(error.to_string());
        }
    }
}
