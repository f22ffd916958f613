//! What a probed allocation and a probed free cost here, measured on a function of our own.

use std::{
    arch::naked_asm,
    ffi::CString,
    fs::{self, File},
    hint::black_box,
    time::Instant,
};

use tracer_ebpf::programs;

use super::{
    bpf::HeapPrograms,
    perf_event::{OpenError, PerfEvent, Scope},
    uprobe::{Moment, UprobePmu},
};
use crate::access::Tid;

/// Calls measured at once.
const CALLS: u32 = 500;
/// The fastest of so many counts: whatever else ran made the others slower.
const TRIES: u32 = 5;

/// What probes cost, nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeapCosts {
    /// Entry and return of an allocating function.
    pub allocation_ns: u64,
    /// Entry of a freeing function.
    pub free_ns: u64,
    /// What each hit takes beyond that where the kernel has to single-step the probed instruction.
    pub step_ns: u64,
}

/// Measures. Our own process must be a target meanwhile, as only targets cost the whole; its records are in
/// the ring afterwards.
pub fn measure(pmu: UprobePmu, heap: &HeapPrograms) -> Result<Option<HeapCosts>, OpenError> {
    let places = (
        place_of(measured as *const () as u64),
        place_of(stepped as *const () as u64),
    );
    let (Some((file, offset)), Some((_, stepped_offset))) = places else {
        return Ok(None);
    };
    // SAFETY: the call has no precondition.
    let own = Tid(unsafe { libc::gettid() } as u32);
    let probe = |name: &str, offset, moment| -> Result<Option<PerfEvent>, OpenError> {
        let program = heap.get(name);
        let open = |program| pmu.open(&file, offset, moment, Scope::Thread(own), program);
        program.map(open).transpose()
    };
    let bare = per_call(measured);
    let free = probe(programs::HEAP_FREE, offset, Moment::Entry)?;
    let step = probe(programs::HEAP_FREE, stepped_offset, Moment::Entry)?;
    let free_ns = per_call(measured).saturating_sub(bare);
    let stepped_ns = per_call(stepped).saturating_sub(bare);
    let entry = probe(programs::HEAP_SIZE_FIRST, offset, Moment::Entry)?;
    let returned = probe(programs::HEAP_RETURN, offset, Moment::Return)?;
    // The free's program is still there: closing takes its time, and what it adds beside two traps is little.
    let both_ns = per_call(measured).saturating_sub(bare);
    drop((free, step, entry, returned));
    Ok(Some(HeapCosts {
        allocation_ns: both_ns.max(1),
        free_ns: free_ns.max(1),
        step_ns: stepped_ns.saturating_sub(free_ns),
    }))
}

/// Our own program, and the offset of a function in it.
pub(super) fn own_place() -> Option<(CString, u64)> {
    let (_, offset) = place_of(measured as *const () as u64)?;
    Some((CString::new("/proc/self/exe").ok()?, offset))
}

fn per_call(function: extern "C" fn(u64) -> u64) -> u64 {
    let once = || {
        let start = Instant::now();
        for size in 1..=CALLS {
            black_box(function(black_box(u64::from(size))));
        }
        start.elapsed().as_nanos() as u64 / u64::from(CALLS)
    };
    (0..TRIES).map(|_| once()).min().unwrap_or(0)
}

/// The file that one of our functions is in, and the offset there.
fn place_of(address: u64) -> Option<(File, u64)> {
    let maps = fs::read_to_string("/proc/self/maps").ok()?;
    let offset = maps.lines().find_map(|line| {
        let mut words = line.split(' ');
        let (start, end) = words.next()?.split_once('-')?;
        let start = u64::from_str_radix(start, 16).ok()?;
        let end = u64::from_str_radix(end, 16).ok()?;
        let offset = u64::from_str_radix(words.nth(1)?, 16).ok()?;
        (start..end)
            .contains(&address)
            .then(|| address - start + offset)
    })?;
    Some((File::open("/proc/self/exe").ok()?, offset))
}

/// Returns its argument. Starts as most functions do, with an instruction that the kernel carries out itself
/// instead of single-stepping it.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
extern "C" fn measured(argument: u64) -> u64 {
    naked_asm!("push rbp", "mov rax, rdi", "pop rbp", "ret")
}

/// As above.
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
extern "C" fn measured(argument: u64) -> u64 {
    naked_asm!("nop", "ret")
}

/// Returns its argument. Its first instruction is single-stepped.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
extern "C" fn stepped(argument: u64) -> u64 {
    naked_asm!("mov rax, rdi", "ret")
}

/// As above: here it is carried out like any other.
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
extern "C" fn stepped(argument: u64) -> u64 {
    naked_asm!("mov x0, x0", "ret")
}
