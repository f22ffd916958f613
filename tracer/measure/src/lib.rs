//! What the machine charges for a line, and whether counts of it are right: the arithmetic of both.
#![deny(unsafe_code)]

pub mod contention;
pub mod count_error;
pub mod knee;
pub mod pair_classes;
