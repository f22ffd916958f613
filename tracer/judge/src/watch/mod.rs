//! What to watch, and how much of it the targets can bear. Pure: decides, never arms.
//!
//! ```text
//!   LineTable, Judgements ──► Planner ──► WatchedWords ──► source/watch.rs
//!   WatchedLines ──────────►    ▲
//!                            Governor (budget of trap time)
//! ```

mod governor;
mod holds;
mod parts;
mod planner;
mod words;

pub use governor::{Governor, Prices};
pub use holds::{HoldPlanner, Reading};
pub use planner::{Asked, Planner, Request, View};
