//! The `emulate` source: the program runs in QEMU's user-mode emulator, and our plugin there writes every load and
//! store of it. Needs no rights, no PMU and no kernel feature; the program runs much slower, and what its threads do
//! to each other's lines is all there, in order.
//!
//! Threads are processors: each has its number in order of appearance, the first is 0. Two accesses of different
//! threads within some 100 ns of each other may have changed places: a stamp is taken after its access.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};

use super::{Evidence, Progress, Source, SourceError, SourceKind, SourceOptions, Target};
use crate::{
    access::{CostUnit, Cpu, Pid, Tid},
    event::{Batch, Context},
    machine::Machine,
    module::{ModuleStore, Stamps},
    sys::{clock::monotonic_ns, emulator_layout::PROCESSES, emulator_memory::time_stamp},
};

mod clock;
mod executions;
mod guest_maps;
mod instructions;
mod lanes;
mod launcher;
mod merge;
mod processes;
mod program;
mod side_band;

pub use executions::Executed;
pub use launcher::{Emulator, QEMU, QEMU_VARIABLE, is_installed, plugin};

use clock::StampClock;
use instructions::{Whose, accesses};
use lanes::Lanes;
use merge::Merge;
use processes::Processes;

/// The registered kind.
pub static KIND: Kind = Kind;

/// Describes and opens the source.
pub struct Kind;

impl SourceKind for Kind {
    fn name(&self) -> &'static str {
        "emulate"
    }

    fn about(&self) -> &'static str {
        "every access of a program that runs in QEMU; needs no rights and no PMU"
    }

    fn evidence(&self) -> Evidence {
        Evidence::DATA_ADDR
            .and(Evidence::EXACT_IP)
            .and(Evidence::STORES)
            .and(Evidence::COMPLETE_ORDER)
    }

    fn cost_unit(&self) -> CostUnit {
        CostUnit::Transactions
    }

    fn only_when_asked_for(&self) -> bool {
        true
    }

    fn open(
        &self,
        target: &Target,
        options: &SourceOptions,
        machine: &Machine,
        _modules: Arc<ModuleStore>,
    ) -> Result<Box<dyn Source>, SourceError> {
        let (Some(emulator), Target::Trees(pids)) = (&options.emulator, target) else {
            return Err(EmulationError::NeedsCommand.into());
        };
        let [pid] = pids[..] else {
            return Err(EmulationError::NeedsCommand.into());
        };
        let cpus = machine.online_cpus().len().max(1) as u32;
        Ok(Box::new(Emulated::new(emulator.clone(), pid, cpus)))
    }
}

/// Why a program could not be emulated.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EmulationError {
    /// Something that runs already was to be observed.
    #[error(
        "--source emulate runs a program of its own: give a command after `--` \
         (processes that run already, -p and -a, cannot be emulated)"
    )]
    NeedsCommand,
    /// Not for this architecture.
    #[error("this build has no emulator plugin: --source emulate is for x86-64 Linux")]
    NoPlugin,
    /// QEMU is not installed.
    #[error(
        "qemu-x86_64 is not in PATH: install QEMU's user-mode emulator (Debian, Ubuntu: `apt install qemu-user`; \
         Fedora: `dnf install qemu-user`; Arch: `pacman -S qemu-user`), or name it by --qemu PATH or COHTRACE_QEMU"
    )]
    NoQemu,
    /// A path that was given leads nowhere.
    #[error("{} is no file: --qemu and COHTRACE_QEMU name the emulator qemu-x86_64", .0.display())]
    NoSuchQemu(PathBuf),
    /// The program cannot be read.
    #[error("{name}: {why}")]
    Program {
        /// As it was given.
        name: String,
        /// What the system said.
        #[source]
        why: std::io::Error,
    },
    /// The program is of another kind.
    #[error("{name} {what}; --source emulate runs x86-64 ELF programs")]
    Unfit {
        /// Its path.
        name: String,
        /// What it is instead.
        what: String,
    },
    /// No memory to share.
    #[error("memory to share with the emulator: {0}")]
    Memory(#[source] std::io::Error),
    /// QEMU ended without loading the plugin.
    #[error(
        "{} ended before it loaded cohtrace's plugin; what it said is above. It must be QEMU 6.0 or later, built with \
         --enable-plugins, as distributions do; name another by --qemu PATH or COHTRACE_QEMU", .0.display()
    )]
    PluginNotLoaded(PathBuf),
    /// QEMU ended without running the program.
    #[error(
        "{} ran nothing of {}; what it said is above. It must be an x86-64 ELF program whose interpreter and \
         libraries are there", qemu.display(), program.display()
    )]
    NotRun {
        /// The emulator.
        qemu: PathBuf,
        /// The program.
        program: PathBuf,
    },
    /// Addresses of the program are not addresses of the process.
    #[error(
        "QEMU placed the program's memory {0:#x} bytes from where the program has it, so its mappings cannot be \
         named; a lower vm.mmap_min_addr (65536) helps"
    )]
    Moved(u64),
}

/// Accesses in a batch, about: few enough that they are still in the processor's cache when they are written.
const BATCH: usize = 1 << 15;
/// The longest sleep between looks at the rings, which fill in a few milliseconds, and at signals.
const NAP: Duration = Duration::from_millis(1);
/// A thread that makes no access for so long is not waited for, once there is no more room for the others'.
const PATIENCE: Duration = Duration::from_millis(100);

/// A program that runs in the emulator.
struct Emulated {
    emulator: Arc<Emulator>,
    cpus: u32,
    clock: StampClock,
    started_ns: u64,
    lanes: Lanes,
    merge: Merge,
    processes: Processes,
    /// Nothing is written any more, and all that was is in `merge`.
    stopped: bool,
    unseen: u64,
    /// The last turn could pass on nothing.
    stuck: bool,
    /// The last turn passed on all that may leave.
    took_all: bool,
    stamps: Stamps,
}

impl Emulated {
    fn new(emulator: Arc<Emulator>, pid: Pid, cpus: u32) -> Emulated {
        let clock = StampClock::calibrate();
        let (qemu, program) = (file_name(emulator.qemu()), file_name(emulator.program()));
        Emulated {
            emulator,
            cpus,
            clock,
            started_ns: monotonic_ns(),
            lanes: Lanes::new(clock.ticks(PATIENCE)),
            merge: Merge::default(),
            stamps: Stamps::new("/".into()),
            processes: Processes::new(pid, &qemu, &program),
            stopped: false,
            unseen: 0,
            stuck: false,
            took_all: false,
        }
    }

    /// Moves what is known into the batch; returns whether that was all that may leave.
    fn turn(&mut self, batch: &mut Batch) -> bool {
        let all = &*self.emulator.memory;
        let now = time_stamp();
        let limit = if self.stopped {
            u64::MAX
        } else {
            self.processes.find(all);
            (self.processes).settle(&self.emulator, &mut self.merge, now);
            let found = &self.processes.found;
            (self.lanes).collect(all, found, &mut self.merge, now, self.stuck)
        };
        let clock = self.clock;
        let stamps = &mut self.stamps;
        let mut contexts = Vec::new();
        for process in &mut self.processes.found {
            let Some(place) = process.place else { continue };
            // After the chunks: whatever they speak of was described before they were sealed.
            process.side_band.read(&all[place]);
            for ip in process.instructions.read(&all[place]) {
                if let Some(kind) = process.side_band.executed(ip) {
                    // Code is translated before it makes its first access.
                    contexts.push((0, kind));
                }
            }
        }
        let first = self.merge.newest();
        let processes = &mut self.processes.found;
        let Batch {
            accesses: out,
            context,
            tally,
            ..
        } = batch;
        let mut executions = 0;
        let done = self.merge.pass(limit, BATCH, |chunk, row| {
            let process = &mut processes[chunk.process];
            let known = process.instructions.get(row.instruction);
            let tid = Tid(chunk.tid);
            let whose = Whose {
                pid: process.pid,
                tid,
                cpu: Cpu(chunk.processor),
                time_ns: clock.ns(row.tsc),
            };
            let (prefetch, access) = accesses(&row, &known, whose);
            out.extend(prefetch);
            let Some(access) = access else { return };
            executions += 1 + u64::from(row.repeats);
            out.push(access);
            if known.is.by_stack && process.side_band.lacks_stack(chunk.processor) {
                let told = (process.side_band).has_stack(chunk.processor, chunk.tid, access.addr);
                contexts.extend(told.into_iter().map(|kind| (row.tsc, kind)));
            }
        });
        let bound = if done { limit } else { self.merge.newest() };
        for process in processes {
            (process.side_band).pass(bound, |tsc, kind| contexts.push((tsc, kind)));
        }
        context.extend(contexts.into_iter().map(|(tsc, mut kind)| {
            let time_ns = clock.ns(tsc.max(first));
            stamps.complete_told(time_ns, &mut kind);
            Context { time_ns, kind }
        }));
        context.sort_by_key(|context| context.time_ns);
        tally.produced += executions;
        tally.executions += executions;
        tally.attributed += executions;
        let unseen = self.processes.counts(all).unseen;
        let more = unseen - self.unseen;
        if more > 0 {
            self.unseen = unseen;
            tally.produced += more;
            *tally.lost.entry(Cpu(0)).or_default() += more;
        }
        self.stuck = out.is_empty() && self.merge.waiting() > 0;
        done
    }

    /// Why there is nothing to see, if so.
    fn failure(&self) -> Option<EmulationError> {
        let header = &self.emulator.memory[0].header;
        let qemu = self.emulator.qemu().to_owned();
        if header.installed.load(Relaxed) == 0 {
            return Some(EmulationError::PluginNotLoaded(qemu));
        }
        if header.translated.load(Relaxed) == 0 {
            let program = self.emulator.program().to_owned();
            return Some(EmulationError::NotRun { qemu, program });
        }
        self.moved()
    }

    fn moved(&self) -> Option<EmulationError> {
        let base = self.emulator.memory[0].header.guest_base.load(Relaxed);
        (base != 0).then_some(EmulationError::Moved(base))
    }
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

impl Source for Emulated {
    fn take(&mut self, batch: &mut Batch) -> Result<Progress, SourceError> {
        if let Some(moved) = self.moved() {
            return Err(moved.into());
        }
        self.took_all = self.turn(batch);
        if !self.stopped {
            return Ok(Progress::Running);
        }
        if let Some(failure) = self.failure() {
            return Err(failure.into());
        }
        Ok(if self.took_all {
            Progress::End
        } else {
            Progress::Running
        })
    }

    /// Sleeps itself: threads of the emulator wake it by memory that they share with it.
    fn idle(&mut self) -> Result<Duration, SourceError> {
        if self.took_all && !self.stopped {
            Lanes::sleep(&self.emulator.memory, &self.processes.found, NAP);
        }
        Ok(Duration::ZERO)
    }

    fn stop(&mut self) {
        if self.stopped {
            return;
        }
        let all = &*self.emulator.memory;
        all[0].header.stop.store(1, Relaxed);
        self.processes.find(all);
        let found = &self.processes.found;
        Lanes::collect_rest(all, found, 0..found.len(), &mut self.merge);
        self.stopped = true;
    }

    fn started_ns(&self) -> u64 {
        self.started_ns
    }

    fn cpus(&self) -> u32 {
        self.cpus
    }

    fn caveats(&self) -> Vec<String> {
        let counts = self.processes.counts(&self.emulator.memory);
        let mut caveats = Vec::new();
        let mut tell = |applies: bool, text: String| caveats.extend(applies.then_some(text));
        tell(
            program::gains_rights(self.emulator.program()),
            "the program's file is set-user-ID or set-group-ID: emulated, it ran with the caller's rights".into(),
        );
        let (children, execs, unseen) = (counts.children, counts.execs, counts.unseen);
        tell(
            children > 0,
            format!(
                "{children} child processes were not observed: only {PROCESSES} at a time are, and none that they start"
            ),
        );
        tell(
            execs > 0,
            format!(
                "{execs} times a process became a program (execve) that ran without the emulator and was not observed: \
                 one that is not for x86-64, that cannot be read, or that is named by a descriptor; or this tool may not \
                 be looked into (it has capabilities of its own)"
            ),
        );
        tell(
            unseen > 0,
            format!(
                "{unseen} accesses were not recorded: more than 256 threads at a time, or more than 2 million instructions"
            ),
        );
        let (late, times) = (self.merge.late(), self.lanes.overtaken());
        tell(
            late > 0,
            format!(
                "{late} accesses were put behind younger ones of other threads: their thread computed for long without any, and {times} times the others could not wait"
            ),
        );
        caveats
    }
}
