//! Emulated sessions say what lines of 64 and of 128 bytes cost, each exactly, and refuse what they cannot say.

use std::{fs, path::Path};

use cohtrace_tests::{
    emulated::{address, build, record, requests},
    live::{GRACE, has_emulator},
    tool::{Ended, cohtrace, run},
};

/// Two threads that count by turns, `APART` bytes from each other; the turn itself is far away. Prints where the first counts.
const BY_TURNS: &str = r#"
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
static _Alignas(128) struct { char counters[256]; int turn; } s;
static void *count(void *which) {
    long n = (long)which;
    for (int i = 0; i < 500; i++) {
        while (__atomic_load_n(&s.turn, __ATOMIC_ACQUIRE) != n)
            sched_yield();
        for (int j = 0; j < 10; j++)
            __asm__ volatile("addq $1,(%0)" :: "r"(s.counters + n * APART) : "memory");
        __atomic_store_n(&s.turn, !n, __ATOMIC_RELEASE);
    }
    return NULL;
}
int main(void) {
    pthread_t other;
    printf("%p\n", (void *)&s);
    fflush(stdout);
    pthread_create(&other, NULL, count, (void *)1);
    count((void *)0);
    pthread_join(other, NULL);
    return 0;
}
"#;
/// Turns of both.
const TURNS: usize = 1000;

/// Records the program, and returns where its counters are.
fn recorded(directory: &Path, apart: u64) -> (std::path::PathBuf, u64) {
    let program = build(directory, "turns", BY_TURNS, &[&format!("-DAPART={apart}")]);
    let session = directory.join(format!("{apart}.coh"));
    let ended = record(&session, &[program.to_str().expect("a plain path")]).expect_code(0);
    (session, address(&ended.stdout))
}

fn about(session: &Path, command: &str, line_size: &str) -> Ended {
    let mut tool = cohtrace([command, "--line-size", line_size]);
    run(tool.arg(session), GRACE)
}

#[test]
fn neighbours_cost_with_128_bytes_what_one_line_costs_with_64_and_those_apart_nothing() {
    if !has_emulator() {
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    for (apart, with_64, with_128) in [(8, TURNS, TURNS), (64, 2, TURNS), (128, 2, 2)] {
        let (session, at) = recorded(directory.path(), apart);
        let found = ["64", "128"].map(|line_size| requests(&session, at..at + 256, line_size));
        assert_eq!(found, [with_64, with_128], "{apart} bytes apart");
    }
}

#[test]
fn a_session_of_before_says_what_64_bytes_cost_and_refuses_128() {
    if !has_emulator() {
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (session, at) = recorded(directory.path(), 8);
    let meta = session.join("meta.json");
    let text = fs::read_to_string(&meta).expect("a session has it");
    let mut said: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
    let removed = said
        .as_object_mut()
        .expect("an object")
        .remove("exact_line_bytes");
    assert_eq!(removed, Some(serde_json::json!([64, 128])));
    fs::write(&meta, said.to_string()).expect("the session is writable");
    assert_eq!(requests(&session, at..at + 256, "64"), TURNS);
    for command in ["report", "pairs", "log", "hints", "simulate"] {
        let refused = about(&session, command, "128").expect_code(2);
        for word in ["64 bytes only", "record it again", "--line-size 64"] {
            assert!(
                refused.stderr.contains(word),
                "{command}: {}",
                refused.said()
            );
        }
        about(&session, command, "64").expect_code(0);
    }
    let name = session.to_str().expect("a plain path");
    let diff = |line_size| {
        run(
            &mut cohtrace(["diff", "--line-size", line_size, name, name]),
            GRACE,
        )
    };
    diff("128").expect_code(2);
    diff("64").expect_code(0);
}
