//! The one stream: accesses, the context that gives them meaning, and the counts that keep it honest.
//!
//! Live sources, recorded sessions and imported files all produce [`Batch`]es; everything after the
//! source consumes them. Within a batch, `accesses` and `context` are each ordered by time, and no
//! later batch holds anything older than the newest event of an earlier one:
//!
//! ```text
//!   batch 1                     batch 2
//!   context   m  m     f        context        x
//!   accesses   aa  aa a         accesses   a aa  aa
//!   ─────────────────────┼─────────────────────────► time_ns
//! ```

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

mod allocation;
mod file_stamp;
mod order;
mod pace;
pub mod path_text;
mod window;

pub use allocation::{Allocation, AllocationKind, HeapPart, HeapTally};
pub use file_stamp::FileStamp;
pub use order::{Due, InOrder};
pub use pace::{Growth, HoldEnd, Pace};
pub use window::{Breadth, WatchTally, WatchedWord, Window, WindowEnd};

use serde::Serialize as _;

use crate::access::{Access, Cost, Cpu, Pid, Tid};

/// Accesses and context of one stretch of time.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Batch {
    /// Ordered by `time_ns`.
    pub accesses: Vec<Access>,
    /// Ordered by `time_ns`; an event applies to accesses of the same time or later.
    pub context: Vec<Context>,
    /// Watch windows that are over, ordered by `end_ns`. A window comes in the batch of its last access or
    /// in a later one, so that its accesses are known when it comes.
    pub windows: Vec<Window>,
    /// Ordered by `time_ns`; an event applies to accesses of the same time or later, and after context of the
    /// same time.
    pub allocations: Vec<Allocation>,
    /// Counts since the previous batch.
    pub tally: Tally,
}

impl Batch {
    /// Empties the batch and keeps its memory.
    pub fn clear(&mut self) {
        self.accesses.clear();
        self.context.clear();
        self.windows.clear();
        self.allocations.clear();
        self.tally = Tally::default();
    }

    /// Whether there is nothing in it at all.
    pub fn is_empty(&self) -> bool {
        self.accesses.is_empty()
            && self.context.is_empty()
            && self.windows.is_empty()
            && self.allocations.is_empty()
            && self.tally == Tally::default()
    }
}

/// Something that changes what addresses and ids mean.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Context {
    /// CLOCK_MONOTONIC, nanoseconds.
    pub time_ns: u64,
    /// The change that the event tells of.
    pub kind: ContextKind,
}

/// The kinds of context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ContextKind {
    /// A mapping appeared in a process (or was there when we looked first).
    Mapping {
        /// Process that it happened in.
        pid: Pid,
        /// The mapping; shared because a fork copies references, not mappings.
        mapping: Arc<Mapping>,
    },
    /// A thread has a name; with `exec`, the process has just become another program.
    Comm {
        /// Process.
        pid: Pid,
        /// Thread.
        tid: Tid,
        /// The kernel's name of the thread.
        comm: String,
        /// By `exec`: the old mappings are gone.
        exec: bool,
    },
    /// A new thread or process. A process when `pid != parent_pid`; it starts with its parent's mappings.
    Fork {
        /// Process of the new thread.
        pid: Pid,
        /// The new thread.
        tid: Tid,
        /// Process of the thread that made it.
        parent_pid: Pid,
    },
    /// A thread ended.
    Exit {
        /// Process.
        pid: Pid,
        /// Thread.
        tid: Tid,
    },
    /// Where a thread keeps its stack and its thread-local storage, as a sample showed.
    Thread {
        /// Process.
        pid: Pid,
        /// Thread.
        tid: Tid,
        /// Stack pointer.
        sp: u64,
        /// Thread pointer (x86-64 fs base), where known.
        tp: Option<u64>,
    },
    /// Where a thread has its block of a module's thread-local variables, as the process's memory showed.
    LocalStorage {
        /// Process.
        pid: Pid,
        /// Thread.
        tid: Tid,
        /// The block.
        block: LocalBlock,
    },
    /// What memory held when it was looked at, for names: code of the kernel, which is in no file, and pointers of
    /// programs.
    Memory {
        /// Whose; none of the kernel's own.
        pid: Option<Pid>,
        /// First address.
        start: u64,
        /// The bytes there.
        bytes: Arc<[u8]>,
    },
    /// How fast a word of a thread grew, when that was read.
    Pace(Pace),
}

/// A thread's copy of a module's thread-local variables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalBlock {
    /// First address.
    pub start: u64,
    /// Length in bytes.
    pub len: u64,
    /// Device of the module's file, as in [`Mapping::dev`].
    pub dev: u64,
    /// Inode of the module's file.
    pub inode: u64,
}

impl LocalBlock {
    /// Whether any byte is in a range of addresses.
    pub fn overlaps(&self, start: u64, end: u64) -> bool {
        self.start < end && start < self.start.saturating_add(self.len)
    }
}

/// A range of virtual memory and what is behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    /// First address.
    pub start: u64,
    /// Length in bytes.
    pub len: u64,
    /// Offset in the file, bytes.
    pub file_offset: u64,
    /// Device, `major << 32 | minor`; 0 for anonymous private memory.
    pub dev: u64,
    /// Inode; 0 for anonymous private memory.
    pub inode: u64,
    /// Writes are seen by others who map it.
    pub shared: bool,
    /// Can be executed.
    pub executable: bool,
    /// Can be written.
    pub writable: bool,
    /// As the kernel names it: a path (as [`path_text`] writes one), `[heap]`, `[stack]`, `[vdso]`, `//anon`, or empty.
    pub name: String,
    /// The build of the file, in hexadecimal, where the recording has it. Another build is not the file.
    pub build_id: Option<String>,
    /// The file as it was when it was seen mapped; `None` where nobody looked, or it was gone.
    pub stamp: Option<FileStamp>,
}

/// What the kernel appends to the name of a file that has none any more (`d_path` in fs/d_path.c).
pub const DELETED: &str = " (deleted)";

impl Mapping {
    /// `dev` of a file whose device and inode were not recorded: no device has this number. `inode` is then a
    /// number by which equal files are equal, and that the file system does not know.
    pub const UNKNOWN_DEVICE: u64 = u64::MAX;

    /// One past the last address.
    pub fn end(&self) -> u64 {
        self.start.saturating_add(self.len)
    }

    /// Whether the address is inside.
    pub fn contains(&self, addr: u64) -> bool {
        addr >= self.start && addr < self.end()
    }

    /// Where the file was, if its process sees it there: the kernel's mark of a deleted one is no part of its name.
    pub fn path(&self) -> PathBuf {
        path_text::path(self.name.trim_end_matches(DELETED))
    }

    /// Whether a file on disk (or once on disk) is behind it.
    pub fn is_file(&self) -> bool {
        self.inode != 0 && self.name.starts_with('/') && !self.name.starts_with("//")
    }
}

/// Counts that make losses visible; each adds up by [`Tally::add`].
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Tally {
    /// Samples of targets that the kernel half took, or executions of an emulated program:
    /// `counted() + lost == produced`.
    pub produced: u64,
    /// Samples that reached user space; none where executions are counted.
    pub samples: u64,
    /// Executions of an emulated program, all of them; none where samples are counted.
    pub executions: u64,
    /// Of the samples, those taken in kernel mode.
    pub kernel_samples: u64,
    /// Samples of processes that are not targets, dropped in the kernel half.
    pub filtered: u64,
    /// Samples that found no room in their CPU's ring.
    pub lost: BTreeMap<Cpu, u64>,
    /// Time in which a CPU was online and not sampled, nanoseconds.
    pub blind_ns: BTreeMap<Cpu, u64>,
    /// Context records (mappings, forks, ..) that found no room: names may be wrong after.
    pub lost_context: u64,
    /// What the samples cost together: target time, or their latencies ([`CostUnit`](crate::access::CostUnit)).
    pub cost: Cost,
    /// Messages of the coherence protocol that the executions took. No source counts them: they follow from the order
    /// of the accesses.
    pub messages: u64,
    /// Samples whose stalled access was found and resolved to an address; all executions.
    pub attributed: u64,
    /// Samples without one, by reason: `counted() == attributed + unresolved.values().sum()`.
    pub unresolved: BTreeMap<Unresolved, u64>,
    /// Operands in the sampled code whose address could not be computed (not samples).
    pub operands_unknown: u64,
    /// The heap, where it was followed.
    pub heap: HeapTally,
}

impl Tally {
    /// Adds the counts of a later stretch. Sums stay at the most that there is: a file may claim any number.
    pub fn add(&mut self, other: &Tally) {
        for (sum, n) in [
            (&mut self.produced, other.produced),
            (&mut self.samples, other.samples),
            (&mut self.executions, other.executions),
            (&mut self.kernel_samples, other.kernel_samples),
            (&mut self.filtered, other.filtered),
            (&mut self.lost_context, other.lost_context),
            (&mut self.messages, other.messages),
            (&mut self.attributed, other.attributed),
            (&mut self.operands_unknown, other.operands_unknown),
        ] {
            *sum = sum.saturating_add(n);
        }
        self.cost += other.cost;
        add_each(&mut self.lost, &other.lost);
        add_each(&mut self.blind_ns, &other.blind_ns);
        add_each(&mut self.unresolved, &other.unresolved);
        self.heap.add(&other.heap);
    }

    /// What arrived, whatever was counted: samples or executions.
    pub fn counted(&self) -> u64 {
        self.samples.saturating_add(self.executions)
    }

    /// The cost of all of it, in the run's unit: what shares are of.
    pub fn whole_cost(&self) -> Cost {
        if self.executions > 0 {
            Cost(self.messages)
        } else {
            self.cost
        }
    }

    /// Samples lost on all CPUs.
    pub fn lost_total(&self) -> u64 {
        self.lost.values().fold(0, |sum, n| sum.saturating_add(*n))
    }
}

/// Adds counts, each to the one of its key; sums stay at the most that there is.
pub fn add_each<K: Ord + Copy>(sums: &mut BTreeMap<K, u64>, counts: &BTreeMap<K, u64>) {
    for (key, n) in counts {
        let sum = sums.entry(*key).or_default();
        *sum = sum.saturating_add(*n);
    }
}

/// Counts in JSON, by the names of the reasons and in their order.
pub fn by_name<S: serde::Serializer>(
    counts: &BTreeMap<Unresolved, u64>,
    to: S,
) -> Result<S::Ok, S::Error> {
    let named = counts.iter().map(|(reason, n)| (reason.name(), n));
    named.collect::<BTreeMap<_, _>>().serialize(to)
}

/// Why a sample gave no stalled access, or a breakpoint hit no access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Unresolved {
    /// The instruction before the ip touches no memory: the CPU was not waiting for any.
    NoMemoryOperand,
    /// No mapping is known at the ip.
    NoMapping,
    /// The code's file could not be opened or read, or is not the one that was mapped.
    NoModule,
    /// No symbol, unwind entry or JIT map bounds the function, so the code cannot be cut.
    NoFunction,
    /// The ip is not at an instruction of the decoded function.
    NotAnInstruction,
    /// Several paths lead to the ip, and no loop says which was taken.
    AmbiguousPath,
    /// The address registers were overwritten before the sample.
    RegisterOverwritten,
    /// The operand is relative to a segment whose base is not known.
    SegmentUnknown,
    /// Kernel code that could not be read.
    KernelText,
    /// Code of a 32-bit program, which is not decoded.
    Code32Bit,
    /// No instruction that could have run before the trapped one's successor touches the watched word.
    NoCoveringAccess,
    /// The record has no data address, or 0 for one.
    NoDataAddress,
    /// The CPU stood at a full barrier, and no store before it is known to be to memory that others use.
    FullBarrier,
}

impl Unresolved {
    /// All reasons, in report order.
    pub const ALL: [Unresolved; 13] = [
        Unresolved::NoMemoryOperand,
        Unresolved::NoMapping,
        Unresolved::NoModule,
        Unresolved::NoFunction,
        Unresolved::NotAnInstruction,
        Unresolved::AmbiguousPath,
        Unresolved::RegisterOverwritten,
        Unresolved::SegmentUnknown,
        Unresolved::KernelText,
        Unresolved::Code32Bit,
        Unresolved::NoCoveringAccess,
        Unresolved::NoDataAddress,
        Unresolved::FullBarrier,
    ];

    /// Stable name in JSON and sessions.
    pub fn name(self) -> &'static str {
        match self {
            Unresolved::NoMemoryOperand => "no_memory_operand",
            Unresolved::NoMapping => "no_mapping",
            Unresolved::NoModule => "no_module",
            Unresolved::NoFunction => "no_function",
            Unresolved::NotAnInstruction => "not_an_instruction",
            Unresolved::AmbiguousPath => "ambiguous_path",
            Unresolved::RegisterOverwritten => "register_overwritten",
            Unresolved::SegmentUnknown => "segment_unknown",
            Unresolved::KernelText => "kernel_text",
            Unresolved::Code32Bit => "code_32_bit",
            Unresolved::NoCoveringAccess => "no_covering_access",
            Unresolved::NoDataAddress => "no_data_address",
            Unresolved::FullBarrier => "full_barrier",
        }
    }

    /// The reason of that name.
    pub fn from_name(name: &str) -> Option<Unresolved> {
        Unresolved::ALL.into_iter().find(|r| r.name() == name)
    }
}
