//! `cohtrace layout` on what was recorded of a running program.

use std::path::Path;

use cohtrace_tests::{
    answer::Variant,
    live::{GRACE, RUN_MS, Subject, ready},
    tool::{Ended, cohtrace, run},
};
use serde_json::Value;

fn record(subject: &Subject, session: &Path) {
    let mut tool = cohtrace(["record", "--no-watch", "--duration", "2", "-o"]);
    tool.arg(session)
        .arg("--")
        .arg(&subject.program.path)
        .arg(RUN_MS.to_string());
    run(&mut tool, GRACE).expect_code(0);
}

fn layout(session: &Path, words: &[&str]) -> Ended {
    run(cohtrace(["layout"]).arg(session).args(words), GRACE)
}

#[test]
fn the_layout_of_a_shared_struct_shows_its_members_its_line_and_who_uses_them() {
    let Some(_turn) = ready() else { return };
    let subject = Subject::new("two_counters", Variant::Plain).expect("it builds");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let session = directory.path().join("two.coh");
    record(&subject, &session);

    let text = layout(&session, &["--finding", "F1"]).expect_code(0);
    for words in [
        "FALSE SHARING  counters",
        "struct counters {",
        "unsigned long hits;",
        "unsigned long misses;",
        "line 0 at 0x",
        "shared by",
        "from 16 to 128 bytes",
        "_Alignas(64) unsigned long misses;     64",
    ] {
        assert!(
            text.stdout.contains(words),
            "{words} is missing\n{}",
            text.said()
        );
    }
    assert!(!text.stdout.contains('\x1b'), "colours without a terminal");

    let json = layout(&session, &["--format", "json"]).expect_code(0);
    assert_eq!(json.stdout, layout(&session, &["--json"]).stdout);
    let json: Value = serde_json::from_str(&json.stdout).expect("it is JSON");
    let rows = json["rows"].as_array().expect("rows are a list");
    let member = |name: &str| {
        let found = rows
            .iter()
            .find(|row| row["row"] == "member" && row["name"] == name);
        found.unwrap_or_else(|| panic!("no member {name}: {rows:?}"))
    };
    for (name, offset) in [("hits", 0), ("misses", 8)] {
        let member = member(name);
        assert_eq!(
            (&member["offset"], &member["size"]),
            (&offset.into(), &8.into())
        );
        assert_eq!(
            member["uses"][0]["threads"][0]["comm"], name,
            "the thread has the member's name"
        );
    }
    // An address that the object is at must be one that starts a line, since the source says so.
    let address = json["object"]["address"]
        .as_str()
        .expect("it has an address");
    let address = u64::from_str_radix(address.trim_start_matches("0x"), 16).expect("hex");
    assert_eq!((address % 64, &json["object"]["into_line"]), (0, &0.into()));

    let ended = layout(&session, &["--finding", "7"]).expect_code(2);
    assert!(
        ended.stderr.contains("no finding F7") && ended.stderr.contains("F1"),
        "{}",
        ended.said()
    );
}

#[test]
fn a_padded_struct_has_no_finding_to_lay_out() {
    let Some(_turn) = ready() else { return };
    let subject = Subject::new("two_counters", Variant::Padded).expect("it builds");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let session = directory.path().join("padded.coh");
    record(&subject, &session);
    let ended = layout(&session, &["--finding", "1"]).expect_code(2);
    assert!(ended.stderr.contains("no finding F1"), "{}", ended.said());
    assert!(!ended.stdout.contains("shared by"), "{}", ended.said());
}

#[test]
fn memory_of_a_stripped_program_says_why_it_has_no_layout() {
    let Some(_turn) = ready() else { return };
    let subject = Subject::new("stripped", Variant::Plain).expect("it builds");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let session = directory.path().join("stripped.coh");
    record(&subject, &session);
    let ended = layout(&session, &[]).expect_code(2);
    for words in ["F1", "is not known", "-g"] {
        assert!(
            ended.stderr.contains(words),
            "{words} is missing\n{}",
            ended.said()
        );
    }
}
