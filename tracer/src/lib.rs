//! cohtrace: which cache lines threads fight over, by which variables and source lines.
//!
//! One pipeline: a [`source`] produces [`event::Batch`]es; [`session`] keeps them; [`analysis`] folds
//! them into per-line tables; [`finding`] judges each line; [`names`] turns addresses into words;
//! [`report`] prints. `ARCHITECTURE.md` has the picture and the rules.
#![deny(unsafe_code)]

pub use cohtrace_code::{decode, module, names};
pub use cohtrace_hint::hint;
pub use cohtrace_judge::{analysis, finding, pipeline, spill, watch};
pub use cohtrace_measure as measure;
pub use cohtrace_model::{
    access, coherence, data_source, event, evidence, heap, perf_format, space,
};
pub use cohtrace_observe::{observation, source};
pub use cohtrace_platform::{machine, sys};
pub use cohtrace_report::report;
pub use cohtrace_statistics as statistics;
pub use cohtrace_store::{export, perf_data, session};
pub use cohtrace_text::{number, printable};
pub use cohtrace_validate as validate;

pub mod cli;
