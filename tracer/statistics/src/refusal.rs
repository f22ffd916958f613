//! Why a table cannot be made as asked.

use crate::{number::grouped, slices::words};

/// What was asked for and cannot be; the words say what would do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// An interval of no length.
    #[error("an interval of 0 has no slices; give one such as 100ms")]
    NoInterval,
    /// One slice would be longer than the whole.
    #[error("the run is {:.6} s long, shorter than an interval of {}: leave --interval away, or give a shorter one", *.run_ns as f64 / 1e9, words(*.interval_ns))]
    LongerThanRun {
        /// As asked, nanoseconds.
        interval_ns: u64,
        /// Length of the run, nanoseconds.
        run_ns: u64,
    },
    /// More values than are kept.
    #[error("that is more than {} values ({} statistics of {} keys in {} slices); {}", grouped(*.most), grouped(*.statistics), grouped(*.keys), grouped(*.slices), cure(*.interval_ns))]
    TooManyValues {
        /// How many there may be.
        most: u64,
        /// Statistics that were selected.
        statistics: u64,
        /// Keys so far, the whole among them.
        keys: u64,
        /// Slices.
        slices: u64,
        /// An interval that gives few enough, nanoseconds; `None` where one slice is too many.
        interval_ns: Option<u64>,
    },
    /// No such name.
    #[error("no statistic is called {name:?}; there are {there}")]
    Unknown {
        /// As given.
        name: String,
        /// All names.
        there: String,
    },
    /// A name that was given before.
    #[error("{name} is asked for twice")]
    Twice {
        /// The name.
        name: &'static str,
    },
    /// Nothing is selected.
    #[error("no statistic is named; leave the names away for all")]
    NoneNamed,
}

fn cure(interval_ns: Option<u64>) -> String {
    interval_ns.map_or_else(
        || "name fewer statistics, or give another --per".to_owned(),
        |ns| format!("an interval of {} would do", words(ns)),
    )
}
