//! A disk that fills up while something is sorted, exported or imported: a clear error, and nothing half done.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use cohtrace::{
    access::{Access, Basis, Cost, Cpu, Op, Pid, Tid},
    event::Batch,
    session::{Meta, SessionWriter, WriterOptions},
};
use cohtrace_tests::{
    live::{GRACE, skipped_core},
    tool::{Ended, path, run},
};

const ACCESSES: u64 = 400_000;

/// A session of accesses all over the memory, which no few megabytes hold.
fn session(directory: &Path) -> PathBuf {
    let path = directory.join("wide.coh");
    let meta = || Meta {
        frequency_hz: Some(1000),
        ..Meta::new()
    };
    let mut writer = SessionWriter::create(&path, meta(), &WriterOptions::default()).expect("room");
    let access = |n: u64| Access {
        time_ns: 1000 * n,
        addr: 0x7f00_0000_0000 + (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 34) * 8,
        ip: 0x40_0000 + 4 * (n % 1000),
        cost: Cost(1_000_000),
        pid: Pid(100),
        tid: Tid(100 + (n % 2) as u32),
        cpu: Cpu((n % 2) as u32),
        size: 8,
        op: if n.is_multiple_of(3) {
            Op::Store
        } else {
            Op::Load
        },
        basis: Basis::Stalled,
        ..Access::BLANK
    };
    for first in (1..ACCESSES).step_by(10_000) {
        let batch = Batch {
            accesses: (first..first + 10_000).map(access).collect(),
            ..Batch::default()
        };
        writer.append(&batch).expect("room");
    }
    writer.finish(meta()).expect("room");
    path
}

/// Runs a line of shell with the tool as `$2` and a file system of that size at `$1`, in a mount namespace of its own, so
/// that nothing stays mounted whatever happens; then lists what is on it. `None` where that cannot be had.
fn on_disk(size: &str, line: &str, session: &Path) -> Option<Ended> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let script = format!(
        "mount -t tmpfs -o size={size} tmpfs \"$1\" || exit 90\n{line}\nstatus=$?\nls -A \"$1\" | sed 's/^/LEFT /'\nexit $status"
    );
    let mut shell = Command::new("unshare");
    shell.args(["--mount", "--propagation", "private", "sh", "-c"]);
    shell.args([&script, "sh"]);
    shell.arg(directory.path());
    shell.arg(path().expect("cohtrace is built")).arg(session);
    let ended = run(&mut shell, GRACE);
    if ended.code() == 90 || ended.code() == 1 && ended.stderr.contains("unshare") {
        skipped_core("no file system may be mounted here");
        return None;
    }
    assert!(!ended.stderr.contains("panicked"), "{}", ended.said());
    Some(ended)
}

/// The line ends with that on a disk that has room, and as an error that says so on one that has none, where nothing stays.
fn check(line: &str, small: &str, named: &str) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let session = session(directory.path());
    let Some(ended) = on_disk("200m", line, &session) else {
        return;
    };
    ended.expect_code(0);
    let Some(ended) = on_disk(small, line, &session) else {
        return;
    };
    assert_eq!(ended.code(), 2, "{}", ended.said());
    let said = ended.stderr.to_lowercase();
    assert!(said.contains("no space left"), "{}", ended.said());
    assert!(said.contains(named), "{}", ended.said());
    assert_eq!(said.matches("no space left").count(), 1, "{}", ended.said());
    assert!(!ended.stdout.contains("LEFT"), "{}", ended.said());
    assert_eq!(
        fs::read_dir(directory.path()).expect("it lists").count(),
        1,
        "something was left beside the session"
    );
}

#[test]
fn a_disk_that_fills_while_accesses_are_sorted_ends_the_report_with_an_error() {
    check(
        "TMPDIR=\"$1\" \"$2\" report -q --memory 4M \"$3\"",
        "256k",
        "--memory",
    );
}

#[test]
fn a_disk_that_fills_while_a_session_is_exported_leaves_no_half_file() {
    let line = "\"$2\" export -q --perf-data \"$1/wide.data\" \"$3\" && rm \"$1/wide.data\"";
    check(line, "256k", "wide.data");
}

#[test]
fn a_disk_that_fills_while_a_recording_is_imported_keeps_what_was_written_and_says_so() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let session = session(directory.path());
    let line = "\"$2\" export -q --perf-data \"$3.data\" --force \"$3\" && \"$2\" import -q -o \"$1/in.coh\" \"$3.data\"";
    let Some(ended) = on_disk("200m", line, &session) else {
        return;
    };
    ended.expect_code(0);
    let Some(ended) = on_disk("256k", line, &session) else {
        return;
    };
    assert_eq!(ended.code(), 2, "{}", ended.said());
    let said = ended.stderr.to_lowercase();
    assert!(
        said.contains("no space left") && said.contains("in.coh"),
        "{}",
        ended.said()
    );
    assert_eq!(said.matches("no space left").count(), 1, "{}", ended.said());
}
