//! What each object costs, over all its lines.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::{
    names::ObjectKind,
    report::{model::Report, named},
};

/// An object, by name and type.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ObjectChange {
    /// What kind of memory.
    #[serde(serialize_with = "named::object")]
    pub kind: ObjectKind,
    /// Variable, or where it was allocated.
    pub name: Option<String>,
    /// Type; `type` in JSON.
    #[serde(rename = "type")]
    pub type_name: Option<String>,
    /// Share of the cost before, over its lines that several threads use; `None` where none was seen.
    pub before_share: Option<f64>,
    /// The same after.
    pub after_share: Option<f64>,
    /// Such lines before.
    pub before_lines: u64,
    /// Such lines after.
    pub after_lines: u64,
}

type Key = (ObjectKind, Option<String>, Option<String>);

pub(super) fn changes(before: &Report, after: &Report) -> Vec<ObjectChange> {
    let (old, new) = (shares(before), shares(after));
    let mut keys: Vec<&Key> = old.keys().chain(new.keys()).collect();
    keys.sort_unstable_by_key(|&(kind, name, type_name)| (kind.name(), name, type_name));
    keys.dedup();
    let of = |all: &BTreeMap<Key, (f64, u64)>, key: &Key| all.get(key).copied();
    let mut out: Vec<ObjectChange> = (keys.into_iter())
        .map(|key| ObjectChange {
            kind: key.0,
            name: key.1.clone(),
            type_name: key.2.clone(),
            before_share: of(&old, key).map(|(share, _)| share),
            after_share: of(&new, key).map(|(share, _)| share),
            before_lines: of(&old, key).map_or(0, |(_, lines)| lines),
            after_lines: of(&new, key).map_or(0, |(_, lines)| lines),
        })
        .collect();
    out.sort_by(|a, b| by(b).total_cmp(&by(a)));
    out
}

/// By how much the share changed.
fn by(change: &ObjectChange) -> f64 {
    (change.after_share.unwrap_or(0.0) - change.before_share.unwrap_or(0.0)).abs()
}

fn shares(report: &Report) -> BTreeMap<Key, (f64, u64)> {
    let mut out: BTreeMap<Key, (f64, u64)> = BTreeMap::new();
    for finding in report.findings.iter().chain(&report.insignificant) {
        let object = &finding.object;
        if object.name.is_none() && object.type_name.is_none() {
            continue;
        }
        let key = (object.kind, object.name.clone(), object.type_name.clone());
        let sum = out.entry(key).or_default();
        sum.0 += finding.cost.share;
        sum.1 += 1;
    }
    out
}
