//! What to change: layouts as each language declares them, and load hints with the places that they go to.
#![deny(unsafe_code)]

pub mod hint;

use cohtrace_code::{decode, names};
use cohtrace_model::{access, coherence};
use cohtrace_text::printable;
