//! Ways to observe running programs.
#![deny(unsafe_code)]

pub mod source;

#[cfg(test)]
use cohtrace_code::names;
use cohtrace_code::{decode, module};
use cohtrace_judge::watch;
use cohtrace_model::{access, data_source, event, evidence, heap, perf_format, space};
use cohtrace_platform::{machine, sys};
use cohtrace_text::printable;
