//! What is said, and to whom: names that obey nobody, causes once, lines that fit, limits that are named, and files
//! that go only where they may.

use std::{
    ffi::OsStr,
    fs,
    os::unix::{
        ffi::OsStrExt as _,
        fs::{PermissionsExt as _, lchown, symlink},
    },
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use cohtrace_tests::{
    answer::Variant,
    kernel,
    live::{GRACE, Subject, ready, skipped_core},
    terminal::OnTerminal,
    tool::{Ended, cohtrace, path, run},
};
use tempfile::TempDir;

/// A name that would clear a terminal, turn its text around and begin a line of its own.
const EVIL: &str = "a\x1b[2J\u{202e}b\ncohtrace: all is well\u{9b}31m";

/// Whether a terminal, or who reads it, takes it for something else than a letter.
fn is_hostile(c: char) -> bool {
    c.is_control() && c != '\n' || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
}

#[track_caller]
fn assert_harmless(text: &str) {
    assert!(!text.chars().any(is_hostile), "{text:?}");
    let forged = |line: &str| line.starts_with("cohtrace: all is well");
    assert!(!text.lines().any(forged), "{text}");
}

/// The tool under a shell that sets it up: `$0` is the tool.
fn under(setup: &str, arguments: &[&OsStr]) -> Command {
    let mut command = Command::new("sh");
    command
        .arg("-c")
        .arg(format!("{setup}; exec \"$0\" \"$@\""))
        .arg(path().expect("cohtrace is built"))
        .args(arguments);
    command
}

fn under_shell(setup: &str, arguments: &[&str]) -> Ended {
    let arguments: Vec<&OsStr> = arguments.iter().map(OsStr::new).collect();
    run(&mut under(setup, &arguments), GRACE)
}

fn folder() -> TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

fn shown(path: &Path) -> String {
    path.to_str().expect("it was made so").to_owned()
}

/// A session of a program that does nothing.
fn session(folder: &TempDir) -> PathBuf {
    let session = folder.path().join("run.coh");
    let mut record = cohtrace(["record", "--duration", "1", "-o"]);
    run(record.arg(&session).args(["--", "sleep", "2"]), GRACE).expect_code(0);
    session
}

#[test]
fn names_in_messages_obey_nobody_and_others_are_as_they_are() {
    let ended = run(&mut cohtrace(["report", EVIL]), GRACE).expect_code(2);
    assert_harmless(&ended.stderr);
    assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
    assert!(
        ended.stderr.contains("\\x1b[2J\\u{202e}b"),
        "{}",
        ended.stderr
    );
    let ended = run(&mut cohtrace(["report", "plain.coh"]), GRACE).expect_code(2);
    assert!(
        ended
            .stderr
            .starts_with("cohtrace: plain.coh is not a session")
    );
}

#[test]
fn the_parser_repeats_arguments_without_what_acts_on_a_terminal() {
    for arguments in [
        vec![EVIL],
        vec!["attach", "-p", EVIL],
        vec!["report", EVIL, EVIL],
    ] {
        let ended = run(&mut cohtrace(&arguments), GRACE).expect_code(2);
        assert_harmless(&ended.stderr);
        assert!(ended.stderr.contains("\\x1b[2J"), "{}", ended.stderr);
    }
    let ended = run(&mut cohtrace(["attach", "-p", "größe"]), GRACE).expect_code(2);
    assert!(ended.stderr.contains("'größe'"), "{}", ended.stderr);
}

#[test]
fn a_cause_is_printed_once() {
    let folder = folder();
    // Following it fails, which the error of a session says in a sentence that goes on.
    symlink("meta.json", folder.path().join("meta.json")).expect("it is ours");
    let missing = folder.path().join("no/such/place.coh");
    let damaged = folder.path().join("perf.data");
    fs::write(&damaged, "PERFILE2 and no more").expect("it is ours");
    let cases = [
        cohtrace(["report", &shown(folder.path())]),
        cohtrace(["import", "no-such-file", "-o", &shown(&missing)]),
        cohtrace(["import", &shown(&damaged), "-o", &shown(&missing)]),
    ];
    for mut case in cases {
        let ended = run(&mut case, GRACE).expect_code(2);
        let parts: Vec<&str> = ended.stderr.trim_end().split(": ").collect();
        let twice = |part: &&&str| parts.iter().filter(|other| other == part).count() > 1;
        assert!(!parts.iter().any(|part| twice(&part)), "{}", ended.stderr);
        assert!(
            ended.stderr.matches("os error").count() <= 1,
            "{}",
            ended.stderr
        );
    }
}

/// Columns of the lines that progress drew on a terminal with so many.
fn progress_on(columns: u32) -> Vec<usize> {
    let subject = Subject::new("two_counters", Variant::Plain).expect("it builds");
    let mut command = under(
        &format!("stty cols {columns}"),
        &["attach", "--duration", "3", "-o", "/dev/null", "--"].map(OsStr::new),
    );
    command.arg(&subject.program.path).arg("4000");
    let terminal = OnTerminal::start(&mut command).expect("there are terminals");
    let finished = terminal.wait(GRACE).expect("it ends");
    let drawn = finished.stderr.split("\r\x1b[K");
    let lines: Vec<usize> = drawn
        .skip(1)
        .map(|line| line.trim().chars().count())
        .collect();
    assert!(lines.len() > 3, "{:?}", finished.stderr);
    lines
}

#[test]
fn progress_is_cut_to_the_terminal_and_uses_what_there_is() {
    let Some(_turn) = ready() else { return };
    let narrow = progress_on(24);
    assert!(narrow.iter().all(|columns| *columns <= 23), "{narrow:?}");
    assert!(narrow.contains(&23), "{narrow:?}");
    let wide = progress_on(200);
    assert!(wide.iter().any(|columns| *columns > 23), "{wide:?}");
}

#[test]
fn arguments_of_a_command_may_be_any_bytes_and_are_kept() {
    let Some(_turn) = ready() else { return };
    let folder = folder();
    let (session, seen) = (folder.path().join("run.coh"), folder.path().join("seen"));
    let mut record = cohtrace(["record", "--duration", "1", "-o"]);
    record.arg(&session);
    record.args(["--", "sh", "-c", "printf %s \"$1\" > \"$2\"; sleep 2", "sh"]);
    let bytes = b"\xff\x1b[31m\xc3";
    record.arg(OsStr::from_bytes(bytes)).arg(&seen);
    run(&mut record, GRACE).expect_code(0);
    assert_eq!(fs::read(&seen).expect("the command ran"), bytes);
    let meta = fs::read_to_string(session.join("meta.json")).expect("it is a session");
    assert_harmless(&meta);
    let meta: serde_json::Value = serde_json::from_str(&meta).expect("it is JSON");
    assert_eq!(meta["targets"]["command"][4], "\\xff\x1b[31m\\xc3");
    let report = run(&mut cohtrace(["report", &shown(&session)]), GRACE).expect_code(0);
    assert_harmless(&report.stdout);
    let mut missing = cohtrace(["attach", "--"]);
    let ended = run(missing.arg(OsStr::from_bytes(b"/no/such\xff")), GRACE).expect_code(2);
    assert!(ended.stderr.contains("/no/such\\xff"), "{}", ended.stderr);
}

#[test]
fn without_descriptors_the_limit_is_named_and_a_soft_one_is_no_limit() {
    let Some(_turn) = ready() else { return };
    let attach = [
        "attach",
        "--duration",
        "1",
        "--",
        "sh",
        "-c",
        "ulimit -n >&2; sleep 1",
    ];
    for few in [8, 16, 24] {
        let ended = under_shell(&format!("ulimit -n {few}"), &attach).expect_code(2);
        assert!(
            ended.stderr.contains(&format!("{few} files open")),
            "{}",
            ended.stderr
        );
        assert!(ended.stderr.contains("ulimit -Hn"), "{}", ended.stderr);
        assert!(!ended.stderr.contains("rebuild"), "{}", ended.stderr);
    }
    let ended = under_shell("ulimit -S -n 16", &attach).expect_code(0);
    assert!(
        ended.stderr.lines().any(|line| line == "16"),
        "the command has it still\n{}",
        ended.said()
    );
}

#[test]
fn a_limit_on_files_ends_the_recording_with_a_word_and_leaves_a_session() {
    let Some(_turn) = ready() else { return };
    let subject = Subject::new("two_counters", Variant::Plain).expect("it builds");
    let folder = folder();
    let record = |limit: &str, name: &str| {
        let session = folder.path().join(name);
        let mut command = under(limit, &["record", "--duration", "4", "-o"].map(OsStr::new));
        command
            .arg(&session)
            .arg("--")
            .arg(&subject.program.path)
            .arg("5000");
        (run(&mut command, GRACE), session)
    };
    // Blocks of 512 bytes: meta.json fits, two seconds of samples do not.
    let (ended, session) = record("ulimit -f 12", "limited.coh");
    let ended = ended.expect_code(2);
    assert!(ended.stderr.contains("File too large"), "{}", ended.stderr);
    assert!(ended.stderr.contains("ulimit -f"), "{}", ended.stderr);
    let report = run(&mut cohtrace(["report", &shown(&session)]), GRACE).expect_code(0);
    assert!(
        report.stdout.contains("recording stopped early"),
        "{}",
        report.stdout
    );
    record("true", "free.coh").0.expect_code(0);
}

#[test]
fn what_is_started_has_the_signals_that_it_would_have_without_us() {
    let Some(_turn) = ready() else { return };
    let ended = run(
        &mut cohtrace([
            "attach",
            "--",
            "sh",
            "-c",
            "grep SigIgn /proc/self/status >&2; sleep 1",
        ]),
        GRACE,
    );
    let line = ended.stderr.lines().find(|line| line.starts_with("SigIgn"));
    let mask = line.and_then(|line| u64::from_str_radix(line.split_whitespace().nth(1)?, 16).ok());
    let mask = mask.unwrap_or_else(|| panic!("{}", ended.said()));
    assert_eq!(mask & 1 << (libc::SIGXFSZ - 1), 0, "{mask:x}");
}

#[test]
fn a_closed_standard_output_is_an_error_where_something_is_to_be_printed() {
    for arguments in [
        &["doctor"][..],
        &["--help"],
        &["attach", "--", "sleep", "60"],
    ] {
        let ended = under_shell("exec >&-", arguments).expect_code(2);
        assert!(
            ended.stderr.contains("standard output is closed"),
            "{}",
            ended.stderr
        );
    }
    under_shell("exec >/dev/null", &["doctor"]).expect_code(0);
    under_shell("exec >/dev/null", &["--help"]).expect_code(0);
    let ended = under_shell("exec >/dev/full", &["doctor"]).expect_code(2);
    assert!(ended.stderr.contains("No space left"), "{}", ended.stderr);
}

#[test]
fn with_all_streams_closed_files_have_what_is_theirs_and_nothing_else() {
    let Some(_turn) = ready() else { return };
    let folder = folder();
    let report = folder.path().join("report.txt");
    let written = shown(&report);
    let attach = [
        "attach",
        "--duration",
        "1",
        "-o",
        &written,
        "--",
        "sh",
        "-c",
        "echo noise; sleep 2",
    ];
    under_shell("exec <&- >&- 2>&-", &attach).expect_code(0);
    let text = fs::read_to_string(&report).expect("it is written");
    assert!(
        text.starts_with("No s") && !text.contains("noise\n"),
        "{text}"
    );
    let session = folder.path().join("run.coh");
    let recorded = shown(&session);
    let record = [
        "record",
        "--duration",
        "1",
        "-o",
        &recorded,
        "--",
        "sh",
        "-c",
        "echo noise; sleep 2",
    ];
    under_shell("exec <&- >&- 2>&-", &record).expect_code(0);
    run(&mut cohtrace(["report", &recorded]), GRACE).expect_code(0);
}

#[test]
fn a_report_goes_through_no_link_of_somebody_else_and_that_is_said_first() {
    let Some(_turn) = ready() else { return };
    if !kernel::is_root() {
        skipped_core("only root makes links of other users");
        return;
    }
    let folder = folder();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o1777)).expect("it is ours");
    let at = |name: &str| folder.path().join(name);
    fs::write(at("precious"), "kept").expect("it is ours");
    symlink("precious", at("report")).expect("it is ours");
    let attach = || {
        let mut attach = cohtrace(["attach", "--duration", "1", "-o"]);
        attach
            .arg(at("report"))
            .args(["--", "touch"])
            .arg(at("ran"));
        run(&mut attach, GRACE)
    };
    lchown(at("report"), Some(65534), None).expect("we are root");
    let ended = attach().expect_code(2);
    assert!(
        ended.stderr.contains("symbolic link of user 65534"),
        "{}",
        ended.stderr
    );
    assert_eq!(
        fs::read_to_string(at("precious")).expect("it is there"),
        "kept"
    );
    assert!(
        !at("ran").exists(),
        "nothing is observed that cannot be told"
    );
    lchown(at("report"), Some(0), None).expect("we are root");
    attach().expect_code(0);
    assert!(at("ran").exists() && at("report").is_symlink());
    let report = fs::read_to_string(at("precious")).expect("it is there");
    assert!(report.contains("Looked at touch"), "{report}");
}

#[test]
fn a_report_goes_on_in_a_standard_output_that_is_named_as_a_file() {
    let Some(_turn) = ready() else { return };
    let folder = folder();
    let (session, out) = (session(&folder), folder.path().join("out"));
    let script = "exec >\"$OUT\"; echo before; \"$0\" report \"$1\" -o /dev/stdout; echo after";
    let mut command = Command::new("sh");
    command
        .args(["-c", script])
        .arg(path().expect("cohtrace is built"))
        .arg(&session)
        .env("OUT", &out);
    run(&mut command, Duration::from_mins(1)).expect_code(0);
    let text = fs::read_to_string(out).expect("it is written");
    assert!(
        text.starts_with("before\nNo s") && text.ends_with("\nafter\n"),
        "{text}"
    );
}
