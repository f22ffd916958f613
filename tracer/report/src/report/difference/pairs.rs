//! Read-then-write pairs of two reports, matched one to one.

use serde::Serialize;

use super::{Change, Differs};
use crate::{
    access::Op,
    report::model::{Code, Pair, Report},
};

/// Shares of a load's executions that differ by less are alike.
const LEAST_SHARE: f64 = 0.1;

/// One pair, in one or both sessions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PairChange {
    /// Whether it came, went or stayed.
    pub change: Change,
    /// What is read.
    pub object: Option<String>,
    /// Field that the load reads.
    pub field: Option<String>,
    /// Function of the load.
    pub function: Option<String>,
    /// Before.
    pub before: Option<PairSide>,
    /// After.
    pub after: Option<PairSide>,
    /// What differs.
    pub differences: Vec<Differs>,
}

/// A pair in one session.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PairSide {
    /// Its number in the report.
    pub id: String,
    /// Where the load is.
    pub load: String,
    /// Where the store is.
    pub store: String,
    /// Executions of the load that the store followed, 0..1.
    pub share_of_load: Option<f64>,
    /// Times that it did; of an emulated session all, else those of the watch windows.
    pub count: u64,
    /// It has a hint.
    pub hint: bool,
}

pub(super) fn changes(before: &Report, after: &Report) -> Vec<PairChange> {
    let mut old: Vec<&Pair> = before.pairs.iter().collect();
    let mut out = Vec::new();
    for new in &after.pairs {
        let found = old.iter().position(|old| key(old) == key(new));
        let old = found.map(|at| old.remove(at));
        out.push(change(old, Some(new)));
    }
    out.extend(old.into_iter().map(|old| change(Some(old), None)));
    let out: Vec<PairChange> = out.into_iter().flatten().collect();
    let mut sorted = out;
    sorted.sort_by_key(|pair| pair.change);
    sorted
}

/// What stays the same from build to build; reports list pairs in an order that does too.
fn key(pair: &Pair) -> ([Option<&str>; 5], Op) {
    let names = [
        pair.object.spoken(),
        pair.field.as_deref(),
        pair.load.code.symbol.as_deref(),
        pair.store.code.symbol.as_deref(),
        pair.store.field.as_deref(),
    ];
    (names, pair.store.op)
}

fn change(old: Option<&Pair>, new: Option<&Pair>) -> Option<PairChange> {
    let pair = new.or(old)?;
    let (before, after) = (old.map(side), new.map(side));
    let mut differences = Vec::new();
    let change = match (&before, &after) {
        (None, _) => Change::New,
        (_, None) => Change::Gone,
        (Some(before), Some(after)) => {
            if before.hint != after.hint {
                differences.push(Differs::Hint);
            }
            let (old, new) = (
                before.share_of_load.unwrap_or(0.0),
                after.share_of_load.unwrap_or(0.0),
            );
            if (old - new).abs() > LEAST_SHARE {
                differences.push(Differs::Share);
            }
            if differences.is_empty() {
                Change::Same
            } else {
                Change::Changed
            }
        }
    };
    Some(PairChange {
        change,
        object: pair.object.spoken().map(str::to_owned),
        field: pair.field.clone(),
        function: pair.load.code.symbol.clone(),
        before,
        after,
        differences,
    })
}

fn side(pair: &Pair) -> PairSide {
    PairSide {
        id: pair.id.clone(),
        load: place(&pair.load.code),
        store: place(&pair.store.code),
        share_of_load: pair.share_of_load,
        count: pair.count,
        hint: pair.hint.is_some(),
    }
}

fn place(code: &Code) -> String {
    match (&code.file, code.line) {
        (Some(file), Some(line)) => format!("{file}:{line}"),
        _ => code.symbol.clone().unwrap_or_else(|| code.ip.to_string()),
    }
}
