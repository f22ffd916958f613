//! What every Rust workload shares: the deadline, as `stage.h` has it for C.

use std::{
    process::ExitCode,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    thread,
    time::Duration,
};

/// Owns two whole lines, so that the flag takes part in no sharing but its own.
#[repr(align(128))]
struct Curtain(AtomicBool);

static DOWN: Curtain = Curtain(AtomicBool::new(false));

/// Whether the loops go on.
#[inline(always)]
pub fn running() -> bool {
    !DOWN.0.load(Relaxed)
}

unsafe extern "C" {
    fn sched_getaffinity(pid: i32, size: usize, mask: *mut u64) -> i32;
    fn sched_setaffinity(pid: i32, size: usize, mask: *const u64) -> i32;
}

/// Keeps the calling thread on one of the CPUs that the process may use, by number and counted round; see `take_turn`
/// in `stage.h` for why.
pub fn take_turn(place: usize) {
    let mut allowed = [0u64; 16];
    let size = size_of_val(&allowed);
    // SAFETY: the mask is writable and of the size told.
    let known = unsafe { sched_getaffinity(0, size, allowed.as_mut_ptr()) } == 0;
    let cpus: Vec<usize> = (0..1024).filter(|cpu| allowed[cpu / 64] >> (cpu % 64) & 1 == 1).collect();
    assert!(known && !cpus.is_empty(), "the kernel tells no CPUs");
    let cpu = cpus[place % cpus.len()];
    let mut one = [0u64; 16];
    one[cpu / 64] = 1 << (cpu % 64);
    // SAFETY: the mask is readable and of the size told.
    assert_eq!(unsafe { sched_setaffinity(0, size, one.as_ptr()) }, 0, "no thread can be kept on CPU {cpu}");
}

/// Sleeps for the milliseconds in the first argument (3000 without one), then ends the loops.
pub fn run_for_argument() {
    let ms = std::env::args().nth(1).and_then(|a| a.parse().ok());
    thread::sleep(Duration::from_millis(ms.unwrap_or(3000)));
    DOWN.0.store(true, Relaxed);
}

/// Whether two objects lie on one line of 64 bytes.
pub fn same_line<A, B>(a: &A, b: &B) -> bool {
    std::ptr::from_ref(a).addr() / 64 == std::ptr::from_ref(b).addr() / 64
}

/// Exit status: 0 when the counts came out right and the layout is what the answer says.
pub fn verdict(counts_right: bool, layout_right: bool) -> ExitCode {
    ExitCode::from(if !counts_right {
        1
    } else if layout_right {
        0
    } else {
        2
    })
}
