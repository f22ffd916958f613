//! A validation as data for programs.

use cohtrace_measure::count_error::ErrorClass;
use serde::Serialize;

use crate::{
    costs::{Charge, CostRow, Derived},
    events::NOT_COUNTED,
    run::Row,
};

/// Version of the document.
const SCHEMA: u32 = 1;

/// What was validated.
#[derive(Debug, Serialize)]
pub struct Document {
    /// Version of this form.
    pub schema: u32,
    /// Processes that were planned for each size.
    pub runs: u32,
    /// Events that were to be counted.
    pub events: Vec<EventRuns>,
    /// What was to be timed.
    pub costs: Vec<CostRuns>,
    /// What follows from several costs.
    pub derived: DerivedCosts,
    /// What no source counts, and why.
    pub not_counted: Vec<Uncounted>,
}

/// An event.
#[derive(Debug, Serialize)]
pub struct EventRuns {
    /// As in `--event`.
    pub event: &'static str,
    /// As in `--source`.
    pub source: &'static str,
    /// What it is.
    pub about: &'static str,
    /// From what the prediction follows.
    pub predicted_from: &'static str,
    /// By size.
    pub sizes: Vec<SizeCounts>,
    /// none, bias, multiplicative, random or unknown; null where it was not counted to the end.
    pub class: Option<&'static str>,
    /// Of bias, what is too much at the smallest size; of multiplicative, the factor.
    pub by: Option<f64>,
    /// What the source lost, by its own words.
    pub lost: u64,
    /// Why it was not counted, or not to the end.
    pub missing: Option<String>,
    /// That is since the machine has not what counts it.
    pub absent: bool,
}

/// Counts of one size.
#[derive(Debug, Serialize)]
pub struct SizeCounts {
    /// What the program was asked for.
    pub n: u64,
    /// Predicted count; of a share, percent.
    pub predicted: f64,
    /// Processes.
    pub runs: usize,
    /// Mean of the counts.
    pub mean: f64,
    /// Their standard deviation, of a sample.
    pub deviation: f64,
    /// `(mean - predicted) / predicted`.
    pub difference: f64,
    /// Of what is sampled: runs inside of the binomial 99 % bound.
    pub likely: Option<u64>,
}

/// A cost.
#[derive(Debug, Serialize)]
pub struct CostRuns {
    /// As in `--event`.
    pub cost: &'static str,
    /// What is charged for.
    pub about: &'static str,
    /// Runs.
    pub runs: usize,
    /// Core cycles; null where nothing was measured.
    pub cycles: Option<Charged>,
    /// Nanoseconds.
    pub ns: Option<Charged>,
    /// Nine of ten runs are within 5 % of the median; null of fewer than two.
    pub repeats: Option<bool>,
    /// Why it was not measured, or not to the end.
    pub missing: Option<String>,
    /// That is since the machine does not have, or tell, what it takes.
    pub absent: bool,
}

/// Of the runs of a cost.
#[derive(Debug, Serialize)]
pub struct Charged {
    /// The middle one.
    pub median: f64,
    /// The least.
    pub least: f64,
    /// The most.
    pub most: f64,
}

/// What follows from several costs; null where one lacks.
#[derive(Debug, Serialize)]
pub struct DerivedCosts {
    /// Core cycles of a branch that was predicted wrongly.
    pub branch_miss_cycles: Option<f64>,
    /// Core cycles more for 64 bytes of code beyond the instruction cache.
    pub code_line_cycles: Option<f64>,
    /// Additions in a cycle.
    pub issue_width: Option<f64>,
}

/// What no source counts.
#[derive(Debug, Serialize)]
pub struct Uncounted {
    /// What.
    pub event: &'static str,
    /// Why.
    pub why: &'static str,
}

impl Document {
    /// Of these rows.
    pub fn new(runs: u32, rows: &[Row], costs: &[CostRow]) -> Document {
        let derived = Derived::of(costs);
        let uncounted = |(event, why): &(&'static str, &'static str)| Uncounted { event, why };
        Document {
            schema: SCHEMA,
            runs,
            events: rows.iter().map(EventRuns::new).collect(),
            costs: costs.iter().map(CostRuns::new).collect(),
            derived: DerivedCosts {
                branch_miss_cycles: derived.branch_miss_cycles,
                code_line_cycles: derived.code_line_cycles,
                issue_width: derived.issue_width,
            },
            not_counted: NOT_COUNTED.iter().map(uncounted).collect(),
        }
    }
}

impl EventRuns {
    fn new(row: &Row) -> EventRuns {
        let sizes = row.sizes.iter().map(|runs| SizeCounts {
            n: runs.n,
            predicted: runs.size.predicted,
            runs: runs.size.counted.len(),
            mean: runs.size.mean(),
            deviation: runs.size.deviation(),
            difference: runs.size.difference(),
            likely: runs.likely,
        });
        let (class, by) = match row.class {
            None => (None, None),
            Some(ErrorClass::None) => (Some("none"), None),
            Some(ErrorClass::Bias(by)) => (Some("bias"), Some(by)),
            Some(ErrorClass::Multiplicative(by)) => (Some("multiplicative"), Some(by)),
            Some(ErrorClass::Random) => (Some("random"), None),
            Some(ErrorClass::Unknown) => (Some("unknown"), None),
        };
        EventRuns {
            event: row.event.name,
            source: row.event.counter.name(),
            about: row.event.about,
            predicted_from: row.event.predicted_from,
            sizes: sizes.collect(),
            class,
            by,
            lost: row.lost,
            missing: row.missing.clone(),
            absent: row.absent,
        }
    }
}

impl CostRuns {
    fn new(row: &CostRow) -> CostRuns {
        let charged = |of: fn(Charge) -> f64| {
            let (least, most) = row.range()?;
            Some(Charged {
                median: of(row.median()?),
                least: of(least),
                most: of(most),
            })
        };
        CostRuns {
            cost: row.cost.name,
            about: row.cost.about,
            runs: row.charges.len(),
            cycles: charged(|charge| charge.cycles),
            ns: charged(|charge| charge.ns),
            repeats: row.repeats(),
            missing: row.missing.clone(),
            absent: row.absent,
        }
    }
}
