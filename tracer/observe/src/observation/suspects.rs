//! What is thought of the lines so far, for those who decide what to look at next.

use crate::{finding::Judgement, pipeline::Pipeline};

/// Judgements are made anew this often.
pub(super) const JUDGED_NS: u64 = 100_000_000;

/// Judgements of a moment ago.
#[derive(Debug, Default)]
pub(super) struct Suspects {
    judgements: Vec<Judgement>,
    judged_ns: u64,
}

impl Suspects {
    /// Those of at most [`JUDGED_NS`] ago.
    pub(super) fn at(&mut self, now_ns: u64, pipeline: &Pipeline) -> &[Judgement] {
        if now_ns.saturating_sub(self.judged_ns) >= JUDGED_NS {
            self.judgements = pipeline.judge();
            self.judged_ns = now_ns;
        }
        &self.judgements
    }
}
