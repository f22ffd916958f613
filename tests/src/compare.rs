//! Compares a report with a workload's answer.
//!
//! Every expected finding must be there with all its accesses, and nothing may be there besides. What is not
//! named in the answer (counts, shares, further accesses to the same line) is free.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
    ops::Range,
    path::Path,
};

use crate::{
    answer::{Answer, ExpectedField, ExpectedFinding, tagged_line},
    naming::{same_field, same_name, without_keyword},
    report::{Access, Finding, Report},
    workload::Workload,
};

/// Code of a program by function, for programs that cannot be asked for their symbols.
pub type FunctionRanges = BTreeMap<String, Range<u64>>;

/// Explains each difference; empty when the report is the answer. `stripped` holds the functions of a program
/// whose symbols the tool could not see: then module and instruction address are compared instead of names.
pub fn differences(
    workload: &Workload,
    answer: &Answer,
    report: &Report,
    stripped: Option<&FunctionRanges>,
) -> Vec<String> {
    let mut left: Vec<&Finding> = report.findings.iter().collect();
    let mut differences = Vec::new();
    for expected in &answer.findings {
        let judged: Vec<Vec<String>> = left
            .iter()
            .map(|got| mismatches(workload, answer, expected, got, stripped))
            .collect();
        if let Some(exact) = judged.iter().position(Vec::is_empty) {
            left.remove(exact);
            continue;
        }
        let mut text = format!(
            "expected, not found:\n{}",
            describe_expected(workload, expected)
        );
        if let Some(nearest) = (0..judged.len()).min_by_key(|n| judged[*n].len()) {
            let _ = write!(
                text,
                "the nearest finding differs:\n{}",
                describe(left[nearest])
            );
            for reason in &judged[nearest] {
                let _ = writeln!(text, "  - {reason}");
            }
        } else {
            text.push_str("and no finding is left that could be it\n");
        }
        differences.push(text);
    }
    for name in &answer.insignificant {
        if !report.insignificant.contains(name) {
            differences.push(format!(
                "{name} is not listed among the insignificant lines: {:?}",
                report.insignificant
            ));
        }
    }
    if differences.is_empty() {
        for got in left {
            differences.push(format!(
                "found, not expected (a false positive):\n{}",
                describe(got)
            ));
        }
    }
    differences
}

fn mismatches(
    workload: &Workload,
    answer: &Answer,
    expected: &ExpectedFinding,
    got: &Finding,
    stripped: Option<&FunctionRanges>,
) -> Vec<String> {
    let mut reasons = Vec::new();
    if got.kind != expected.kind {
        reasons.push(format!("it is {}, not {}", got.kind, expected.kind));
    }
    if got.object_kind != expected.object.kind {
        reasons.push(format!(
            "the object is a {}, not a {}",
            got.object_kind, expected.object.kind
        ));
    }
    if let Some(name) = &expected.object.name
        && !got
            .object_name
            .as_ref()
            .is_some_and(|got| same_name(got, name))
    {
        reasons.push(format!(
            "the object is called {:?}, not {name}",
            got.object_name
        ));
    }
    if let Some(type_name) = &expected.object.type_name
        && got
            .object_type
            .as_ref()
            .is_none_or(|got| without_keyword(got) != without_keyword(type_name))
    {
        reasons.push(format!(
            "its type is {:?}, not {type_name}",
            got.object_type
        ));
    }
    let processes: BTreeSet<u64> = got
        .accesses
        .iter()
        .flat_map(|a| &a.threads)
        .map(|t| t.pid)
        .collect();
    if processes.len() < answer.processes {
        reasons.push(format!(
            "{} process(es) take part, not {}",
            processes.len(),
            answer.processes
        ));
    }

    // Offsets count from one another, so every base that some access offers is tried, and the best one blamed.
    let missing = |base: u64| -> Vec<String> {
        let is_there = |field: &ExpectedField| {
            got.accesses
                .iter()
                .any(|access| is_expected(workload, field, access, got, base, stripped))
        };
        let absent = expected.fields.iter().filter(|field| !is_there(field));
        absent
            .map(|field| format!("no {}", describe_field(workload, field)))
            .collect()
    };
    let bases: BTreeSet<u64> = got.accesses.iter().map(|a| a.offset).chain([0]).collect();
    let best = bases.into_iter().map(missing).min_by_key(Vec::len);
    reasons.extend(best.unwrap_or_default());
    reasons
}

fn is_expected(
    workload: &Workload,
    field: &ExpectedField,
    got: &Access,
    finding: &Finding,
    base: u64,
    stripped: Option<&FunctionRanges>,
) -> bool {
    let path_right = field
        .field
        .as_ref()
        .is_none_or(|want| same_field(got.field.as_deref(), want, finding.object_name.as_deref()));
    let offset_right = field
        .offset
        .is_none_or(|offset| got.offset == base + offset);
    let thread_right = field
        .thread
        .as_ref()
        .is_none_or(|want| got.threads.iter().any(|t| t.comm.as_ref() == Some(want)));
    let code_right = match stripped {
        Some(functions) => is_in_function(got, finding, functions, &field.function, workload),
        None => is_at_line(workload, field, got),
    };
    path_right && offset_right && thread_right && code_right && got.op == field.op
}

fn is_at_line(workload: &Workload, field: &ExpectedField, got: &Access) -> bool {
    let Ok(line) = tagged_line(&workload.text, &field.line) else {
        return false;
    };
    let mut functions = got.symbol.iter().chain(&got.inlined);
    let function_right = functions.any(|name| same_name(name, &field.function));
    let inlined_right = field
        .inlined
        .as_ref()
        .is_none_or(|want| got.inlined.iter().any(|name| same_name(name, want)));
    let line_right = got.places.iter().any(|(file, got)| {
        Path::new(file).file_name() == workload.source.file_name() && *got == line
    });
    function_right && inlined_right && line_right
}

/// Whether the access is in the program's own module, inside the function. The address may be the file's own, or
/// that of the running program: then the difference is whole pages, the same for the finding's first access.
fn is_in_function(
    got: &Access,
    finding: &Finding,
    functions: &FunctionRanges,
    function: &str,
    workload: &Workload,
) -> bool {
    let module_right = got
        .module
        .as_ref()
        .is_some_and(|module| Path::new(module).file_stem() == workload.source.file_stem());
    let (Some(ip), Some(range)) = (got.ip, functions.get(function)) else {
        return false;
    };
    let first = finding
        .accesses
        .iter()
        .filter_map(|access| access.ip)
        .min()
        .unwrap_or(ip);
    let lowest = functions
        .values()
        .map(|range| range.start)
        .min()
        .unwrap_or(0);
    let bases =
        (0..16).map(|pages| (first & !0xfff).wrapping_sub((lowest & !0xfff) + pages * 0x1000));
    module_right
        && [0]
            .into_iter()
            .chain(bases)
            .any(|base| range.contains(&ip.wrapping_sub(base)))
}

fn describe_expected(workload: &Workload, expected: &ExpectedFinding) -> String {
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

fn describe_field(workload: &Workload, field: &ExpectedField) -> String {
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

fn describe(finding: &Finding) -> String {
    let mut text = format!(
        "  {} of {} {} at {}\n",
        finding.kind,
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
            access.symbol.as_deref().unwrap_or("(no symbol)"),
            access.inlined,
            access.places,
            access.ip,
            access.count,
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{answer::answers, report::tests::TWO_COUNTERS};

    const KEY: &str = r#"// ANSWER: {"variant": "plain", "findings": [
//   {"kind": "false-sharing", "object": {"kind": "global", "name": "counters", "type": "struct counters"}, "fields": [
//     {"field": "counters.hits", "op": "rmw", "function": "count_hits", "line": "@hits", "thread": "hits"},
//     {"field": "counters.misses", "op": "rmw", "function": "count_misses", "line": "@misses"}]}]}
// ANSWER: {"variant": "padded", "findings": []}
"#;

    /// The key above in a source whose tagged lines are where the report says: 23 and 31.
    fn workload() -> Workload {
        let text = format!(
            "{KEY}{}// @hits{}// @misses\n",
            "\n".repeat(17),
            "\n".repeat(8)
        );
        Workload {
            name: "two_counters".into(),
            source: "/elsewhere/two_counters.c".into(),
            answers: answers(&text).unwrap(),
            text,
        }
    }

    fn check(change: impl Fn(&mut Workload), report: &str) -> Vec<String> {
        let mut workload = workload();
        change(&mut workload);
        let report = Report::parse(report).unwrap();
        differences(&workload, &workload.answers[0], &report, None)
    }

    #[test]
    fn the_right_report_is_the_answer() {
        assert_eq!(check(|_| {}, TWO_COUNTERS), Vec::<String>::new());
    }

    #[test]
    fn each_wrong_word_in_a_report_is_a_difference() {
        for (right, wrong) in [
            ("\"false-sharing\"", "\"mixed-sharing\""),
            ("\"kind\": \"global\"", "\"kind\": \"heap\""),
            ("\"name\": \"counters\"", "\"name\": \"curtain\""),
            ("\"type\": \"counters\"", "\"type\": \"curtain\""),
            ("counters.hits", "counters.misses"),
            ("\"op\": \"rmw\"", "\"op\": \"store\""),
            ("\"count_hits\"", "\"count\""),
            ("\"line\": 23", "\"line\": 22"),
            ("/src/two_counters.c", "/src/three_counters.c"),
            ("\"comm\": \"hits\"", "\"comm\": \"main\""),
            ("\"symbol\": \"count_hits\"", "\"symbol\": null"),
        ] {
            let report = TWO_COUNTERS.replacen(right, wrong, 1);
            assert_ne!(report, TWO_COUNTERS, "{right} is not in the report");
            assert_eq!(check(|_| {}, &report).len(), 1, "{wrong} went unnoticed");
        }
    }

    #[test]
    fn a_finding_in_a_negative_is_a_false_positive() {
        let report = Report::parse(TWO_COUNTERS).unwrap();
        let workload = workload();
        let differences = differences(&workload, &workload.answers[1], &report, None);
        assert!(differences[0].contains("false positive"), "{differences:?}");
    }

    #[test]
    fn a_second_finding_beside_the_right_one_is_a_false_positive() {
        let mut json: serde_json::Value = serde_json::from_str(TWO_COUNTERS).unwrap();
        let again = json["findings"][0].clone();
        json["findings"].as_array_mut().unwrap().push(again);
        let differences = check(|_| {}, &json.to_string());
        assert!(differences[0].contains("false positive"), "{differences:?}");
    }

    #[test]
    fn offsets_count_from_one_another() {
        let by_offset = |first: u64, second: u64| {
            move |workload: &mut Workload| {
                let fields = &mut workload.answers[0].findings[0].fields;
                for (field, offset) in fields.iter_mut().zip([first, second]) {
                    field.field = None;
                    field.offset = Some(offset);
                }
            }
        };
        let moved = TWO_COUNTERS
            .replace("\"offset\": 8,", "\"offset\": 40,")
            .replace("\"offset\": 0,", "\"offset\": 32,");
        assert!(check(by_offset(0, 8), &moved).is_empty());
        assert!(check(by_offset(0, 8), TWO_COUNTERS).is_empty());
        assert!(!check(by_offset(0, 4), &moved).is_empty());
    }

    #[test]
    fn a_stripped_program_is_compared_by_module_and_address() {
        let functions = |low: u64| {
            FunctionRanges::from([
                ("count_hits".into(), low..low + 0x20),
                ("count_misses".into(), low + 0x20..low + 0x40),
            ])
        };
        let workload = workload();
        let judge = |report: &str, functions: &FunctionRanges| {
            let report = Report::parse(report).unwrap();
            differences(&workload, &workload.answers[0], &report, Some(functions))
        };
        let named = TWO_COUNTERS.replace("/bin/two", "/bin/two_counters");
        assert!(judge(&named, &functions(0x12d0)).is_empty());
        let running = named.replace("0x12", "0x5555555552");
        assert!(judge(&running, &functions(0x12d0)).is_empty());
        assert!(!judge(&named, &functions(0x12e0)).is_empty());
        assert!(!judge(TWO_COUNTERS, &functions(0x12d0)).is_empty());
    }
}
