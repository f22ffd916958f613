//! What code and data are: instructions to memory operands ([`decode`]), the files behind mappings ([`module`]), and words for
//! addresses ([`names`]).
#![deny(unsafe_code)]

pub mod decode;
pub mod module;
pub mod names;

use cohtrace_model::{access, event, heap, space};
use cohtrace_platform::{machine, sys};
