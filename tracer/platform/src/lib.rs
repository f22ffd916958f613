//! The machine: every system call and all `unsafe` ([`sys`]), and what hardware and kernel offer ([`machine`]).
#![deny(unsafe_code)]

pub mod machine;
pub mod sys;

use cohtrace_model::{access, event, perf_format, space};
