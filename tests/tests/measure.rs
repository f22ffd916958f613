//! What the machine charges for a line: `measure`, on this machine.

use std::{
    fs::{self, File},
    path::Path,
};

use cohtrace_tests::{
    live::{GRACE, ready},
    tool::{Ended, cohtrace, run},
    turn::{self, Turn},
};
use serde_json::Value;

/// The turn to measure, where there are two CPUs to measure between.
fn ready_to_measure() -> Option<Turn> {
    let turn = ready()?;
    if !Path::new("/sys/devices/system/cpu/cpu1").exists() {
        cohtrace_skips::skipped("one CPU: between which should lines move?");
        return None;
    }
    Some(turn)
}

fn measure(arguments: &[&str]) -> Ended {
    run(cohtrace(["measure", "--quiet"]).args(arguments), GRACE)
}

fn document(ended: &Ended) -> Value {
    serde_json::from_str(&ended.stdout).expect("JSON on standard output")
}

/// Median of a state and operation, nanoseconds.
fn median(pair: &Value, state: &str, operation: &str) -> f64 {
    let costs = pair["costs"].as_array().expect("costs");
    let cost = costs
        .iter()
        .find(|cost| cost["state"] == state && cost["operation"] == operation);
    let cost = cost.unwrap_or_else(|| panic!("no {operation} of {state}: {pair}"));
    cost["ns"]["median"].as_f64().expect("a number")
}

#[test]
fn an_own_line_costs_less_than_one_of_another_cpu_and_restart_is_no_more_than_the_whole() {
    let Some(_turn) = ready_to_measure() else {
        return;
    };
    let found = document(&measure(&["--pairs", "0-1,1-0", "--json"]).expect_code(0));
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").expect("Linux has it");
    assert_eq!(
        (&found["schema"], &found["complete"]),
        (&1.into(), &true.into())
    );
    assert_eq!(found["boot_id"], boot.trim());
    let pairs = found["pairs"].as_array().expect("pairs");
    // One more for each placement, where the host moved a CPU.
    assert!(pairs.len() >= 2, "{found}");
    for pair in pairs {
        let of = |state, operation| median(pair, state, operation);
        for operation in [
            "chained-load",
            "store-fence",
            "exchange-add",
            "compare-swap",
        ] {
            let own = of("own-l1", operation);
            for other in ["other-modified", "other-exclusive", "memory"] {
                assert!(own < of(other, operation), "{operation} {other}: {pair}");
            }
        }
        // Own and read by both are in the same place for a load, and not for a store.
        assert!(
            of("shared-by-both", "store-fence") > 1.2 * of("own-l1", "store-fence"),
            "{pair}"
        );
        for restart in pair["restart"].as_array().expect("restart") {
            let at = |name: &str| restart[name].as_f64().expect("a number");
            assert!(
                at("restart_ns") <= at("back_to_back_ns") && at("fill_ns") >= 0.0,
                "{pair}"
            );
        }
    }
}

#[test]
fn what_is_known_is_not_measured_again_and_the_rest_is() {
    let Some(_turn) = ready_to_measure() else {
        return;
    };
    let folder = tempfile::tempdir().expect("a temporary directory");
    let file = folder.path().join("machine.json");
    let file = file.to_str().expect("a plain path");
    let states = ["--states", "own-l1,other-modified"];
    measure(&[&["--pairs", "0-1", "-o", file], &states[..]].concat()).expect_code(0);
    let first: Value =
        serde_json::from_str(&fs::read_to_string(file).expect("written")).expect("JSON");
    let more = [
        &["--pairs", "0-1,1-0", "--resume", "--json", "-o", file],
        &states[..],
    ]
    .concat();
    let more = document(&measure(&more).expect_code(0));
    assert_eq!(more["map"][0], first["map"][0]);
    assert_eq!(more["pairs"][0], first["pairs"][0]);
    let new = more["pairs"].as_array().expect("pairs").iter();
    assert!(new.clone().any(|pair| pair["own"] == 1), "{more}");
    // The twin: without --resume, all is measured anew.
    let anew = [&["--pairs", "0-1", "--json", "-o", file], &states[..]].concat();
    let anew = document(&measure(&anew).expect_code(0));
    assert_ne!(anew["pairs"][0]["costs"], first["pairs"][0]["costs"]);
}

#[test]
fn two_runs_do_not_measure_each_other() {
    let Some(_turn) = ready_to_measure() else {
        return;
    };
    measure(&["--pairs", "0-1", "--states", "own-l1"]).expect_code(0);
    let lock = File::open("/run/lock/cohtrace-measure.lock")
        .or_else(|_| File::open("/tmp/cohtrace-measure.lock"));
    let lock = lock.expect("a run leaves its lock");
    lock.lock().expect("nobody measures");
    let refused = measure(&["--pairs", "0-1"]).expect_code(2);
    assert!(
        refused.said().contains("another `cohtrace measure` runs"),
        "{}",
        refused.said()
    );
}

#[test]
fn what_cannot_be_measured_is_an_error_that_says_why() {
    let _turn = turn::alone();
    let folder = tempfile::tempdir().expect("a temporary directory");
    let file = folder.path().join("other.json");
    fs::write(&file, "{\"schema\": 1}").expect("a temporary file");
    let file = file.to_str().expect("a plain path");
    for (arguments, said) in [
        (&["--pairs", "0-0"][..], "pairs of two CPUs"),
        (&["--pairs", "0-70000"], "measuring"),
        (&["--states", "own"], "other-exclusive"),
        (
            &["--resume", "-o", file],
            "is not what `cohtrace measure -o` writes",
        ),
    ] {
        let ended = measure(arguments).expect_code(2);
        assert!(
            ended.said().contains(said),
            "{arguments:?}: {}",
            ended.said()
        );
    }
}
