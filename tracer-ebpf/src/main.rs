//! The kernel half. The host builds only the ABI in `lib.rs`; an empty `main` keeps
//! `cargo check --workspace` honest.
#![cfg_attr(target_arch = "bpf", no_std, no_main)]

#[cfg(target_arch = "bpf")]
mod programs;

#[cfg(not(target_arch = "bpf"))]
fn main() {}
