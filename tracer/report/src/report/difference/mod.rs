//! What changed from one session to another: two reports in, data out, and its printed forms.
//!
//! Addresses, and numbers of threads and processes, differ from run to run. So a finding is known by its object's name, type and
//! fields; one without a name by the functions that use it. Sizes are shares of each session's own cost and rates,
//! since the two may be of different length; only an emulated session counts everything, and its counts are
//! compared as they are.

mod caution;
mod findings;
mod gains;
mod objects;
mod pairs;
mod text;

#[cfg(test)]
mod tests;

use serde::Serialize;

use super::{
    model::{Report, Tool},
    printable,
};
use crate::access::{Cost, CostIn, CostUnit};

pub use findings::{FindingChange, FindingSide, MatchedBy};
pub use gains::GainChange;
pub use objects::ObjectChange;
pub use pairs::{PairChange, PairSide};
pub use text::render as render_text;

/// Version of the JSON form.
pub const SCHEMA: u32 = 1;

/// One of the two.
#[derive(Debug, Clone, Copy)]
pub struct Session<'a> {
    /// How it was named.
    pub name: &'a str,
    /// Its report.
    pub report: &'a Report,
    /// Sum of all costs, in the report's unit.
    pub cost: Cost,
}

/// What happened to a finding or a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// Only after.
    New,
    /// Only before.
    Gone,
    /// In both, and not alike.
    Changed,
    /// In both, alike as far as sampling can tell.
    Same,
}

/// What is not alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Differs {
    /// The kind of sharing.
    Kind,
    /// The share of the cost, or of a load's executions.
    Share,
    /// The rate of hand-offs.
    HandOffs,
    /// Whether there is a hint.
    Hint,
}

/// What a session holds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Side {
    /// How it was named.
    pub session: String,
    /// Names of its sources.
    pub sources: Vec<String>,
    /// Seconds.
    pub duration_s: f64,
    /// Samples per second and CPU.
    pub frequency_hz: Option<u64>,
    /// Sum of all costs; `cost_unit` and `cost` in JSON.
    #[serde(flatten)]
    pub cost: CostIn,
    /// Samples taken.
    pub samples: u64,
    /// Accesses; of an emulated session, all that the program executed.
    pub accesses: u64,
    /// Lines that several threads touched.
    pub shared_lines: Option<u64>,
    /// Findings.
    pub findings: u64,
    /// Share of the cost that they take together, 0..1.
    pub findings_share: f64,
    /// Pairs with a hint.
    pub hints: u64,
}

/// What changed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Difference {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Who compared.
    pub tool: Tool,
    /// The first session.
    pub before: Side,
    /// The second.
    pub after: Side,
    /// Shares of the two are of the same thing.
    pub comparable: bool,
    /// Why numbers of the two may not compare, in sentences.
    pub cautions: Vec<String>,
    /// New first, then gone, changed, same; each by cost.
    pub findings: Vec<FindingChange>,
    /// Read-then-write pairs, likewise.
    pub pairs: Vec<PairChange>,
    /// What was said to be gained, beside what was: of threads whose words were read in both (`--hold`).
    pub gains: Vec<GainChange>,
    /// Objects by name and type, those whose share changed most first.
    pub objects: Vec<ObjectChange>,
}

impl Difference {
    /// Findings that are only after.
    pub fn new_findings(&self) -> usize {
        self.findings
            .iter()
            .filter(|finding| finding.change == Change::New)
            .count()
    }

    /// Neither a finding nor a pair differs.
    pub fn is_nothing(&self) -> bool {
        let findings = self.findings.iter().map(|finding| finding.change);
        findings
            .chain(self.pairs.iter().map(|pair| pair.change))
            .all(|change| change == Change::Same)
    }
}

/// Compares.
pub fn build(before: Session<'_>, after: Session<'_>) -> Difference {
    let (cautions, comparable) = caution::cautions(&before, &after);
    Difference {
        schema: SCHEMA,
        tool: after.report.tool.clone(),
        before: side(&before),
        after: side(&after),
        comparable,
        cautions,
        findings: findings::changes(before.report, after.report, comparable),
        pairs: pairs::changes(before.report, after.report),
        gains: gains::changes(before.report, after.report),
        objects: objects::changes(before.report, after.report),
    }
}

/// As JSON, with a newline at the end.
pub fn render_json(difference: &Difference) -> String {
    let text = serde_json::to_string_pretty(difference).unwrap_or_default();
    printable::json(&format!("{text}\n"))
}

fn side(session: &Session<'_>) -> Side {
    let Report {
        run,
        findings,
        pairs,
        ..
    } = session.report;
    Side {
        session: session.name.to_owned(),
        sources: run.observed.sources.clone(),
        duration_s: run.observed.duration_s(),
        frequency_hz: run.observed.frequency_hz,
        cost: CostIn {
            unit: run.cost_unit,
            amount: session.cost,
        },
        samples: run.samples,
        accesses: run.accesses,
        shared_lines: run.shared_lines,
        findings: findings.len() as u64,
        findings_share: findings
            .iter()
            .fold(0.0, |sum, finding| sum + finding.cost.share),
        hints: pairs.iter().filter(|pair| pair.hint.is_some()).count() as u64,
    }
}

fn is_emulated(side: &Side) -> bool {
    side.cost.unit == CostUnit::Transactions
}
