//! Words for people: what may be printed of what comes from outside, and how wide it is.
#![deny(unsafe_code)]

pub mod number;
pub mod printable;

use cohtrace_model::event;
