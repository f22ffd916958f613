//! Sessions: what was recorded is what is reported, and a recorder that dies or fills its disk leaves what it had.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::Path,
    process::Command,
    thread,
    time::{Duration, Instant},
};

use cohtrace_tests::{
    answer::Variant,
    kernel,
    live::{GRACE, RUN_MS, Subject, ready},
    report::Report,
    tool::{Ended, Running, cohtrace, path, run},
};

fn report(session: &Path) -> Ended {
    run(cohtrace(["report", "--json"]).arg(session), GRACE)
}

/// Runs the tool on a workload; the last of its words asks for the session.
fn watch<const N: usize>(words: [&str; N], session: &Path, subject: &Subject) -> Ended {
    let mut tool = cohtrace(words);
    tool.arg(session)
        .arg("--")
        .arg(&subject.program.path)
        .arg(RUN_MS.to_string());
    run(&mut tool, GRACE).expect_code(0)
}

/// Every file below a directory.
fn files(directory: &Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            found.extend(files(&entry.path()));
        } else {
            found.push(entry.path());
        }
    }
    found
}

#[test]
fn a_session_kept_while_attached_reports_to_the_letter_what_attach_did() {
    let Some(_turn) = ready() else { return };
    let subject = Subject::new("two_counters", Variant::Plain).expect("it builds");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let session = directory.path().join("two.coh");
    let attach = ["attach", "--json", "--duration", "2", "--record"];
    let attached = watch(attach, &session, &subject);
    let reported = report(&session).expect_code(0);
    assert!(
        attached.stdout.contains("\"findings\""),
        "{}",
        attached.said()
    );
    assert_eq!(attached.stdout, reported.stdout);
}

#[test]
fn a_recorded_session_holds_the_answer_and_reports_always_the_same() {
    let Some(_turn) = ready() else { return };
    let subject = Subject::new("two_counters", Variant::Plain).expect("it builds");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let session = directory.path().join("two.coh");
    watch(["record", "--duration", "2", "-o"], &session, &subject);

    let first = report(&session).expect_code(0);
    subject.judge(&first).expect("the session holds the answer");
    let second = report(&session).expect_code(0);
    assert_eq!(first.stdout, second.stdout, "the same session, two reports");

    let counts = Report::parse(&first.stdout).expect("it was judged");
    let count = |name| {
        counts
            .run_count(name)
            .unwrap_or_else(|error| panic!("{error:#}"))
    };
    assert!(
        count("samples") > 0 && count("accesses") > 0,
        "{}",
        counts.json["run"]
    );
    assert_eq!(
        count("produced"),
        count("samples") + count("lost"),
        "{}",
        counts.json["run"]
    );

    assert!(session.join("meta.json").is_file());
    for file in files(&session) {
        let mode = fs::metadata(&file)
            .expect("just listed")
            .permissions()
            .mode();
        assert_eq!(
            mode & 0o777,
            0o600,
            "{} holds other people's addresses",
            file.display()
        );
    }
}

#[test]
fn a_session_can_be_moved_to_where_the_program_is_not_running() {
    let Some(_turn) = ready() else { return };
    let subject = Subject::new("inlined_accessor", Variant::Plain).expect("it builds");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let session = directory.path().join("here.coh");
    watch(["record", "--duration", "2", "-o"], &session, &subject);
    let moved = directory.path().join("there.coh");
    fs::rename(&session, &moved).expect("same file system");
    subject
        .judge(&report(&moved).expect_code(0))
        .expect("names come from the program's file");
}

#[test]
fn a_recorder_killed_with_sigkill_leaves_a_session_that_reads_and_nothing_in_the_kernel() {
    let Some(_turn) = ready() else { return };
    let subject = Subject::new("two_counters", Variant::Plain).expect("it builds");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let session = directory.path().join("killed.coh");
    let mut target = Running::start(&mut subject.command(120_000)).expect("it starts");
    let mut record = cohtrace(["record", "-p", &target.pid().to_string(), "-o"]);
    let recorder = Running::start(record.arg(&session)).expect("cohtrace starts");

    // Two segments, so that the accesses that matter are in a finished one.
    let deadline = Instant::now() + Duration::from_secs(40);
    let finished_segments = || {
        let parts = files(&session.join("accesses"));
        parts
            .iter()
            .filter(|path| path.extension().is_some_and(|e| e == "parquet"))
            .count()
    };
    while finished_segments() < 2 {
        assert!(
            Instant::now() < deadline,
            "no two segments in 40 s: {:?}",
            files(&session)
        );
        thread::sleep(Duration::from_millis(50));
    }
    let held = kernel::held_by(recorder.pid()).expect("it runs");
    assert!(
        held.iter()
            .any(|object| matches!(object, kernel::BpfObject::Program(_))),
        "the recorder holds no BPF program: {held:?}"
    );
    recorder.signal(libc::SIGKILL);
    recorder
        .wait(Duration::from_secs(10))
        .expect("it was killed");

    // The kernel frees them after a grace period of RCU.
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let loaded = kernel::loaded().expect("we are root");
        let left: Vec<_> = held.intersection(&loaded).collect();
        if left.is_empty() {
            break;
        }
        assert!(
            Instant::now() < deadline,
            "still in the kernel after 10 s: {left:?}"
        );
        thread::sleep(Duration::from_millis(50));
    }
    assert!(target.is_running(), "the target died with the recorder");
    subject
        .judge(&report(&session).expect_code(0))
        .expect("the finished segments hold the answer");
}

#[test]
fn a_full_disk_ends_the_recording_with_a_message_and_leaves_what_was_written() {
    let Some(_turn) = ready() else { return };
    let subject = Subject::new("thread_slots", Variant::Plain).expect("it builds");
    let directory = tempfile::tempdir().expect("a temporary directory");
    // In a mount namespace of its own, so that nothing stays mounted whatever happens.
    let script = r#"
        mount -t tmpfs -o size=96k tmpfs "$1" || exit 90
        "$2" record -F 4000 --duration 20 -o "$1/full.coh" -- "$3" 25000
        echo "record: $?" >&2
        "$2" report --json "$1/full.coh"
        echo "report: $?" >&2
    "#;
    let mut shell = Command::new("unshare");
    shell.args([
        "--mount",
        "--propagation",
        "private",
        "sh",
        "-c",
        script,
        "sh",
    ]);
    shell
        .arg(directory.path())
        .arg(path().expect("cohtrace is built"))
        .arg(&subject.program.path);
    let ended = run(&mut shell, Duration::from_mins(1) + GRACE).expect_code(0);
    assert!(!ended.stderr.contains("panicked"), "{}", ended.said());
    assert!(
        ended.stderr.contains("record: 2"),
        "a recording cut short did not do as told\n{}",
        ended.said()
    );
    let message = ended.stderr.to_lowercase();
    assert!(
        message.contains("no space left") || message.contains("full"),
        "{}",
        ended.said()
    );
    // Nothing may have fitted; then the report says so and exits with 2.
    if ended.stderr.contains("report: 0") {
        Report::parse(&ended.stdout).expect("what was written reads");
    } else {
        assert!(ended.stderr.contains("report: 2"), "{}", ended.said());
    }
}
