//! What to change: layout advice for bytes that only happen to be neighbours, less traffic for bytes
//! that threads really share. Pure: a [`Scene`] in, an [`Advice`] out.
#![allow(
    clippy::format_push_string,
    reason = "prose is put together from sentences; none of it is a hot path"
)]

pub mod assembly;
mod declaration;
pub mod edit;
mod elements;
pub mod file;
mod layout;
pub mod load;
mod members;
mod neighbours;
mod place;
mod proposal;
mod ranges;
mod relayout;
mod scene;
mod traffic;
mod variables;

#[cfg(test)]
mod tests;

pub use layout::advise;
pub use proposal::{Placed, Proposal, propose};
pub use scene::{Advice, AdviceKind, Field, Scene, Sharing, Traffic, Unit};
pub use traffic::names_a_lock;
