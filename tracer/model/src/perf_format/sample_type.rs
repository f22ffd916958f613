//! `PERF_SAMPLE_*` of include/uapi/linux/perf_event.h: which fields a sample has. Those that are asked for do not come in
//! the order of their numbers.

/// Instruction pointer.
pub const IP: u64 = 1 << 0;
/// Process and thread.
pub const TID: u64 = 1 << 1;
/// Time.
pub const TIME: u64 = 1 << 2;
/// Data address.
pub const ADDR: u64 = 1 << 3;
/// Counts of the event, or of its group.
pub const READ: u64 = 1 << 4;
/// Call chain.
pub const CALLCHAIN: u64 = 1 << 5;
/// Which event.
pub const ID: u64 = 1 << 6;
/// CPU.
pub const CPU: u64 = 1 << 7;
/// Events that the sample stands for.
pub const PERIOD: u64 = 1 << 8;
/// Which event, by CPU and thread.
pub const STREAM_ID: u64 = 1 << 9;
/// What a program or a tracepoint puts out.
pub const RAW: u64 = 1 << 10;
/// Last branches.
pub const BRANCH_STACK: u64 = 1 << 11;
/// User registers.
pub const REGS_USER: u64 = 1 << 12;
/// A piece of the user stack.
pub const STACK_USER: u64 = 1 << 13;
/// Cost: of memory accesses, their latency.
pub const WEIGHT: u64 = 1 << 14;
/// What served a memory access.
pub const DATA_SRC: u64 = 1 << 15;
/// Which event, first in the record.
pub const IDENTIFIER: u64 = 1 << 16;
/// State of a transaction.
pub const TRANSACTION: u64 = 1 << 17;
/// Registers at the interrupt.
pub const REGS_INTR: u64 = 1 << 18;
/// Physical data address (Linux 4.14).
pub const PHYS_ADDR: u64 = 1 << 19;
/// A piece of the AUX area.
pub const AUX: u64 = 1 << 20;
/// Control group.
pub const CGROUP: u64 = 1 << 21;
/// Size of the page of the data.
pub const DATA_PAGE_SIZE: u64 = 1 << 22;
/// Size of the page of the code.
pub const CODE_PAGE_SIZE: u64 = 1 << 23;
/// Costs in three parts (Linux 5.12).
pub const WEIGHT_STRUCT: u64 = 1 << 24;

/// By number.
pub const NAMES: [&str; 25] = [
    "IP",
    "TID",
    "TIME",
    "ADDR",
    "READ",
    "CALLCHAIN",
    "ID",
    "CPU",
    "PERIOD",
    "STREAM_ID",
    "RAW",
    "BRANCH_STACK",
    "REGS_USER",
    "STACK_USER",
    "WEIGHT",
    "DATA_SRC",
    "IDENTIFIER",
    "TRANSACTION",
    "REGS_INTR",
    "PHYS_ADDR",
    "AUX",
    "CGROUP",
    "DATA_PAGE_SIZE",
    "CODE_PAGE_SIZE",
    "WEIGHT_STRUCT",
];
