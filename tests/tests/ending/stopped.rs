//! Ctrl-C and SIGTERM at any moment, also while the report is made.

use std::{
    process::Command,
    thread,
    time::{Duration, Instant},
};

use cohtrace_tests::{
    answer::Variant,
    live::{GRACE, Subject, ready},
    moments::Moments,
    report::Report,
    tool::{Running, cohtrace, run},
};

/// Stops of each command.
const STOPS: usize = 6;
/// A stop is soon if the tool is gone by then.
const SOON: Duration = Duration::from_secs(1);
/// The same where probes come out of allocators: the kernel takes some 100 ms for each of a dozen, one after the other. The
/// report is written before.
const PROBES_OUT: Duration = Duration::from_secs(4);

#[test]
fn at_any_moment_ctrl_c_and_sigterm_end_every_command_that_observes_within_a_second() {
    let Some(_turn) = ready() else { return };
    let counters = Subject::new("two_counters", Variant::Plain).expect("it builds");
    let blocks = Subject::new("two_mallocs", Variant::Plain).expect("it builds");
    let mut counters = Running::start(&mut counters.command(600_000)).expect("it starts");
    let mut blocks = Running::start(&mut blocks.command(600_000)).expect("it starts");
    let (pid, heap_pid) = (counters.pid().to_string(), blocks.pid().to_string());
    let directory = tempfile::tempdir().expect("a temporary directory");
    let commands: [&[&str]; 5] = [
        &["attach", "--json", "-p", &pid],
        &["attach", "--json", "-a"],
        &["attach", "--json", "--heap", "-p", &heap_pid],
        &["record", "-q", "-p", &pid],
        &["record", "-q", "-a"],
    ];
    let mut moments = Moments::default();
    let (mut late, mut reports) = (Vec::new(), 0);
    for stop in 0..STOPS * commands.len() {
        let arguments = commands[stop % commands.len()];
        let session = directory.path().join(format!("{stop}.coh"));
        let mut command = cohtrace(arguments);
        if arguments[0] == "record" {
            command.arg("-o").arg(&session);
        }
        let signal = [libc::SIGINT, libc::SIGTERM][stop / commands.len() % 2];
        let moment = moments.next_below(1500);
        let limit = if arguments.contains(&"--heap") {
            PROBES_OUT
        } else {
            SOON
        };
        let (took, ended) = stopped(&mut command, moment, signal);
        if took > limit {
            late.push(format!("{arguments:?} after {moment:?}: {took:?}"));
        }
        // Before it said that it will heed the signal, the signal itself ends it.
        if let Some(json) = ended {
            let json = if arguments[0] == "record" {
                let mut report = cohtrace(["report", "--json", "-q"]);
                run(report.arg(&session), GRACE).expect_code(0).stdout
            } else {
                json
            };
            Report::parse(&json).unwrap_or_else(|error| panic!("{arguments:?}: {error:#}"));
            reports += 1;
        }
    }
    assert!(counters.is_running() && blocks.is_running());
    // Other work on a small machine may hold up a few.
    assert!(late.len() <= commands.len(), "{late:#?}");
    assert!(reports > STOPS, "{reports} reports");
}

/// Runs a command until a moment, and sends it a signal: how long it took to end, and what it printed if it ended in order.
fn stopped(
    command: &mut Command,
    moment: Duration,
    signal: libc::c_int,
) -> (Duration, Option<String>) {
    let tool = Running::start(command).expect("cohtrace starts");
    thread::sleep(moment);
    tool.signal(signal);
    let asked = Instant::now();
    let ended = tool.wait(GRACE).expect("it ends");
    let in_order = ended.status.code().is_some();
    if in_order {
        assert_eq!(ended.code(), 0, "{}", ended.said());
    }
    (asked.elapsed(), in_order.then_some(ended.stdout))
}
