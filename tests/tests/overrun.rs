//! A ring that overflows loses samples, counts each of them, and says so.

use std::{thread, time::Duration};

use cohtrace_tests::{
    answer::Variant,
    live::{GRACE, Subject, ready},
    report::Report,
    tool::{Running, cohtrace},
};

#[test]
fn every_sample_is_either_received_or_counted_as_lost() {
    let Some(_turn) = ready() else { return };
    let subject =
        Subject::new("two_counters", Variant::Plain).unwrap_or_else(|error| panic!("{error:#}"));
    let target = Running::start(&mut subject.command(60_000)).expect("it starts");
    let mut attach = cohtrace([
        "attach",
        "--json",
        "--ring-kib",
        "64",
        "-F",
        "10000",
        "--duration",
        "5",
    ]);
    let tool =
        Running::start(attach.args(["-p", &target.pid().to_string()])).expect("cohtrace starts");
    thread::sleep(Duration::from_millis(2500));
    // A reader that stands still for a second: 10,000 samples a second and CPU do not fit in 64 KiB.
    tool.signal(libc::SIGSTOP);
    thread::sleep(Duration::from_secs(1));
    tool.signal(libc::SIGCONT);
    let ended = tool.wait(GRACE).expect("the run ends").expect_code(0);
    let report = Report::parse(&ended.stdout).unwrap_or_else(|e| panic!("{e:#}\n{}", ended.said()));
    let count = |name| {
        report
            .run_count(name)
            .unwrap_or_else(|error| panic!("{error:#}"))
    };
    assert!(
        count("lost") > 0,
        "nothing was lost: {}",
        report.json["run"]
    );
    assert_eq!(
        count("produced"),
        count("samples") + count("lost"),
        "{}",
        report.json["run"]
    );
    assert!(
        report.caveats.iter().any(|c| c.contains("lost")),
        "no caveat: {:#?}",
        report.caveats
    );
    subject
        .judge_report(&report)
        .expect("what was not lost holds the answer");
}
