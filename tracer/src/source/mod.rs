//! source

pub mod perf_record;
