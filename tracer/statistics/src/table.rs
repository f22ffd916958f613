//! The values, as data.

use crate::{Key, Per, Slices, statistic::Statistic, statistic::Sums};

/// Statistics of a run: of the whole, and of each key, for the run and for each slice.
#[derive(Clone)]
pub struct Table {
    /// The run's time.
    pub slices: Slices,
    /// Slices of each row.
    pub slice_count: u32,
    /// What rows are.
    pub per: Per,
    /// The statistics, in the order of the values of each row.
    pub columns: Vec<Column>,
    /// The whole first, then keys in their order.
    pub rows: Vec<Row>,
    /// What a reader must know, as sentences; from whoever fed the stream.
    pub caveats: Vec<String>,
}

/// One statistic of a table.
#[derive(Clone)]
pub struct Column {
    /// The statistic.
    pub statistic: &'static dyn Statistic,
    /// Why it has no values in this run.
    pub unknown: Option<&'static str>,
}

/// The values of one key.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Whose.
    pub key: Key,
    /// Words for it.
    pub label: String,
    /// Of the whole run, by statistic.
    pub total: Vec<Value>,
    /// By statistic, then by slice.
    pub slices: Vec<Vec<Value>>,
}

/// One value: a number, or why there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Value {
    /// In the unit of the statistic; of a share the part. `None` where it is not known.
    pub amount: Option<u64>,
    /// Of a share what it is of.
    pub whole: Option<u64>,
    /// Of an estimate: where the expectation is, in the unit of the statistic, with 95 % likelihood.
    pub estimate: Option<Estimate>,
    /// Why it is not known.
    pub reason: Option<&'static str>,
}

/// An interval of 95 %, in the unit of the statistic.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Value {
    /// Not known, for a reason.
    pub(crate) fn unknown(reason: &'static str) -> Value {
        Value {
            reason: Some(reason),
            ..Value::default()
        }
    }

    /// As a number in the unit of the statistic; `None` where it is not known.
    pub fn number(&self, sums: Sums) -> Option<f64> {
        let amount = self.amount? as f64;
        match (sums, self.whole) {
            (Sums::Share, Some(whole)) if whole > 0 => Some(100.0 * amount / whole as f64),
            (Sums::Share, _) => None,
            _ => Some(amount),
        }
    }
}
