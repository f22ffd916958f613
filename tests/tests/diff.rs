//! `cohtrace diff` on sessions that were made up, and on the twins of a live program.

use std::path::Path;

use cohtrace::{
    access::{Access, Basis, Cost, CostUnit, Cpu, Op, Pid, Tid},
    event::{Batch, Tally},
    session::{Meta, SessionWriter, WriterOptions},
};
use cohtrace_tests::{
    answer::Variant,
    live::{GRACE, RUN_MS, Subject, ready},
    tool::{Ended, cohtrace, run},
};
use serde_json::Value;

const MS: u64 = 1_000_000;
const START: u64 = 5_000 * MS;

fn meta(cost_unit: CostUnit) -> Meta {
    Meta {
        start_ns: Some(START),
        end_ns: Some(START + 3000 * MS),
        frequency_hz: Some(1000),
        cost_unit,
        ..Meta::new()
    }
}

/// Three seconds of two threads that store by turns, so many bytes apart.
fn write(path: &Path, apart: u64, cost_unit: CostUnit) {
    let mut writer = SessionWriter::create(path, meta(cost_unit), &WriterOptions::default())
        .expect("a new session");
    let accesses = (0..3000).map(|n| {
        let thread = (n % 2) as u32;
        Access {
            time_ns: START + n * MS,
            addr: 0x5000_0000 + u64::from(thread) * apart,
            ip: 0x40_1000 + u64::from(thread) * 16,
            cost: Cost(1_000_000),
            pid: Pid(10),
            tid: Tid(11 + thread),
            cpu: Cpu(thread),
            size: 8,
            op: Op::Store,
            basis: Basis::Stalled,
            locked: false,
            kernel: false,
            ..Access::BLANK
        }
    });
    let batch = Batch {
        accesses: accesses.collect(),
        tally: Tally {
            produced: 3000,
            samples: 3000,
            attributed: 3000,
            cost: Cost(3000 * MS),
            ..Tally::default()
        },
        ..Batch::default()
    };
    writer.append(&batch).expect("room for a batch");
    writer.finish(meta(cost_unit)).expect("room for the rest");
}

/// `shared.coh`, `padded.coh` and `cycles.coh` in a directory of their own.
fn sessions() -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a temporary directory");
    write(
        &directory.path().join("shared.coh"),
        8,
        CostUnit::SampledTime,
    );
    write(
        &directory.path().join("padded.coh"),
        128,
        CostUnit::SampledTime,
    );
    write(
        &directory.path().join("cycles.coh"),
        8,
        CostUnit::LatencyCycles,
    );
    directory
}

fn diff(directory: &Path, words: &[&str]) -> Ended {
    run(cohtrace(["diff"]).args(words).current_dir(directory), GRACE)
}

#[test]
fn a_session_does_not_differ_from_itself() {
    let directory = sessions();
    let ended = diff(directory.path(), &["shared.coh", "shared.coh", "--check"]).expect_code(0);
    assert!(
        ended
            .stdout
            .contains("0 new, 0 gone, 0 changed, 1 the same"),
        "{}",
        ended.said()
    );
    assert!(
        ended.stdout.ends_with("Nothing changed.\n") && !ended.stdout.contains("caution"),
        "{}",
        ended.said()
    );
}

#[test]
fn a_finding_that_padding_cured_is_gone_and_fails_no_check() {
    let directory = sessions();
    let ended = diff(directory.path(), &["shared.coh", "padded.coh", "--check"]).expect_code(0);
    assert!(
        ended
            .stdout
            .contains("0 new, 1 gone, 0 changed, 0 the same"),
        "{}",
        ended.said()
    );
    assert!(
        !ended.stdout.contains("Nothing changed"),
        "{}",
        ended.said()
    );
}

#[test]
fn a_finding_that_comes_back_fails_the_check() {
    let directory = sessions();
    let words = [
        "padded.coh",
        "shared.coh",
        "--check",
        "--json",
        "-o",
        "diff.json",
    ];
    diff(directory.path(), &words).expect_code(1);
    diff(directory.path(), &["padded.coh", "shared.coh"]).expect_code(0);
    let text = std::fs::read_to_string(directory.path().join("diff.json")).expect("it was written");
    let json: Value = serde_json::from_str(&text).expect("it is JSON");
    assert_eq!(
        (
            &json["findings"][0]["change"],
            &json["findings"][0]["before"]
        ),
        (&"new".into(), &Value::Null)
    );
    assert_eq!(json["before"]["cost"], 3_000_000_000_u64);
}

#[test]
fn different_units_of_cost_are_warned_of() {
    let directory = sessions();
    let ended = diff(directory.path(), &["shared.coh", "cycles.coh"]).expect_code(0);
    assert!(
        ended
            .stdout
            .contains("caution: Costs are in different units"),
        "{}",
        ended.said()
    );
    assert!(
        ended.stdout.contains("shares do not compare"),
        "{}",
        ended.said()
    );
}

/// Makes `meta.json` of the session say this unit; `None` takes the unit out.
fn restate(session: &Path, unit: Option<&str>) {
    let file = session.join("meta.json");
    let text = std::fs::read_to_string(&file).expect("a session has one");
    let mut meta: Value = serde_json::from_str(&text).expect("it is JSON");
    let object = meta.as_object_mut().expect("it is an object");
    match unit {
        Some(unit) => object.insert("cost_unit".to_owned(), unit.into()),
        None => object.remove("cost_unit"),
    };
    std::fs::write(&file, meta.to_string()).expect("it can be written");
}

#[test]
fn a_unit_that_is_known_is_read_and_none_is_time() {
    let directory = sessions();
    let cycles = directory.path().join("cycles.coh");
    for (unit, told) in [
        (Some("latency_cycles"), "latency_cycles"),
        (Some("sampled_ns"), "sampled_ns"),
        (None, "sampled_ns"),
    ] {
        restate(&cycles, unit);
        let ended = diff(directory.path(), &["shared.coh", "cycles.coh", "--json"]).expect_code(0);
        let json: Value = serde_json::from_str(&ended.stdout).expect("it is JSON");
        assert_eq!(json["after"]["cost_unit"], told, "{unit:?}");
        assert_eq!(json["comparable"], told == "sampled_ns", "{unit:?}");
    }
}

#[test]
fn a_unit_that_is_not_known_is_refused_and_never_time() {
    let directory = sessions();
    restate(&directory.path().join("cycles.coh"), Some("furlongs"));
    let tool = |words: &[&str]| run(cohtrace(words).current_dir(directory.path()), GRACE);
    for words in [
        &["diff", "shared.coh", "cycles.coh"][..],
        &["diff", "cycles.coh", "shared.coh", "--json"],
        &["report", "cycles.coh"],
        &["export", "cycles.coh", "--perf-data", "perf.data"],
    ] {
        let ended = tool(words).expect_code(2);
        assert!(ended.stdout.is_empty(), "{}", ended.said());
        for word in ["cycles.coh/meta.json", "furlongs", "latency_cycles"] {
            assert!(ended.stderr.contains(word), "{word}: {}", ended.said());
        }
    }
}

#[test]
fn a_session_that_is_not_there_is_named() {
    let directory = sessions();
    for words in [["shared.coh", "gone.coh"], ["gone.coh", "shared.coh"]] {
        let ended = diff(directory.path(), &words).expect_code(2);
        assert!(
            ended.stderr.contains("gone.coh") && ended.stdout.is_empty(),
            "{}",
            ended.said()
        );
    }
}

#[test]
fn the_padded_twin_of_a_program_has_lost_its_finding() {
    let Some(_turn) = ready() else { return };
    let directory = tempfile::tempdir().expect("a temporary directory");
    for (variant, name) in [
        (Variant::Plain, "before.coh"),
        (Variant::Padded, "after.coh"),
    ] {
        let subject = Subject::new("two_counters", variant).expect("it builds");
        let mut tool = cohtrace(["record", "--no-watch", "--duration", "2", "-o", name, "--"]);
        tool.arg(&subject.program.path).arg(RUN_MS.to_string());
        run(tool.current_dir(directory.path()), GRACE).expect_code(0);
    }
    let ended = diff(directory.path(), &["before.coh", "after.coh", "--check"]).expect_code(0);
    assert!(
        ended.stdout.contains("gone     false-sharing  counters"),
        "{}",
        ended.said()
    );
    let back = diff(directory.path(), &["after.coh", "before.coh", "--check"]).expect_code(1);
    assert!(
        back.stdout.contains("new      false-sharing  counters"),
        "{}",
        back.said()
    );
    // The finding as code scanning takes it: at the variable's declaration.
    let mut sarif = cohtrace(["report", "--format", "sarif", "before.coh"]);
    let log = run(sarif.current_dir(directory.path()), GRACE).expect_code(0);
    let log: Value = serde_json::from_str(&log.stdout).expect("it is JSON");
    let result = &log["runs"][0]["results"][0];
    assert_eq!(
        (&result["ruleId"], &result["level"]),
        (&"false-sharing".into(), &"warning".into())
    );
    let uri = &result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"];
    assert!(
        uri.as_str()
            .is_some_and(|uri| uri.ends_with("two_counters.c")),
        "{result}"
    );
    assert!(
        result["relatedLocations"]
            .as_array()
            .is_some_and(|all| !all.is_empty()),
        "{result}"
    );
}
