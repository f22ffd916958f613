//! What the report has of read-then-write pairs.

use serde::Serialize;

use super::{Code, Left, Line, Object, named};
use crate::access::Op;

/// A load, and the store by the same thread that is its next access to the line.
#[derive(Debug, Clone, Serialize, PartialEq)]
pub struct Pair {
    /// `P1`, `P2`, ..
    pub id: String,
    /// The load.
    pub load: PairSide,
    /// The store, or the read-modify-write, that follows it.
    pub store: PairSide,
    /// One instruction does both.
    pub same_instruction: bool,
    /// Lines on which it was seen; the counts are of all of them.
    pub lines: u64,
    /// On which line; of several, the one where it was seen most often.
    pub line: Line,
    /// Whose memory.
    pub object: Object,
    /// What the load reads, as in rows of accesses.
    pub field: Option<String>,
    /// Times that the store followed the load, in the order of their thread.
    pub count: u64,
    /// Times that the two were adjacent requests of one CPU in the line's log: the filter of SWIFT
    /// (PPoPP 2005, section 4.1).
    pub global_count: u64,
    /// Executions of the load whose successor was seen.
    pub executions: u64,
    /// `count` in `executions`, 0..1.
    pub share_of_load: Option<f64>,
    /// Executions of the load that missed.
    pub load_requests: u64,
    /// No access to the line is missing from the windows that it was counted in.
    pub complete_order: bool,
    /// Of `count`: what other CPUs did to the line in between.
    pub taken: Taken,
    /// Of `count`: where the line was just before the store.
    pub left: Left,
    /// Threads that did it.
    pub threads: u64,
    /// What a compiler should do; `None` when the load should stay as it is.
    pub hint: Option<LoadHint>,
    /// Why there is no hint.
    pub no_hint_because: Option<String>,
}

/// One side of a pair.
#[derive(Debug, Clone, Serialize, PartialEq)]
pub struct PairSide {
    /// The instruction.
    pub code: Code,
    /// Its direction; `null` in JSON where it is not known.
    #[serde(serialize_with = "named::op")]
    pub op: Op,
    /// Bytes from the line's start.
    pub offset: u8,
    /// Length of the access in bytes.
    pub size: u16,
    /// As in [`AccessRow::within`](super::AccessRow::within).
    pub within: Option<u8>,
    /// What it touches, as in rows of accesses.
    pub field: Option<String>,
}

/// What other CPUs did between the two sides of a pair.
#[derive(Debug, Clone, Copy, Serialize, PartialEq, Eq)]
pub struct Taken {
    /// Only read.
    pub reads: u64,
    /// Stored.
    pub writes: u64,
}

/// How to load instead.
#[derive(Debug, Clone, Serialize, PartialEq, Eq)]
pub struct LoadHint {
    /// `fetch-for-ownership`.
    pub kind: &'static str,
    /// Instruction on x86-64.
    pub x86: &'static str,
    /// Instruction on aarch64.
    pub aarch64: &'static str,
    /// In a sentence.
    pub text: String,
}
