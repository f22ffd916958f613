//! The report as data, and its printed forms.
#![deny(unsafe_code)]

pub mod report;

use cohtrace_code::names;
use cohtrace_hint::hint;
#[cfg(test)]
use cohtrace_judge::pipeline;
use cohtrace_judge::{analysis, finding};
use cohtrace_model::{access, coherence, data_source, distribution, event, heap};
use cohtrace_platform::machine;
use cohtrace_text::{number, printable};
