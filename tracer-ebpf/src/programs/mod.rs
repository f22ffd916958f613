//! The programs, one file per attach point. They copy and filter; every decision is user space's.

mod heap;
mod memory;
mod output;
mod read_kernel;
mod registers;
mod sample;
mod targets;
mod task;
#[cfg(feature = "log")]
mod told;
mod watch;

/// The kernel lends `bpf_probe_read_kernel` and `bpf_perf_event_output` to GPL-compatible programs only.
#[unsafe(no_mangle)]
#[unsafe(link_section = "license")]
static LICENSE: [u8; 13] = *b"Dual MIT/GPL\0";

/// Never reached: the programs have no panicking path left after optimisation, and the verifier
/// would refuse an endless loop.
#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    loop {}
}
