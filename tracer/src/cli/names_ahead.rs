//! Looks names up while a program is observed, so that the report is there soon after somebody asks to stop: opening a large
//! program's debug info takes seconds, asking it once more does not.

use std::time::{Duration, Instant};

use rustc_hash::FxHashSet;

use crate::{
    access::LineKey,
    finding::Judgement,
    module::ModuleStore,
    names::Resolver,
    pipeline::Pipeline,
    report::{self, RunFacts},
};

/// Between two judgements of what there is to name.
const JUDGED: Duration = Duration::from_millis(500);
/// Time for names at once; one name may take longer.
const A_WHILE: Duration = Duration::from_millis(5);
/// Findings that are named in advance.
const MOST: usize = 64;

/// Which names were asked for already.
#[derive(Default)]
pub(super) struct NamesAhead {
    named: FxHashSet<LineKey>,
    /// Findings to name, the last first.
    waiting: Vec<Judgement>,
    judged: Option<Instant>,
}

impl NamesAhead {
    /// Names some of what the pipeline has found so far. What is answered is not kept: what the answers were read from is.
    pub(super) fn rest(
        &mut self,
        pipeline: &Pipeline,
        modules: &ModuleStore,
        facts: impl Fn() -> RunFacts,
    ) {
        if self.waiting.is_empty() {
            let is_due = (self.judged).is_none_or(|judged| judged.elapsed() >= JUDGED);
            if !is_due || self.named.len() >= MOST {
                return;
            }
            self.judged = Some(Instant::now());
            let new = |judgement: &Judgement| {
                judgement.is_finding() && !self.named.contains(&judgement.key)
            };
            let found = pipeline.judge().into_iter().filter(new);
            self.waiting = found.take(MOST - self.named.len()).collect();
            self.waiting.reverse();
        }
        if self.waiting.is_empty() {
            return;
        }
        let (start, facts) = (Instant::now(), facts());
        while start.elapsed() < A_WHILE
            && let Some(judgement) = self.waiting.pop()
        {
            self.named.insert(judgement.key);
            let names = Resolver::new(&pipeline.spaces, modules).with_heap(&pipeline.heap);
            report::look_up(&vec![judgement].into(), &names, &pipeline.tally, &facts);
        }
    }
}
