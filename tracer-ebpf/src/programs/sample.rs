//! The timer sample: who ran where, with which registers. One record per sample into the ring of the
//! CPU it was taken on, so that interrupt context never waits for a lock.
//!
//! Every sample of a target ends as exactly one of emitted or dropped.

use aya_ebpf::{
    EbpfContext as _, Global,
    bindings::{BPF_F_CURRENT_CPU, bpf_user_pt_regs_t},
    helpers::{
        bpf_get_current_pid_tgid, bpf_get_current_task, bpf_get_smp_processor_id, bpf_ktime_get_ns,
        bpf_perf_event_output, bpf_probe_read_kernel,
    },
    macros::{map, perf_event},
    maps::{PerCpuArray, PerfEventArray},
    programs::PerfEventContext,
};
use tracer_ebpf::{GPRS, SAMPLE_32BIT, SAMPLE_FS_BASE, SAMPLE_KERNEL, SampleRecord, Stats};

use super::targets::is_target;

/// No overridden size: the loader makes it as large as the number of possible CPUs.
#[map]
static SAMPLES: PerfEventArray<SampleRecord> = PerfEventArray::new(0);

#[map]
static STATS: PerCpuArray<Stats> = PerCpuArray::with_max_entries(1, 0);

#[unsafe(no_mangle)]
static TASK_FS_BASE: Global<u32> = Global::new(0);

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

    let ids = bpf_get_current_pid_tgid();
    let pid = (ids >> 32) as u32;
    if pid == 0 || !is_target(pid) {
        stats.filtered += 1;
        return;
    }
    stats.produced += 1;

    // SAFETY: the kernel passes a valid context whose registers may be read.
    let registers = unsafe { &(*context.ctx).regs };
    let mut record = SampleRecord {
        // SAFETY: the helper has no precondition; it is CLOCK_MONOTONIC.
        time_ns: unsafe { bpf_ktime_get_ns() },
        ip: instruction_pointer(registers),
        fs_base: 0,
        pid,
        tid: ids as u32,
        // SAFETY: the helper has no precondition.
        cpu: unsafe { bpf_get_smp_processor_id() },
        flags: mode(registers),
        regs: [0; GPRS],
    };
    copy_general_registers(registers, &mut record.regs);
    match thread_pointer() {
        Some(base) => {
            record.fs_base = base;
            record.flags |= SAMPLE_FS_BASE;
        }
        None => stats.no_fs_base += 1,
    }

    // SAFETY: context, map and record are live for the call, and the size is the record's own.
    let status = unsafe {
        bpf_perf_event_output(
            context.as_ptr(),
            (&raw const SAMPLES).cast_mut().cast(),
            u64::from(BPF_F_CURRENT_CPU as u32),
            (&raw mut record).cast(),
            size_of::<SampleRecord>() as u64,
        )
    };
    if status == 0 {
        stats.emitted += 1;
    } else {
        stats.dropped += 1;
    }
}

/// The running thread's user thread pointer from its `task_struct`. The kernel stores it there when
/// libc sets up the thread; a program that writes the register itself (`wrfsbase`, `msr tpidr_el0`)
/// shows up there at its next context switch.
#[inline(always)]
fn thread_pointer() -> Option<u64> {
    let offset = TASK_FS_BASE.load();
    if offset == 0 {
        return None;
    }
    // SAFETY: the helper has no precondition.
    let task = unsafe { bpf_get_current_task() };
    let field = (task + u64::from(offset)) as *const u64;
    // SAFETY: the helper checks the address itself and fails on a bad one.
    unsafe { bpf_probe_read_kernel(field) }.ok()
}

#[cfg(bpf_target_arch = "x86_64")]
#[inline(always)]
fn instruction_pointer(registers: &bpf_user_pt_regs_t) -> u64 {
    registers.rip
}

/// Privilege level 0 is the kernel; selector 0x23 is `__USER32_CS` (arch/x86/include/asm/segment.h).
#[cfg(bpf_target_arch = "x86_64")]
#[inline(always)]
fn mode(registers: &bpf_user_pt_regs_t) -> u32 {
    match registers.cs {
        0x23 => SAMPLE_32BIT,
        selector if selector & 3 == 0 => SAMPLE_KERNEL,
        _ => 0,
    }
}

/// One register at a time: as one array expression, every value is first spilled to the stack, which
/// costs two more instructions each and, with 32 registers, more than the 512 bytes there are.
#[cfg(bpf_target_arch = "x86_64")]
#[inline(always)]
fn copy_general_registers(from: &bpf_user_pt_regs_t, to: &mut [u64; GPRS]) {
    to[0] = from.rax;
    to[1] = from.rcx;
    to[2] = from.rdx;
    to[3] = from.rbx;
    to[4] = from.rsp;
    to[5] = from.rbp;
    to[6] = from.rsi;
    to[7] = from.rdi;
    to[8] = from.r8;
    to[9] = from.r9;
    to[10] = from.r10;
    to[11] = from.r11;
    to[12] = from.r12;
    to[13] = from.r13;
    to[14] = from.r14;
    to[15] = from.r15;
}

#[cfg(bpf_target_arch = "aarch64")]
#[inline(always)]
fn instruction_pointer(registers: &bpf_user_pt_regs_t) -> u64 {
    registers.pc
}

/// `PSR_MODE32_BIT` is 0x10 and the low four bits are the exception level and stack, all zero in
/// user mode (arch/arm64/include/uapi/asm/ptrace.h).
#[cfg(bpf_target_arch = "aarch64")]
#[inline(always)]
fn mode(registers: &bpf_user_pt_regs_t) -> u32 {
    match registers.pstate & 0x1f {
        0 => 0,
        0x10 => SAMPLE_32BIT,
        _ => SAMPLE_KERNEL,
    }
}

#[cfg(bpf_target_arch = "aarch64")]
#[inline(always)]
fn copy_general_registers(from: &bpf_user_pt_regs_t, to: &mut [u64; GPRS]) {
    for (register, slot) in from.regs.iter().zip(to.iter_mut()) {
        *slot = *register;
    }
    to[31] = from.sp;
}
