//! The kernel half. The host builds only the ABI in `lib.rs`; an empty `main` keeps
//! `cargo check --workspace` honest.
#![cfg_attr(target_arch = "bpf", no_std, no_main)]
// The target has no `AtomicU64::fetch_add`: it would return the old value, which needs Linux 5.12.
#![cfg_attr(target_arch = "bpf", feature(asm_experimental_arch))]

#[cfg(target_arch = "bpf")]
mod programs;

#[cfg(not(target_arch = "bpf"))]
fn main() {}
