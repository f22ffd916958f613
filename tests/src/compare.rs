//! Compares a report with a workload's answer.
//!
//! Every expected finding must be there with all its accesses, confirmed where the run watched, and nothing may be
//! there besides. The same holds for pairs with a hint; [`crate::live::Windows`] is for runs that must have watched. What is not named in the answer (counts, shares, further
//! accesses to the same line, pairs without a hint) is free.

mod pairs;
mod place;
mod words;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::{self, Write},
    ops::Range,
};

use place::{is_at_line, is_compiled, is_in_function};
use words::{describe, describe_expected, describe_field};

use crate::{
    answer::{Answer, ExpectedCode, ExpectedField, ExpectedFinding, ExpectedWait},
    naming::{same_field, same_name, without_keyword},
    report::{Access, Finding, Report},
    workload::Workload,
};

/// Code of a program by function, for programs that cannot be asked for their symbols.
pub type FunctionRanges = BTreeMap<String, Range<u64>>;

/// One way in which a report is not the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// For people.
    pub text: String,
    /// Something that is true was not seen, which may be the chance of one run. Else, something that is not true was
    /// said, and no chance excuses that.
    pub by_chance: bool,
}

impl Difference {
    fn missed(text: String) -> Difference {
        Difference {
            text,
            by_chance: true,
        }
    }

    fn wrong(text: String) -> Difference {
        Difference {
            text,
            by_chance: false,
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Explains each difference; empty when the report is the answer. `stripped` holds the functions of a program
/// whose symbols the tool could not see: then module and instruction address are compared instead of names.
pub fn differences(
    workload: &Workload,
    answer: &Answer,
    report: &Report,
    stripped: Option<&FunctionRanges>,
) -> Vec<Difference> {
    let mut differences = findings(workload, answer, report, stripped);
    differences.extend(pairs::differences(workload, answer, report));
    if let Some(watch) = &report.watch
        && !watch.unresolved.is_empty()
    {
        differences.push(Difference::wrong(format!(
            "trapped accesses that could not be told: {:?} of {} hits",
            watch.unresolved, watch.hits
        )));
    }
    // All workloads are compiled with -g.
    let denied = format!("/{}: no debug info: ", workload.name);
    if !answer.strip
        && let Some(caveat) = report.caveats.iter().find(|c| c.contains(&denied))
    {
        differences.push(Difference::wrong(format!(
            "the program has debug info, and the report says: {caveat}"
        )));
    }
    differences
}

fn findings(
    workload: &Workload,
    answer: &Answer,
    report: &Report,
    stripped: Option<&FunctionRanges>,
) -> Vec<Difference> {
    let watched = report.watch.is_some();
    let mut left: Vec<&Finding> = report.findings.iter().collect();
    let mut differences = Vec::new();
    for expected in &answer.findings {
        let judged: Vec<Vec<String>> = left
            .iter()
            .map(|got| {
                let mut reasons = mismatches(workload, answer, expected, got, stripped);
                if watched && answer.unconfirmed_because.is_none() && got.confidence != "confirmed"
                {
                    reasons.push(format!("it is {}, not confirmed", got.confidence));
                }
                reasons
            })
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
        differences.push(Difference::missed(text));
    }
    for name in &answer.insignificant {
        if !report.insignificant.contains(name) {
            differences.push(Difference::missed(format!(
                "{name} is not listed among the insignificant lines: {:?}",
                report.insignificant
            )));
        }
    }
    for name in &answer.not_listed {
        if report.insignificant.contains(name) {
            differences.push(Difference::missed(format!(
                "{name} is listed among the insignificant lines: {:?}",
                report.insignificant
            )));
        }
    }
    if differences.is_empty() && answer.other_findings_because.is_none() {
        for got in left {
            differences.push(Difference::wrong(format!(
                "found, not expected (a false positive):\n{}",
                describe(got)
            )));
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
    if expected.object.called.is_some() && got.object_called != expected.object.called {
        reasons.push(format!(
            "the source comes to it by {:?}, not by {:?}",
            got.object_called, expected.object.called
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
    if got.stalled_share < expected.least_stalled {
        reasons.push(format!(
            "CPUs waited for it {} of the time, not {} at least",
            got.stalled_share, expected.least_stalled
        ));
    }
    for part in &expected.says {
        if !got.facts.iter().any(|fact| fact.contains(part)) {
            reasons.push(format!("nothing says \"{part}\": {:?}", got.facts));
        }
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
                .any(|access| is_expected(workload, answer, field, access, got, base, stripped))
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
    answer: &Answer,
    field: &ExpectedField,
    got: &Access,
    finding: &Finding,
    base: u64,
    stripped: Option<&FunctionRanges>,
) -> bool {
    let path_right = field.field.as_ref().is_none_or(|want| {
        // A key may name the part alone of memory that has no name.
        let called = (finding.object_called.as_deref()).filter(|_| !want.starts_with(['.', '[']));
        same_field(
            got.field.as_deref(),
            want,
            finding.object_name.as_deref().or(called),
        )
    });
    let offset_right = field
        .offset
        .is_none_or(|offset| got.offset == base + offset);
    let thread_right = field
        .thread
        .as_ref()
        .is_none_or(|want| got.threads.iter().any(|t| t.comm.as_ref() == Some(want)));
    let code_right = match stripped {
        Some(functions) => is_in_function(got, finding, functions, &field.function, workload),
        None if answer.no_lines => is_compiled(&got.code, &field.function),
        None => is_at_line(workload, &ExpectedCode::from(field), &got.code),
    };
    let wait_right = field.wait.is_none_or(|wait| waits_as(got, wait));
    path_right && offset_right && thread_right && code_right && wait_right && got.op == field.op
}

/// Whether the CPU stood where it should while it waited for the access.
fn waits_as(got: &Access, wait: ExpectedWait) -> bool {
    let (at_barrier, spinning) = got.waits;
    match wait {
        ExpectedWait::Instruction => at_barrier + spinning == 0.0,
        ExpectedWait::Barrier => at_barrier > 0.5 * got.cost_share,
        ExpectedWait::Spin => spinning > 0.1 * got.cost_share,
    }
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

    fn check(change: impl Fn(&mut Workload), report: &str) -> Vec<Difference> {
        let mut workload = workload();
        change(&mut workload);
        let report = Report::parse(report).unwrap();
        differences(&workload, &workload.answers[0], &report, None)
    }

    #[test]
    fn the_right_report_is_the_answer() {
        assert_eq!(check(|_| {}, TWO_COUNTERS), []);
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
        assert!(differences[0].text.contains("false positive"));
        assert!(!differences[0].by_chance, "a false alarm was excused");
    }

    #[test]
    fn a_second_finding_beside_the_right_one_is_a_false_positive() {
        let mut json: serde_json::Value = serde_json::from_str(TWO_COUNTERS).unwrap();
        let again = json["findings"][0].clone();
        json["findings"].as_array_mut().unwrap().push(again);
        let differences = check(|_| {}, &json.to_string());
        assert!(differences[0].text.contains("false positive"));
    }

    /// What is added to a run that had watch windows.
    const WATCH: &str = r#""run": {"watch": {"windows": 30, "hits": 6000, "lost": 0, "unresolved": {"no_function": 0}}, "#;

    #[test]
    fn where_the_run_watched_a_finding_must_be_confirmed() {
        let sampled = TWO_COUNTERS.replace("\"run\": {", WATCH);
        let differences = check(|_| {}, &sampled);
        assert!(
            differences[0].text.contains("sampled, not confirmed"),
            "{differences:?}"
        );
        assert!(differences[0].by_chance);
        let confirmed = sampled.replace("\"sampled\"", "\"confirmed\"");
        assert_eq!(check(|_| {}, &confirmed), []);
        let excuse = |workload: &mut Workload| {
            workload.answers[0].unconfirmed_because = Some("it is over too soon".into());
        };
        assert_eq!(check(excuse, &sampled), []);
    }

    #[test]
    fn a_trapped_access_that_could_not_be_told_is_a_difference() {
        let watch = WATCH.replace("\"no_function\": 0", "\"no_function\": 1");
        let report = TWO_COUNTERS
            .replace("\"run\": {", &watch)
            .replace("\"sampled\"", "\"confirmed\"");
        let differences = check(|_| {}, &report);
        assert_eq!(differences.len(), 1, "{differences:?}");
        assert!(differences[0].text.contains("no_function"));
        assert!(!differences[0].by_chance);
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
