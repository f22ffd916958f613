//! A debugger that comes in the middle of a run finds two breakpoint registers free.

use std::{process::Command, thread, time::Duration};

use cohtrace_tests::{
    answer::Variant,
    live::{GRACE, Subject, ready_to_watch, skipped_core},
    report::Report,
    tool::{Running, cohtrace},
};

/// Watches so many words of the program with gdb in the middle of a run. Returns what gdb said and the report.
fn watch_beside(words: usize, arguments: &[&str]) -> (String, Report) {
    let subject =
        Subject::new("two_counters", Variant::Plain).unwrap_or_else(|error| panic!("{error:#}"));
    let target = Running::start(&mut subject.command(60_000)).expect("it starts");
    let pid = target.pid().to_string();
    let mut attach = cohtrace(["attach", "--json", "--duration", "5", "-p", &pid]);
    let tool = Running::start(attach.args(arguments)).expect("cohtrace starts");
    thread::sleep(Duration::from_secs(2));
    let mut gdb = Command::new("gdb");
    gdb.args(["-q", "-batch", "-nx", "-p", &pid]);
    // What a user takes to type it.
    gdb.args(["-ex", "shell sleep 1"]);
    // One that runs: the first one sleeps.
    gdb.args(["-ex", "thread 2", "-ex", "set scheduler-locking on"]);
    for word in 0..words {
        gdb.args(["-ex", &format!("rwatch -l *((long *) $sp + {word})")]);
    }
    gdb.args(["-ex", "stepi", "-ex", "detach"]);
    let said = gdb.output().expect("gdb runs");
    let ended = tool.wait(GRACE).expect("the run ends").expect_code(0);
    let report = Report::parse(&ended.stdout).unwrap_or_else(|e| panic!("{e:#}\n{}", ended.said()));
    let said = [said.stdout, said.stderr].concat();
    (String::from_utf8_lossy(&said).into_owned(), report)
}

/// What gdb says when there is no register left.
const REFUSED: &str = "No space left on device";

#[test]
fn a_debugger_that_comes_late_finds_two_registers_free_and_not_three() {
    let Some(_turn) = ready_to_watch() else {
        return;
    };
    if Command::new("gdb").arg("--version").output().is_err() {
        skipped_core("no gdb (apt install gdb)");
        return;
    }
    let told = |report: &Report| {
        let said = |caveat: &String| caveat.contains("a debugger is attached");
        report.caveats.iter().any(said)
    };
    let (said, report) = watch_beside(2, &[]);
    assert!(!said.contains(REFUSED), "{said}");
    assert!(told(&report), "{:#?}", report.caveats);
    let (said, report) = watch_beside(3, &[]);
    assert!(said.contains(REFUSED), "{said}");
    assert!(told(&report), "{:#?}", report.caveats);
    // Who wants more of them than that says so beforehand.
    let (said, report) = watch_beside(3, &["--slots", "1"]);
    assert!(!said.contains(REFUSED), "{said}");
    assert_eq!(
        report.json["run"]["watch"]["slots"], 1,
        "{}",
        report.json["run"]
    );
}
