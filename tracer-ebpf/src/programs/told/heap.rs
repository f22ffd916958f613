//! Entries of the probes on allocators. Probes run with preemption on, so a CPU's counts may grow by others' calls: what is
//! told is seen by the thread's own noted call instead.

use core::ffi::c_void;

use aya_ebpf::{
    bindings::{BPF_RB_AVAIL_DATA, bpf_user_pt_regs_t},
    helpers::bpf_get_current_pid_tgid,
};
use tracer_ebpf::{
    HeapCall, HeapFree, HeapRecord, SAMPLE_32BIT,
    told::{Program, Reason},
};

use super::{
    super::{
        heap::{
            HEAP_CALLS, HEAP_EVENTS, LEAST_PAGE, RING_BYTES, heap_calloc, heap_free, heap_mmap,
            heap_mremap, heap_munmap, heap_posix_memalign, heap_realloc, heap_return,
            heap_size_first, heap_size_second, outcome,
        },
        registers::{arguments, instruction_pointer, mode, stack_pointer},
        targets::is_target,
    },
    tell,
};

/// An entry that runs a program and then tells by `$how`.
macro_rules! told {
    ($($entry:ident = $program:path, $run:path, $how:path;)*) => {$(
        #[doc = "The program, told."]
        #[unsafe(no_mangle)]
        #[unsafe(link_section = "uprobe")]
        pub extern "C" fn $entry(context: *mut c_void) -> u32 {
            let before = noted();
            let result = $run(context);
            $how($program, registers(context), before);
            result
        }
    )*};
}

told! {
    told_heap_size_first = Program::HeapSizeFirst, heap_size_first, entered;
    told_heap_size_second = Program::HeapSizeSecond, heap_size_second, entered;
    told_heap_calloc = Program::HeapCalloc, heap_calloc, entered;
    told_heap_realloc = Program::HeapRealloc, heap_realloc, entered;
    told_heap_posix_memalign = Program::HeapPosixMemalign, heap_posix_memalign, entered;
    told_heap_mmap = Program::HeapMmap, heap_mmap, entered;
    told_heap_mremap = Program::HeapMremap, heap_mremap, entered;
    told_heap_free = Program::HeapFree, heap_free, freed;
    told_heap_munmap = Program::HeapMunmap, heap_munmap, freed;
}

/// [`heap_return`], told.
#[unsafe(no_mangle)]
#[unsafe(link_section = "uretprobe")]
pub extern "C" fn told_heap_return(context: *mut c_void) -> u32 {
    let before = noted();
    let result = heap_return(context);
    returned_to(registers(context), before);
    result
}

/// A call was entered; before, the thread may have been inside of another.
#[inline(always)]
fn entered(program: Program, registers: &bpf_user_pt_regs_t, before: Option<HeapCall>) {
    let at = instruction_pointer(registers);
    if !is_observed(program, registers, at) {
        return;
    }
    let Some(now) = noted() else {
        return tell(program, Reason::NoRoomForCall, at);
    };
    match before {
        Some(before) if before.time_ns == now.time_ns => tell(program, Reason::Nested, at),
        Some(_) => tell(program, Reason::StaleCall, at),
        None => {}
    }
    if now.size == 0 && now.sp == stack_pointer(registers) {
        tell(program, Reason::Small, at);
    }
}

/// Memory was given back.
#[inline(always)]
fn freed(program: Program, registers: &bpf_user_pt_regs_t, _: Option<HeapCall>) {
    let at = instruction_pointer(registers);
    if !is_observed(program, registers, at) {
        return;
    }
    let [memory, bytes, _] = arguments(registers);
    let unmaps = matches!(program, Program::HeapMunmap);
    if unmaps && (bytes == 0 || memory & (LEAST_PAGE - 1) != 0) {
        tell(program, Reason::Unmappable, memory);
    } else if memory != 0 && !has_room_for(size_of::<HeapFree>()) {
        tell(program, Reason::NoRoom, memory);
    }
}

/// A call returned.
#[inline(always)]
fn returned_to(registers: &bpf_user_pt_regs_t, before: Option<HeapCall>) {
    let program = Program::HeapReturn;
    let at = instruction_pointer(registers);
    if !is_observed(program, registers, at) {
        return;
    }
    let Some(call) = before else {
        return tell(program, Reason::NoCall, at);
    };
    if noted().is_some() {
        tell(program, Reason::OtherReturn, at);
    } else if call.size == 0 {
        // Told as it was entered.
    } else if outcome(registers, &call).is_none() {
        tell(program, Reason::Failed, at);
    } else if !has_room_for(size_of::<HeapRecord>()) {
        tell(program, Reason::NoRoom, at);
    }
}

/// Whether the thread's calls are noted; tells why not.
#[inline(always)]
fn is_observed(program: Program, registers: &bpf_user_pt_regs_t, at: u64) -> bool {
    let refused = if !is_target((bpf_get_current_pid_tgid() >> 32) as u32) {
        Reason::NoTarget
    } else if mode(registers) & SAMPLE_32BIT != 0 {
        Reason::Code32
    } else {
        return true;
    };
    tell(program, refused, at);
    false
}

/// The call that the running thread is inside of.
#[inline(always)]
fn noted() -> Option<HeapCall> {
    let call = HEAP_CALLS.get_ptr(&bpf_get_current_pid_tgid())?;
    // SAFETY: the value is this thread's own, and the kernel never frees one under a program.
    Some(unsafe { *call })
}

/// Whether the ring, as it is by now, would take a record. Each has eight bytes before it.
#[inline(always)]
fn has_room_for(bytes: usize) -> bool {
    HEAP_EVENTS.query(u64::from(BPF_RB_AVAIL_DATA)) + bytes as u64 + 8 <= u64::from(RING_BYTES)
}

#[inline(always)]
fn registers<'a>(context: *mut c_void) -> &'a bpf_user_pt_regs_t {
    // SAFETY: the kernel passes the thread's registers, whose first part this is.
    unsafe { &*context.cast::<bpf_user_pt_regs_t>() }
}
