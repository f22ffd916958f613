//! The whole type of a finding's object at the address it has: members, holes, where cache lines begin, who uses
//! what, and the layout that would part them.

mod build;
pub mod model;
mod rows;
mod text;
mod uses;

pub use super::model::FindingId;
use super::printable;
pub use build::{NoLayout, build};
pub use text::render as render_text;

/// One JSON document with a newline at the end.
pub fn render_json(layout: &model::Layout) -> String {
    let text = serde_json::to_string_pretty(layout)
        .expect("the layout has string keys only, so serialising it cannot fail");
    printable::json(&text) + "\n"
}
