//! What is asked for.

use crate::{Looked, Per, Slices, access::LineSize, statistic::Statistic};

/// Most values of a table: statistics times keys times slices.
pub const MOST_CELLS: u64 = 1_000_000;

/// What to count, and how to cut it.
#[derive(Clone)]
pub struct Options {
    /// The run's time.
    pub slices: Slices,
    /// What values are split by, besides the whole.
    pub per: Per,
    /// In the order of the table.
    pub statistics: Vec<&'static dyn Statistic>,
    /// Coherence granule.
    pub line_size: LineSize,
    /// Who observed the run, as far as is known before it is read.
    pub looked: Looked,
}
