//! Where a thread was and with which registers, for every program that records it.

use aya_ebpf::{
    Global,
    bindings::bpf_user_pt_regs_t,
    helpers::{
        bpf_get_current_pid_tgid, bpf_get_current_task, bpf_get_smp_processor_id,
        bpf_probe_read_kernel,
    },
};
use tracer_ebpf::{GPRS, SAMPLE_32BIT, SAMPLE_FS_BASE, SAMPLE_KERNEL, SampleRecord};

#[unsafe(no_mangle)]
static TASK_FS_BASE: Global<u32> = Global::new(0);

/// Fills in the running thread at these registers; [`SAMPLE_FS_BASE`] is missing when that could not be
/// read. In place: returned by value, a second copy of the record would not fit on the stack.
#[inline(always)]
pub fn record_thread(registers: &bpf_user_pt_regs_t, time_ns: u64, record: &mut SampleRecord) {
    let ids = bpf_get_current_pid_tgid();
    record.time_ns = time_ns;
    record.ip = instruction_pointer(registers);
    record.pid = (ids >> 32) as u32;
    record.tid = ids as u32;
    // SAFETY: the helper has no precondition.
    record.cpu = unsafe { bpf_get_smp_processor_id() };
    record.flags = mode(registers);
    copy_general_registers(registers, &mut record.regs);
    if let Some(base) = thread_pointer() {
        record.fs_base = base;
        record.flags |= SAMPLE_FS_BASE;
    }
}

/// The running thread's user thread pointer from its `task_struct`. The kernel stores it there when
/// libc sets up the thread; a program that writes the register itself (`wrfsbase`, `msr tpidr_el0`)
/// shows up there at its next context switch.
#[inline(always)]
pub fn thread_pointer() -> Option<u64> {
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
pub fn instruction_pointer(registers: &bpf_user_pt_regs_t) -> u64 {
    registers.rip
}

/// Where the stack's last pushed bytes are.
#[cfg(bpf_target_arch = "x86_64")]
#[inline(always)]
pub fn stack_pointer(registers: &bpf_user_pt_regs_t) -> u64 {
    registers.rsp
}

/// The first three arguments of the function that was just entered (System V AMD64 ABI, section 3.2.3).
#[cfg(bpf_target_arch = "x86_64")]
#[inline(always)]
pub fn arguments(registers: &bpf_user_pt_regs_t) -> [u64; 3] {
    [registers.rdi, registers.rsi, registers.rdx]
}

/// What the function that has just returned gave.
#[cfg(bpf_target_arch = "x86_64")]
#[inline(always)]
pub fn returned(registers: &bpf_user_pt_regs_t) -> u64 {
    registers.rax
}

/// Bytes that a return takes off the stack.
#[cfg(bpf_target_arch = "x86_64")]
pub const RETURN_POPS: u64 = 8;

/// Privilege level 0 is the kernel; selector 0x23 is `__USER32_CS` (arch/x86/include/asm/segment.h).
#[cfg(bpf_target_arch = "x86_64")]
#[inline(always)]
pub fn mode(registers: &bpf_user_pt_regs_t) -> u32 {
    match registers.cs {
        0x23 => SAMPLE_32BIT,
        selector if selector & 3 == 0 => SAMPLE_KERNEL,
        _ => 0,
    }
}

/// Whether a PMU's driver says that the ip is the sampled instruction itself: bit 3 of the flags, which no
/// program can set (`PERF_EFLAGS_EXACT`, arch/x86/include/asm/perf_event.h).
#[cfg(bpf_target_arch = "x86_64")]
#[inline(always)]
pub fn is_exact(registers: &bpf_user_pt_regs_t) -> bool {
    registers.eflags & 1 << 3 != 0
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
pub fn instruction_pointer(registers: &bpf_user_pt_regs_t) -> u64 {
    registers.pc
}

/// Where the stack's last pushed bytes are.
#[cfg(bpf_target_arch = "aarch64")]
#[inline(always)]
pub fn stack_pointer(registers: &bpf_user_pt_regs_t) -> u64 {
    registers.sp
}

/// The first three arguments of the function that was just entered (AAPCS64, section 6.8.2).
#[cfg(bpf_target_arch = "aarch64")]
#[inline(always)]
pub fn arguments(registers: &bpf_user_pt_regs_t) -> [u64; 3] {
    [registers.regs[0], registers.regs[1], registers.regs[2]]
}

/// What the function that has just returned gave.
#[cfg(bpf_target_arch = "aarch64")]
#[inline(always)]
pub fn returned(registers: &bpf_user_pt_regs_t) -> u64 {
    registers.regs[0]
}

/// Bytes that a return takes off the stack.
#[cfg(bpf_target_arch = "aarch64")]
pub const RETURN_POPS: u64 = 0;

/// `PSR_MODE32_BIT` is 0x10 and the low four bits are the exception level and stack, all zero in
/// user mode (arch/arm64/include/uapi/asm/ptrace.h).
#[cfg(bpf_target_arch = "aarch64")]
#[inline(always)]
pub fn mode(registers: &bpf_user_pt_regs_t) -> u32 {
    match registers.pstate & 0x1f {
        0 => 0,
        0x10 => SAMPLE_32BIT,
        _ => SAMPLE_KERNEL,
    }
}

/// No PMU of this architecture gives its samples to programs.
#[cfg(bpf_target_arch = "aarch64")]
#[inline(always)]
pub fn is_exact(_: &bpf_user_pt_regs_t) -> bool {
    false
}

#[cfg(bpf_target_arch = "aarch64")]
#[inline(always)]
fn copy_general_registers(from: &bpf_user_pt_regs_t, to: &mut [u64; GPRS]) {
    for (register, slot) in from.regs.iter().zip(to.iter_mut()) {
        *slot = *register;
    }
    to[31] = from.sp;
}
