//! The exit code is a contract: 0 ran, 1 findings under `--check`, 2 could not run and says why, 3 could not tell
//! under `--check`.

use std::{
    fs,
    os::unix::{fs::PermissionsExt, process::CommandExt},
    process::Command,
};

use cohtrace_tests::{
    answer::Variant,
    kernel,
    live::{GRACE, RUN_MS, Subject, ready},
    tool::{Ended, cohtrace, path, run},
};

/// Runs the tool on a workload with `--check`.
fn check_run(name: &str, variant: Variant) -> Ended {
    let subject = Subject::new(name, variant).expect("it builds");
    let mut attach = cohtrace(["attach", "--json", "--check", "--duration", "2", "--"]);
    attach.arg(&subject.program.path).arg(RUN_MS.to_string());
    run(&mut attach, GRACE)
}

/// Asserts that the tool refused, said all of these words, and did not crash saying it.
fn assert_refused(ended: &Ended, words: &[&str]) {
    assert_eq!(ended.code(), 2, "exit code\n{}", ended.said());
    assert!(!ended.stderr.contains("panicked"), "{}", ended.said());
    for word in words {
        assert!(
            ended.stderr.contains(word),
            "the message does not say {word}\n{}",
            ended.said()
        );
    }
}

#[test]
fn check_with_a_finding_exits_with_1() {
    let Some(_turn) = ready() else { return };
    check_run("two_counters", Variant::Plain).expect_code(1);
}

#[test]
fn check_without_a_finding_exits_with_0() {
    let Some(_turn) = ready() else { return };
    check_run("two_counters", Variant::Padded).expect_code(0);
}

#[test]
fn check_of_too_few_samples_exits_with_3() {
    let Some(_turn) = ready() else { return };
    let mut idle = cohtrace([
        "attach",
        "--json",
        "--check",
        "--duration",
        "1",
        "--",
        "sleep",
        "2",
    ]);
    run(&mut idle, GRACE).expect_code(3);
}

#[test]
fn a_pid_that_does_not_exist_is_named() {
    let Some(_turn) = ready() else { return };
    // Above every pid_max (4194304, include/linux/threads.h), so nobody can have it.
    let ended = run(
        &mut cohtrace(["attach", "--json", "--duration", "1", "-p", "4194305"]),
        GRACE,
    );
    assert_refused(&ended, &["4194305"]);
}

#[test]
fn a_command_that_does_not_exist_is_named() {
    let Some(_turn) = ready() else { return };
    let ended = run(
        &mut cohtrace(["attach", "--json", "--", "no-such-command-anywhere"]),
        GRACE,
    );
    assert_refused(&ended, &["no-such-command-anywhere"]);
}

#[test]
fn without_privileges_the_message_says_what_to_do() {
    if !kernel::is_root() {
        // Then the plain run is the one without privileges.
        let ended = run(
            &mut cohtrace(["attach", "--json", "--duration", "1", "-p", "1"]),
            GRACE,
        );
        assert_refused(&ended, &["root"]);
        return;
    }
    // A copy where nobody can reach it, whatever the directories above the build are closed to.
    let directory = tempfile::tempdir().expect("a temporary directory");
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).expect("it is ours");
    let copy = directory.path().join("cohtrace");
    fs::copy(path().expect("cohtrace is built"), &copy).expect("it is readable");
    let nobody = 65534;
    for observes in [&["attach"][..], &["doctor", "--bpf-log"]] {
        let mut tool = Command::new(&copy);
        tool.args(observes)
            .args(["--json", "--duration", "1", "-p", "1"])
            .gid(nobody)
            .uid(nobody);
        let ended = run(tool.current_dir("/"), GRACE);
        assert_refused(&ended, &["root"]);
    }
}

#[test]
fn a_session_that_exists_is_not_overwritten() {
    let Some(_turn) = ready() else { return };
    let directory = tempfile::tempdir().expect("a temporary directory");
    let session = directory.path().join("mine.coh");
    fs::create_dir(&session).expect("the directory is empty");
    fs::write(session.join("notes.txt"), "keep me").expect("it is writable");
    let mut record = cohtrace(["record", "--duration", "1", "-o"]);
    let ended = run(record.arg(&session).args(["--", "sleep", "2"]), GRACE);
    assert_refused(&ended, &["mine.coh"]);
    let kept: Vec<_> = fs::read_dir(&session).expect("it is there").collect();
    assert_eq!(kept.len(), 1, "{kept:?}");
}

#[test]
fn a_session_that_does_not_exist_is_named() {
    let ended = run(&mut cohtrace(["report", "--json", "nowhere.coh"]), GRACE);
    assert_refused(&ended, &["nowhere.coh"]);
}

#[test]
fn a_directory_that_is_no_session_is_refused() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let name = directory.path().to_string_lossy().into_owned();
    let ended = run(&mut cohtrace(["report", "--json", &name]), GRACE);
    assert_refused(&ended, &[&name]);
}

#[test]
fn nothing_to_attach_to_is_a_usage_error() {
    let ended = run(
        &mut cohtrace(["attach", "--json", "--duration", "1"]),
        GRACE,
    );
    assert_refused(&ended, &["-p"]);
}
