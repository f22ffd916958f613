//! What was found, as plain data, and its printed forms.

pub mod model;
