//! The tables of `perf c2c report --stdio`, of any session, with what cohtrace knows besides.
//!
//! The counts are those of `c2c_decode_stats` in tools/perf/util/mem-events.c (Linux 6.1), so that every row agrees
//! with what perf says of the same samples, exported or imported. Columns that perf does not have: the line's
//! verdict and variable, the field of each row, and the samples of both, which perf's records leave out when no level
//! is known; the peer columns are always there. Where the tables differ
//! from perf's on purpose:
//!
//! - A record without a data address is no access, so imports keep only its number. perf counts it in "Total
//!   records" and, by its operation, in "no mapping" or "Unable to parse data source". Their number is given below.
//! - A line is the same memory: private pages of a file are a line of each process that maps it (perf: one line of
//!   all), kernel and user accesses to the same memory are one line (perf: two), and addresses that no mapping is
//!   known for are lines of their process (perf: of all processes together).
//! - Kernel memory always counts as mapped. For perf that depends on which kernel file it finds.
//! - The share of nothing is `n/a` (perf: `-nan%`).
//! - Lines that cohtrace judged are there without any HITM too, as in sessions recorded without a PMU, behind those
//!   with one. Lines with less than 0.1 % of all HITM and peer loads are left out, as perf does.
//! - An access of an emulated program is one record, however many executions it stands for, and has no data source.
//! - Nodes are not recorded: there is no Node column.

mod counts;
mod fold;
mod grid;
mod name;
mod text;

#[cfg(test)]
mod tests;

pub use counts::{Counts, Event};
pub use fold::{LineFold, Lines, Seen, TotalFold};
pub use name::{C2c, name};
pub use text::render;
