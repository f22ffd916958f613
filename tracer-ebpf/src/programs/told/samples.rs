//! Entries of the programs on perf events and forks. The kernel does not nest programs of perf events on one CPU, so the
//! counts that grew are those of this event.

use core::ffi::c_void;

use aya_ebpf::{
    bindings::{bpf_perf_event_data, bpf_user_pt_regs_t},
    helpers::bpf_get_current_pid_tgid,
};
use tracer_ebpf::{
    Stats, WatchStats,
    told::{Program, Reason},
};

use super::{
    super::{
        memory::memory,
        registers::instruction_pointer,
        sample::{STATS, sample},
        targets::is_target,
        task::task_fork,
        watch::{WATCH_CONTROL, WATCH_STATS, watch},
    },
    counts, tell,
};

/// [`sample`], told.
#[unsafe(no_mangle)]
#[unsafe(link_section = "perf_event")]
pub extern "C" fn told_sample(context: *mut bpf_perf_event_data) -> u32 {
    let before: Stats = counts(STATS.get_ptr(0));
    let result = sample(context.cast());
    sampled(Program::Sample, &before, context);
    result
}

/// [`memory`], told.
#[unsafe(no_mangle)]
#[unsafe(link_section = "perf_event")]
pub extern "C" fn told_memory(context: *mut bpf_perf_event_data) -> u32 {
    let before: Stats = counts(STATS.get_ptr(0));
    let result = memory(context.cast());
    sampled(Program::Memory, &before, context);
    result
}

#[inline(always)]
fn sampled(program: Program, before: &Stats, context: *mut bpf_perf_event_data) {
    let after: Stats = counts(STATS.get_ptr(0));
    // SAFETY: the kernel passes a valid context whose registers may be read.
    let registers: &bpf_user_pt_regs_t = unsafe { &(*context).regs };
    let at = instruction_pointer(registers);
    if after.filtered != before.filtered {
        // The idle task is nobody's.
        if bpf_get_current_pid_tgid() >> 32 != 0 {
            tell(program, Reason::NoTarget, at);
        }
    } else if after.not_memory != before.not_memory {
        tell(program, Reason::NoMemory, at);
    } else if after.dropped != before.dropped {
        tell(program, Reason::NoRoom, at);
    } else if after.no_fs_base != before.no_fs_base {
        tell(program, Reason::NoThreadPointer, at);
    }
}

/// [`watch`], told.
#[unsafe(no_mangle)]
#[unsafe(link_section = "perf_event")]
pub extern "C" fn told_watch(context: *mut bpf_perf_event_data) -> i32 {
    let before: WatchStats = counts(WATCH_STATS.get_ptr(0));
    let result = watch(context);
    let after: WatchStats = counts(WATCH_STATS.get_ptr(0));
    // SAFETY: the kernel passes a valid context; a breakpoint's event always has an address.
    let at = unsafe { (*context).addr };
    if after.outside != before.outside {
        tell(Program::Watch, Reason::NoWindow, at);
    } else if after.foreign != before.foreign {
        tell(Program::Watch, Reason::Foreign, at);
    } else if after.skipped != before.skipped {
        let reason = if has_its_hits() {
            Reason::LimitReached
        } else {
            Reason::DeadlineReached
        };
        tell(Program::Watch, reason, at);
    } else if after.dropped != before.dropped {
        tell(Program::Watch, Reason::NoRoom, at);
    }
    result
}

/// Whether the window that is open has had as many hits as it takes.
#[inline(always)]
fn has_its_hits() -> bool {
    let Some(control) = WATCH_CONTROL.get_ptr(0) else {
        return false;
    };
    // SAFETY: array values are never freed while the program runs; others store whole words.
    let hits = unsafe { (&raw const (*control).hits).read_volatile() };
    // SAFETY: as above.
    let limit = unsafe { (&raw const (*control).hit_limit).read_volatile() };
    hits >= limit
}

/// [`task_fork`], told: whoever is no target has no child that is one.
#[unsafe(no_mangle)]
#[unsafe(link_section = "raw_tp")]
pub extern "C" fn told_task_fork(context: *mut c_void) -> u32 {
    let result = task_fork(context);
    if !is_target((bpf_get_current_pid_tgid() >> 32) as u32) {
        tell(Program::TaskFork, Reason::NoTarget, 0);
    }
    result
}
