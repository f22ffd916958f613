//! Whether the tool counts right: programs are asked to do `n` of something, and its own sources count.
//!
//! ```text
//!   events   what, how many are predicted, who counts it      (data)
//!   asked    the program that does n of them, carried in the tool
//!   emulated, watched, kernel, shares, cycles, pmu            (one file for each way to count)
//!   costs    what is timed since nothing counts it
//!   observed a source while a program runs, for those of them that take one
//!   homes    which accesses of an order are an event
//!   run      sizes and runs, one process each, and the class of the error
//! ```
//!
//! The method is Salayandia's ("A Study of the Validity and Utility of PAPI Performance Counter Data", El Paso 2002, pages 5
//! to 10 and 15 to 61): programs whose counts follow from their input, in growing sizes, many runs as separate processes, and a
//! class for the difference. That programs must be small, do one thing, and be compared with their prediction until both
//! agree is from Aguilera 2005, sections 2 to 4.
#![deny(unsafe_code)]

pub mod asked;
pub mod costs;
#[cfg(target_arch = "x86_64")]
mod cycles;
mod emulated;
mod error;
pub mod events;
mod homes;
mod kernel;
mod observed;
mod pmu;
pub mod report;
pub mod run;
mod shares;
mod watched;

pub use error::NotCounted;

use cohtrace_code::{decode, module};
use cohtrace_model::{access, coherence, event, space};
use cohtrace_observe::source;
use cohtrace_platform::{machine, sys};
