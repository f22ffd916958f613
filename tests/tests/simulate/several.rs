//! Several runs of a program that decide together.

use std::path::Path;

use cohtrace::access::{Access, Basis, Op};
use cohtrace_tests::{
    live::GRACE,
    tool::{Ended, cohtrace, run},
};
use serde_json::Value;

use super::{
    BIASED, PLAIN,
    crafted::{COUNTER, Program, access, json, recorded_turns, session},
};

/// A run in which two threads look at the integer again and again, and one of them sets it now and then.
fn looks(program: &Program) -> Vec<Access> {
    let load = |tid| {
        access(
            tid,
            program.at("int_load"),
            COUNTER,
            Op::Load,
            Basis::Emulated,
        )
    };
    let store = access(
        11,
        program.at("int_store"),
        COUNTER,
        Op::Store,
        Basis::Emulated,
    );
    let turn = || [load(10), load(11), load(10), load(11), store];
    (0..4).flat_map(|_| turn()).collect()
}

fn hints(arguments: &[&str], sessions: &[&Path]) -> Ended {
    run(cohtrace(["hints"]).args(arguments).args(sessions), GRACE)
}

/// Functions of the hinted loads, and of those that are left with a reason.
fn decided(ended: Ended) -> (Vec<String>, Vec<(String, String)>) {
    let file: Value = serde_json::from_str(&ended.expect_code(0).stdout).expect("JSON");
    let name = |row: &Value| row["load"]["function"].as_str().expect("a name").to_owned();
    let all = |list: &str| file[list].as_array().expect("a list").clone();
    let mut hinted: Vec<String> = all("hints").iter().map(name).collect();
    hinted.sort_unstable();
    let reason = |row: &Value| row["reason"].as_str().expect("a reason").to_owned();
    let left = all("left");
    (
        hinted,
        left.iter().map(|row| (name(row), reason(row))).collect(),
    )
}

#[test]
fn a_hint_that_gains_in_one_run_and_costs_in_another_is_left_unless_the_sum_decides() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let program = Program::build(directory.path(), "adds", "nop");
    let adding = recorded_turns(directory.path(), "adding.coh", &program);
    let looking = session(directory.path(), "looking.coh", &program, looks(&program));
    let [int, fp] = ["int_load", "fp_load"].map(str::to_owned);
    let free = ["--load-growth", "100"];
    let of = |arguments: &[&str], sessions: &[&Path]| {
        decided(hints(&[&free, arguments].concat(), sessions))
    };

    assert_eq!(of(&[], &[&adding]).0, [fp.clone(), int.clone()]);
    assert_eq!(of(&[], &[&looking]).0, [""; 0]);
    for both in [[&*adding, &looking], [&looking, &adding]] {
        let (hinted, left) = of(&[], &both);
        assert_eq!(hinted, [fp.as_str()]);
        assert_eq!(left, [(int.clone(), "costs-in-one-run".to_owned())]);
        assert_eq!(of(&["--policy", "sum"], &both).0, [fp.clone(), int.clone()]);
    }
    // Two runs that agree decide as one does.
    assert_eq!(of(&[], &[&adding, &adding]).0, [fp, int]);
}

#[test]
fn training_runs_that_decide_together_have_a_row_each() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let program = Program::build(directory.path(), "adds", "nop");
    let adding = recorded_turns(directory.path(), "adding.coh", &program);
    let again = recorded_turns(directory.path(), "again.coh", &program);
    let looking = session(directory.path(), "looking.coh", &program, looks(&program));
    let trained = |other: &Path| {
        let train = ["--train", adding.to_str().expect("UTF-8")];
        let other = ["--train", other.to_str().expect("UTF-8")];
        json(&[train, other].concat(), &[&again])
    };
    let figures = |report: &Value| -> Vec<(String, u64, u64)> {
        let rows = report["sessions"].as_array().expect("rows").iter();
        let figure =
            |row: &Value, scenario: &str| row[scenario]["transactions"].as_u64().expect("a number");
        rows.map(|row| {
            let role = row["role"].as_str().expect("a role").to_owned();
            (role, figure(row, "unmodified"), figure(row, "all_hinted"))
        })
        .collect()
    };
    let row = |role: &str, hinted| (role.to_owned(), 2 * PLAIN, hinted);
    let agree = figures(&trained(&again));
    assert_eq!(
        agree,
        [
            row("train", 2 * BIASED),
            row("train", 2 * BIASED),
            row("given", 2 * BIASED)
        ]
    );
    // The run that only looks keeps the integer's hint out.
    let differ = figures(&trained(&looking));
    assert_eq!(differ[0], row("train", PLAIN + BIASED));
    assert_eq!(differ[1].1, differ[1].2);
    assert_eq!(differ[2], row("given", PLAIN + BIASED));
}

#[test]
fn a_growth_of_load_messages_that_is_no_percentage_is_refused() {
    for wrong in ["-1", "much", "nan"] {
        let argument = format!("--load-growth={wrong}");
        let ended = hints(&[&argument], &[Path::new("any.coh")]).expect_code(2);
        assert!(
            ended.stderr.contains("percent, such as"),
            "{}",
            ended.stderr
        );
    }
}
