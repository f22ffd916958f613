//! What the report has of what a change would gain.

use serde::Serialize;

use super::{Hex, named};
use crate::finding::Grade;

/// How many times as fast threads would be if nobody took the line from them.
#[derive(Debug, Clone, Serialize, PartialEq)]
pub struct Gain {
    /// What it is known from: `estimated` from the share of samples, `rated` from the rate of a word and what the machine
    /// charges, `held` from the rate of a word while the other threads were held.
    #[serde(serialize_with = "named::grade")]
    pub grade: Grade,
    /// At least, of the threads that are known: 1 is as fast as now.
    pub low: f64,
    /// At most; `None` where that cannot be told.
    pub high: Option<f64>,
    /// By thread, as in the finding's order; empty where only all together are known.
    pub per_thread: Vec<ThreadGain>,
    /// From what, and what it is not, in a sentence.
    pub basis: String,
}

/// How fast a word of a thread grows.
#[derive(Debug, Clone, Serialize, PartialEq)]
pub struct WordRate {
    /// The word, as rows of accesses name it; `None` where it has no name.
    pub word: Option<String>,
    /// Its address.
    pub address: Hex,
    /// Process.
    pub pid: u32,
    /// The thread that alone stores to it.
    pub tid: u32,
    /// Its name.
    pub comm: Option<String>,
    /// What is added to it per second of the thread's run time, beside all others.
    pub per_s: f64,
    /// Readings that it rests on.
    pub readings: u32,
}

/// How many times as fast one thread would be.
#[derive(Debug, Clone, Serialize, PartialEq)]
pub struct ThreadGain {
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// Name.
    pub comm: Option<String>,
    /// Most likely.
    pub times: f64,
    /// At least: of ten readings, nine are not below.
    pub low: f64,
    /// At most: of ten readings, nine are not above.
    pub high: f64,
    /// Readings that it rests on: holds, or of the rate.
    pub readings: u32,
    /// The word whose growth was read, as rows of accesses name it.
    pub word: Option<String>,
    /// Its address.
    pub address: Hex,
    /// What was added to it per second of the thread's run time, beside the others.
    pub beside_per_s: f64,
}
