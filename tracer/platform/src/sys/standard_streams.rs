//! Whether standard output was there when we were started.
//!
//! The standard library opens `/dev/null` in the place of a closed stream before `main`, so that no file of ours can get
//! its number; what is printed then goes nowhere without a word. So this is asked before.

use std::sync::atomic::{AtomicBool, Ordering};

static OUTPUT_CLOSED: AtomicBool = AtomicBool::new(false);

/// Called by the C library before the standard library starts.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    // SAFETY: asks for the flags of a descriptor, open or not, and touches no memory.
    let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
    OUTPUT_CLOSED.store(flags == -1, Ordering::Relaxed);
}

/// Whether standard output was closed (`>&-`).
pub fn output_was_closed() -> bool {
    OUTPUT_CLOSED.load(Ordering::Relaxed)
}
