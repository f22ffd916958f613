//! The debug object: each program behind an entry that runs it and tells why it did nothing.
//!
//! ```text
//!   event ─► entry: notes counts ─► the program, unchanged ─► entry: which counts grew? ─► line ─► AYA_LOGS
//! ```
//!
//! The entries look only at what programs leave behind, counts and noted calls, so the object without them stays what it
//! is to the byte, and what is told is what was counted.

mod heap;
mod samples;

use core::ptr;

use aya_ebpf::{
    helpers::{bpf_get_current_pid_tgid, bpf_ktime_get_ns},
    macros::map,
    maps::Array,
};
use tracer_ebpf::told::{Program, REMEMBERED, Reason};

/// Which tasks were told of which reason, and when: the first time is told, so that no flood of events makes one of lines.
#[map]
static TOLD: Array<Told> = Array::with_max_entries(REMEMBERED, 0);

/// Two of one place in [`TOLD`] take turns no faster.
const TURN_NS: u64 = 1_000_000_000;

/// A thread, a program and a reason.
struct Told {
    what: u64,
    time_ns: u64,
}

/// Tells, the first time that the running thread has this of this program. One function for all, because writing a line
/// takes much code, and stack.
#[inline(never)]
fn tell(program: Program, reason: Reason, at: u64) {
    let ids = bpf_get_current_pid_tgid();
    // SAFETY: the helper has no precondition; it is CLOCK_MONOTONIC.
    let now = unsafe { bpf_ktime_get_ns() };
    if !is_first(program, reason, ids, now) {
        return;
    }
    aya_log_ebpf::info!(
        (),
        target: "cohtrace",
        "time {} pid {} tid {} program {} reason {} at {:x}",
        now,
        (ids >> 32) as u32,
        ids as u32,
        program as u32,
        reason as u32,
        at
    );
}

/// Where CPUs meet at one place, a line is told twice or not at all.
#[inline(always)]
fn is_first(program: Program, reason: Reason, ids: u64, now: u64) -> bool {
    // A pid takes 22 bits at most (include/linux/threads.h).
    let what = (ids & 0xffff_ffff) << 16 | (program as u64) << 8 | reason as u64;
    // Fibonacci hashing: the upper bits of a product with 2^64 divided by the golden ratio.
    let place = what.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    let Some(told) = TOLD.get_ptr_mut(place as u32 % REMEMBERED) else {
        return false;
    };
    // SAFETY: a field of the live value; array values are never freed while the program runs.
    let was = unsafe { &raw mut (*told).what };
    // SAFETY: as above.
    let time = unsafe { &raw mut (*told).time_ns };
    // SAFETY: as above; others may store at the same time, but whole words.
    let known = unsafe { was.read_volatile() };
    // SAFETY: as above.
    let told_ns = unsafe { time.read_volatile() };
    if known == what || (known != 0 && now.wrapping_sub(told_ns) < TURN_NS) {
        return false;
    }
    // SAFETY: as above.
    unsafe { was.write_volatile(what) };
    // SAFETY: as above.
    unsafe { time.write_volatile(now) };
    true
}

/// A copy of this CPU's counts; zeros where there are none, which no kernel does.
#[inline(always)]
fn counts<T: zerocopy::FromZeros>(of: Option<*const T>) -> T {
    // SAFETY: the value is live, and this CPU's own.
    of.map_or_else(T::new_zeroed, |counts| unsafe {
        ptr::read_volatile(counts)
    })
}
