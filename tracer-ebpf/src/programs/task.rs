//! Follows forks, so that a target's children are targets from their first instruction on.

use aya_ebpf::{
    Global,
    helpers::{bpf_get_current_pid_tgid, bpf_probe_read_kernel},
    macros::raw_tracepoint,
    programs::RawTracePointContext,
};

use super::targets::inherit;

#[unsafe(no_mangle)]
static TASK_TGID: Global<u32> = Global::new(0);

/// `sched_process_fork(parent, child)`, run by the parent before the child can run. Nothing is done
/// at exit: the pid stays in use until its last thread is reaped, and a new owner's fork overwrites.
#[raw_tracepoint]
pub fn task_fork(context: RawTracePointContext) {
    let tgid = TASK_TGID.load();
    if tgid == 0 {
        return;
    }
    let child: u64 = context.arg(1);
    let field = (child + u64::from(tgid)) as *const u32;
    // SAFETY: the helper checks the address itself and fails on a bad one.
    let Ok(child) = (unsafe { bpf_probe_read_kernel(field) }) else {
        return;
    };
    // The parent argument is always the current task (kernel/fork.c, kernel_clone).
    let parent = (bpf_get_current_pid_tgid() >> 32) as u32;
    if child != parent {
        inherit(parent, child);
    }
}
