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

/// One timer sample: where a thread was, and its registers.
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
    /// Always 0; keeps the record a multiple of 16 bytes.
    pub reserved: u64,
}

const _: () = assert!(size_of::<Stats>() == 48);

/// Bytes of one chunk of the [`TARGETS`] map.
pub const TARGET_CHUNK: usize = 64;

/// Program names in the object, as the loader looks them up.
pub mod programs {
    /// perf_event program on the cpu-clock event of each CPU.
    pub const SAMPLE: &str = "sample";
    /// raw tracepoint `sched_process_fork`: a child is a target when its parent is.
    pub const TASK_FORK: &str = "task_fork";
    /// raw tracepoint, never attached, run on demand with (address, length): copies kernel text into
    /// [`super::KERNEL_TEXT`]; returns 0 or a negative errno.
    pub const READ_KERNEL: &str = "read_kernel";
}

/// Perf event array: one ring per CPU that carries [`SampleRecord`]s.
pub const SAMPLES: &str = "SAMPLES";
/// Array of byte chunks indexed by pid: non-zero where the thread group is a target. A byte per pid
/// cannot fill up, needs no lock in interrupt context, and makes pid reuse exact (a fork overwrites).
/// User space stores single bytes through `mmap`: updating a whole chunk would race with forks.
pub const TARGETS: &str = "TARGETS";
/// Per-CPU array with one [`Stats`].
pub const STATS: &str = "STATS";
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
}
