//! The program that is asked to do events: all of it is in `*.s`, and this makes a file of it that needs no C library.
#![no_std]
#![no_main]

core::arch::global_asm!(
    include_str!("asked.s"),
    include_str!("threads.s"),
    include_str!("hardware.s"),
    include_str!("costs.s")
);

/// Nothing here panics.
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}
