//! `PERF_RECORD_*`: of the kernel (include/uapi/linux/perf_event.h) and, from 64 on, of perf itself
//! (tools/lib/perf/include/perf/event.h).

pub(super) const MMAP: u32 = 1;
pub(super) const LOST: u32 = 2;
pub(super) const COMM: u32 = 3;
pub(super) const EXIT: u32 = 4;
pub(super) const THROTTLE: u32 = 5;
pub(super) const FORK: u32 = 7;
pub(super) const SAMPLE: u32 = 9;
pub(super) const MMAP2: u32 = 10;
pub(super) const AUX: u32 = 11;
pub(super) const ITRACE_START: u32 = 12;
pub(super) const LOST_SAMPLES: u32 = 13;
pub(super) const SWITCH: u32 = 14;
pub(super) const SWITCH_CPU_WIDE: u32 = 15;

/// The first that perf writes itself; those have no trailer.
pub(super) const FIRST_OF_PERF: u32 = 64;
pub(super) const HEADER_ATTR: u32 = 64;
pub(super) const TRACING_DATA: u32 = 66;
pub(super) const HEADER_BUILD_ID: u32 = 67;
pub(super) const FINISHED_ROUND: u32 = 68;
pub(super) const AUXTRACE_INFO: u32 = 70;
pub(super) const AUXTRACE: u32 = 71;
pub(super) const EVENT_UPDATE: u32 = 78;
pub(super) const TIME_CONV: u32 = 79;
pub(super) const HEADER_FEATURE: u32 = 80;
pub(super) const COMPRESSED: u32 = 81;
pub(super) const COMPRESSED2: u32 = 83;

/// Bits of `misc`.
pub(super) mod misc {
    /// Mask of the mode that the CPU was in.
    pub const CPU_MODE: u16 = 7;
    pub const KERNEL: u16 = 1;
    pub const HYPERVISOR: u16 = 3;
    pub const GUEST_KERNEL: u16 = 4;
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
