//! Recordings: sessions of Parquet files ([`session`]), and perf.data of others ([`perf_data`]) and for others ([`export`]).
#![deny(unsafe_code)]

pub mod export;
pub mod perf_data;
pub mod session;

use cohtrace_code::{decode, module};
use cohtrace_model::{access, data_source, event, evidence, perf_format, space};
use cohtrace_platform::sys;
use cohtrace_text::{number, printable};
