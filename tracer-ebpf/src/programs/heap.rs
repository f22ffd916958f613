//! Allocations and frees of the targets' heaps, by probes on the allocator's functions.
//!
//! ```text
//!  malloc(64)       entry: the call is noted, by thread     return: record with stack ─► ring
//!   └ inner malloc  entry: deeper than a noted call: not noted     return: other stack pointer: none
//!  free(p)          entry: record ─► ring
//! ```
//!
//! `mmap` is probed like `malloc`: the one that an allocator calls inside of its `malloc` is an inner call.
//!
//! An allocation is told as its function returns, a free as its function is entered: between the two
//! events of one address, nobody else can have it. Probes run with preemption on, so nothing here is kept
//! per CPU between two instructions.

use core::ptr;

use aya_ebpf::{
    EbpfContext as _, Global,
    bindings::{BPF_RB_AVAIL_DATA, BPF_RB_NO_WAKEUP, bpf_user_pt_regs_t},
    helpers::{
        bpf_get_current_pid_tgid, bpf_ktime_get_ns, bpf_probe_read_user,
        generated::{bpf_probe_read_user as read_user, bpf_ringbuf_reserve, bpf_ringbuf_submit},
    },
    macros::{map, uprobe, uretprobe},
    maps::{LruHashMap, PerCpuArray, RingBuf},
    programs::{ProbeContext, RetProbeContext},
};
use tracer_ebpf::{
    HEAP_STACK_BYTES, HeapCall, HeapFree, HeapRecord, HeapStats, SAMPLE_32BIT, programs,
};

use super::{
    output::FORCE_WAKEUP,
    registers::{
        RETURN_POPS, arguments, instruction_pointer, mode, record_thread, returned, stack_pointer,
    },
    targets::is_target,
    watch::add_one,
};

/// Some 7,000 allocations.
pub(super) const RING_BYTES: u32 = 8 << 20;
/// Threads that are inside an allocating function at once; what longjmp left behind makes room.
const CALLS: u32 = 8192;
/// A call that takes longer never returned: an exception or longjmp left it.
const STALE_NS: u64 = 10_000_000_000;
/// Pages have at least so many bytes, a power of two.
pub(super) const LEAST_PAGE: u64 = 4096;
/// `BPF_RB_NO_WAKEUP`, as the helpers take it.
const NO_WAKEUP: u64 = BPF_RB_NO_WAKEUP as u64;
/// User space is woken from here on; before, it looks often enough by itself.
const MUCH: u64 = RING_BYTES as u64 / 4;

#[map]
pub(super) static HEAP_EVENTS: RingBuf = RingBuf::with_byte_size(RING_BYTES, 0);

#[map]
pub(super) static HEAP_CALLS: LruHashMap<u64, HeapCall> = LruHashMap::with_max_entries(CALLS, 0);

#[map]
static HEAP_STATS: PerCpuArray<HeapStats> = PerCpuArray::with_max_entries(1, 0);

#[unsafe(no_mangle)]
static HEAP_LEAST: Global<u64> = Global::new(1);

/// `malloc(size)` and its kin.
#[uprobe]
pub fn heap_size_first(context: ProbeContext) -> u32 {
    let registers = registers(&context);
    let [size, ..] = arguments(registers);
    count_entry(Entry::SizeFirst);
    enter(registers, Call { size, ..NONE })
}

/// `aligned_alloc(alignment, size)`.
#[uprobe]
pub fn heap_size_second(context: ProbeContext) -> u32 {
    let registers = registers(&context);
    let [_, size, _] = arguments(registers);
    count_entry(Entry::SizeSecond);
    enter(registers, Call { size, ..NONE })
}

/// `calloc(count, size)`. A product that does not fit fails, and is not told.
#[uprobe]
pub fn heap_calloc(context: ProbeContext) -> u32 {
    let registers = registers(&context);
    let [count, size, _] = arguments(registers);
    let size = count.wrapping_mul(size);
    count_entry(Entry::Calloc);
    enter(registers, Call { size, ..NONE })
}

/// `realloc(old, size)`.
#[uprobe]
pub fn heap_realloc(context: ProbeContext) -> u32 {
    let registers = registers(&context);
    let [old, size, _] = arguments(registers);
    count_entry(Entry::Realloc);
    enter(registers, Call { size, old, ..NONE })
}

/// `posix_memalign(&result, alignment, size)`.
#[uprobe]
pub fn heap_posix_memalign(context: ProbeContext) -> u32 {
    let registers = registers(&context);
    let [result, _, size] = arguments(registers);
    count_entry(Entry::PosixMemalign);
    enter(
        registers,
        Call {
            size,
            result,
            ..NONE
        },
    )
}

/// `mmap(wished, size, ..)`.
#[uprobe]
pub fn heap_mmap(context: ProbeContext) -> u32 {
    let registers = registers(&context);
    let [_, size, _] = arguments(registers);
    count_entry(Entry::Mmap);
    enter(
        registers,
        Call {
            size,
            is_mapping: true,
            ..NONE
        },
    )
}

/// `mremap(old, old_bytes, size, ..)`. Of 0 bytes nothing is moved: it gives the same memory a second time.
#[uprobe]
pub fn heap_mremap(context: ProbeContext) -> u32 {
    let registers = registers(&context);
    let [old, old_bytes, size] = arguments(registers);
    count_entry(Entry::Mremap);
    let old = if old_bytes == 0 { 0 } else { old };
    enter(
        registers,
        Call {
            size,
            old,
            old_bytes,
            result: 0,
            is_mapping: true,
        },
    )
}

/// `free(memory)`.
#[uprobe]
pub fn heap_free(context: ProbeContext) -> u32 {
    let registers = registers(&context);
    let [memory, ..] = arguments(registers);
    count_entry(Entry::Free);
    let ids = bpf_get_current_pid_tgid();
    if memory != 0 && is_observed(registers, ids) {
        free(ids, now_ns(), memory, 0);
    }
    0
}

/// `munmap(memory, bytes)`. It refuses to unmap no bytes, and what does not start with a page (mm/vma.c,
/// `do_vmi_munmap`).
#[uprobe]
pub fn heap_munmap(context: ProbeContext) -> u32 {
    let registers = registers(&context);
    let [memory, bytes, _] = arguments(registers);
    count_entry(Entry::Munmap);
    let ids = bpf_get_current_pid_tgid();
    if bytes != 0 && memory & (LEAST_PAGE - 1) == 0 && is_observed(registers, ids) {
        free(ids, now_ns(), memory, bytes);
    }
    0
}

/// What a function was called with.
struct Call {
    size: u64,
    old: u64,
    old_bytes: u64,
    result: u64,
    is_mapping: bool,
}

const NONE: Call = Call {
    size: 0,
    old: 0,
    old_bytes: 0,
    result: 0,
    is_mapping: false,
};

#[inline(always)]
fn enter(registers: &bpf_user_pt_regs_t, asked: Call) -> u32 {
    let ids = bpf_get_current_pid_tgid();
    if !is_observed(registers, ids) {
        return 0;
    }
    let now = now_ns();
    let sp = stack_pointer(registers);
    if let Some(outer) = HEAP_CALLS.get_ptr(&ids) {
        // SAFETY: the value is this thread's own, and the kernel never frees one under a program.
        let outer = unsafe { &*outer };
        if outer.sp > sp && now.wrapping_sub(outer.time_ns) < STALE_NS {
            return 0;
        }
    }
    // A small one is noted all the same: its allocator's own `mmap` is no allocation.
    let is_told = asked.size >= HEAP_LEAST.load();
    if !is_told && asked.old != 0 {
        free(ids, now, asked.old, asked.old_bytes);
    }
    let call = HeapCall {
        sp,
        time_ns: now,
        function: instruction_pointer(registers),
        size: if is_told { asked.size } else { 0 },
        old: asked.old,
        old_bytes: asked.old_bytes,
        is_mapping: u64::from(asked.is_mapping),
        result: asked.result,
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
    if call.size == 0 {
        return 0;
    }
    let Some(addr) = outcome(registers, &call) else {
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
    filled.old_bytes = call.old_bytes;
    filled.is_mapping = call.is_mapping;
    filled.function = call.function;
    filled.stack_bytes = copy_stack(stack_pointer(registers), &mut filled.stack);
    // SAFETY: the reservation of above, not used after.
    unsafe { bpf_ringbuf_submit(record.cast(), wakeup()) };
    count(Counter::Emitted);
    0
}

/// The memory that a call gave, if it succeeded.
#[inline(always)]
pub(super) fn outcome(registers: &bpf_user_pt_regs_t, call: &HeapCall) -> Option<u64> {
    let value = returned(registers);
    let addr = if call.is_mapping != 0 {
        // `MAP_FAILED`.
        if value == u64::MAX {
            return None;
        }
        value
    } else if call.result == 0 {
        value
    } else {
        // The status is an int.
        if value as u32 != 0 {
            return None;
        }
        let result = ptr::with_exposed_provenance::<u64>(call.result as usize);
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
fn free(ids: u64, time_ns: u64, addr: u64, bytes: u64) {
    let freed = HeapFree {
        time_ns,
        addr,
        bytes,
        pid: (ids >> 32) as u32,
        tid: ids as u32,
    };
    match HEAP_EVENTS.output::<HeapFree>(&freed, wakeup()) {
        Ok(()) => count(Counter::Emitted),
        Err(_) => count(Counter::Dropped),
    }
}

/// Whether user space has to be told that there is something.
#[inline(always)]
fn wakeup() -> u64 {
    if HEAP_EVENTS.query(u64::from(BPF_RB_AVAIL_DATA)) >= MUCH {
        FORCE_WAKEUP
    } else {
        NO_WAKEUP
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

/// Positions in [`programs::HEAP_ENTRIES`].
#[derive(Clone, Copy)]
enum Entry {
    SizeFirst,
    SizeSecond,
    Calloc,
    Realloc,
    PosixMemalign,
    Mmap,
    Mremap,
    Free,
    Munmap,
}

const _: () = assert!(Entry::Munmap as usize + 1 == programs::HEAP_ENTRIES.len());

#[inline(always)]
fn count_entry(entry: Entry) {
    let Some(stats) = HEAP_STATS.get_ptr_mut(0) else {
        return;
    };
    // SAFETY: a field of the live value.
    let entries = unsafe { &raw mut (*stats).entries };
    // SAFETY: there is one for each kind.
    add_one(unsafe { entries.cast::<u64>().add(entry as usize) });
}

enum Counter {
    Returns,
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
        Counter::Returns => unsafe { &raw mut (*stats).returns },
        // SAFETY: as above.
        Counter::Emitted => unsafe { &raw mut (*stats).emitted },
        // SAFETY: as above.
        Counter::Dropped => unsafe { &raw mut (*stats).dropped },
    };
    add_one(field);
}
