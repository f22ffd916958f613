//! CPUs that go offline and come back while they are sampled.

use std::{fs, thread, time::Duration};

use cohtrace_tests::{
    answer::Variant,
    live::{GRACE, Subject, ready_to_watch, skipped},
    report::Report,
    tool::{Running, cohtrace},
};

const ONLINE: &str = "/sys/devices/system/cpu/cpu1/online";

/// Takes a CPU offline; it is back when the value goes, however the test ends.
struct Offline;

impl Offline {
    fn take() -> Option<Offline> {
        fs::write(ONLINE, "0").ok().map(|()| Offline)
    }
}

impl Drop for Offline {
    fn drop(&mut self) {
        let _ = fs::write(ONLINE, "1");
    }
}

/// Looks for four seconds at two threads that fight, while `beside` does something after one second.
fn look(beside: impl FnOnce()) -> Report {
    let subject =
        Subject::new("two_counters", Variant::Plain).unwrap_or_else(|error| panic!("{error:#}"));
    let target = Running::start(&mut subject.command(60_000)).expect("it starts");
    let mut attach = cohtrace(["attach", "--json", "--duration", "4", "-p"]);
    let tool = Running::start(attach.arg(target.pid().to_string())).expect("cohtrace starts");
    thread::sleep(Duration::from_secs(1));
    beside();
    let ended = tool.wait(GRACE).expect("the run ends").expect_code(0);
    let report = Report::parse(&ended.stdout).unwrap_or_else(|e| panic!("{e:#}\n{}", ended.said()));
    subject
        .judge_report(&report)
        .unwrap_or_else(|error| panic!("{error:#}\n{}", ended.said()));
    report
}

/// Samples of whatever ran.
fn taken(report: &Report) -> u64 {
    ["produced", "filtered"]
        .map(|name| report.run_count(name).unwrap_or_else(|e| panic!("{e:#}")))
        .iter()
        .sum()
}

fn blind_s(report: &Report) -> f64 {
    report.json["run"]["blind_s"].as_f64().expect("a number")
}

#[test]
fn a_cpu_that_was_away_for_half_a_second_is_sampled_again_and_that_is_told() {
    let Some(_turn) = ready_to_watch() else {
        return;
    };
    if Offline::take().map(drop).is_none() {
        skipped("CPU 1 cannot be taken offline here");
        return;
    }
    thread::sleep(Duration::from_millis(200));
    let went = |report: &Report| {
        let told = |caveat: &String| caveat.contains("CPU 1 went offline");
        report.caveats.iter().any(told)
    };
    let stayed = look(|| {});
    assert!(!went(&stayed), "{:#?}", stayed.caveats);
    assert!(blind_s(&stayed) < 1e-9, "{}", stayed.json["run"]);
    let away = look(|| {
        let _offline = Offline::take();
        thread::sleep(Duration::from_millis(500));
    });
    assert!(went(&away), "{:#?}", away.caveats);
    // Back online, it was opened anew within some polls.
    assert!(
        blind_s(&away) > 0.0 && blind_s(&away) < 1.0,
        "{}",
        away.json["run"]
    );
    // Of 8 seconds of two CPUs, half a second was missing; had it never been sampled again, almost three.
    let share = taken(&away) as f64 / taken(&stayed) as f64;
    assert!(
        share > 0.75,
        "{share}: {}\n{}",
        away.json["run"],
        stayed.json["run"]
    );
}
