//! The sample of a PMU that samples memory accesses: which access, and what the PMU measured of it. One record
//! per sample into the ring of the CPU it was taken on, as the timer's.
//!
//! The context shows a program the registers, the period and the address. What else the kernel's driver found
//! lies behind it: the helper, unlike a load, sees the struct that the context really is
//! (`struct bpf_perf_event_data_kern`), and from there on the running kernel's type information leads.
//!
//! ```text
//!   context ─► registers │ sample ─► sample_flags, addr, data_src, weight, phys_addr, ..
//! ```
//!
//! Since 6.1 a field whose bit is not in `sample_flags` is old kernel stack; none such is read. Every memory
//! access of a target ends as exactly one of emitted or dropped.

use aya_ebpf::{
    EbpfContext as _, Global,
    helpers::{
        bpf_get_current_pid_tgid, bpf_get_smp_processor_id, bpf_ktime_get_ns, bpf_probe_read_kernel,
    },
    macros::perf_event,
    programs::PerfEventContext,
};
use tracer_ebpf::{
    MEMORY_ADDR, MEMORY_DATA_SRC, MEMORY_PERIOD, MEMORY_PHYS_ADDR, MEMORY_WEIGHT,
    MEMORY_WEIGHT_STRUCT, MemoryRecord, SAMPLE_EXACT_IP, SAMPLE_FS_BASE, memory_at,
};
use zerocopy::FromZeros as _;

use super::{
    output::emit,
    registers::{instruction_pointer, is_exact, mode, stack_pointer, thread_pointer},
    sample::{SAMPLES, STATS},
    targets::is_target,
};

#[unsafe(no_mangle)]
static MEMORY_AT: Global<[u32; memory_at::COUNT]> = Global::new([memory_at::ABSENT; _]);

/// `PERF_MEM_OP_LOAD`, `_STORE` and `_PFETCH` of include/uapi/linux/perf_event.h.
const TOUCHES_MEMORY: u64 = 0x2 | 0x4 | 0x8;

/// What the driver fills in before a program runs where there is no `sample_flags` (`perf_sample_data_init`
/// up to 6.0); the physical address comes too late there.
const BEFORE_SAMPLE_FLAGS: u64 =
    (MEMORY_ADDR | MEMORY_PERIOD | MEMORY_WEIGHT | MEMORY_DATA_SRC) as u64;

/// Runs on each overflow. The macro makes the kernel see 0, so that perf itself writes no record.
#[perf_event]
pub fn memory(context: PerfEventContext) {
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
    let mut record = MemoryRecord::new_zeroed();
    read_sample(&context, &mut record);
    if record.data_src & TOUCHES_MEMORY == 0 && record.addr == 0 {
        stats.not_memory += 1;
        return;
    }
    stats.produced += 1;

    // SAFETY: the helper has no precondition; it is CLOCK_MONOTONIC.
    record.time_ns = unsafe { bpf_ktime_get_ns() };
    // SAFETY: the kernel passes a valid context whose registers may be read.
    let registers = unsafe { &(*context.ctx).regs };
    record.ip = instruction_pointer(registers);
    record.sp = stack_pointer(registers);
    record.pid = pid;
    record.tid = ids as u32;
    // SAFETY: the helper has no precondition.
    record.cpu = unsafe { bpf_get_smp_processor_id() };
    record.flags = mode(registers);
    if is_exact(registers) {
        record.flags |= SAMPLE_EXACT_IP;
    }
    if let Some(base) = thread_pointer() {
        record.fs_base = base;
        record.flags |= SAMPLE_FS_BASE;
    } else {
        stats.no_fs_base += 1;
    }

    // SAFETY: the context is the kernel's for this program.
    if unsafe { emit(context.as_ptr(), &SAMPLES, &mut record) } {
        stats.emitted += 1;
    } else {
        stats.dropped += 1;
    }
}

/// Fills in what the PMU measured.
#[inline(always)]
fn read_sample(context: &PerfEventContext, record: &mut MemoryRecord) {
    let at = MEMORY_AT.load();
    let Some(sample) = sample_address(context).filter(|_| at[memory_at::ADDR] != memory_at::ABSENT)
    else {
        // The events ask for the address, so that it is set where the kernel prepares the sample (6.3), where
        // the PMU's driver gives one, or where all is set to begin with (up to 6.0).
        // SAFETY: the kernel passes a valid context.
        record.addr = unsafe { (*context.ctx).addr };
        // SAFETY: as above.
        record.period = unsafe { (*context.ctx).sample_period };
        record.fields = MEMORY_ADDR | MEMORY_PERIOD;
        return;
    };
    let valid = if at[memory_at::SAMPLE_FLAGS] == memory_at::ABSENT {
        BEFORE_SAMPLE_FLAGS
    } else {
        field(sample, at[memory_at::SAMPLE_FLAGS]).unwrap_or(0)
    };
    let has = |bit: u32| valid & u64::from(bit) != 0;
    let mut fields = 0;
    if has(MEMORY_ADDR)
        && let Some(value) = field(sample, at[memory_at::ADDR])
    {
        record.addr = value;
        fields |= MEMORY_ADDR;
    }
    if has(MEMORY_DATA_SRC)
        && let Some(value) = field(sample, at[memory_at::DATA_SRC])
    {
        record.data_src = value;
        fields |= MEMORY_DATA_SRC;
    }
    if has(MEMORY_WEIGHT | MEMORY_WEIGHT_STRUCT)
        && let Some(value) = field(sample, at[memory_at::WEIGHT])
    {
        record.weight = value;
        fields |= MEMORY_WEIGHT;
    }
    if has(MEMORY_PHYS_ADDR)
        && let Some(value) = field(sample, at[memory_at::PHYS_ADDR])
    {
        record.phys_addr = value;
        fields |= MEMORY_PHYS_ADDR;
    }
    if has(MEMORY_PERIOD)
        && let Some(value) = field(sample, at[memory_at::PERIOD])
    {
        record.period = value;
        fields |= MEMORY_PERIOD;
    }
    record.fields = fields;
}

/// Where the kernel has the sample.
#[inline(always)]
fn sample_address(context: &PerfEventContext) -> Option<u64> {
    let pointers = context.ctx.cast::<[u64; 3]>();
    // SAFETY: the helper checks the address itself; it reads the kernel's own struct there, three pointers.
    let pointers = unsafe { bpf_probe_read_kernel(pointers) }.ok()?;
    Some(pointers[memory_at::SAMPLE_POINTER])
}

/// A word of the sample; `None` where the kernel has no such field.
#[inline(always)]
fn field(sample: u64, offset: u32) -> Option<u64> {
    if offset == memory_at::ABSENT {
        return None;
    }
    let field = (sample + u64::from(offset)) as *const u64;
    // SAFETY: the helper checks the address itself and fails on a bad one.
    unsafe { bpf_probe_read_kernel(field) }.ok()
}
