//! Bits of the flags of `struct perf_event_attr` (include/uapi/linux/perf_event.h), by their position in its bit-field.

/// Starts switched off.
pub const DISABLED: u64 = 1 << 0;
/// Not in kernel mode.
pub const EXCLUDE_KERNEL: u64 = 1 << 5;
/// Not in a hypervisor.
pub const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
/// Not while the idle task runs.
pub const EXCLUDE_IDLE: u64 = 1 << 7;
/// Records executable mappings.
pub const MMAP: u64 = 1 << 8;
/// Records names.
pub const COMM: u64 = 1 << 9;
/// `sample_period` is a number of samples per second, to which the kernel adapts the period.
pub const FREQUENCY: u64 = 1 << 10;
/// Records fork and exit.
pub const TASK: u64 = 1 << 13;
/// `wakeup_watermark` counts bytes, not records.
pub const WATERMARK: u64 = 1 << 14;
/// Two bits: how near the ip must be to the sampled instruction; see [`PRECISE_MASK`].
pub const PRECISE_SHIFT: u32 = 15;
/// 3 is the instruction itself without skew, 2 the instruction itself, 1 near it, 0 anywhere.
pub const PRECISE_MASK: u64 = 3 << PRECISE_SHIFT;
/// Records other mappings too.
pub const MMAP_DATA: u64 = 1 << 17;
/// Every record ends with the ids and the time.
pub const SAMPLE_ID_ALL: u64 = 1 << 18;
/// Not while a virtual machine runs.
pub const EXCLUDE_GUEST: u64 = 1 << 20;
/// Mappings with device, inode and protection.
pub const MMAP2: u64 = 1 << 23;
/// Marks the name that an exec sets.
pub const COMM_EXEC: u64 = 1 << 24;
/// Time stamps by `clockid`.
pub const USE_CLOCKID: u64 = 1 << 25;
