//! What a command that the tool started leaves behind: nothing, unless it shall stay.

use std::{
    fs,
    process::Command,
    thread,
    time::{Duration, Instant},
};

use cohtrace_tests::{
    live::{GRACE, has_emulator, ready},
    report::Report,
    terminal::OnTerminal,
    tool::{Ended, Running, cohtrace, path, run},
};

/// Processes that a test knows again wherever they are and whoever is their parent: they sleep for a time that nobody
/// else does. Killed when dropped.
struct Sleepers(String);

impl Sleepers {
    /// `test`: a number of its own for each test.
    fn new(test: u32) -> Sleepers {
        Sleepers(format!("sleep {}.{test:02}", 100_000 + std::process::id()))
    }

    /// A script in which `SLEEP` is the command.
    fn script(&self, text: &str) -> String {
        text.replace("SLEEP", &self.0)
    }

    /// How many live.
    fn living(&self) -> usize {
        self.pids().len()
    }

    fn pids(&self) -> Vec<u32> {
        let processes = fs::read_dir("/proc").expect("/proc is mounted").flatten();
        let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        // A zombie has no command line.
        pids.filter(|pid| {
            let words = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            words.trim_end_matches('\0').replace('\0', " ") == self.0
        })
        .collect()
    }

    /// Waits until so many live.
    fn wait_for(&self, count: usize) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while self.living() != count {
            assert!(
                Instant::now() < deadline,
                "{} of {count} live",
                self.living()
            );
            thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Sleepers {
    fn drop(&mut self) {
        for pid in self.pids() {
            // SAFETY: kill takes two integers; a process of that command line is one of this test's.
            unsafe { libc::kill(pid.cast_signed(), libc::SIGKILL) };
        }
    }
}

/// Runs the tool on a script of a shell.
fn attach(options: &[&str], script: &str) -> Ended {
    let mut command = cohtrace(["attach", "--json"]);
    command.args(options).args(["--", "sh", "-c", script]);
    run(&mut command, GRACE).expect_code(0)
}

/// What the report says of the command's end.
fn said(ended: &Ended, words: &str) -> bool {
    let report = Report::parse(&ended.stdout).unwrap_or_else(|e| panic!("{e:#}\n{}", ended.said()));
    report.caveats.iter().any(|caveat| caveat.contains(words))
}

/// As users write it: children in the background, one of them stopped; and a daemon, which is an orphan and the leader
/// of a session of its own, with a child.
const FAMILY: &str =
    "(setsid sh -c 'SLEEP & SLEEP; exit' &); SLEEP & SLEEP & sleep 0.3; kill -STOP $!; SLEEP; exit";

#[test]
fn all_that_a_command_started_ends_with_the_duration() {
    let Some(_turn) = ready() else { return };
    let sleepers = Sleepers::new(1);
    let script = sleepers.script(FAMILY);
    let mut command = cohtrace(["attach", "--json", "--duration", "1.5", "--", "sh", "-c"]);
    let tool = Running::start(command.arg(&script)).expect("cohtrace starts");
    sleepers.wait_for(5);
    let ended = tool.wait(GRACE).expect("the run ends").expect_code(0);
    assert_eq!(sleepers.living(), 0, "{}", ended.said());
    for words in [
        "left behind",
        "killed",
        "left running",
        "could not be ended",
    ] {
        assert!(!said(&ended, words), "{}", ended.said());
    }
}

#[test]
fn leave_running_leaves_them_all_and_says_so() {
    let Some(_turn) = ready() else { return };
    let sleepers = Sleepers::new(2);
    let options = ["--leave-running", "--duration", "1.5"];
    // The streams would keep the report from ending here.
    let script = sleepers.script(&format!("exec >/dev/null 2>&1; {FAMILY}"));
    let ended = attach(&options, &script);
    assert_eq!(sleepers.living(), 5, "{}", ended.said());
    assert!(said(&ended, "left running"), "{}", ended.said());
}

#[test]
fn what_a_command_left_behind_ends_with_it_and_is_named() {
    let Some(_turn) = ready() else { return };
    let sleepers = Sleepers::new(3);
    let ended = attach(&[], &sleepers.script("SLEEP & sleep 0.3; exit 3"));
    assert_eq!(sleepers.living(), 0, "{}", ended.said());
    assert!(said(&ended, "left behind"), "{}", ended.said());
    assert!(said(&ended, "exit status: 3"), "{}", ended.said());
    assert!(ended.took < Duration::from_secs(20), "{:?}", ended.took);
}

#[test]
fn leave_running_leaves_what_a_command_left_behind() {
    let Some(_turn) = ready() else { return };
    let sleepers = Sleepers::new(4);
    let script = sleepers.script("exec >/dev/null 2>&1; SLEEP & sleep 0.3; exit 3");
    let ended = attach(&["--leave-running"], &script);
    assert_eq!(sleepers.living(), 1, "{}", ended.said());
    assert!(!said(&ended, "left behind"), "{}", ended.said());
    assert!(said(&ended, "exit status: 3"), "{}", ended.said());
}

#[test]
fn what_ignores_sigterm_is_killed_and_named() {
    let Some(_turn) = ready() else { return };
    let sleepers = Sleepers::new(5);
    let script = sleepers.script("trap '' TERM; SLEEP & SLEEP; exit");
    let ended = attach(&["--duration", "1"], &script);
    assert_eq!(sleepers.living(), 0, "{}", ended.said());
    assert!(said(&ended, "killed"), "{}", ended.said());
}

#[test]
fn what_heeds_sigterm_has_the_time_to_tidy_up() {
    let Some(_turn) = ready() else { return };
    let sleepers = Sleepers::new(6);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("lock");
    let script = format!(
        "echo > '{0}'; trap 'sleep 0.4; rm \"{0}\"; exit' TERM; SLEEP & wait",
        file.display()
    );
    let ended = attach(&["--duration", "1"], &sleepers.script(&script));
    assert!(!file.exists(), "{}", ended.said());
    assert_eq!(sleepers.living(), 0, "{}", ended.said());
    assert!(!said(&ended, "killed"), "{}", ended.said());
}

#[test]
fn a_recording_ends_them_too_and_leaves_them_where_asked() {
    let Some(_turn) = ready() else { return };
    let directory = tempfile::tempdir().expect("a temporary directory");
    for (test, options, left) in [(7, &[][..], 0), (8, &["--leave-running"][..], 2)] {
        let sleepers = Sleepers::new(test);
        let session = directory.path().join(format!("{test}.coh"));
        let mut record = cohtrace(["record", "--duration", "1", "-o"]);
        record.arg(&session).args(options).args(["--", "sh", "-c"]);
        record.arg(sleepers.script("exec >/dev/null 2>&1; (SLEEP &); SLEEP; exit"));
        run(&mut record, GRACE).expect_code(0);
        assert_eq!(sleepers.living(), left);
    }
}

#[test]
fn an_emulated_programs_children_end_as_well() {
    let _turn = cohtrace_tests::turn::alone();
    if !has_emulator() {
        return;
    }
    let sleepers = Sleepers::new(9);
    let options = ["--source", "emulate", "--duration", "3"];
    let ended = attach(&options, &sleepers.script("SLEEP & SLEEP & SLEEP; exit"));
    assert_eq!(sleepers.living(), 0, "{}", ended.said());
}

#[test]
fn what_others_started_is_left_alone() {
    let Some(_turn) = ready() else { return };
    let (ours, theirs) = (Sleepers::new(10), Sleepers::new(11));
    // The shell's child becomes the tool's by the exec, and its orphan could become the tool's too.
    let script = format!(
        "{other} >/dev/null 2>&1 & (sh -c '{other} & sleep 1; exit' >/dev/null 2>&1 &); exec '{tool}' attach --json \
         --duration 2 -- sh -c '{own} & {own}; exit'",
        tool = path().expect("it is built").display(),
        other = theirs.0,
        own = ours.0,
    );
    let ended = run(Command::new("sh").args(["-c", &script]), GRACE).expect_code(0);
    assert_eq!(ours.living(), 0, "{}", ended.said());
    assert_eq!(theirs.living(), 2, "{}", ended.said());
    assert!(said(&ended, "not looked for"), "{}", ended.said());
}

#[test]
fn a_tool_that_is_killed_ends_nothing() {
    let Some(_turn) = ready() else { return };
    let sleepers = Sleepers::new(12);
    let script = sleepers.script("exec >/dev/null 2>&1; SLEEP & SLEEP; exit");
    let mut command = cohtrace(["attach", "--json", "--", "sh", "-c"]);
    let tool = Running::start(command.arg(script)).expect("cohtrace starts");
    sleepers.wait_for(2);
    tool.signal(libc::SIGKILL);
    tool.wait(GRACE).expect("it ends");
    assert_eq!(sleepers.living(), 2);
}

/// The tool with a command, in the foreground of a terminal that is its own.
fn on_terminal(script: &str) -> OnTerminal {
    let mut command = Command::new("setsid");
    command
        .args(["--ctty", "--wait"])
        .arg(path().expect("it is built"));
    command.args(["attach", "--quiet", "--", "sh", "-c", script]);
    OnTerminal::start(&mut command).expect("it starts")
}

#[test]
fn a_command_reads_from_the_terminal() {
    let Some(_turn) = ready() else { return };
    let mut shown = on_terminal("echo ready; read line; echo got $line; sleep 1");
    shown.shows("ready", GRACE).expect("the command runs");
    shown.types("a word\n").expect("the terminal takes it");
    shown.shows("got a word", GRACE).expect("it was read");
    let finished = shown.wait(GRACE).expect("the run ends");
    assert_eq!(finished.status.code(), Some(0), "{finished:?}");
}

#[test]
fn ctrl_c_on_a_terminal_reaches_the_command_and_gives_the_report() {
    let Some(_turn) = ready() else { return };
    let sleepers = Sleepers::new(13);
    let script = "trap 'echo was asked; exit' INT; (setsid SLEEP &); echo ready; SLEEP & wait";
    let mut shown = on_terminal(&sleepers.script(script));
    shown.shows("ready", GRACE).expect("the command runs");
    sleepers.wait_for(2);
    shown.types("\x03").expect("the terminal takes it");
    shown.shows("was asked", GRACE).expect("the command has it");
    let finished = shown.wait(GRACE).expect("the run ends");
    assert_eq!(finished.status.code(), Some(0), "{finished:?}");
    assert!(finished.stderr.contains("Looked at"), "{finished:?}");
    assert_eq!(sleepers.living(), 0);
}
