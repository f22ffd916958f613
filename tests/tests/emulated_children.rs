//! Processes that an emulated program forks, and programs that they become, are observed as it is.

use std::{collections::BTreeSet, fs, os::unix::fs::PermissionsExt as _, path::Path};

use cohtrace_tests::{
    emulated::{address, build, record, requests},
    live::{GRACE, has_emulator},
    report::Report,
    tool::{cohtrace, run},
};

/// Two processes that count by turns in neighbouring words of memory that both have, or, with `-DMEMORY=MAP_PRIVATE`, each
/// has a copy of. Whose turn it is says memory that both have. Prints where they count, before they are two.
const FORKED: &str = r#"
#include <sched.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
static char *map(int how) { return mmap(0, 4096, PROT_READ | PROT_WRITE, how | MAP_ANONYMOUS, -1, 0); }
static void count(volatile long *counter, volatile int *turn, int me) {
    for (int i = 0; i < 500; i++) {
        while (__atomic_load_n(turn, __ATOMIC_ACQUIRE) != me)
            sched_yield();
        for (int j = 0; j < 10; j++)
            __asm__ volatile("addq $1,(%0)" :: "r"(counter) : "memory");
        __atomic_store_n(turn, !me, __ATOMIC_RELEASE);
    }
}
int main(void) {
    volatile long *counters = (volatile long *)map(MEMORY);
    volatile int *turn = (volatile int *)map(MAP_SHARED);
    printf("%p\n", (void *)counters);
    fflush(stdout);
    if (fork() == 0) {
        count(counters + 1, turn, 1);
        _exit(0);
    }
    count(counters, turn, 0);
    int status;
    wait(&status);
    return status;
}
"#;
/// Turns of both.
const TURNS: usize = 1000;

fn about(session: &Path, command: &str, arguments: &[&str]) -> String {
    let ended = run(cohtrace([command]).arg(session).args(arguments), GRACE);
    ended.expect_code(0).stdout
}

/// Where in its memory the second process counts: nothing else is there.
const SECOND: std::ops::Range<u64> = 8..16;

/// Confirmed false sharing of several processes in the session's report.
fn shared_by_processes(session: &Path) -> usize {
    let text = about(session, "report", &["--json"]);
    let report = Report::parse(&text).unwrap_or_else(|error| panic!("{error:#}"));
    let findings = report.findings.iter().filter(|finding| {
        let threads = finding.accesses.iter().flat_map(|access| &access.threads);
        let pids: BTreeSet<_> = threads.map(|thread| thread.pid).collect();
        let is_sure = finding.confidence == "confirmed";
        finding.kind == "false-sharing" && is_sure && pids.len() == 2
    });
    findings.count()
}

fn program(directory: &Path, memory: &str) -> String {
    let flag = format!("-DMEMORY={memory}");
    let program = build(directory, memory, FORKED, &[&flag]);
    program.to_str().expect("a plain path").to_owned()
}

#[test]
fn two_processes_fight_over_a_line_of_shared_memory_and_not_over_copies() {
    if !has_emulator() {
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let [shared, copies] = ["MAP_SHARED", "MAP_PRIVATE"].map(|memory| {
        let session = directory.path().join(format!("{memory}.coh"));
        let ended = record(&session, &[&program(directory.path(), memory)]).expect_code(0);
        (session, address(&ended.stdout))
    });
    assert_eq!(requests(&shared.0, SECOND, "64"), TURNS / 2);
    assert_eq!(shared_by_processes(&shared.0), 1);
    // One for each process: nobody takes it away.
    assert_eq!(requests(&copies.0, copies.1..copies.1 + 4096, "64"), 2);
    assert_eq!(shared_by_processes(&copies.0), 0);
}

/// Five processes that add to a word, each to its copy, and whose parents end at once.
const ORPHANED: &str = r#"
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
static _Alignas(64) long word;
int main(void) {
    int over[2], status;
    char nothing;
    printf("%p\n", (void *)&word);
    fflush(stdout);
    if (pipe(over) != 0)
        return 1;
    for (int n = 0; n < 5; n++) {
        if (fork() != 0)
            continue;
        if (fork() == 0)
            for (int i = 0; i < 30000; i++)
                __asm__ volatile("addq $1,%0" : "+m"(word));
        _exit(0);
    }
    close(over[1]);
    while (wait(&status) > 0)
        ;
    return read(over[0], &nothing, 1) != 0;
}
"#;

/// Requests for the word whose address a program prints.
fn requests_for_word(name: &str, source: &str) -> usize {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let program = build(directory.path(), name, source, &[]);
    let session = directory.path().join(name).with_extension("coh");
    let ended = record(&session, &[program.to_str().expect("a plain path")]).expect_code(0);
    let word = address(&ended.stdout);
    requests(&session, word..word + 8, "64")
}

#[test]
fn a_process_whose_parent_ends_at_once_is_observed() {
    if has_emulator() {
        assert_eq!(requests_for_word("orphaned", ORPHANED), 5);
    }
}

/// A thread that adds to a word for long after the first thread has ended, more than its ring holds.
const FIRST_ENDS: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static _Alignas(64) long words[16], last;
static void *work(void *none) {
    usleep(100000);
    for (int i = 0; i < 5000000; i++)
        __asm__ volatile("addq $1,%0" : "+m"(words[i % 2 * 8]));
    usleep(100000);
    __asm__ volatile("addq $1,%0" : "+m"(last));
    printf("%p\n", (void *)&last);
    return none;
}
int main(void) {
    pthread_t other;
    pthread_create(&other, NULL, work, NULL);
    pthread_exit(NULL);
}
"#;

#[test]
fn a_process_whose_first_thread_ends_is_observed_to_its_end() {
    if has_emulator() {
        assert_eq!(requests_for_word("first", FIRST_ENDS), 1);
    }
}

#[test]
fn a_program_that_a_script_starts_is_observed() {
    if !has_emulator() {
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let program = program(directory.path(), "MAP_SHARED");
    let script = directory.path().join("script");
    fs::write(
        &script,
        format!("#!/bin/sh\n/bin/true\n{program}\nexec /bin/true\n"),
    )
    .expect("writable");
    let session = directory.path().join("script.coh");
    let script = script.to_str().expect("a plain path");
    record(&session, &["/bin/sh", script]).expect_code(0);
    assert_eq!(requests(&session, SECOND, "64"), TURNS / 2);
    assert_eq!(shared_by_processes(&session), 1);
}

#[test]
fn a_program_that_cannot_be_followed_runs_and_is_told() {
    if !has_emulator() {
        return;
    }
    // Linux runs a script whose interpreter is a script itself.
    let directory = tempfile::tempdir().expect("a temporary directory");
    let [outer, inner] = ["outer", "inner"].map(|name| directory.path().join(name));
    for (script, first) in [(&outer, inner.to_str()), (&inner, Some("/bin/echo it ran"))] {
        let first = first.expect("a plain path");
        fs::write(script, format!("#!{first}\n")).expect("writable");
        fs::set_permissions(script, fs::Permissions::from_mode(0o755)).expect("writable");
    }
    let session = directory.path().join("nested.coh");
    let command = format!("exec {}", outer.display());
    let ended = record(&session, &["/bin/sh", "-c", &command]).expect_code(0);
    let report = about(&session, "report", &[]);
    let told = report.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(ended.stdout.starts_with("it ran"), "{}", ended.said());
    assert!(
        told.contains("1 times a process became a program"),
        "{report}"
    );
}
