//! Sharing that is not there yet: what an order of accesses would cost if the memory lay elsewhere, or if lines were longer.
//!
//! Threads that use neighbouring lines are in nobody's way, as long as the lines are cut where they are cut today. The same
//! program fights for them once its memory begins a few bytes further on (another allocation before it, another linker), or
//! on a machine that moves 128 bytes at a time. Liu, Tian, Hu and Berger ("Predator: Predictive False Sharing Detection",
//! PPoPP 2014) call this unobserved false sharing, and look for it by lines that begin elsewhere or are longer; so is it
//! here, over complete orders, and with the same directory protocol and rule of lives that judge the lines as they are:
//!
//! ```text
//!   memory           |aaaaaaaa|bbbbbbbb|cccccccc|        each letter: a thread's bytes
//!   lines today      |        |        |        |        nobody fights
//!   moved by 24   |     aaa|aaaaabbb|bbbbbccc|cccccc     two threads on each line in the middle
//!   twice as long    |                 |        |...     a and b on one line
//!
//!   1st pass         Neighbours: who uses which bytes of which line          ─► Runs of lines worth a replay
//!                    ByThread: which arrays have an element for each thread  ─► ThreadArrays
//!   2nd pass         Elsewhere: OrderedLines for each way that they may lie  ─► what that costs
//!                    OneMoreThread: an element more, and who is in its way   ─► what that costs
//!                    OneMoves: one of two neighbours closer to the other     ─► what that costs
//!   samples          SampledUses: who uses which bytes, and when             ─► where threads would meet
//! ```
//!
//! All memory of a run of lines moves by the same bytes. Objects that lie in it one behind the other do so too, as they do
//! if what lies before them grows.

mod by_thread;
mod counted;
mod elsewhere;
mod executed;
mod neighbours;
mod one_more;
mod one_moves;
mod replayed;
mod sampled;
#[cfg(test)]
mod tests;

pub use by_thread::{ByThread, ThreadArray, ThreadArrays};
pub use elsewhere::{Elsewhere, Way};
pub use neighbours::{NeighbourBounds, Neighbours, Run, Runs};
pub use one_more::{OneMoreElement, OneMoreThread};
pub use one_moves::{Mover, OneMoves, PairMoved};
pub use replayed::{RunElsewhere, There, UsedLine};
pub use sampled::{SampledRun, SampledUses};
