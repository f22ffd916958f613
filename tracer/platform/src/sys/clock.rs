//! The clock that every time stamp is of.

use rustix::time::{ClockId, clock_gettime};

/// CLOCK_MONOTONIC, nanoseconds: what `bpf_ktime_get_ns` returns in the kernel half.
pub fn monotonic_ns() -> u64 {
    read(ClockId::Monotonic)
}

/// Time that the calling thread has run, nanoseconds; the time others ran meanwhile is not in it.
pub fn thread_ns() -> u64 {
    read(ClockId::ThreadCPUTime)
}

fn read(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
