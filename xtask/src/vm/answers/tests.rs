use serde_json::json;

use super::*;
use crate::vm::{KERNELS, MACHINES};

fn guest(machine: &str) -> Guest {
    Guest {
        kernel: &KERNELS[0],
        machine: MACHINES.iter().find(|m| m.name == machine).unwrap(),
    }
}

/// Records of commands that succeeded.
fn records(said: &[(&str, String)]) -> Records {
    let record =
        |(name, output): &(&str, String)| format!("@@ {name} 0\n{output}\n@@ errors\n@@ end\n");
    Records::parse(&said.iter().map(record).collect::<String>())
}

fn why(checked: Result<()>) -> String {
    format!("{:#}", checked.unwrap_err())
}

#[test]
fn words_of_faults_are_found_in_a_kernels_log_and_others_are_not() {
    let log = "\
        [    0.9] PCI: if necessary, use \"pci=nocrs\" and report a bug\n\
        [    1.2] rcu: Hierarchical RCU implementation.\n\
        [    9.0] ------------[ cut here ]------------\n\
        [    9.0] WARNING: CPU: 1 PID: 77 at kernel/events/core.c:2300\n\
        [   40.1] rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:\n";
    let found: Vec<&str> = faults(log).iter().map(|line| &line[..12]).collect();
    assert_eq!(found, ["[    9.0] --", "[    9.0] WA", "[   40.1] rc"]);
}

#[test]
fn a_guest_without_faults_that_did_not_end_has_no_right_log() {
    let quiet = ("kernel-log", "[    0.0] Linux version 5.10".to_owned());
    let ended = ("ended", "31.4 9.1".to_owned());
    assert!(log(&records(&[quiet.clone(), ended.clone()]), guest("2-cpus")).is_ok());
    assert!(log(&records(&[quiet]), guest("2-cpus")).is_err());
    let faulty = ("kernel-log", "[    9.0] BUG: kernel NULL".to_owned());
    let said = why(log(&records(&[faulty, ended]), guest("2-cpus")));
    assert!(said.contains("BUG: kernel NULL"), "{said}");
}

fn held(programs: u64, changed_code: i64, cpus: usize) -> String {
    json!({
        "programs": programs, "maps": programs, "links": 0, "changed_code": changed_code,
        "breakpoints": vec![4; cpus],
    })
    .to_string()
}

fn killed(during: String, after: String) -> Records {
    let caveat = "recording did not end normally; the last 2.0 s may be missing";
    let report = json!({
        "schema": 1,
        "run": {"produced": 5, "samples": 5, "lost": 0},
        "findings": [], "pairs": [], "caveats": [caveat],
        "insignificant": [{"accesses": [{"code": {"symbol": "serve"}}]}],
    });
    records(&[
        ("before", held(0, 0, 2)),
        ("during", during),
        ("after", after),
        ("target", String::new()),
        ("killed-report", report.to_string()),
    ])
}

#[test]
fn a_killed_recorder_must_leave_nothing_and_must_have_had_something() {
    let judged = |during, after| kill(&killed(during, after), guest("2-cpus"));
    assert!(judged(held(14, 9, 2), held(0, 0, 2)).is_ok());
    // A program, a probe in the code, a breakpoint of a CPU that the guest does not have.
    for left in [held(1, 0, 2), held(0, 1, 2), held(0, 0, 3)] {
        let said = why(judged(held(14, 9, 2), left));
        assert!(said.starts_with("left behind"), "{said}");
    }
    // What sees nothing while all is there would see nothing afterwards either.
    for blind in [held(0, 9, 2), held(14, 0, 2), held(14, -1, 2)] {
        let said = why(judged(blind, held(0, 0, 2)));
        assert!(said.starts_with("not at work"), "{said}");
    }
}

/// A report in which both threads' functions use one line, in this list and for this reason.
fn counters(list: &str, reason: &Value) -> Report {
    let access = |function: &str| json!({"code": {"symbol": function}, "op": "rmw"});
    let mut report = json!({
        "schema": 1,
        "run": {"produced": 5, "samples": 5, "lost": 0},
        "findings": [], "insignificant": [], "pairs": [], "caveats": [],
    });
    report[list] = json!([{
        "object": {"name": "counters"},
        "insignificant_because": reason,
        "accesses": [access("count_hits"), access("count_misses")],
    }]);
    Report::parse(&report.to_string()).unwrap()
}

#[test]
fn on_one_cpu_the_shared_line_must_be_listed_with_that_reason() {
    let said = counters("insignificant", &ONE_CPU_SAID.into());
    assert!(shared(&said, "two_counters", guest("1-cpu")).is_ok());
    let other = counters("insignificant", &"too few samples".into());
    assert!(shared(&other, "two_counters", guest("1-cpu")).is_err());
    // The same report is wrong where threads do run at once.
    let said = why(shared(&said, "two_counters", guest("2-cpus")));
    assert!(said.contains("expected, not found"), "{said}");
}

#[test]
fn a_sample_that_is_neither_there_nor_lost_is_wrong() {
    let mut report = counters("insignificant", &ONE_CPU_SAID.into());
    assert!(accounted(&report).is_ok());
    report.json["run"]["produced"] = 6.into();
    assert!(accounted(&report).is_err());
    report.json["run"]["lost"] = 1.into();
    assert!(accounted(&report).is_ok());
}

#[test]
fn pairs_that_were_not_looked_at_must_be_said_to_be_missing() {
    let said = |complete: bool, map: usize| {
        let pairs: Vec<_> = (1..=map).map(|other| json!([0, other])).collect();
        let document = json!({
            "complete": complete,
            "map": pairs,
            "classes": [{"pairs": pairs}],
            "pairs": [{"third": 2, "costs": []}],
            "doubts": [{"kind": "emulated", "by": "QEMU TCG"}],
        });
        measure(
            &records(&[("measure", document.to_string())]),
            guest("2-nodes"),
        )
    };
    assert!(said(true, 6).is_ok() && said(false, 4).is_ok());
    assert!(why(said(true, 4)).starts_with("4 of 6 pairs"));
    assert!(why(said(false, 7)).starts_with("7 of 6 pairs"));
}
