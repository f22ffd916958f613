//! What to change: layout advice for bytes that only happen to be neighbours, less traffic for words
//! that threads really share, by what they are for. Pure: a [`Scene`] in, an [`Advice`] out.
#![allow(
    clippy::format_push_string,
    reason = "prose is put together from sentences; none of it is a hot path"
)]

pub mod assembly;
mod dialect;
pub mod digest;
pub mod edit;
mod elements;
pub mod file;
mod layout;
pub mod load;
mod many;
mod members;
mod neighbours;
mod place;
mod proposal;
mod ranges;
mod relayout;
pub mod repeated;
pub mod role;
mod scene;
mod variables;
mod words;
pub mod your_code;

#[cfg(test)]
mod tests;

pub use dialect::shown;
pub use layout::advise;
pub use proposal::{Placed, Proposal, propose};
pub use scene::{Advice, AdviceKind, Field, Many, Scene, Sharing, Unit, Word, WordAdvice};
