//! Records into the ring of the CPU that they were taken on, so that interrupt context never waits for a lock.

use core::ffi::c_void;

use aya_ebpf::{
    bindings::{BPF_F_CURRENT_CPU, BPF_RB_FORCE_WAKEUP},
    helpers::bpf_perf_event_output,
    maps::PerfEventArray,
};

/// `BPF_RB_FORCE_WAKEUP`, as the helpers take it.
pub(super) const FORCE_WAKEUP: u64 = BPF_RB_FORCE_WAKEUP as u64;

/// Whether the record found room. The type of the rings is what their map was declared with; one program at a time
/// writes to them, and the user half knows which.
///
/// # Safety
///
/// `context` is what the kernel passed to the program that runs.
#[inline(always)]
pub(super) unsafe fn emit<R, T>(
    context: *mut c_void,
    rings: &'static PerfEventArray<R>,
    record: &mut T,
) -> bool {
    // SAFETY: context, map and record are live for the call, and the size is the record's own.
    let status = unsafe {
        bpf_perf_event_output(
            context,
            (&raw const *rings).cast_mut().cast(),
            u64::from(BPF_F_CURRENT_CPU as u32),
            (&raw mut *record).cast(),
            size_of::<T>() as u64,
        )
    };
    status == 0
}
