//! `HEADER_*` of tools/perf/util/header.h: numbers of the sections behind the records, which are bits of the header.

/// Build-ids of files.
pub const BUILD_ID: u32 = 2;
/// Name of the host.
pub const HOSTNAME: u32 = 3;
/// `uname -r`.
pub const OSRELEASE: u32 = 4;
/// Version of perf.
pub const VERSION: u32 = 5;
/// `uname -m`.
pub const ARCH: u32 = 6;
/// CPUs online and configured.
pub const NRCPUS: u32 = 7;
/// Name of the processor.
pub const CPUDESC: u32 = 8;
/// The command that recorded.
pub const CMDLINE: u32 = 11;
/// Attributes, names and ids of the events.
pub const EVENT_DESC: u32 = 12;
/// Memory nodes and their CPUs.
pub const NUMA_TOPOLOGY: u32 = 14;
/// First and last time of a sample.
pub const SAMPLE_TIME: u32 = 21;
/// Which memory is on which node.
pub const MEM_TOPOLOGY: u32 = 22;
/// Resolution of the clock.
pub const CLOCKID: u32 = 23;
/// The recording is a directory.
pub const DIR_FORMAT: u32 = 24;
/// The clock, and its time beside the wall clock.
pub const CLOCK_DATA: u32 = 29;
