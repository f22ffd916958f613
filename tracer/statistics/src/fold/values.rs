//! Values of amounts: which nothing is 0, which is not known, and how sure an estimate is.

use super::{Fold, cells::ALL};
use crate::{
    Column, Estimate, Key, Row, Table, Value,
    directory::Directories,
    estimate::{of_count, of_share},
    looked::missing,
    shared_waits::LineWaits,
    statistic::{Amount, Needs, Statistic, Sums},
};

/// Why no slice has a value.
const NO_TIMES: &str = "counted for the run: these have no times";
/// Why no key of another kind than CPUs has a value.
const NOT_BY_KEY: &str = "counted for the run and its CPUs only";
/// Why CPUs and code have no value.
const NO_CPU: &str = "the stream does not say on which CPU, nor in which code";
/// Why a share is none.
const OF_NOTHING: &str = "a share of nothing";
/// Why a slice between windows has no value.
const NO_WINDOW: &str = "no word was watched then";
/// Why there is no value where there were too many lines.
const LINES: &str = "more lines than are followed";

/// The table of what a fold counted.
pub(super) fn table(fold: &Fold) -> Table {
    let statistics = fold.cells.statistics();
    let columns = (statistics.iter())
        .map(|statistic| Column {
            statistic: *statistic,
            unknown: unknown(fold, *statistic),
        })
        .collect::<Vec<_>>();
    let rows = fold.cells.keys().into_iter().map(|(key, number)| {
        let makers: Vec<Maker<'_>> = (columns.iter().enumerate())
            .map(|(at, column)| Maker::new(fold, column, at, key, number))
            .collect();
        Row {
            key,
            label: fold.label(key),
            total: makers.iter().map(Maker::total).collect(),
            slices: (makers.iter())
                .map(|maker| {
                    let slices = 0..fold.cells.slice_count();
                    slices.map(|slice| maker.slice(slice)).collect()
                })
                .collect(),
        }
    });
    Table {
        slices: fold.options.slices,
        slice_count: fold.cells.slice_count(),
        per: fold.options.per,
        rows: rows.collect(),
        columns,
        caveats: Vec::new(),
    }
}

fn unknown(fold: &Fold, statistic: &dyn Statistic) -> Option<&'static str> {
    let directories = fold.directories.as_ref();
    let waits = fold.waits.as_ref();
    let no_room = directories.is_some_and(Directories::left_out);
    let no_room_to_wait = waits.is_some_and(LineWaits::left_out);
    let left_out = (statistic.asks_the_directory() && no_room)
        || (statistic.asks_who_shares() && no_room_to_wait);
    // Who was ready to watch may never have found a word to.
    let unwatched = statistic.needs() == Needs::Windows && fold.windows.is_empty();
    (fold.looked.reason(statistic.needs()))
        .or(unwatched.then_some("no word was watched in this run"))
        .or(left_out.then_some(LINES))
}

/// Values of one statistic of one key.
struct Maker<'a> {
    fold: &'a Fold,
    statistic: &'static dyn Statistic,
    column: usize,
    key: Key,
    number: u32,
    /// Why there are none.
    none: Option<&'static str>,
    /// Why there may have been something where nothing arrived.
    missing: Option<&'static str>,
    /// What one sample of the run stands for, on average.
    of_sample: Option<f64>,
}

impl Maker<'_> {
    fn new<'a>(fold: &'a Fold, column: &Column, at: usize, key: Key, number: u32) -> Maker<'a> {
        let statistic = column.statistic;
        let cpu = match key {
            Key::Cpu(cpu) => Some(cpu),
            _ => None,
        };
        let has_it = matches!(key, Key::All | Key::Thread(..) | Key::Process(_));
        let no_cpu = (!has_it && !statistic.is_on_cpus()).then_some(NO_CPU);
        let all = fold.cells.total(ALL, at);
        Maker {
            fold,
            statistic,
            column: at,
            key,
            number,
            none: column.unknown.or(no_cpu),
            missing: matches!(statistic.needs(), Needs::Timer | Needs::Samples)
                .then(|| missing(&fold.tally, cpu))
                .flatten(),
            of_sample: (all.samples > 0).then(|| all.amount as f64 / all.samples as f64),
        }
    }

    fn total(&self) -> Value {
        if let Some(reason) = self.none {
            return Value::unknown(reason);
        }
        if self.statistic.sums() == Sums::Run {
            let cpu = match self.key {
                Key::All => None,
                Key::Cpu(cpu) => Some(cpu),
                _ => return Value::unknown(NOT_BY_KEY),
            };
            let counted = self.statistic.of_run(&self.fold.tally, cpu);
            return match counted {
                Some(amount) => Value {
                    amount: Some(amount),
                    ..Value::default()
                },
                None => Value::unknown("counted for the whole run only"),
            };
        }
        self.value(self.fold.cells.total(self.number, self.column))
    }

    fn slice(&self, slice: u32) -> Value {
        if let Some(reason) = self.none {
            return Value::unknown(reason);
        }
        if self.statistic.sums() == Sums::Run {
            return Value::unknown(NO_TIMES);
        }
        if self.statistic.needs() == Needs::Windows && !self.fold.windows.covers(slice) {
            let found = self.fold.cells.get(self.number, slice, self.column);
            // Words may be hit while the last CPU lets go of them.
            if found.is_none_or(|(amount, _)| amount == Amount::default()) {
                return Value::unknown(NO_WINDOW);
            }
        }
        let found = self.fold.cells.get(self.number, slice, self.column);
        let (amount, sampled) = found.unwrap_or_default();
        match self.missing {
            Some(reason) if !sampled => Value::unknown(reason),
            _ => self.value(amount),
        }
    }

    fn value(&self, found: Amount) -> Value {
        if self.statistic.sums() == Sums::Share {
            let percent = of_share(found.amount, found.whole);
            return Value {
                amount: Some(found.amount),
                whole: Some(found.whole),
                estimate: percent.map(|(low, high)| Estimate {
                    low: 100.0 * low,
                    high: 100.0 * high,
                }),
                reason: percent.is_none().then_some(OF_NOTHING),
            };
        }
        Value {
            amount: Some(found.amount),
            whole: None,
            estimate: self.estimate(found),
            reason: None,
        }
    }

    fn estimate(&self, found: Amount) -> Option<Estimate> {
        let each = if found.samples > 0 {
            found.amount as f64 / found.samples as f64
        } else {
            self.of_sample?
        };
        let (low, high) = of_count(found.samples);
        Some(Estimate {
            low: low * each,
            high: high * each,
        })
    }
}
