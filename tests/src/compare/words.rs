//! Findings, expected and reported, in words.

use std::{collections::BTreeSet, fmt::Write};

use crate::{
    answer::{ExpectedField, ExpectedFinding, tagged_line},
    report::Finding,
    workload::Workload,
};

/// An expected finding, a line for each field.
pub(super) fn describe_expected(workload: &Workload, expected: &ExpectedFinding) -> String {
    let object = &expected.object;
    let mut text = format!(
        "  {} of {} {}\n",
        expected.kind,
        object.kind,
        object.name.as_deref().unwrap_or("(any name)")
    );
    for field in &expected.fields {
        let _ = writeln!(text, "    {}", describe_field(workload, field));
    }
    text
}

/// One expected access.
pub(super) fn describe_field(workload: &Workload, field: &ExpectedField) -> String {
    let what = field
        .field
        .clone()
        .unwrap_or_else(|| format!("+{}", field.offset.unwrap_or(0)));
    let file = workload
        .source
        .file_name()
        .unwrap_or_default()
        .to_string_lossy();
    let line = tagged_line(&workload.text, &field.line).unwrap_or(0);
    let mut text = format!("{what}  {}  {}", field.op, field.function);
    for (word, name) in [("inlined", &field.inlined), ("thread", &field.thread)] {
        if let Some(name) = name {
            let _ = write!(text, "  ({word} {name})");
        }
    }
    let _ = write!(text, "  {file}:{line}");
    text
}

/// A finding that a report has, a line for each access.
pub(super) fn describe(finding: &Finding) -> String {
    let mut text = format!(
        "  {}, {}, of {} {} at {}\n",
        finding.kind,
        finding.confidence,
        finding.object_kind,
        finding.object_name.as_deref().unwrap_or("(no name)"),
        finding.line_key
    );
    for access in &finding.accesses {
        let comms: BTreeSet<&str> = access
            .threads
            .iter()
            .filter_map(|t| t.comm.as_deref())
            .collect();
        let _ = writeln!(
            text,
            "    +{} {}  {}  {}  inlined {:?}  threads {comms:?}  at {:?}  ip {:x?}  {}x",
            access.offset,
            access.field.as_deref().unwrap_or("(no field)"),
            access.op,
            access.code.symbol.as_deref().unwrap_or("(no symbol)"),
            access.code.inlined,
            access.code.places,
            access.code.ip,
            access.count,
        );
    }
    text
}
