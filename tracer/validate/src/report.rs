//! A validation as data for programs.

use cohtrace_measure::count_error::ErrorClass;
use serde::Serialize;

use crate::{events::NOT_COUNTED, run::Row};

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
    pub fn new(runs: u32, rows: &[Row]) -> Document {
        let uncounted = |(event, why): &(&'static str, &'static str)| Uncounted { event, why };
        Document {
            schema: SCHEMA,
            runs,
            events: rows.iter().map(EventRuns::new).collect(),
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
        }
    }
}
