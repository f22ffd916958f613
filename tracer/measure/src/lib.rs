//! What the machine charges for a line, and whether counts of it are right: the arithmetic of both.
#![deny(unsafe_code)]

mod beside;
pub mod binomial;
#[cfg(target_arch = "x86_64")]
pub mod clocks;
pub mod contention;
#[cfg(target_arch = "x86_64")]
pub mod costs;
pub mod count_error;
#[cfg(target_arch = "x86_64")]
pub mod hand_over;
pub mod knee;
#[cfg(target_arch = "x86_64")]
pub mod own_locked;
#[cfg(target_arch = "x86_64")]
pub mod pair;
pub mod pair_classes;
#[cfg(target_arch = "x86_64")]
pub mod restart;
pub mod same_core;
pub mod spread;
pub mod state;
pub mod stolen;
#[cfg(target_arch = "x86_64")]
pub mod survey;
#[cfg(target_arch = "x86_64")]
pub mod sweep;
#[cfg(target_arch = "x86_64")]
pub mod text;
