//! What a run did, slice by slice of its time: statistics of the stream ([`event::Batch`]), live or recorded.
//!
//! ```text
//!   Batch ─► Fold: which slice, which key ─► each Statistic: what this event adds ─► Table ─► text, json, csv
//! ```
//!
//! Pure: no IO, no clock, and nothing here can panic. A statistic is one file in `statistic/`.
#![forbid(unsafe_code)]

mod csv;
mod directory;
mod estimate;
mod event_of;
mod fold;
mod heat_strip;
mod json;
mod key;
mod looked;
mod options;
mod refusal;
mod selection;
mod shared_waits;
mod slices;
pub mod statistic;
mod table;
mod text;

pub use csv::{csv, read_csv};
pub use event_of::{Event, Observed};
pub use fold::Fold;
pub use json::json;
pub use key::{Key, Per};
pub use looked::Looked;
pub use options::{MOST_CELLS, Options};
pub use refusal::Refusal;
pub use selection::{list, select};
pub use slices::Slices;
pub use table::{Column, Estimate, Row, Table, Value};
pub use text::{TextOptions, text};

use cohtrace_model::{access, coherence, event, heap, space};
use cohtrace_text::{number, printable};

#[cfg(test)]
mod tests;
