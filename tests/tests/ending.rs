//! However a run ends, it ends soon and with a full report.

mod started;
mod stopped;

use std::time::Duration;

use cohtrace_tests::{
    answer::Variant,
    live::{GRACE, Subject, ready},
    tool::{Running, cohtrace},
};

/// Lets the tool look at two counters for a while, then does something to end the run.
fn report_after(arguments: &[&str], end: impl FnOnce(&Running, Running) -> Option<Running>) {
    let subject = Subject::new("two_counters", Variant::Plain).expect("it builds");
    let target = Running::start(&mut subject.command(60_000)).expect("it starts");
    let mut attach = cohtrace(["attach", "--json", "-p", &target.pid().to_string()]);
    let tool = Running::start(attach.args(arguments)).expect("cohtrace starts");
    std::thread::sleep(Duration::from_secs(3));
    // The target lives on in here, if it does, until the tool is done.
    let target = end(&tool, target);
    let ended = tool.wait(GRACE).expect("the run ends").expect_code(0);
    subject.judge(&ended).expect("the report is complete");
    if let Some(mut target) = target {
        assert!(target.is_running(), "the target was ended with the run");
    }
}

#[test]
fn ctrl_c_gives_a_full_report() {
    let Some(_turn) = ready() else { return };
    report_after(&[], |tool, target| {
        tool.signal(libc::SIGINT);
        Some(target)
    });
}

#[test]
fn sigterm_gives_a_full_report() {
    let Some(_turn) = ready() else { return };
    report_after(&[], |tool, target| {
        tool.signal(libc::SIGTERM);
        Some(target)
    });
}

#[test]
fn the_targets_end_gives_a_full_report() {
    let Some(_turn) = ready() else { return };
    report_after(&[], |_, target| {
        drop(target);
        None
    });
}

#[test]
fn the_duration_gives_a_full_report_and_leaves_the_target_alone() {
    let Some(_turn) = ready() else { return };
    report_after(&["--duration", "2"], |_, target| Some(target));
}

#[test]
fn a_started_commands_end_ends_the_run_without_a_duration() {
    let Some(_turn) = ready() else { return };
    let subject = Subject::new("two_counters", Variant::Plain).expect("it builds");
    let mut attach = cohtrace(["attach", "--json", "--"]);
    attach.arg(&subject.program.path).arg("2500");
    let tool = Running::start(&mut attach).expect("cohtrace starts");
    let ended = tool.wait(GRACE).expect("the run ends").expect_code(0);
    subject.judge(&ended).expect("the report is complete");
}
