//! `PERF_RECORD_*`: of the kernel (include/uapi/linux/perf_event.h) and, from 64 on, of perf itself
//! (tools/lib/perf/include/perf/event.h).

/// A mapping was made.
pub const MMAP: u32 = 1;
/// Records found no room.
pub const LOST: u32 = 2;
/// A thread got a name.
pub const COMM: u32 = 3;
/// A thread ended.
pub const EXIT: u32 = 4;
/// Sampling was held back.
pub const THROTTLE: u32 = 5;
/// A thread or process was made.
pub const FORK: u32 = 7;
/// A sample.
pub const SAMPLE: u32 = 9;
/// A mapping was made; with device, inode and protection, or a build-id.
pub const MMAP2: u32 = 10;
/// Samples found no room.
pub const LOST_SAMPLES: u32 = 13;

/// The first that perf writes itself; those have no trailer.
pub const FIRST_OF_PERF: u32 = 64;
/// Attributes of an event, in a pipe.
pub const HEADER_ATTR: u32 = 64;
/// Formats of tracepoints; what it announces follows it.
pub const TRACING_DATA: u32 = 66;
/// A file's build-id.
pub const HEADER_BUILD_ID: u32 = 67;
/// What comes later is not older than what came before the round before.
pub const FINISHED_ROUND: u32 = 68;
/// Which trace the file has.
pub const AUXTRACE_INFO: u32 = 70;
/// A piece of a trace; what it announces follows it.
pub const AUXTRACE: u32 = 71;
/// More of an event, in a pipe.
pub const EVENT_UPDATE: u32 = 78;
/// A feature section, in a pipe.
pub const HEADER_FEATURE: u32 = 80;
/// Compressed records.
pub const COMPRESSED: u32 = 81;
/// The same, with its own length and padding.
pub const COMPRESSED2: u32 = 83;

/// Bits of `misc`.
pub mod flag {
    /// Mask of the mode that the CPU was in.
    pub const CPU_MODE: u16 = 7;
    /// A mode: kernel.
    pub const KERNEL: u16 = 1;
    /// A mode: user.
    pub const USER: u16 = 2;
    /// A mode: hypervisor.
    pub const HYPERVISOR: u16 = 3;
    /// A mode: a guest's kernel.
    pub const GUEST_KERNEL: u16 = 4;
    /// A mode: a guest's user.
    pub const GUEST_USER: u16 = 5;
    /// Of `MMAP`: not executable.
    pub const MMAP_DATA: u16 = 1 << 13;
    /// Of `COMM`: by exec.
    pub const COMM_EXEC: u16 = 1 << 13;
    /// Of `SAMPLE`: the ip is the instruction itself.
    pub const EXACT_IP: u16 = 1 << 14;
    /// Of `MMAP2`: a build-id where device and inode would be.
    pub const MMAP_BUILD_ID: u16 = 1 << 14;
    /// Of a build-id in the header: its length is beside it.
    pub const BUILD_ID_SIZE: u16 = 1 << 15;
    /// Of `LOST_SAMPLES`: a filter of the recorder's dropped them, they were not lost.
    pub const FILTERED: u16 = 1 << 15;
}
