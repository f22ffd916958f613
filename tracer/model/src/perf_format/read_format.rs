//! `PERF_FORMAT_*` of include/uapi/linux/perf_event.h: what counts in samples have beside them.

/// How long the event was to count.
pub const TOTAL_TIME_ENABLED: u64 = 1 << 0;
/// How long it did.
pub const TOTAL_TIME_RUNNING: u64 = 1 << 1;
/// Which event.
pub const ID: u64 = 1 << 2;
/// Of all events of its group.
pub const GROUP: u64 = 1 << 3;
/// Samples that found no room (Linux 6.0).
pub const LOST: u64 = 1 << 4;
