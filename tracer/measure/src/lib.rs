//! What the machine charges for a line, and whether counts of it are right: the arithmetic of both.
#![deny(unsafe_code)]

pub mod contention;
pub mod count_error;
pub mod knee;
#[cfg(target_arch = "x86_64")]
pub mod pair;
pub mod pair_classes;
pub mod spread;
