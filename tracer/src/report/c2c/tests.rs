//! The tables held against known samples.
