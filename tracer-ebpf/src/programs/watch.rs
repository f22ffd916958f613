//! The hit of a data breakpoint: who touched a watched word, and where. One record per hit into a ring
//! of its CPU, apart from the samples' rings.
//!
//! ```text
//!  open             0     │ the window's number ...................... │ 0
//!  limit, deadline        │ not reached ........ │ reached, or closed  │
//!  a hit            none  │ recorded             │ skipped             │
//!  a CPU's events   armed │                      │ off at its first    │ all off
//! ```
//!
//! Every hit of a watched word in an open window, before its limit and its deadline, ends as exactly
//! one of emitted or dropped.

use core::{arch::asm, ptr};

use aya_ebpf::{
    bindings::{BPF_F_MMAPABLE, bpf_perf_event_data, bpf_user_pt_regs_t},
    helpers::{bpf_get_current_pid_tgid, bpf_ktime_get_ns, bpf_probe_read_user},
    macros::map,
    maps::{Array, PerCpuArray, PerfEventArray, RingBuf},
};
use tracer_ebpf::{
    SAMPLE_KERNEL, SAMPLE_STACK_TOP, WATCH_SLOTS, WatchControl, WatchRecord, WatchStats,
};
use zerocopy::FromZeros as _;

use super::{
    output::{FORCE_WAKEUP, emit},
    registers::{record_thread, stack_pointer},
    targets::is_target,
};

/// No overridden size: the loader makes it as large as the number of possible CPUs.
#[map]
static HITS: PerfEventArray<WatchRecord> = PerfEventArray::new(0);

#[map]
pub(super) static WATCH_CONTROL: Array<WatchControl> = Array::with_max_entries(1, BPF_F_MMAPABLE);

#[map]
pub(super) static WATCH_STATS: PerCpuArray<WatchStats> = PerCpuArray::with_max_entries(1, 0);

/// Wakes user space when a window has its hits: each trap from then on costs its thread time and shows nothing.
#[map]
static WATCH_LIMITS: RingBuf = RingBuf::with_byte_size(4096, 0);

/// The kernel goes on to an event's own overflow handling, and with it to the event's limit.
const COUNT_DOWN: i32 = 1;
/// The hit ends here.
const DONE: i32 = 0;

/// Runs on each hit. Returns [`COUNT_DOWN`] for a hit that is skipped, so that an event with a limit of
/// one (`PERF_EVENT_IOC_REFRESH`) is disabled on this CPU before it costs another trap. Before about
/// Linux 6.10, `__perf_event_overflow` counts the limit down without asking; the loader gives none there.
///
/// Written without aya's macro, which would replace the return value by 0.
#[unsafe(no_mangle)]
#[unsafe(link_section = "perf_event")]
pub extern "C" fn watch(context: *mut bpf_perf_event_data) -> i32 {
    let (Some(stats), Some(control)) = (WATCH_STATS.get_ptr_mut(0), WATCH_CONTROL.get_ptr(0))
    else {
        return DONE;
    };
    // SAFETY: the value is this CPU's own, and the kernel does not nest perf_event programs on one
    // CPU (`bpf_prog_active` in `bpf_overflow_handler`), so this is the only reference.
    let stats = unsafe { &mut *stats };

    // The window and its hits before the time: who finds no window was before its opening by any clock,
    // and the first skipped hit is later than the hit that reached the limit.
    // SAFETY: array values are never freed while the program runs; user space stores whole words.
    let open = unsafe { (&raw const (*control).open).read_volatile() };
    if open == 0 {
        stats.outside += 1;
        return DONE;
    }
    // SAFETY: a field of the value, as above.
    let hits = unsafe { (&raw const (*control).hits).cast_mut() };
    // SAFETY: as for `open`.
    let hits_before = unsafe { hits.read_volatile() };
    // SAFETY: the helper has no precondition; it is CLOCK_MONOTONIC.
    let now = unsafe { bpf_ktime_get_ns() };

    // SAFETY: the kernel passes a valid context; a breakpoint's event always has an address.
    let address = unsafe { (*context).addr };
    let Some(slot) = slot_of(control, address) else {
        stats.foreign += 1;
        return DONE;
    };
    if stats.window != open {
        stats.window = open;
        stats.first_hit_ns = 0;
        stats.first_skipped_ns = 0;
        stats.fired = 0;
    }
    // SAFETY: as for `open`.
    let hit_limit = unsafe { (&raw const (*control).hit_limit).read_volatile() };
    // SAFETY: as for `open`.
    let deadline_ns = unsafe { (&raw const (*control).deadline_ns).read_volatile() };
    if hits_before >= hit_limit || now >= deadline_ns {
        if stats.first_skipped_ns == 0 {
            stats.first_skipped_ns = now;
            // Where two hits were the last at once, neither saw that it was.
            tell_limit(open);
        }
        stats.skipped += 1;
        stats.fired |= slot;
        return COUNT_DOWN;
    }
    if stats.first_hit_ns == 0 {
        stats.first_hit_ns = now;
    }
    add_one(hits);
    stats.hits += 1;

    // SAFETY: the kernel passes a valid context whose registers may be read.
    let registers = unsafe { &(*context).regs };
    let mut record = WatchRecord::new_zeroed();
    record_thread(registers, now, &mut record.sample);
    record.watched_addr = address;
    record.window = (open - 1) as u32;
    if let Some(top) = stack_top(registers, record.sample.flags) {
        record.stack_top = top;
        record.sample.flags |= SAMPLE_STACK_TOP;
    }
    // SAFETY: the context is the kernel's for this program.
    if unsafe { emit(context.cast(), &HITS, &mut record) } {
        stats.emitted += 1;
    } else {
        stats.dropped += 1;
    }
    if hits_before + 1 >= hit_limit {
        tell_limit(open);
    }
    DONE
}

/// Where the ring is full, user space has been woken already.
#[inline(always)]
fn tell_limit(open: u64) {
    let _ = WATCH_LIMITS.output::<u64>(&open, FORCE_WAKEUP);
}

/// The bit of the first slot with this address, if one with this address is of the running thread's
/// group. A breakpoint fires at its address in every process.
#[inline(always)]
fn slot_of(control: *const WatchControl, address: u64) -> Option<u64> {
    let own = (bpf_get_current_pid_tgid() >> 32) as u32;
    let mut first = 0;
    let mut is_ours = false;
    let mut is_targets = false;
    for index in 0..WATCH_SLOTS {
        // SAFETY: inside the live value; user space stores whole words, and none while armed.
        let addr = unsafe { (&raw const (*control).slots[index].addr).read_volatile() };
        // SAFETY: as above.
        let pid = unsafe { (&raw const (*control).slots[index].pid).read_volatile() };
        if addr == address {
            if first == 0 {
                first = 1 << index;
            }
            is_ours |= pid == own;
            is_targets |= pid == 0;
        }
    }
    (is_ours || (is_targets && is_target(own))).then_some(first)
}

/// Adds without returning the old value, which only Linux 5.12 and later can.
#[inline(always)]
pub(super) fn add_one(counter: *mut u64) {
    // SAFETY: `counter` points into a live map value, is aligned, and others only add to it or load it.
    unsafe { asm!("lock *(u64 *)({0} + 0) += {1}", in(reg) counter, in(reg) 1_u64) };
}

/// The eight bytes at the user stack pointer: after a call they are its return address. `None` in kernel
/// code, and where they are not in memory.
#[inline(always)]
fn stack_top(registers: &bpf_user_pt_regs_t, flags: u32) -> Option<u64> {
    if flags & SAMPLE_KERNEL != 0 {
        return None;
    }
    let top = ptr::with_exposed_provenance::<u64>(stack_pointer(registers) as usize);
    // SAFETY: the helper checks the address itself and fails on a bad one.
    unsafe { bpf_probe_read_user(top) }.ok()
}
