//! The one way from events to a report, for live and recorded input alike.

use crate::{
    access::LineSize,
    analysis::{AnalysisOptions, LineTable, Totals},
    event::{Batch, Tally},
    finding::{Judgement, Thresholds, judge_all},
    space::AddressSpaces,
};

/// Folds a stream of batches.
pub struct Pipeline {
    /// Meaning of addresses so far.
    pub spaces: AddressSpaces,
    /// Sum of the batches' counts.
    pub tally: Tally,
    /// Accesses fed.
    pub accesses: u64,
    lines: LineTable,
    thresholds: Thresholds,
}

impl Pipeline {
    /// Nothing observed yet.
    pub fn new(options: AnalysisOptions, thresholds: Thresholds) -> Pipeline {
        Pipeline {
            spaces: AddressSpaces::default(),
            tally: Tally::default(),
            accesses: 0,
            lines: LineTable::new(options),
            thresholds,
        }
    }

    /// Takes in the next batch, context before accesses of the same time.
    pub fn feed(&mut self, batch: &Batch) {
        self.tally.add(&batch.tally);
        self.accesses += batch.accesses.len() as u64;
        let mut context = batch.context.iter().peekable();
        for access in &batch.accesses {
            while let Some(due) = context.next_if(|c| c.time_ns <= access.time_ns) {
                self.spaces.apply(due);
            }
            let (space, place) = self.spaces.place(access.pid, access.addr);
            self.lines.observe(access, place, space);
        }
        context.for_each(|rest| self.spaces.apply(rest));
    }

    /// Judges what was seen so far; ranked by cost. May be asked at any time.
    pub fn judge(&self) -> Vec<Judgement> {
        judge_all(&self.lines, self.tally.sampled_ns, &self.thresholds)
    }

    /// What the table of lines was fed and dropped.
    pub fn totals(&self) -> Totals {
        self.lines.totals()
    }

    /// Lines in the table.
    pub fn lines(&self) -> u64 {
        self.lines.len() as u64
    }

    /// Of those, touched by several threads.
    pub fn shared_lines(&self) -> u64 {
        self.lines
            .lines()
            .filter(|(_, line)| line.several_threads())
            .count() as u64
    }

    /// The limits in force.
    pub fn thresholds(&self) -> &Thresholds {
        &self.thresholds
    }

    /// Line size of the analysis.
    pub fn line_size(&self) -> LineSize {
        self.lines.line_size()
    }
}
