//! The queries of `docs/sql`, run unchanged by DuckDB, say what the tool's own reports say of the same session.

mod agreement;
mod crafted;
mod duck;
mod replayed;

use std::path::PathBuf;

use cohtrace_tests::{
    answer::Variant,
    live::{ready, ready_to_watch, record},
};
use crafted::Kind;

/// A crafted session in a directory that vanishes.
fn crafted(kind: Kind) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let session = directory.path().join("crafted.coh");
    crafted::write(&session, kind);
    (directory, session)
}

/// Lines of `false_sharing.sql` in memory that processes share.
fn shared_lines(answers: &duck::Answers) -> Vec<String> {
    let rows = answers.rows("false_sharing");
    let lines = rows.iter().map(|row| row.text("line"));
    lines.filter(|line| line.starts_with("shared:")).collect()
}

#[test]
fn queries_and_reports_agree_on_a_session_of_processes_that_share_fork_and_exec() {
    let Some(python) = duck::python() else { return };
    let (_directory, session) = crafted(Kind::Whole);
    let answers = duck::ask(&python, &session);
    let compared = agreement::check(&session, &answers);
    assert!(compared.values().all(|rows| *rows > 0), "{compared:?}");
    assert!(compared["request_log"] > 500, "{compared:?}");
    // The two addresses are one line of the file; the report's key says which.
    let shared = shared_lines(&answers);
    assert!(
        shared.contains(&"shared:8:1:77:0x1000".to_owned()),
        "{shared:?}"
    );
}

#[test]
fn memory_at_the_same_addresses_that_is_not_shared_is_no_shared_line() {
    let Some(python) = duck::python() else { return };
    let (_directory, session) = crafted(Kind::Unshared);
    let answers = duck::ask(&python, &session);
    agreement::check(&session, &answers);
    let lines = shared_lines(&answers);
    assert!(
        !lines.contains(&"shared:8:1:77:0x1000".to_owned()),
        "{lines:?}"
    );
}

#[test]
fn a_session_without_windows_and_tasks_has_sampled_lines_and_no_requests() {
    let Some(python) = duck::python() else { return };
    let (_directory, session) = crafted(Kind::SamplesOnly);
    let answers = duck::ask(&python, &session);
    let compared = agreement::check(&session, &answers);
    let none = ["request_log", "swift_pairs", "transactions"].map(|query| compared[query]);
    assert_eq!(none, [0, 0, 0], "{compared:?}");
    assert!(compared["false_sharing"] > 0, "{compared:?}");
}

#[test]
fn rows_of_an_emulated_session_count_as_executions() {
    let Some(python) = duck::python() else { return };
    let (_directory, session) = crafted(Kind::Emulated);
    let answers = duck::ask(&python, &session);
    let lines = agreement::check_executions(&session, &answers);
    assert!(lines > 3, "{lines}");
    // A whole run has a request log, and no window.
    assert!(answers.rows("request_log").is_empty());
    let log = replayed::printed(&["log"], &session);
    let first = log.lines().next().expect("the first access asks");
    assert!(first.starts_with("0,"), "{first}");
    let line = answers.rows("false_sharing")[0].text("line");
    let of_line = replayed::printed(&["log", "--line", &line], &session);
    let rows = of_line.lines().count();
    assert!(rows > 0 && rows < log.lines().count(), "{rows}");
    assert!(of_line.lines().all(|row| log.contains(row)));
    let sorted = replayed::printed(&["log", "--sort", "line"], &session);
    assert_eq!(sorted.lines().count(), log.lines().count());
    // Times, windows and samples are of other sources.
    let text = replayed::printed(&["report"], &session);
    assert!(
        text.contains(": every access of the program, in order"),
        "{text}"
    );
    for word in ["sampled", "window", "Hz", "PMU"] {
        assert!(!text.contains(word), "{word}: {text}");
    }
    let report = replayed::json(&["report", "--json"], &session);
    assert_eq!(report["run"]["cost_unit"], "transactions");
    assert!(report["run"]["order"]["transactions"].as_u64() > Some(0));
    let pairs = replayed::json(&["pairs", "--json"], &session);
    let pairs = pairs["pairs"].as_array().expect("pairs");
    assert!(!pairs.is_empty());
    assert!(pairs.iter().all(|pair| pair["complete_order"] == true));
}

#[test]
fn the_footer_of_every_part_tells_other_readers_where_it_is_from() {
    let Some(python) = duck::python() else { return };
    let (_directory, session) = crafted(Kind::Whole);
    let answers = duck::ask(&python, &session);
    assert_eq!(answers.footer("cohtrace.host"), Some(crafted::HOST));
    assert_eq!(answers.footer("cohtrace.boot_id"), Some(crafted::BOOT_ID));
    let started = Some("1700000000000000000");
    assert_eq!(answers.footer("cohtrace.started_unix_ns"), started);
}

#[test]
fn queries_and_reports_agree_on_what_was_recorded_of_falsely_shared_memory() {
    let Some(python) = duck::python() else { return };
    let Some(_turn) = ready() else { return };
    let directory = tempfile::tempdir().expect("a temporary directory");
    // Two processes with the line at different addresses.
    let session = directory.path().join("forked.coh");
    record("forked_mapping", Variant::Plain, &session, &["--no-watch"]);
    let answers = duck::ask(&python, &session);
    let compared = agreement::check(&session, &answers);
    assert!(compared["false_sharing"] > 0, "{compared:?}");
    assert_ne!(shared_lines(&answers), [""; 0]);
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").expect("a host has a name");
    assert_eq!(answers.footer("cohtrace.host"), Some(host.trim()));
}

#[test]
fn queries_and_reports_agree_on_the_windows_of_a_recorded_program() {
    let Some(python) = duck::python() else { return };
    let Some(_turn) = ready_to_watch() else {
        return;
    };
    let directory = tempfile::tempdir().expect("a temporary directory");
    let session = directory.path().join("get_set.coh");
    record("get_set", Variant::Plain, &session, &[]);
    let answers = duck::ask(&python, &session);
    let compared = agreement::check(&session, &answers);
    assert!(compared.values().all(|rows| *rows > 0), "{compared:?}");
}
