//! The timer sample: who ran where, with which registers. One record per sample into the ring of the
//! CPU it was taken on, so that interrupt context never waits for a lock.
//!
//! Every sample of a target ends as exactly one of emitted or dropped.

use aya_ebpf::{
    EbpfContext as _,
    helpers::{bpf_get_current_pid_tgid, bpf_ktime_get_ns},
    macros::{map, perf_event},
    maps::{PerCpuArray, PerfEventArray},
    programs::PerfEventContext,
};
use tracer_ebpf::{SAMPLE_FS_BASE, SampleRecord, Stats};
use zerocopy::FromZeros as _;

use super::{output::emit, registers::record_thread, targets::is_target};

/// No overridden size: the loader makes it as large as the number of possible CPUs.
#[map]
pub(super) static SAMPLES: PerfEventArray<SampleRecord> = PerfEventArray::new(0);

#[map]
pub(super) static STATS: PerCpuArray<Stats> = PerCpuArray::with_max_entries(1, 0);

/// Runs on each cpu-clock overflow. The macro makes the kernel see 0, so that perf itself writes no
/// record for the event.
#[perf_event]
pub fn sample(context: PerfEventContext) {
    let Some(stats) = STATS.get_ptr_mut(0) else {
        return;
    };
    // SAFETY: the value is this CPU's own, and the kernel does not nest perf_event programs on one
    // CPU (`bpf_prog_active` in `bpf_overflow_handler`), so this is the only reference.
    let stats = unsafe { &mut *stats };

    let pid = (bpf_get_current_pid_tgid() >> 32) as u32;
    if pid == 0 || !is_target(pid) {
        stats.filtered += 1;
        return;
    }
    stats.produced += 1;

    // SAFETY: the helper has no precondition; it is CLOCK_MONOTONIC.
    let now = unsafe { bpf_ktime_get_ns() };
    // SAFETY: the kernel passes a valid context whose registers may be read.
    let registers = unsafe { &(*context.ctx).regs };
    let mut record = SampleRecord::new_zeroed();
    record_thread(registers, now, &mut record);
    if record.flags & SAMPLE_FS_BASE == 0 {
        stats.no_fs_base += 1;
    }

    // SAFETY: the context is the kernel's for this program.
    if unsafe { emit(context.as_ptr(), &SAMPLES, &mut record) } {
        stats.emitted += 1;
    } else {
        stats.dropped += 1;
    }
}
