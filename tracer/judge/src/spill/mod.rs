//! Sorting a recorded stream by line within a bound on memory: what does not fit goes to
//! an unlinked temporary file, which is freed on any exit.
//!
//! ```text
//!   feed ─► buffer ─► sorted run in memory ─┐ while there is room
//!                 └─► sorted run in a file ─┤ beyond it
//!                                           └─► merge, a range of hashes at a time, on all CPUs ─► each line folded
//! ```
//!
//! A line's accesses come in the order in which they were fed, whatever the bound, so the bound changes no result.
//! [`SortedLines`] is fed; [`FedLines`] then gives each line once.

mod budget;
mod coding;
mod error;
mod file;
mod lines;
mod merge;
mod run;

#[cfg(test)]
mod tests;

pub use budget::{Budget, SpillOptions};
pub use error::SpillError;
pub use lines::{FedLines, SortedLines};
