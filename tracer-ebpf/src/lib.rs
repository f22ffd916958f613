//! The contract between the kernel half and the user half: record layouts, map names, constants.
//!
//! Fixed-width integers only, no padding (the derives refuse it), kernel bytes are parsed and never
//! cast. There is no version number: the object is embedded, so both halves are of one build.
#![no_std]

use core::mem::size_of;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// `SampleRecord::flags`: the sample interrupted kernel code; the registers are the kernel's.
pub const SAMPLE_KERNEL: u32 = 1 << 0;
/// `SampleRecord::flags`: `fs_base` was read from the task; otherwise it is meaningless.
pub const SAMPLE_FS_BASE: u32 = 1 << 1;
/// `SampleRecord::flags`: the thread ran 32-bit code (x86 compatibility mode, AArch32).
pub const SAMPLE_32BIT: u32 = 1 << 2;
/// `SampleRecord::flags` of a [`WatchRecord`]: `stack_top` was read; otherwise it is meaningless.
pub const SAMPLE_STACK_TOP: u32 = 1 << 3;

/// Number of general registers in [`SampleRecord::regs`] on x86-64.
pub const X86_64_GPRS: usize = 16;
/// Number of registers in [`SampleRecord::regs`]: the larger of the two architectures
/// (x86-64: rax rcx rdx rbx rsp rbp rsi rdi r8..r15, the instruction encoding's own order;
/// aarch64: x0..x30, sp).
#[cfg(not(any(target_arch = "aarch64", bpf_target_arch = "aarch64")))]
pub const GPRS: usize = X86_64_GPRS;
/// Number of registers in [`SampleRecord::regs`]: x0..x30 and sp.
#[cfg(any(target_arch = "aarch64", bpf_target_arch = "aarch64"))]
pub const GPRS: usize = 32;

/// Where a thread was, and its registers: a timer sample, or a part of a [`WatchRecord`].
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct SampleRecord {
    /// CLOCK_MONOTONIC, nanoseconds.
    pub time_ns: u64,
    /// Instruction pointer: the instruction that would have run next.
    pub ip: u64,
    /// User thread pointer (x86-64: fs base), valid with [`SAMPLE_FS_BASE`].
    pub fs_base: u64,
    /// Process id in the initial pid namespace.
    pub pid: u32,
    /// Thread id in the initial pid namespace.
    pub tid: u32,
    /// CPU the sample was taken on.
    pub cpu: u32,
    /// `SAMPLE_*` bits.
    pub flags: u32,
    /// General registers at the interrupt, in the architecture's encoding order.
    pub regs: [u64; GPRS],
}

const _: () = assert!(size_of::<SampleRecord>() == 40 + 8 * GPRS);

/// Per-CPU counters of the kernel half (map [`STATS`]), all monotonic within one run.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Stats {
    /// Samples of targets: `produced == emitted + dropped`.
    pub produced: u64,
    /// Records handed to user space.
    pub emitted: u64,
    /// Records that found no room in the ring.
    pub dropped: u64,
    /// Samples of the idle task or of processes that are not targets.
    pub filtered: u64,
    /// Samples whose fs base could not be read.
    pub no_fs_base: u64,
    /// Samples of targets by a PMU whose instruction touched no memory. They are in no other count.
    pub not_memory: u64,
}

const _: () = assert!(size_of::<Stats>() == 48);

/// `MemoryRecord::flags`: the ip is the sampled instruction itself (`PERF_EFLAGS_EXACT`,
/// arch/x86/include/asm/perf_event.h).
pub const SAMPLE_EXACT_IP: u32 = 1 << 4;

/// `MemoryRecord::fields`: `addr` is valid. These are the bits of `enum perf_event_sample_format`.
pub const MEMORY_ADDR: u32 = 1 << 3;
/// `MemoryRecord::fields`: `period` is valid.
pub const MEMORY_PERIOD: u32 = 1 << 8;
/// `MemoryRecord::fields`: `weight` is valid.
pub const MEMORY_WEIGHT: u32 = 1 << 14;
/// `MemoryRecord::fields`: `data_src` is valid.
pub const MEMORY_DATA_SRC: u32 = 1 << 15;
/// `MemoryRecord::fields`: `phys_addr` is valid.
pub const MEMORY_PHYS_ADDR: u32 = 1 << 19;
/// In the kernel's own mask, beside [`MEMORY_WEIGHT`], where a weight of three parts was asked for.
pub const MEMORY_WEIGHT_STRUCT: u32 = 1 << 24;

/// One memory access that a PMU sampled. A field whose bit is not in `fields` is 0 and says nothing.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct MemoryRecord {
    /// CLOCK_MONOTONIC, nanoseconds, of the interrupt: it brings one record at a time.
    pub time_ns: u64,
    /// The sampled instruction, with [`SAMPLE_EXACT_IP`]; otherwise about where.
    pub ip: u64,
    /// Data address.
    pub addr: u64,
    /// `union perf_mem_data_src`.
    pub data_src: u64,
    /// `union perf_sample_weight`: core cycles in the low 32 bits.
    pub weight: u64,
    /// Physical address of the data.
    pub phys_addr: u64,
    /// Events that the sample stands for.
    pub period: u64,
    /// Stack pointer at the interrupt, some instructions later than the ip and maybe the kernel's.
    pub sp: u64,
    /// User thread pointer, valid with [`SAMPLE_FS_BASE`].
    pub fs_base: u64,
    /// Process id in the initial pid namespace.
    pub pid: u32,
    /// Thread id in the initial pid namespace.
    pub tid: u32,
    /// CPU the sample was taken on.
    pub cpu: u32,
    /// `SAMPLE_*` bits.
    pub flags: u32,
    /// `MEMORY_*` bits.
    pub fields: u32,
    /// Always 0.
    pub reserved: u32,
}

const _: () = assert!(size_of::<MemoryRecord>() == 96);

/// Elements of [`globals::MEMORY_AT`].
pub mod memory_at {
    /// `perf_sample_data.sample_flags`.
    pub const SAMPLE_FLAGS: usize = 0;
    /// `perf_sample_data.addr`.
    pub const ADDR: usize = 1;
    /// `perf_sample_data.data_src`.
    pub const DATA_SRC: usize = 2;
    /// `perf_sample_data.weight`.
    pub const WEIGHT: usize = 3;
    /// `perf_sample_data.phys_addr`.
    pub const PHYS_ADDR: usize = 4;
    /// `perf_sample_data.period`.
    pub const PERIOD: usize = 5;
    /// How many.
    pub const COUNT: usize = 6;
    /// In the place of an offset: no such field, or not known.
    pub const ABSENT: u32 = u32::MAX;
    /// Position of the sample's pointer among those that a program's context is in the kernel
    /// (`struct bpf_perf_event_data_kern`): registers, sample, event.
    pub const SAMPLE_POINTER: usize = 1;
}

/// One hit of a data breakpoint. On x86-64 the trap comes after the access: the ip is that of the next
/// instruction, and the registers are what the access left.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct WatchRecord {
    /// Where the thread was.
    pub sample: SampleRecord,
    /// The breakpoint's address, not that of the accessed bytes.
    pub watched_addr: u64,
    /// The eight bytes at the user stack pointer, valid with [`SAMPLE_STACK_TOP`]; never for kernel code.
    pub stack_top: u64,
    /// Low 32 bits of the window's number.
    pub window: u32,
    /// Always 0.
    pub reserved: u32,
}

const _: () = assert!(size_of::<WatchRecord>() == size_of::<SampleRecord>() + 24);

/// Watched words at once: as many as x86-64 has address registers for breakpoints.
pub const WATCH_SLOTS: usize = 4;

/// What counts as a hit, in [`WATCH_CONTROL`]. User space stores single words through `mmap`; the kernel
/// half only adds to `hits`.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct WatchControl {
    /// 0 while no window is open, otherwise one more than its number. Stored when all but the deadline is
    /// in place and armed; 0 again when all is disarmed.
    pub open: u64,
    /// From this CLOCK_MONOTONIC time on, hits are skipped, nanoseconds. Stored once the window is open.
    pub deadline_ns: u64,
    /// From this many hits on, hits are skipped. 0 closes the window.
    pub hit_limit: u64,
    /// Hits of this window, on all CPUs. Several CPUs may pass the limit at once: at most the limit and
    /// one for each other CPU.
    pub hits: u64,
    /// The watched words; unused ones have address 0.
    pub slots: [WatchSlot; WATCH_SLOTS],
}

const _: () = assert!(size_of::<WatchControl>() == 32 + 16 * WATCH_SLOTS);

/// One watched word of one process. Two of the same address share a breakpoint.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct WatchSlot {
    /// The breakpoint's address.
    pub addr: u64,
    /// Whose hits are taken; 0: every target's.
    pub pid: u32,
    /// Always 0.
    pub reserved: u32,
}

/// Per-CPU counters of the watch program (map [`WATCH_STATS`]). The counts only grow within one run.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct WatchStats {
    /// Hits of watched words in open windows: `hits == emitted + dropped`.
    pub hits: u64,
    /// Records handed to user space.
    pub emitted: u64,
    /// Records that found no room in the ring.
    pub dropped: u64,
    /// Hits after the limit or the deadline of the open window.
    pub skipped: u64,
    /// Hits by others than whose word it is.
    pub foreign: u64,
    /// Hits while no window was open: breakpoints are armed before, and taken off after.
    pub outside: u64,
    /// The window that the next fields are of, as in [`WatchControl::open`].
    pub window: u64,
    /// When this CPU's first hit of that window was, CLOCK_MONOTONIC, nanoseconds; 0: none yet.
    pub first_hit_ns: u64,
    /// When this CPU skipped its first hit of that window, as above.
    pub first_skipped_ns: u64,
    /// Bit n: in that window, a hit of slot n was skipped on this CPU, and the kernel was asked to
    /// disable the event if it has an event limit.
    pub fired: u64,
}

const _: () = assert!(size_of::<WatchStats>() == 80);

/// Bytes of the user stack that a [`HeapRecord`] carries at most.
pub const HEAP_STACK_BYTES: usize = 1024;

/// An allocation that succeeded, as its function returned. The registers are the caller's: the ip is the
/// return address, and what calls preserve has its value there.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct HeapRecord {
    /// When the function was entered, CLOCK_MONOTONIC, nanoseconds. `old` is free from here on.
    pub entered_ns: u64,
    /// The caller's registers; its time is when the function returned.
    pub caller: SampleRecord,
    /// First byte of the new memory.
    pub addr: u64,
    /// Bytes asked for.
    pub size: u64,
    /// What a `realloc` or `mremap` was given, or 0.
    pub old: u64,
    /// Bytes from `old` on that an `mremap` was given; 0 for `realloc`.
    pub old_bytes: u64,
    /// 1 where it is a mapping (`mmap`, `mremap`), else 0.
    pub is_mapping: u64,
    /// Where the function was entered: the probed instruction.
    pub function: u64,
    /// Bytes of `stack` that were read, from the caller's stack pointer on.
    pub stack_bytes: u64,
    /// A copy of the user stack.
    pub stack: [u8; HEAP_STACK_BYTES],
}

const _: () = assert!(size_of::<HeapRecord>() == size_of::<SampleRecord>() + 64 + HEAP_STACK_BYTES);

/// Memory that is being freed, as the function was entered.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct HeapFree {
    /// CLOCK_MONOTONIC, nanoseconds.
    pub time_ns: u64,
    /// Its first byte.
    pub addr: u64,
    /// Bytes that `munmap` was given, at least 1; 0 for `free`, which takes what was allocated there.
    pub bytes: u64,
    /// Process id in the initial pid namespace.
    pub pid: u32,
    /// Thread id in the initial pid namespace.
    pub tid: u32,
}

const _: () = assert!(size_of::<HeapFree>() == 32);

/// A call of an allocating function that has not returned, by thread, in [`HEAP_CALLS`].
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct HeapCall {
    /// Stack pointer at the entry. A deeper call of the same thread has a lower one.
    pub sp: u64,
    /// When, CLOCK_MONOTONIC, nanoseconds.
    pub time_ns: u64,
    /// The probed instruction.
    pub function: u64,
    /// Bytes asked for; 0 where the call is not told.
    pub size: u64,
    /// As in [`HeapRecord`].
    pub old: u64,
    /// As in [`HeapRecord`].
    pub old_bytes: u64,
    /// As in [`HeapRecord`].
    pub is_mapping: u64,
    /// Where `posix_memalign` stores its result; 0 where the result is returned.
    pub result: u64,
}

const _: () = assert!(size_of::<HeapCall>() == 64);

/// Per-CPU counters of the heap programs (map [`HEAP_STATS`]), all monotonic within one run.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct HeapStats {
    /// Entries of functions, whoever's, by the position of their program in [`programs::HEAP_ENTRIES`]: each costs a
    /// trap.
    pub entries: [u64; programs::HEAP_ENTRIES.len()],
    /// Returns of allocating functions, as above.
    pub returns: u64,
    /// Records handed to user space.
    pub emitted: u64,
    /// Records that found no room in the ring, and calls that found none in [`HEAP_CALLS`].
    pub dropped: u64,
}

const _: () = assert!(size_of::<HeapStats>() == 96);

/// Bytes of one chunk of the [`TARGETS`] map.
pub const TARGET_CHUNK: usize = 64;

/// Program names in the object, as the loader looks them up.
pub mod programs {
    /// perf_event program on the cpu-clock event of each CPU.
    pub const SAMPLE: &str = "sample";
    /// perf_event program on the memory events of a PMU.
    pub const MEMORY: &str = "memory";
    /// raw tracepoint `sched_process_fork`: a child is a target when its parent is.
    pub const TASK_FORK: &str = "task_fork";
    /// raw tracepoint, never attached, run on demand with (address, length): copies kernel text into
    /// [`super::KERNEL_TEXT`]; returns 0 or a negative errno.
    pub const READ_KERNEL: &str = "read_kernel";
    /// perf_event program on data breakpoints; returns 1 to have the event's limit counted down, else 0.
    pub const WATCH: &str = "watch";
    /// uprobe on functions whose first argument is the size: `malloc`, `operator new`.
    pub const HEAP_SIZE_FIRST: &str = "heap_size_first";
    /// uprobe on functions whose second argument is the size: `aligned_alloc`.
    pub const HEAP_SIZE_SECOND: &str = "heap_size_second";
    /// uprobe on `calloc`.
    pub const HEAP_CALLOC: &str = "heap_calloc";
    /// uprobe on `realloc`.
    pub const HEAP_REALLOC: &str = "heap_realloc";
    /// uprobe on `posix_memalign`.
    pub const HEAP_POSIX_MEMALIGN: &str = "heap_posix_memalign";
    /// uprobe on `mmap`.
    pub const HEAP_MMAP: &str = "heap_mmap";
    /// uprobe on `mremap`.
    pub const HEAP_MREMAP: &str = "heap_mremap";
    /// uprobe on functions whose first argument is what they free.
    pub const HEAP_FREE: &str = "heap_free";
    /// uprobe on `munmap`.
    pub const HEAP_MUNMAP: &str = "heap_munmap";
    /// All uprobes at entries.
    pub const HEAP_ENTRIES: [&str; 9] = [
        HEAP_SIZE_FIRST,
        HEAP_SIZE_SECOND,
        HEAP_CALLOC,
        HEAP_REALLOC,
        HEAP_POSIX_MEMALIGN,
        HEAP_MMAP,
        HEAP_MREMAP,
        HEAP_FREE,
        HEAP_MUNMAP,
    ];
    /// uretprobe on all functions that allocate.
    pub const HEAP_RETURN: &str = "heap_return";
}

/// Perf event array: one ring per CPU that carries [`SampleRecord`]s or, of PMUs, [`MemoryRecord`]s.
pub const SAMPLES: &str = "SAMPLES";
/// Array of byte chunks indexed by pid: non-zero where the thread group is a target. A byte per pid
/// cannot fill up, needs no lock in interrupt context, and makes pid reuse exact (a fork overwrites).
/// User space stores single bytes through `mmap`: updating a whole chunk would race with forks.
pub const TARGETS: &str = "TARGETS";
/// Per-CPU array with one [`Stats`].
pub const STATS: &str = "STATS";
/// Perf event array: one ring per CPU that carries [`WatchRecord`]s.
pub const HITS: &str = "HITS";
/// Array with one [`WatchControl`].
pub const WATCH_CONTROL: &str = "WATCH_CONTROL";
/// Per-CPU array with one [`WatchStats`].
pub const WATCH_STATS: &str = "WATCH_STATS";
/// Ring buffer that tells by 8 bytes, the [`WatchControl::open`] of the window, that it has had its hits or its time.
pub const WATCH_LIMITS: &str = "WATCH_LIMITS";
/// Ring buffer of [`HeapRecord`]s and [`HeapFree`]s, told apart by their length.
pub const HEAP_EVENTS: &str = "HEAP_EVENTS";
/// LRU hash of [`HeapCall`]s by `pid << 32 | tid`.
pub const HEAP_CALLS: &str = "HEAP_CALLS";
/// Per-CPU array with one [`HeapStats`].
pub const HEAP_STATS: &str = "HEAP_STATS";
/// Array with one slot that `read_kernel` fills.
pub const KERNEL_TEXT: &str = "KERNEL_TEXT";
/// Bytes that one run of `read_kernel` copies at most.
pub const KERNEL_TEXT_BYTES: usize = 4096;

/// Globals that the loader sets from the options and the running kernel's BTF.
pub mod globals {
    /// u32: non-zero to sample every process, ignoring [`super::TARGETS`].
    pub const ALL_PROCESSES: &str = "ALL_PROCESSES";
    /// u32: our own process, never sampled with `ALL_PROCESSES`.
    pub const OWN_PID: &str = "OWN_PID";
    /// u32: byte offset of `task_struct.tgid`; 0 when unknown.
    pub const TASK_TGID: &str = "TASK_TGID";
    /// u32: byte offset of the user thread pointer in `task_struct`; 0 when unknown.
    pub const TASK_FS_BASE: &str = "TASK_FS_BASE";
    /// Array of u32, see [`super::memory_at`]: byte offsets in `struct perf_sample_data`.
    pub const MEMORY_AT: &str = "MEMORY_AT";
    /// u64: allocations of fewer bytes are not recorded, at least 1.
    pub const HEAP_LEAST: &str = "HEAP_LEAST";
}

pub mod told;
