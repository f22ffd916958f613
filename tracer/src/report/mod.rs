//! What was found, as plain data, and its printed forms.
#![allow(
    clippy::format_push_string,
    reason = "prose is put together from sentences; none of it is a hot path"
)]

pub mod allocation;
pub mod build;
pub mod c2c;
pub mod difference;
pub mod doctor;
pub mod json;
pub mod layout;
pub mod load_hints;
pub mod model;
pub mod simulation;
pub mod simulation_text;
pub mod text;

mod access_text;
mod bytemap;
mod caveats;
pub mod cost_words;
mod facts;
mod finding_text;
pub(crate) mod number;
mod pairs;
mod pairs_text;
mod parts;
mod pmu;
mod printable;
mod rows;
mod shorten;
mod style;
mod subject;
mod table;
mod wrap;

#[cfg(test)]
pub(crate) mod fixture;
#[cfg(test)]
mod tests;

pub use allocation::HeapFacts;
pub use build::{OrderFacts, RunFacts, WatchFacts, build};
