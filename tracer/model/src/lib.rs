//! What is observed, in the words of the field: accesses and the lines they are on, the stream that sources make, address
//! spaces and allocations over time, and what the coherence protocol asks for.
//!
//! Pure: no IO, no system call, nothing of how things are observed, judged or printed.
#![forbid(unsafe_code)]

pub mod access;
pub mod coherence;
pub mod data_source;
pub mod distribution;
pub mod event;
pub mod evidence;
pub mod heap;
pub mod perf_format;
pub mod space;
