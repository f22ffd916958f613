//! Compares the listed read-then-write pairs with the key's.

use std::fmt::Write;

use super::{
    Difference,
    place::{is_at_line, is_at_tag},
};
use crate::{
    answer::{Answer, ExpectedCode, ExpectedPair, tagged_line},
    naming::same_field,
    report::{Code, Pair, Report},
    workload::Workload,
};

/// Explains each difference. Every expected pair must be listed as it is; no other pair may have a hint, and none may
/// begin with a load that the key excludes. Of a run that did not watch, no pair is expected.
pub(super) fn differences(
    workload: &Workload,
    answer: &Answer,
    report: &Report,
) -> Vec<Difference> {
    let mut differences = Vec::new();
    let expected = answer.pairs.iter().filter(|_| report.watch.is_some());
    for expected in expected {
        let at_the_place: Vec<&Pair> = report
            .pairs
            .iter()
            .filter(|got| is_at_the_place(workload, expected, got))
            .collect();
        let judged = at_the_place
            .iter()
            .map(|got| mismatches(expected, got, report));
        let Some(best) = judged.min_by_key(Vec::len) else {
            let mut text = format!("no such pair:\n{}", describe_expected(workload, expected));
            for got in &report.pairs {
                let _ = write!(text, "listed is:\n{}", describe(got));
            }
            differences.push(Difference::missed(text));
            continue;
        };
        if !best.is_empty() {
            let mut text = format!(
                "this pair is not as expected:\n{}",
                describe_expected(workload, expected)
            );
            for reason in best {
                let _ = writeln!(text, "  - {reason}");
            }
            for got in at_the_place {
                text.push_str(&describe(got));
            }
            differences.push(Difference::missed(text));
        }
    }
    for got in &report.pairs {
        let is_excluded = |tag: &String| is_at_tag(workload, tag, &got.load);
        if let Some(tag) = answer.no_pair.iter().find(|tag| is_excluded(tag)) {
            differences.push(Difference::wrong(format!(
                "nothing is stored after the load at {tag}, and it is in a pair:\n{}",
                describe(got)
            )));
            continue;
        }
        let may_have_hint = answer
            .pairs
            .iter()
            .any(|expected| expected.hint && is_at_the_place(workload, expected, got));
        if got.hint.is_some() && !may_have_hint {
            differences.push(Difference::wrong(format!(
                "a hint that does harm:\n{}",
                describe(got)
            )));
        }
    }
    differences
}

fn is_at_the_place(workload: &Workload, expected: &ExpectedPair, got: &Pair) -> bool {
    is_at_line(workload, &expected.load, &got.load)
        && is_at_line(workload, &expected.store, &got.store)
        && expected.same_instruction == got.same_instruction
}

fn mismatches(expected: &ExpectedPair, got: &Pair, report: &Report) -> Vec<String> {
    let mut reasons = Vec::new();
    if let Some(op) = &got.op_store
        && *op != expected.op
    {
        reasons.push(format!("the store is a {op}, not a {}", expected.op));
    }
    for (what, got_field, code) in [
        ("loaded", &got.field, &expected.load),
        ("stored", &got.store_field, &expected.store),
    ] {
        if let Some(want) = &code.field
            && !same_field(got_field.as_deref(), want, got.object_name.as_deref())
        {
            reasons.push(format!("{got_field:?} is {what}, not {want}"));
        }
    }
    if expected.hint && got.hint.is_none() {
        reasons.push(format!("it has no hint: {:?}", got.no_hint_because));
    }
    if let Some(hint) = &got.hint
        && hint.kind != "fetch-for-ownership"
    {
        reasons.push(format!("its hint is {}", hint.kind));
    }
    if !got.complete_order {
        reasons.push("its order is not complete".to_owned());
    }
    let is_line = |key: &String| *key == got.line_key;
    if !report.findings.iter().any(|f| is_line(&f.line_key)) {
        reasons.push(format!("its line {} is no finding's", got.line_key));
    }
    reasons
}

fn describe_expected(workload: &Workload, expected: &ExpectedPair) -> String {
    let place = |code: &ExpectedCode| {
        let line = tagged_line(&workload.text, &code.line).unwrap_or(0);
        let field = code.field.as_deref().unwrap_or("(any field)");
        let inlined = code.inlined.as_ref();
        let inlined = inlined.map_or(String::new(), |name| format!(" (inlined {name})"));
        format!("{field} in {}{inlined} at line {line}", code.function)
    };
    format!(
        "  load  {}\n  {:<5} {}\n  {}, {} hint\n",
        place(&expected.load),
        expected.op,
        place(&expected.store),
        instructions(expected.same_instruction),
        if expected.hint { "a" } else { "no" },
    )
}

fn describe(got: &Pair) -> String {
    let place = |field: &Option<String>, code: &Code| {
        format!(
            "{} in {} inlined {:?} at {:?} ip {:x?}",
            field.as_deref().unwrap_or("(no field)"),
            code.symbol.as_deref().unwrap_or("(no symbol)"),
            code.inlined,
            code.places,
            code.ip
        )
    };
    let advice = match (&got.hint, &got.no_hint_because) {
        (Some(hint), _) => format!("hint: {}", hint.text),
        (None, Some(reason)) => format!("no hint because {reason}"),
        (None, None) => "no hint".to_owned(),
    };
    format!(
        "  load  {}\n  {:<5} {}\n  {}x, {:?} of the load, {}, of {} at {}\n  {advice}\n",
        place(&got.field, &got.load),
        got.op_store.as_deref().unwrap_or("store"),
        place(&got.store_field, &got.store),
        got.count,
        got.share_of_load,
        instructions(got.same_instruction),
        got.object_name.as_deref().unwrap_or("(no name)"),
        got.line_key,
    )
}

fn instructions(same: bool) -> &'static str {
    if same {
        "one instruction"
    } else {
        "two instructions"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{answer::answers, report::tests::GET_SET};

    const KEY: &str = r#"// ANSWER: {"variant": "plain", "findings": [],
//   "pairs": [{"load": {"function": "get", "line": "@get", "field": "gauges.left"},
//     "store": {"function": "set", "line": "@set", "field": "gauges.left"}, "op": "store", "hint": true}]}
// ANSWER: {"variant": "unpaired", "findings": [], "no_pair": ["@get"]}
// ANSWER: {"variant": "split", "findings": [],
//   "pairs": [{"load": {"function": "get", "line": "@get"}, "store": {"function": "set", "line": "@set"},
//     "op": "store", "hint": false}]}
// ANSWER: {"variant": "padded", "findings": []}
"#;

    /// The key above in a source whose tagged lines are where the report says: 37 and 41.
    fn workload() -> Workload {
        let lines = KEY.lines().count();
        let text = format!(
            "{KEY}{}// @get\n{}// @set\n",
            "\n".repeat(36 - lines),
            "\n".repeat(3)
        );
        Workload {
            name: "get_set".into(),
            source: "/elsewhere/get_set.c".into(),
            answers: answers(&text).unwrap(),
            text,
        }
    }

    fn check(answer: usize, report: &str) -> Vec<Difference> {
        let workload = workload();
        let report = Report::parse(report).unwrap();
        differences(&workload, &workload.answers[answer], &report)
    }

    /// The one difference, which says this.
    fn says(differences: &[Difference], what: &str) -> bool {
        let [difference] = differences else {
            panic!("not one difference: {differences:#?}");
        };
        assert!(difference.text.contains(what), "{difference}");
        difference.by_chance
    }

    /// The report without the hint.
    fn without_hint() -> String {
        let mut json: serde_json::Value = serde_json::from_str(GET_SET).unwrap();
        json["pairs"][0]["hint"] = serde_json::Value::Null;
        json["pairs"][0]["no_hint_because"] = "a store seldom follows".into();
        json.to_string()
    }

    #[test]
    fn the_expected_pair_with_its_hint_is_the_answer() {
        assert_eq!(check(0, GET_SET), []);
    }

    #[test]
    fn each_wrong_word_of_a_pair_is_a_difference() {
        for (right, wrong) in [
            (r#""symbol": "get""#, r#""symbol": "set""#),
            (r#""line": 37"#, r#""line": 38"#),
            (r#""line": 41"#, r#""line": 37"#),
            (r#""op_store": "store""#, r#""op_store": "rmw""#),
            (r#""field": "gauges.left""#, r#""field": "gauges.right""#),
            (
                r#""store_field": "gauges.left""#,
                r#""store_field": "gauges.right""#,
            ),
            (r#""complete_order": true"#, r#""complete_order": false"#),
            ("fetch-for-ownership", "prefetch"),
            (
                r#""line": {"key": "private:0:0x4100"}"#,
                r#""line": {"key": "private:0:0x4140"}"#,
            ),
        ] {
            let at = GET_SET.find("\"pairs\"").unwrap();
            let (findings, pairs) = GET_SET.split_at(at);
            let report = format!("{findings}{}", pairs.replacen(right, wrong, 1));
            assert_ne!(report, GET_SET, "{right} is not in the report's pairs");
            assert!(!check(0, &report).is_empty(), "{wrong} went unnoticed");
        }
    }

    #[test]
    fn a_pair_that_is_not_listed_or_has_no_hint_was_missed() {
        let mut json: serde_json::Value = serde_json::from_str(GET_SET).unwrap();
        json["pairs"] = serde_json::json!([]);
        assert!(says(&check(0, &json.to_string()), "no such pair"));
        assert!(says(
            &check(0, &without_hint()),
            "no hint: Some(\"a store seldom follows\")"
        ));
    }

    #[test]
    fn a_run_that_did_not_watch_need_not_list_what_a_run_that_watched_must() {
        let mut json: serde_json::Value = serde_json::from_str(GET_SET).unwrap();
        json["pairs"] = serde_json::json!([]);
        assert!(says(&check(0, &json.to_string()), "no such pair"));
        json["run"]["watch"] = serde_json::Value::Null;
        json["findings"][0]["confidence"] = "sampled".into();
        assert_eq!(check(0, &json.to_string()), []);
    }

    #[test]
    fn a_hint_where_none_belongs_is_wrong_and_the_pair_alone_is_not() {
        for answer in [2, 3] {
            assert!(!says(&check(answer, GET_SET), "a hint that does harm"));
            assert_eq!(check(answer, &without_hint()), []);
        }
    }

    #[test]
    fn a_pair_of_a_load_that_the_key_excludes_is_wrong_with_or_without_a_hint() {
        assert!(!says(&check(1, GET_SET), "nothing is stored after"));
        assert!(!says(&check(1, &without_hint()), "nothing is stored after"));
    }
}
