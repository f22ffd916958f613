//! Ways to observe memory accesses. A source differs from others by the [`Evidence`] it declares,
//! never by its name. Adding one: a file here, a `pub mod`, an entry in [`SOURCES`].

use std::{os::fd::BorrowedFd, sync::Arc, time::Duration};

pub use crate::evidence::Evidence;
use crate::{
    access::{CostUnit, Pid},
    event::Batch,
    machine::Machine,
    module::ModuleStore,
    space::MappedFiles,
    sys::bpf::Told,
};

pub mod choice;
pub mod cpu_events;
pub mod emulate;
pub mod heap;
pub mod ibs;
mod keep_up;
mod kernel_code;
mod last_places;
mod line_users;
pub mod live;
mod local_storage;
pub mod memory;
pub mod nameless_code;
mod order;
mod pace;
pub mod pebs;
mod pointers;
mod presence;
mod recalled;
pub mod retiring;
pub mod sampled_code;
mod sampling;
mod threads;
pub mod timer;
pub mod tracked;
pub mod trapped_code;
mod waits;
pub mod watch;
mod watchdog;

/// All sources, in order of preference.
pub static SOURCES: &[&dyn SourceKind] = &[&pebs::KIND, &ibs::KIND, &timer::KIND, &emulate::KIND];

/// What to observe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// These processes, their children, and their children's children.
    Trees(Vec<Pid>),
    /// Every process but ourselves.
    Everything,
}

/// Options of live sources.
#[derive(Clone, Debug)]
pub struct SourceOptions {
    /// Samples per second on each CPU.
    pub frequency_hz: u64,
    /// Data bytes of each CPU's sample ring, a power of two of at least a page.
    pub ring_bytes: usize,
    /// Whether to be ready for watch windows.
    pub watch: Watching,
    /// Breakpoint registers that windows may take, at most as many as the CPU has.
    pub slots: usize,
    /// How to follow the targets' heaps, if they are to be.
    pub heap: Option<heap::HeapOptions>,
    /// What PMUs leave out.
    pub memory: MemoryOptions,
    /// What the target was started in, for the source that emulates it.
    pub emulator: Option<Arc<emulate::Emulator>>,
    /// Whether the kernel half tells why it did nothing: [`Source::take_told`].
    pub tells: bool,
}

/// Which accesses a PMU samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct MemoryOptions {
    /// Only loads of at least this many cycles. `None`: the source's own choice.
    pub ldlat: Option<u16>,
    /// AMD: only accesses that miss the last-level cache.
    pub l3_misses_only: bool,
}

/// Whether a source shall be ready for watch windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watching {
    /// Only sample.
    Off,
    /// Where breakpoints are to be had; a caveat where not.
    IfPossible,
    /// An error where not.
    Required,
}

/// A kind of source: what it is, and how to open it.
pub trait SourceKind: Sync {
    /// As in `--source` and reports.
    fn name(&self) -> &'static str;
    /// One line for people.
    fn about(&self) -> &'static str;
    /// What its accesses can prove.
    fn evidence(&self) -> Evidence;
    /// What its costs count.
    fn cost_unit(&self) -> CostUnit {
        CostUnit::SampledTime
    }
    /// Whether it is never chosen for want of a better one: it changes how the targets run.
    fn only_when_asked_for(&self) -> bool {
        false
    }
    /// Starts observing. Accesses of targets that run from now on are seen.
    fn open(
        &self,
        target: &Target,
        options: &SourceOptions,
        machine: &Machine,
        modules: Arc<ModuleStore>,
    ) -> Result<Box<dyn Source>, SourceError>;
}

/// A running observation.
pub trait Source {
    /// Appends what has become known to `batch`, without waiting.
    fn take(&mut self, batch: &mut Batch) -> Result<Progress, SourceError>;
    /// What becomes readable when there is something to take; `None` where nothing does, and [`Source::idle`] waits itself.
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
    /// Nothing is done between now and the next [`Source::take`]. How long that may take at most; zero: there is something already.
    fn idle(&mut self) -> Result<Duration, SourceError>;
    /// Takes no more samples; what is in hand is taken by further calls, until [`Progress::End`].
    fn stop(&mut self);
    /// Start of sampling, CLOCK_MONOTONIC nanoseconds.
    fn started_ns(&self) -> u64;
    /// Number of CPUs observed.
    fn cpus(&self) -> u32;
    /// Opens watch windows, where the source can.
    fn watcher(&mut self) -> Option<&mut watch::Watcher> {
        None
    }
    /// Follows heaps, where the source was asked to.
    fn heap(&self) -> Option<&heap::HeapTracker> {
        None
    }
    /// The files that observed processes have mapped; false where that is not known.
    fn mapped_files(&self, _files: &mut MappedFiles) -> bool {
        false
    }
    /// Forgets what is known of other files than these.
    fn keep_files(&mut self, _files: &MappedFiles) {}
    /// Memory that processes have no more, as found out since the last time; the stream does not tell.
    fn take_unmapped(&mut self) -> Vec<retiring::Unmapped> {
        Vec::new()
    }
    /// What the kernel half told since the last time of why it did nothing, where it was asked to.
    fn take_told(&mut self) -> Vec<Told> {
        Vec::new()
    }
    /// What could not be set up or seen, in sentences for the report.
    fn caveats(&self) -> Vec<String>;
}

/// What was left behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// There may be more later.
    Running,
    /// Nothing will follow.
    End,
}

/// Why a source could not be opened or went on no longer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// The kernel half could not be loaded or attached.
    #[error(transparent)]
    Bpf(#[from] crate::sys::bpf::BpfError),
    /// Words could not be watched.
    #[error(transparent)]
    Breakpoint(#[from] crate::sys::breakpoints::BreakpointError),
    /// A perf event could not be opened.
    #[error(transparent)]
    PerfEvent(#[from] crate::sys::perf_event::OpenError),
    /// There is no PMU for it, or an option does not fit it.
    #[error(transparent)]
    Plan(#[from] memory::plan::NoPlan),
    /// A PMU's event could not be opened.
    #[error(transparent)]
    MemoryEvent(#[from] memory::refusal::MemoryEventError),
    /// A program could not be emulated.
    #[error(transparent)]
    Emulation(#[from] emulate::EmulationError),
    /// Samples of no memory access could not be told from others.
    #[error(
        "Linux 6.1 and 6.2 need BTF for IBS (/sys/kernel/btf/vmlinux): boot a kernel with \
         CONFIG_DEBUG_INFO_BTF, or sample by `--source timer`"
    )]
    TypesNeeded,
    /// None of that name.
    #[error("no such source was built in; `cohtrace doctor` lists them")]
    NoSource,
    /// A ring could not be mapped.
    #[error(
        "mapping a ring of {kib} KiB for CPU {cpu}: {source}; lower --ring-kib, or raise \
         kernel.perf_event_mlock_kb"
    )]
    Ring {
        /// CPU whose event it was.
        cpu: u32,
        /// How large.
        kib: usize,
        /// The system's answer.
        source: std::io::Error,
    },
    /// No function can be probed.
    #[error(transparent)]
    Uprobes(#[from] crate::sys::uprobe::NoUprobes),
    /// No CPU could be sampled.
    #[error("no online CPU could be sampled; `cohtrace doctor` says what this machine offers")]
    NoCpus,
    /// We see other process ids than the kernel does.
    #[error(
        "cohtrace runs in a pid namespace of its own, so its process ids are not the kernel's; \
         run it in the host's (docker run --pid=host, kubernetes hostPID: true)"
    )]
    PidNamespace,
    /// A target does not exist.
    #[error("no process has pid {0}")]
    NoSuchProcess(u32),
    /// The operating system refused something else.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// Why it failed.
        source: std::io::Error,
    },
}
