//! What reports say that a change gains, on programs that exist in both forms.

use std::{
    fs,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use cohtrace_tests::{
    gains::{
        Case, FENCED, LOCKED, ONE_STORES, RARE, THREADS, Twins, ahead, holder, rates, real, said,
        times,
    },
    live::{GRACE, ready},
    moments::Moments,
    tool::{Ended, Running, cohtrace, run},
    turn::Turn,
};
use serde_json::Value;

/// A run by itself.
const ALONE: Duration = Duration::from_millis(500);
/// On a machine with other work holds may end early, and a host may move a CPU in the middle of a run. So many turns are taken
/// before that is a failure.
const TURNS: usize = 6;
/// How long a program runs that is looked at to its end, milliseconds.
const RUN_MS: &str = "2200";

/// The turn to look, where two threads run at once.
fn ready_for_two() -> Option<Turn> {
    let turn = ready()?;
    if !Path::new("/sys/devices/system/cpu/cpu1").exists() {
        cohtrace_skips::skipped("one CPU: no two threads run at once");
        return None;
    }
    Some(turn)
}

/// Looks at a program to its end.
fn attach(program: &Path, more: &[&str]) -> Ended {
    let mut tool = cohtrace(["attach", "--json", "-q", "--source", "timer"]);
    run(
        tool.args(more).arg("--").args(ahead(program)).arg(RUN_MS),
        GRACE,
    )
}

fn document(ended: &Ended) -> Value {
    serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}\n{}", ended.said()))
}

/// What padding gains each thread, and what holding the other says, until they agree within a part, for both threads and in one
/// run. How fast the padded twin is held against that very run: lines cost what they cost while it ran, and the twin's cost
/// nothing wherever its host puts its CPUs.
fn agrees(case: Case, within: f64) {
    let Some(_turn) = ready_for_two() else { return };
    let directory = tempfile::tempdir().expect("a temporary directory");
    let twins = Twins::build(case, directory.path()).expect("it builds");
    let mut all = Vec::new();
    for _ in 0..TURNS {
        let more = ["--hold", "3", "--threshold", "0.1"];
        let ended = attach(&twins.plain, &more).expect_code(0);
        let padded = rates(&twins.padded, ALONE).expect("it runs");
        let plain = said(&ended.stderr).expect("it ran to its end");
        let real = real(plain, padded);
        let report = document(&ended);
        let gain = &report["findings"][0]["gain"];
        all.push(format!("{real:?} by {plain:?}, padded {padded:?}: {gain}"));
        let is_right = |n: usize| {
            let held = times(&report, THREADS[n]);
            held.is_some_and(|[low, held, high]| {
                let near = (held / real[n] - 1.0).abs() <= within;
                near || (low..=high).contains(&real[n])
            })
        };
        if gain["grade"] == "held" && is_right(0) && is_right(1) {
            return;
        }
    }
    panic!("never within {within}:\n{}", all.join("\n"));
}

#[test]
fn holding_the_other_thread_says_what_padding_gains_a_locked_addition() {
    agrees(LOCKED, 0.15);
}

#[test]
fn holding_the_other_thread_says_what_padding_gains_a_store_with_a_barrier_behind_it() {
    agrees(FENCED, 0.15);
}

#[test]
fn a_thread_that_only_loads_is_read_by_its_own_counter_elsewhere() {
    agrees(ONE_STORES, 0.15);
}

#[test]
fn where_padding_gains_next_to_nothing_holding_says_so() {
    agrees(RARE, 0.05);
}

#[test]
fn without_holds_samples_give_a_bound_where_instructions_wait_in_place_and_a_session_says_the_same()
{
    let Some(_turn) = ready_for_two() else { return };
    let directory = tempfile::tempdir().expect("a temporary directory");
    let twins = Twins::build(LOCKED, directory.path()).expect("it builds");
    let session = directory.path().join("s.coh");
    let mut recorder = cohtrace([
        "record",
        "-q",
        "--source",
        "timer",
        "--duration",
        "2",
        "--hold",
        "3",
        "-o",
    ]);
    let recorder = recorder.arg(&session).arg("--").args(ahead(&twins.plain));
    run(recorder.arg("2600"), GRACE).expect_code(0);
    let replayed = run(cohtrace(["report", "--json", "-q"]).arg(&session), GRACE).expect_code(0);
    let report = document(&replayed);
    let gain = &report["findings"][0]["gain"];
    assert_eq!(gain["grade"], "held", "{gain}");
    // Within the budget, but for what the last hold took too long on a busy machine.
    let run_of = &report["run"];
    let number = |name: &str| run_of[name].as_f64().expect("a number");
    let most = 0.03 * number("duration_s") + 0.02;
    assert!(
        number("holds") >= 6.0 && number("held_s") < most,
        "{run_of}"
    );
    assert!(
        gain["per_thread"][0]["readings"].as_u64() >= Some(3),
        "{gain}"
    );

    let report = document(&attach(&twins.plain, &[]).expect_code(0));
    let gain = &report["findings"][0]["gain"];
    // By rates where somebody had measured what this machine charges.
    let grade = gain["grade"].as_str().expect("a grade");
    assert!(["estimated", "rated"].contains(&grade), "{gain}");
    assert!(gain["high"].as_f64() > Some(1.0), "{gain}");
}

#[test]
fn what_was_predicted_stands_beside_what_padding_gained_and_is_kept() {
    let Some(_turn) = ready_for_two() else { return };
    let directory = tempfile::tempdir().expect("a temporary directory");
    let twins = Twins::build(LOCKED, directory.path()).expect("it builds");
    let [before, after] = ["before.coh", "after.coh"].map(|name| directory.path().join(name));
    for (program, session) in [(&twins.plain, &before), (&twins.padded, &after)] {
        let mut recorder = cohtrace(["record", "-q", "--source", "timer", "--duration", "2"]);
        let recorder = recorder.args(["--hold", "3", "-o"]).arg(session);
        let recorder = recorder.arg("--").args(ahead(program)).arg("2600");
        run(recorder, GRACE).expect_code(0);
    }
    let state = directory.path().join("state");
    let of_state = |mut tool: std::process::Command| {
        run(tool.env("XDG_STATE_HOME", &state), GRACE).expect_code(0)
    };
    let mut nothing = cohtrace(["validate", "--event", "gain", "--check"]);
    let none = run(nothing.env("XDG_STATE_HOME", &state), GRACE).expect_code(3);
    assert!(none.stdout.contains("No predicted gain"), "{}", none.said());
    let compare = |more: &[&str]| {
        let mut diff = cohtrace(["diff", "-q"]);
        diff.args(more).arg(&before).arg(&after);
        of_state(diff)
    };
    let text = compare(&[]);
    assert!(text.stdout.contains("Gains: "), "{}", text.said());
    let gains = document(&compare(&["--json"]))["gains"].clone();
    let gains = gains.as_array().expect("gains");
    assert_eq!(gains.len(), 2, "{gains:?}");
    for gain in gains {
        assert_eq!(gain["grade"], "held");
        // Padded, it is faster, whatever the machine has to do besides.
        assert!(gain["real"].as_f64() > Some(1.2), "{gain}");
    }
    // The same two sessions, compared twice, count once.
    let tally = document(&of_state(cohtrace([
        "validate", "--event", "gain", "--json",
    ])));
    assert_eq!(tally["held"]["compared"], 2, "{tally}");
}

#[test]
fn recorders_that_are_killed_while_they_hold_leave_no_thread_that_stands() {
    let Some(_turn) = ready_for_two() else { return };
    let directory = tempfile::tempdir().expect("a temporary directory");
    let twins = Twins::build(LOCKED, directory.path()).expect("it builds");
    let mut target = std::process::Command::new(&twins.plain);
    let target = Running::start(target.arg("600000")).expect("it starts");
    let pid = target.pid().to_string();
    let mut moments = Moments::default();
    let mut held = 0;
    for kill in 0..30 {
        let mut tool = cohtrace(["attach", "-q", "--hold", "50", "-p", &pid]);
        let tool = Running::start(&mut tool).expect("cohtrace starts");
        let start = Instant::now();
        // Not before somebody stands; then any moment later.
        while !states(&pid).contains(&'t') && start.elapsed() < Duration::from_secs(3) {}
        held += u32::from(states(&pid).contains(&'t'));
        thread::sleep(moments.next_below(3));
        tool.signal(libc::SIGKILL);
        tool.wait(Duration::from_secs(10)).expect("it was killed");
        let killed = Instant::now();
        while states(&pid).contains(&'t') {
            assert!(
                killed.elapsed() < Duration::from_secs(1),
                "kill {kill}: a thread stands"
            );
        }
    }
    assert!(held > 0, "nobody was held in 30 runs");
}

#[test]
fn where_the_process_that_holds_is_killed_windows_are_opened_as_before() {
    let Some(_turn) = ready_for_two() else { return };
    let directory = tempfile::tempdir().expect("a temporary directory");
    let twins = Twins::build(LOCKED, directory.path()).expect("it builds");
    let is_confirmed = || {
        let mut tool = cohtrace([
            "attach", "--json", "-q", "--source", "timer", "--hold", "50",
        ]);
        let tool = Running::start(tool.arg("--").arg(&twins.plain).arg("3000"));
        let tool = tool.expect("cohtrace starts");
        let holder = holder(tool.pid(), GRACE) as libc::pid_t;
        // SAFETY: two integers; the process is a child of the tool, which this test started and has not waited for.
        unsafe { libc::kill(holder, libc::SIGKILL) };
        let report = document(&tool.wait(GRACE).expect("it ends").expect_code(0));
        assert_eq!(
            report["run"]["holds"], 0,
            "it was killed before it held anybody"
        );
        report["findings"][0]["confidence"] == "confirmed"
    };
    assert!((0..3).any(|_| is_confirmed()), "no window was opened");
}

/// Letters of the states of a process's threads.
fn states(pid: &str) -> Vec<char> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("it runs");
    let stat = tasks
        .flatten()
        .filter_map(|task| fs::read_to_string(task.path().join("stat")).ok());
    stat.filter_map(|stat| stat.rsplit_once(") ")?.1.chars().next())
        .collect()
}
