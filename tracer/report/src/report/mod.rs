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
pub mod latent;
pub mod layout;
pub mod load_hints;
pub mod model;
pub mod simulation;
pub mod simulation_text;
pub mod text;

mod access_text;
mod bytemap;
mod caveat;
mod caveats;
mod closing;
pub mod cost_words;
mod distributions;
mod doubt;
mod facts;
mod finding_text;
mod gain;
mod headline;
mod latent_text;
mod listed;
mod named;
mod pairs;
mod pairs_text;
mod parts;
mod pmu;
mod rows;
mod run_facts;
mod shorten;
mod spread;
mod spread_words;
mod style;
mod subject;
mod table;
mod waits;
mod words;
mod wrap;

#[cfg(test)]
pub(crate) mod fixture;
#[cfg(test)]
mod tests;

use crate::printable;

pub use allocation::HeapFacts;
pub use build::{build, look_up};
pub use caveat::Caveat;
pub use gain::OwnCosts;
pub use run_facts::{RunFacts, WatchFacts};
