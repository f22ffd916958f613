//! What was found, as plain data, and its printed forms.
#![allow(
    clippy::format_push_string,
    reason = "prose is put together from sentences; none of it is a hot path"
)]

pub mod json;
pub mod model;
pub mod text;

mod bytemap;
mod finding_text;
mod number;
mod printable;
mod shorten;
mod style;
mod table;
mod wrap;
//! report
pub mod doctor;
