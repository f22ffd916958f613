//! A recorder that is killed at any moment: nothing of it stays in the kernel, its target lives, and its session reads.

use std::{
    collections::BTreeSet,
    thread,
    time::{Duration, Instant},
};

use cohtrace_tests::{
    answer::Variant,
    breakpoint, kernel,
    live::{GRACE, Subject, ready},
    moments::Moments,
    report::Report,
    tool::{Running, cohtrace, run},
};

/// Kills in all.
const KILLS: u32 = 100;

#[test]
fn a_hundred_kills_at_random_moments_leave_nothing_in_the_kernel_and_sessions_that_read() {
    let Some(_turn) = ready() else { return };
    let counters = Subject::new("two_counters", Variant::Plain).expect("it builds");
    let blocks = Subject::new("two_mallocs", Variant::Plain).expect("it builds");
    let mut counters = Running::start(&mut counters.command(600_000)).expect("it starts");
    let mut blocks = Running::start(&mut blocks.command(600_000)).expect("it starts");
    let (pid, heap_pid) = (counters.pid().to_string(), blocks.pid().to_string());
    let directory = tempfile::tempdir().expect("a temporary directory");
    let free = breakpoint::free().expect("we are root");
    let mut moments = Moments::default();
    let mut held = BTreeSet::new();
    let (mut with_objects, mut read) = (0, 0);
    for kill in 0..KILLS {
        let session = directory.path().join(format!("{kill}.coh"));
        let mut tool = match kill % 3 {
            0 => cohtrace(["record", "-q", "-p", &pid]),
            1 => cohtrace(["attach", "-q", "-p", &pid]),
            _ => cohtrace(["attach", "-q", "--heap", "-p", &heap_pid]),
        };
        if kill % 3 == 0 {
            tool.arg("-o").arg(&session);
        }
        let tool = Running::start(&mut tool).expect("cohtrace starts");
        // From before anything is open to the middle of windows.
        thread::sleep(moments.next_below(1200));
        let objects = kernel::held_by(tool.pid()).unwrap_or_default();
        with_objects += u32::from(!objects.is_empty());
        held.extend(objects);
        tool.signal(libc::SIGKILL);
        tool.wait(Duration::from_secs(10)).expect("it was killed");
        assert!(
            counters.is_running() && blocks.is_running(),
            "kill {kill} took a target along"
        );
        if session.join("meta.json").exists() {
            let mut report = cohtrace(["report", "--json", "-q"]);
            let ended = run(report.arg(&session), GRACE).expect_code(0);
            // Its rules hold: what was taken has arrived, was lost, or is told apart.
            Report::parse(&ended.stdout).unwrap_or_else(|e| panic!("{e:#}\n{}", ended.said()));
            read += 1;
        }
    }
    // The kernel frees them after a grace period of RCU.
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let loaded = kernel::loaded().expect("we are root");
        let left: Vec<_> = held.intersection(&loaded).collect();
        if left.is_empty() {
            break;
        }
        assert!(Instant::now() < deadline, "still in the kernel: {left:?}");
        thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(breakpoint::free().expect("we are root"), free);
    assert_eq!(
        kernel::changed_code(blocks.pid(), "libc").expect("it runs"),
        0
    );
    // Most of the moments were not before the beginning.
    assert!(with_objects > KILLS / 3, "{with_objects}");
    assert!(read > KILLS / 10, "{read}");
}
