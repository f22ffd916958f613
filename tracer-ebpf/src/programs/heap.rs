//! Allocations and frees of the targets' heaps, by probes on the allocator's functions.
//!
//! ```text
//!  malloc(64)       entry: the call is noted, by thread     return: record with stack ─► ring
//!   └ inner malloc  entry: deeper than a noted call: not noted     return: other stack pointer: none
//!  free(p)          entry: record ─► ring
//! ```
//!
//! An allocation is told as its function returns, a free as its function is entered: between the two
//! events of one address, nobody else can have it. Probes run with preemption on, so nothing here is kept
//! per CPU between two instructions.

use core::ptr;

use aya_ebpf::{
    EbpfContext as _, Global,
    bindings::bpf_user_pt_regs_t,
    helpers::{
        bpf_get_current_pid_tgid, bpf_ktime_get_ns, bpf_probe_read_user,
        generated::{bpf_probe_read_user as read_user, bpf_ringbuf_reserve, bpf_ringbuf_submit},
    },
    macros::{map, uprobe, uretprobe},
    maps::{LruHashMap, PerCpuArray, RingBuf},
    programs::{ProbeContext, RetProbeContext},
};
use tracer_ebpf::{HEAP_STACK_BYTES, HeapCall, HeapFree, HeapRecord, HeapStats, SAMPLE_32BIT};

use super::{
    registers::{
        RETURN_POPS, arguments, instruction_pointer, mode, record_thread, returned, stack_pointer,
    },
    targets::is_target,
    watch::add_one,
};

/// Some 7,000 allocations.
const RING_BYTES: u32 = 8 << 20;
/// Threads that are inside an allocating function at once; what longjmp left behind makes room.
const CALLS: u32 = 8192;
/// A call that takes longer never returned: an exception or longjmp left it.
const STALE_NS: u64 = 10_000_000_000;
/// `BPF_RB_NO_WAKEUP`: user space looks every few milliseconds anyway.
const NO_WAKEUP: u64 = 1;

#[map]
static HEAP_EVENTS: RingBuf = RingBuf::with_byte_size(RING_BYTES, 0);

#[map]
static HEAP_CALLS: LruHashMap<u64, HeapCall> = LruHashMap::with_max_entries(CALLS, 0);

#[map]
static HEAP_STATS: PerCpuArray<HeapStats> = PerCpuArray::with_max_entries(1, 0);

#[unsafe(no_mangle)]
static HEAP_LEAST: Global<u64> = Global::new(1);

/// `malloc(size)` and its kin.
#[uprobe]
pub fn heap_size_first(context: ProbeContext) -> u32 {
    let registers = registers(&context);
    let [size, ..] = arguments(registers);
    enter(registers, size, 0, 0)
}

/// `aligned_alloc(alignment, size)`.
#[uprobe]
pub fn heap_size_second(context: ProbeContext) -> u32 {
    let registers = registers(&context);
    let [_, size, _] = arguments(registers);
    enter(registers, size, 0, 0)
}

/// `calloc(count, size)`. A product that does not fit fails, and is not told.
#[uprobe]
pub fn heap_calloc(context: ProbeContext) -> u32 {
    let registers = registers(&context);
    let [count, size, _] = arguments(registers);
    enter(registers, count.wrapping_mul(size), 0, 0)
}

/// `realloc(old, size)`.
#[uprobe]
pub fn heap_realloc(context: ProbeContext) -> u32 {
    let registers = registers(&context);
    let [old, size, _] = arguments(registers);
    enter(registers, size, old, 0)
}

/// `posix_memalign(&result, alignment, size)`.
#[uprobe]
pub fn heap_posix_memalign(context: ProbeContext) -> u32 {
    let registers = registers(&context);
    let [result, _, size] = arguments(registers);
    enter(registers, size, 0, result)
}

/// `free(memory)`.
#[uprobe]
pub fn heap_free(context: ProbeContext) -> u32 {
    let registers = registers(&context);
    let [memory, ..] = arguments(registers);
    count(Counter::Frees);
    let ids = bpf_get_current_pid_tgid();
    if memory != 0 && is_observed(registers, ids) {
        free(ids, now_ns(), memory);
    }
    0
}

#[inline(always)]
fn enter(registers: &bpf_user_pt_regs_t, size: u64, old: u64, result: u64) -> u32 {
    count(Counter::Entries);
    let ids = bpf_get_current_pid_tgid();
    if !is_observed(registers, ids) {
        return 0;
    }
    let now = now_ns();
    if size < HEAP_LEAST.load() {
        if old != 0 {
            free(ids, now, old);
        }
        return 0;
    }
    let sp = stack_pointer(registers);
    if let Some(outer) = HEAP_CALLS.get_ptr(&ids) {
        // SAFETY: the value is this thread's own, and the kernel never frees one under a program.
        let outer = unsafe { &*outer };
        if outer.sp > sp && now.wrapping_sub(outer.time_ns) < STALE_NS {
            return 0;
        }
    }
    let call = HeapCall {
        sp,
        time_ns: now,
        function: instruction_pointer(registers),
        size,
        old,
        result,
    };
    if HEAP_CALLS.insert(&ids, &call, 0).is_err() {
        count(Counter::Dropped);
    }
    0
}

/// Runs as any of the allocating functions returns.
#[uretprobe]
pub fn heap_return(context: RetProbeContext) -> u32 {
    let registers = context.as_ptr().cast::<bpf_user_pt_regs_t>();
    // SAFETY: the kernel passes the thread's registers, whose first part this is.
    let registers = unsafe { &*registers };
    count(Counter::Returns);
    let ids = bpf_get_current_pid_tgid();
    let Some(call) = HEAP_CALLS.get_ptr(&ids) else {
        return 0;
    };
    // SAFETY: as in `enter`; copied, because it is removed next.
    let call = unsafe { *call };
    // The return of an inner call, or of one that was left without returning.
    if stack_pointer(registers) != call.sp.wrapping_add(RETURN_POPS) {
        return 0;
    }
    let _ = HEAP_CALLS.remove(&ids);
    let Some(addr) = outcome(registers, call.result) else {
        return 0;
    };
    // SAFETY: the map is live, and the size that of a record.
    let record = unsafe {
        bpf_ringbuf_reserve(
            (&raw const HEAP_EVENTS).cast_mut().cast(),
            size_of::<HeapRecord>() as u64,
            0,
        )
    };
    let record = record.cast::<HeapRecord>();
    if record.is_null() {
        count(Counter::Dropped);
        return 0;
    }
    // SAFETY: the reservation is as large as a record, aligned to 8 bytes, and nobody else's until it is
    // submitted; every bit pattern is a record.
    let filled = unsafe { &mut *record };
    record_thread(registers, now_ns(), &mut filled.caller);
    filled.entered_ns = call.time_ns;
    filled.addr = addr;
    filled.size = call.size;
    filled.old = call.old;
    filled.function = call.function;
    filled.stack_bytes = copy_stack(stack_pointer(registers), &mut filled.stack);
    // SAFETY: the reservation of above, not used after.
    unsafe { bpf_ringbuf_submit(record.cast(), NO_WAKEUP) };
    count(Counter::Emitted);
    0
}

/// The memory that a call gave, if it succeeded.
#[inline(always)]
fn outcome(registers: &bpf_user_pt_regs_t, result: u64) -> Option<u64> {
    let value = returned(registers);
    let addr = if result == 0 {
        value
    } else {
        // The status is an int.
        if value as u32 != 0 {
            return None;
        }
        let result = ptr::with_exposed_provenance::<u64>(result as usize);
        // SAFETY: the helper checks the address itself and fails on a bad one.
        unsafe { bpf_probe_read_user(result) }.ok()?
    };
    (addr != 0).then_some(addr)
}

/// Copies as much as there is from the stack pointer on: near the stack's end the whole does not read.
/// What was not read is 0.
#[inline(always)]
fn copy_stack(sp: u64, to: &mut [u8; HEAP_STACK_BYTES]) -> u64 {
    let from = ptr::with_exposed_provenance::<u8>(sp as usize).cast();
    let to = to.as_mut_ptr();
    // SAFETY: `to` has room for all of it, and the helper checks the source address itself.
    if unsafe { read_user(to.cast(), HEAP_STACK_BYTES as u32, from) } == 0 {
        return HEAP_STACK_BYTES as u64;
    }
    // SAFETY: as above.
    if unsafe { read_user(to.cast(), 256, from) } == 0 {
        return 256;
    }
    // SAFETY: as above.
    if unsafe { read_user(to.cast(), 64, from) } == 0 {
        return 64;
    }
    0
}

#[inline(always)]
fn free(ids: u64, time_ns: u64, addr: u64) {
    let freed = HeapFree {
        time_ns,
        addr,
        pid: (ids >> 32) as u32,
        tid: ids as u32,
    };
    match HEAP_EVENTS.output::<HeapFree>(&freed, NO_WAKEUP) {
        Ok(()) => count(Counter::Emitted),
        Err(_) => count(Counter::Dropped),
    }
}

/// Whether the thread's group is a target, and its code is what the arguments were read for.
#[inline(always)]
fn is_observed(registers: &bpf_user_pt_regs_t, ids: u64) -> bool {
    is_target((ids >> 32) as u32) && mode(registers) & SAMPLE_32BIT == 0
}

#[inline(always)]
fn registers(context: &ProbeContext) -> &bpf_user_pt_regs_t {
    // SAFETY: the kernel passes the thread's registers, whose first part this is.
    unsafe { &*context.as_ptr().cast::<bpf_user_pt_regs_t>() }
}

#[inline(always)]
fn now_ns() -> u64 {
    // SAFETY: the helper has no precondition; it is CLOCK_MONOTONIC.
    unsafe { bpf_ktime_get_ns() }
}

enum Counter {
    Entries,
    Returns,
    Frees,
    Emitted,
    Dropped,
}

#[inline(always)]
fn count(counter: Counter) {
    let Some(stats) = HEAP_STATS.get_ptr_mut(0) else {
        return;
    };
    let field = match counter {
        // SAFETY: a field of the live value, here and below.
        Counter::Entries => unsafe { &raw mut (*stats).entries },
        // SAFETY: as above.
        Counter::Returns => unsafe { &raw mut (*stats).returns },
        // SAFETY: as above.
        Counter::Frees => unsafe { &raw mut (*stats).frees },
        // SAFETY: as above.
        Counter::Emitted => unsafe { &raw mut (*stats).emitted },
        // SAFETY: as above.
        Counter::Dropped => unsafe { &raw mut (*stats).dropped },
    };
    add_one(field);
}
