use std::collections::BTreeSet;

use cohtrace_tests::report::{Access, Code};

use super::*;

/// A report with one finding: kind, place, field and advice.
fn report(kind: &str, place: &str, field: Option<&str>, advice: &str) -> Report {
    let access = Access {
        offset: 0,
        field: field.map(str::to_owned),
        op: "store".to_owned(),
        count: 1,
        trapped: None,
        cost_share: 0.1,
        waits: (0.0, 0.0),
        threads: Vec::new(),
        code: Code {
            symbol: Some("queue::push".to_owned()),
            ..Code::default()
        },
    };
    let finding = Finding {
        kind: kind.to_owned(),
        line_key: "key".to_owned(),
        object_kind: place.to_owned(),
        object_name: None,
        object_called: None,
        object_type: None,
        confidence: "confirmed".to_owned(),
        confirmed_after_s: None,
        handoffs: None,
        stalled_share: 0.1,
        facts: Vec::new(),
        advice: advice.to_owned(),
        accesses: vec![access],
    };
    Report {
        json: serde_json::Value::Null,
        findings: vec![finding],
        pairs: Vec::new(),
        watch: None,
        insignificant: BTreeSet::from(["queue.tail".to_owned()]),
        caveats: Vec::new(),
    }
}

fn silent() -> Report {
    let mut report = report("", "", None, "");
    report.findings.clear();
    report
}

fn answer(more: &str) -> Answer {
    serde_json::from_str(&format!(
        r#"{{"language": "c++", "findings": [{{"kinds": ["true-sharing"], "names": ["tail"], "functions": ["push"],
        "not_on": ["stack"], "advice_says": ["batches"], "advice_never": ["a lock"]{more}}}]}}"#
    ))
    .unwrap()
}

fn grade(report: &Report) -> Grade {
    compare(&answer(""), report, "").grade
}

const ADVICE: &str = "publish in batches";

#[test]
fn what_is_all_as_known_is_right() {
    let verdict = compare(
        &answer(""),
        &report("true-sharing", "heap", Some(".tail"), ADVICE),
        "",
    );
    assert_eq!((verdict.grade, verdict.reasons), (Grade::Right, Vec::new()));
    assert_eq!(verdict.kinds, [Some("true-sharing".to_owned())]);
}

#[test]
fn a_missing_name_or_word_is_partly_right() {
    assert_eq!(
        grade(&report("true-sharing", "heap", Some("*dst"), ADVICE)),
        Grade::Partly
    );
    assert_eq!(
        grade(&report("true-sharing", "heap", Some(".tail"), "")),
        Grade::Partly
    );
}

#[test]
fn a_wrong_kind_place_word_or_language_is_wrong() {
    for wrong in [
        report("mixed-sharing", "heap", Some(".tail"), ADVICE),
        report("true-sharing", "stack", Some(".tail"), ADVICE),
        report(
            "true-sharing",
            "heap",
            Some(".tail"),
            "take a lock, publish in batches",
        ),
        report(
            "true-sharing",
            "heap",
            Some(".tail"),
            "publish in batches, #[repr(align(64))]",
        ),
    ] {
        assert_eq!(grade(&wrong), Grade::Wrong, "{wrong:?}");
    }
}

#[test]
fn silence_is_wrong_but_where_it_may_be() {
    let verdict = compare(&answer(""), &silent(), "");
    assert_eq!(verdict.grade, Grade::Wrong);
    assert!(
        verdict.reasons[0].contains("below the bar: queue.tail"),
        "{verdict:?}"
    );
    for (word, grade) in [("partly", Grade::Partly), ("right", Grade::Right)] {
        let answer = answer(&format!(r#", "missing": "{word}""#));
        assert_eq!(compare(&answer, &silent(), "").grade, grade);
    }
}

#[test]
fn where_nothing_is_shared_a_finding_is_wrong_unless_it_is_expected() {
    let shown = report("false-sharing", "kernel", Some("x"), "");
    let nothing = |others: &str| -> Answer {
        let text = format!(r#"{{"language": "c", "findings": [], "others": [{others}]}}"#);
        serde_json::from_str(&text).unwrap()
    };
    assert_eq!(compare(&nothing(""), &shown, "").grade, Grade::Wrong);
    assert_eq!(
        compare(&nothing("\"kernel\""), &shown, "").grade,
        Grade::Right
    );
    assert_eq!(compare(&nothing(""), &silent(), "").grade, Grade::Right);
}

#[test]
fn a_forbidden_sentence_is_wrong() {
    let mut answer = answer(r#", "missing": "right""#);
    answer.never = vec!["No sharing".to_owned()];
    assert_eq!(
        compare(&answer, &silent(), "No sharing of lines").grade,
        Grade::Wrong
    );
    assert_eq!(
        compare(&answer, &silent(), "Nothing could be seen").grade,
        Grade::Right
    );
}
