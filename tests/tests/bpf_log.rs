//! `doctor --bpf-log`: the kernel half tells why it refused a program, and only then.

use std::{
    fs,
    process::Command,
    thread,
    time::{Duration, Instant},
};

use cohtrace_tests::{
    answer::Variant,
    kernel,
    live::{GRACE, Subject, ready, skipped},
    tool::{Ended, Running, cohtrace, run},
};
use serde_json::Value;

/// What was told of a process: programs of the kernel half, and reasons.
fn told_of(json: &Value, pid: u32) -> Vec<(String, String)> {
    let word = |line: &Value, name: &str| line[name].as_str().unwrap_or_default().to_owned();
    let lines = json["lines"].as_array().expect("lines");
    let own = lines.iter().filter(|line| line["pid"] == pid);
    own.map(|line| (word(line, "program"), word(line, "reason")))
        .collect()
}

fn document(ended: &Ended) -> Value {
    serde_json::from_str(&ended.stdout).unwrap_or_else(|e| panic!("{e}\n{}", ended.said()))
}

#[test]
fn a_program_that_is_no_target_is_refused_with_its_reason_and_a_target_is_not() {
    let Some(_turn) = ready() else { return };
    let subject = Subject::new("two_counters", Variant::Plain).expect("it builds");
    let start = || Running::start(&mut subject.command(600_000)).expect("it starts");
    let (one, other) = (start(), start());
    // Each is the other's twin.
    for (target, bystander) in [(one.pid(), other.pid()), (other.pid(), one.pid())] {
        let mut doctor = cohtrace(["doctor", "--bpf-log", "--json", "--duration", "2", "-p"]);
        let ended = run(doctor.arg(target.to_string()), GRACE).expect_code(0);
        let json = document(&ended);
        let is_refused = |pid| {
            let mut told = told_of(&json, pid).into_iter();
            // A PMU has a program of its own.
            told.any(|(program, reason)| {
                ["sample", "memory"].contains(&&*program) && reason == "no_target"
            })
        };
        assert!(is_refused(bystander), "{bystander}\n{}", ended.said());
        assert!(!is_refused(target), "{target}\n{}", ended.said());
        // Once each reason and thread, however often it was refused; the rest was held back.
        let lines = told_of(&json, bystander);
        assert!(lines.len() < 40, "{}", ended.said());
    }
}

#[test]
fn ctrl_c_ends_it_in_order_and_the_page_is_printed() {
    let Some(_turn) = ready() else { return };
    let subject = Subject::new("two_counters", Variant::Plain).expect("it builds");
    let bystander = Running::start(&mut subject.command(600_000)).expect("it starts");
    let target = Running::start(&mut subject.command(600_000)).expect("it starts");
    let mut doctor = cohtrace(["doctor", "--bpf-log", "--duration", "600", "-p"]);
    let doctor = Running::start(doctor.arg(target.pid().to_string())).expect("cohtrace starts");
    let loaded = || kernel::held_by(doctor.pid()).is_ok_and(|held| !held.is_empty());
    let start = Instant::now();
    while !loaded() {
        assert!(start.elapsed() < GRACE, "it loads nothing");
        thread::sleep(Duration::from_millis(50));
    }
    // Long enough for samples of whoever runs all the time.
    thread::sleep(Duration::from_secs(2));
    doctor.signal(libc::SIGINT);
    let ended = doctor.wait(GRACE).expect("it ends").expect_code(0);
    let who = format!(" s  sample  {}/", bystander.pid());
    let refused = |line: &str| line.contains(&who) && line.ends_with("the process is no target");
    assert!(ended.stdout.lines().any(refused), "{}", ended.said());
}

/// Asks for memory: for a little, or for more than there is.
const ASKS: &str = "#include <stdlib.h>
    #include <unistd.h>
    int main(int argc, char **argv) {
        size_t much = (size_t)-1 >> 1, little = 100;
        for (int i = 0; i < 15; i++) {
            free(malloc(argc > 1 ? much : little));
            usleep(100000);
        }
        return 0;
    }";

#[test]
fn a_call_that_gave_no_memory_is_told_and_one_that_gave_some_is_not() {
    let Some(_turn) = ready() else { return };
    let directory = tempfile::tempdir().expect("a temporary directory");
    let source = directory.path().join("asks.c");
    let program = directory.path().join("asks");
    fs::write(&source, ASKS).expect("room");
    let mut cc = Command::new("cc");
    // Without -O, which knows that nobody uses the memory.
    let built = cc
        .args(["-g", "-O0", "-o"])
        .arg(&program)
        .arg(&source)
        .status();
    assert!(built.expect("cc runs").success());
    for much in [false, true] {
        let mut doctor = cohtrace(["doctor", "--bpf-log", "--heap", "--json", "--"]);
        doctor.arg(&program).args(much.then_some("much"));
        let ended = run(&mut doctor, GRACE).expect_code(0);
        let json = document(&ended);
        let heap = json["sources"]
            .as_array()
            .expect("sources")
            .contains(&"heap".into());
        if !heap {
            skipped("no uprobes on this kernel");
            return;
        }
        let pid = json["targets"][0]["pid"]
            .as_u64()
            .expect("a command has one");
        let told = told_of(&json, pid as u32);
        let failed = ("heap_return".to_owned(), "failed".to_owned());
        assert_eq!(told.contains(&failed), much, "{}", ended.said());
        let refused = told.iter().any(|(_, reason)| reason == "no_target");
        assert!(!refused, "{}", ended.said());
    }
}
