//! What the report has of a finding of several lines.

use serde::Serialize;

use super::{Hex, Pieces};
use crate::access::LineKey;

/// Lines that are one thing: of one variable, of one type, from one allocation, or used by the same instructions.
#[derive(Debug, Clone, Serialize, PartialEq)]
pub struct Lines {
    /// What they are of: `ring.slot[]`, `struct node`; `None` where only the instructions tell that they belong together.
    pub name: Option<String>,
    /// Lines that several threads use.
    pub count: u64,
    /// Lines of all of it; `None` where its size is not known.
    pub of: Option<u64>,
    /// Of `count`, lines on which watch windows saw threads meet.
    pub watched: u64,
    /// Lines, the costliest first, that take half of the cost.
    pub half: u64,
    /// How the elements that they hold are used; `None` where there are none.
    pub pieces: Option<Pieces>,
    /// The costliest, ten at most.
    pub worst: Vec<Share>,
}

/// One line among several.
#[derive(Debug, Clone, Serialize, PartialEq)]
pub struct Share {
    /// Key; equal keys are the same memory.
    pub key: LineKey,
    /// A virtual address of it.
    pub address: Option<Hex>,
    /// Share of the cost of the whole run, 0..1.
    pub share: f64,
}
