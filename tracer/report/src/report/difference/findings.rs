//! Findings of two reports, matched one to one.

use std::collections::BTreeSet;

use serde::Serialize;

use super::{Change, Differs};
use crate::{
    finding::{Confidence, Verdict},
    names::ObjectKind,
    report::{
        model::{Finding, FindingId, Report},
        named,
    },
};

/// Part of all users that two lines without a common name must have in common to be the same.
const COMMON_USERS: f64 = 0.5;
/// Shares that differ by less are alike whatever the samples say.
const LEAST_SHARE: f64 = 0.005;
/// Standard errors that a difference must exceed: by chance it exceeds 3 once in 370 times.
const ERRORS: f64 = 3.0;
/// Rates of hand-offs that differ by less than this factor are alike: windows are few and short.
const HANDOFFS: f64 = 2.0;

/// One finding, in one or both sessions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FindingChange {
    /// Whether it came, went or stayed.
    pub change: Change,
    /// What the two were known to be the same by; `None` where there is one only.
    pub matched_by: Option<MatchedBy>,
    /// The object after, or before if it is gone; `None` where it has no name.
    pub object: Option<String>,
    /// Its type; `type` in JSON.
    #[serde(rename = "type")]
    pub type_name: Option<String>,
    /// Name before, where it is another one.
    pub renamed_from: Option<String>,
    /// Fields that are touched.
    pub fields: Vec<String>,
    /// Before.
    pub before: Option<FindingSide>,
    /// After.
    pub after: Option<FindingSide>,
    /// What differs.
    pub differences: Vec<Differs>,
}

/// What shows that findings of two sessions are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MatchedBy {
    /// The name and type of the object.
    Name,
    /// The functions that use it.
    Code,
}

/// A finding in one session.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FindingSide {
    /// Its number in the report.
    pub id: FindingId,
    /// Whether it is a finding there; else it is below a threshold.
    pub is_finding: bool,
    /// Why it is none.
    pub insignificant_because: Option<String>,
    /// As in the report.
    #[serde(serialize_with = "named::kind")]
    pub kind: Option<Verdict>,
    /// How sure that is.
    #[serde(serialize_with = "named::confidence")]
    pub confidence: Confidence,
    /// Share of the session's cost, 0..1.
    pub share: f64,
    /// Samples that the share is known by.
    pub samples: u64,
    /// Hand-offs per second, where they could be counted.
    pub handoffs_per_s: Option<f64>,
    /// The place that costs most: `file:line`, or a function.
    pub place: Option<String>,
}

/// All findings of both. What is no finding in either is left out.
pub(super) fn changes(before: &Report, after: &Report, comparable: bool) -> Vec<FindingChange> {
    let old: Vec<&Finding> = before
        .findings
        .iter()
        .chain(&before.insignificant)
        .collect();
    let new: Vec<&Finding> = after.findings.iter().chain(&after.insignificant).collect();
    let mut out = Vec::new();
    let mut left: BTreeSet<usize> = (0..old.len()).collect();
    let mut waiting: Vec<usize> = (0..new.len()).collect();
    for (rule, by) in [
        (same_fields as Rule, MatchedBy::Name),
        (same_object, MatchedBy::Name),
        (same_users, MatchedBy::Code),
    ] {
        waiting.retain(|&n| {
            let known = Known {
                old: &old,
                new: &new,
            };
            let found = left.iter().copied().find(|&o| rule(old[o], new[n], &known));
            let Some(o) = found else {
                return true;
            };
            left.remove(&o);
            out.extend(both(old[o], new[n], by, comparable));
            false
        });
    }
    out.extend(waiting.into_iter().filter_map(|n| one(new[n], Change::New)));
    out.extend(left.into_iter().filter_map(|o| one(old[o], Change::Gone)));
    let cost = |change: &FindingChange| {
        let share = |side: &Option<FindingSide>| side.as_ref().map_or(0.0, |side| side.share);
        share(&change.before).max(share(&change.after))
    };
    out.sort_by(|a, b| a.change.cmp(&b.change).then(cost(b).total_cmp(&cost(a))));
    out
}

/// All lines of both sessions.
struct Known<'a> {
    old: &'a [&'a Finding],
    new: &'a [&'a Finding],
}

type Rule = fn(&Finding, &Finding, &Known<'_>) -> bool;

/// What names the object: its variable, or where it was allocated, and its type.
fn name(finding: &Finding) -> Option<(ObjectKind, Option<&str>, Option<&str>)> {
    let object = &finding.object;
    let named = object.name.is_some() || object.type_name.is_some();
    named.then_some((
        object.kind,
        object.name.as_deref(),
        object.type_name.as_deref(),
    ))
}

fn fields(finding: &Finding) -> Vec<String> {
    let fields: BTreeSet<&String> = finding
        .accesses
        .iter()
        .filter_map(|row| row.field.as_ref())
        .collect();
    fields.into_iter().cloned().collect()
}

fn same_fields(old: &Finding, new: &Finding, known: &Known<'_>) -> bool {
    same_object(old, new, known) && fields(old) == fields(new)
}

fn same_object(old: &Finding, new: &Finding, _: &Known<'_>) -> bool {
    name(old).is_some() && name(old) == name(new)
}

/// Neither has a name; or one was renamed, so its old name is not there after nor its new one before.
fn same_users(old: &Finding, new: &Finding, known: &Known<'_>) -> bool {
    let renamed = match (name(old), name(new)) {
        (None, None) => true,
        (Some((old_kind, old_name, old_type)), Some((new_kind, new_name, new_type))) => {
            let alike = old_kind == new_kind && old_type == new_type && fields(old) == fields(new);
            let is_there = |all: &[&Finding], name: Option<&str>| {
                all.iter()
                    .any(|finding| finding.object.name.as_deref() == name)
            };
            alike && !is_there(known.new, old_name) && !is_there(known.old, new_name)
        }
        _ => false,
    };
    if !renamed {
        return false;
    }
    let (old, new) = (users(old), users(new));
    let common = old.intersection(&new).count();
    let all = old.union(&new).count();
    all > 0 && common as f64 >= all as f64 * COMMON_USERS
}

/// Functions that touch the line, with their files' names: lines move from build to build. Code without a name is known by its
/// module and address, which are the same in the same build.
fn users(finding: &Finding) -> BTreeSet<(String, String)> {
    let codes = finding.accesses.iter().map(|row| &row.code);
    let known = codes.map(|code| {
        let file = match &code.symbol {
            Some(_) => code.file.as_deref(),
            None => code.module.as_deref(),
        };
        let file = file
            .unwrap_or_default()
            .rsplit('/')
            .next()
            .unwrap_or_default();
        let name = code.symbol.clone();
        (name.unwrap_or_else(|| code.ip.to_string()), file.to_owned())
    });
    known.collect()
}

fn side(finding: &Finding) -> FindingSide {
    let first = finding
        .accesses
        .iter()
        .map(|row| &row.code)
        .find(|code| code.file.is_some() || code.symbol.is_some());
    let place = first.and_then(|code| match (&code.file, code.line) {
        (Some(file), Some(line)) => Some(format!("{file}:{line}")),
        _ => code.symbol.clone(),
    });
    let handoffs = finding.handoffs.as_ref();
    FindingSide {
        id: finding.id,
        is_finding: finding.insignificant_because.is_none(),
        insignificant_because: finding.insignificant_because.clone(),
        kind: finding.kind,
        confidence: finding.confidence,
        share: finding.cost.share,
        samples: finding.cost.samples,
        handoffs_per_s: handoffs.and_then(|handoffs| handoffs.per_s),
        place,
    }
}

fn spoken(finding: &Finding) -> Option<String> {
    finding.object.spoken().map(str::to_owned)
}

fn one(finding: &Finding, change: Change) -> Option<FindingChange> {
    let side = side(finding);
    if !side.is_finding {
        return None;
    }
    let (before, after) = match change {
        Change::Gone => (Some(side), None),
        _ => (None, Some(side)),
    };
    Some(FindingChange {
        change,
        matched_by: None,
        object: spoken(finding),
        type_name: finding.object.type_name.clone(),
        renamed_from: None,
        fields: fields(finding),
        before,
        after,
        differences: Vec::new(),
    })
}

fn both(old: &Finding, new: &Finding, by: MatchedBy, comparable: bool) -> Option<FindingChange> {
    let (before, after) = (side(old), side(new));
    let renamed = (old.object.name != new.object.name)
        .then(|| spoken(old))
        .flatten();
    let differences = differences(&before, &after, comparable);
    let change = match (before.is_finding, after.is_finding) {
        (false, false) => return None,
        (true, false) => Change::Gone,
        (false, true) => Change::New,
        (true, true) if differences.is_empty() => Change::Same,
        (true, true) => Change::Changed,
    };
    Some(FindingChange {
        change,
        matched_by: Some(by),
        object: spoken(new),
        type_name: new.object.type_name.clone(),
        renamed_from: renamed,
        fields: fields(new),
        before: Some(before),
        after: Some(after),
        differences,
    })
}

fn differences(before: &FindingSide, after: &FindingSide, comparable: bool) -> Vec<Differs> {
    let mut out = Vec::new();
    if before.kind != after.kind {
        out.push(Differs::Kind);
    }
    if comparable && differ(before, after) {
        out.push(Differs::Share);
    }
    if let (Some(old), Some(new)) = (before.handoffs_per_s, after.handoffs_per_s)
        && (old.max(new) > HANDOFFS * old.min(new))
    {
        out.push(Differs::HandOffs);
    }
    out
}

/// Whether two shares differ by more than chance: a share known by n samples has a standard error of share / √n.
fn differ(before: &FindingSide, after: &FindingSide) -> bool {
    let variance = |side: &FindingSide| side.share * side.share / side.samples.max(1) as f64;
    let error = (variance(before) + variance(after)).sqrt();
    (before.share - after.share).abs() > LEAST_SHARE.max(ERRORS * error)
}
