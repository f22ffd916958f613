//! From accesses to judgements: tables of each line and orders of its accesses ([`analysis`]), rules ([`finding`]), the stream through
//! both ([`pipeline`], [`spill`]), and which line is watched next ([`watch`]).
#![deny(unsafe_code)]

pub mod analysis;
pub mod finding;
pub mod pipeline;
pub mod spill;
pub mod watch;

#[cfg(test)]
use cohtrace_code::module;
use cohtrace_code::names;
use cohtrace_model::{access, coherence, data_source, distribution, event, heap, space};
