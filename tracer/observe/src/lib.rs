//! Ways to observe running programs.
#![deny(unsafe_code)]

pub mod observation;
pub mod source;

use cohtrace_code::{decode, module, names};
use cohtrace_judge::{analysis, finding, pipeline, watch};
use cohtrace_model::{access, data_source, event, evidence, heap, perf_format, space};
use cohtrace_platform::{machine, sys};
use cohtrace_text::printable;
