//! report
pub mod doctor;
