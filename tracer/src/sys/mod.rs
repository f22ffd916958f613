//! sys
pub mod probe;
