//! What is told without an order: where threads would meet, and no cost.

use std::path::Path;

use cohtrace_tests::{
    emulated::build,
    live::{GRACE, ready},
    tool::{cohtrace, run},
    workload::directory,
};
use serde_json::Value;

use super::{json, latent};

/// Samples the program of `regression.c` whose threads wait for nobody, for a second or two, and says what is told of its array.
fn sampled(directory: &Path, flag: &str) -> Vec<Value> {
    let sources = self::directory().join("latent");
    let source = std::fs::read_to_string(sources.join("regression.c")).expect("it is there");
    let include = format!("-I{}", sources.display());
    let flags = [&*include, "-DFREE", "-DROUNDS=100000000", flag];
    let program = build(directory, "regression", &source, &flags);
    let session = directory.join(format!("regression{flag}.coh"));
    let mut tool = cohtrace(["record", "--quiet", "--source", "timer", "--output"]);
    run(tool.arg(&session).arg("--").arg(program), GRACE).expect_code(0);
    let report = json(&session);
    let ours = |one: &&Value| one["object"]["type"] == "struct part";
    latent(&report).iter().filter(ours).cloned().collect()
}

#[test]
fn samples_show_each_start_at_which_two_threads_would_meet_and_no_cost() {
    let Some(_turn) = ready() else {
        return;
    };
    let directory = tempfile::tempdir().expect("a temporary directory");
    let found = sampled(directory.path(), "-DSTART=0");
    let [only] = &found[..] else {
        panic!("one: {found:#?}");
    };
    assert_eq!(only["basis"], "samples");
    let ways = || only["ways"].as_array().expect("a list").iter();
    let meeting = ways().filter(|way| way["fights"] == true && way["line_bytes"] == 64);
    let starts: Vec<u64> = meeting
        .filter_map(|way| way["moved_bytes"].as_u64())
        .collect();
    // As tests/tests/latent.rs counts them.
    assert_eq!(starts, [8, 16, 24, 32]);
    assert!(ways().all(|way| way["hand_offs"].is_null() && way["messages"].is_null()));
    // The twin: nobody has a neighbour within a line.
    assert_eq!(sampled(directory.path(), "-DPADDED"), Vec::<Value>::new());
}
