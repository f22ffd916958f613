//! Targets that come, go, change and hide.

use std::{
    fs,
    path::Path,
    process::Command,
    thread,
    time::{Duration, Instant},
};

use cohtrace_tests::{
    answer::Variant,
    live::{GRACE, Subject, ready, skipped},
    report::Report,
    tool::{Running, cohtrace, run},
};

fn shell_word(path: &Path) -> String {
    format!("'{}'", path.display())
}

fn subject(name: &str) -> Subject {
    Subject::new(name, Variant::Plain).unwrap_or_else(|error| panic!("{error:#}"))
}

#[test]
fn a_target_that_execs_in_the_middle_is_named_by_what_it_became() {
    let Some(_turn) = ready() else { return };
    let subject = subject("two_counters");
    let script = format!("sleep 0.5; exec {} 2500", shell_word(&subject.program.path));
    let mut attach = cohtrace([
        "attach",
        "--json",
        "--duration",
        "4",
        "--",
        "sh",
        "-c",
        &script,
    ]);
    let ended = run(&mut attach, GRACE).expect_code(0);
    subject.judge(&ended).expect("the program after the exec");
}

#[test]
fn a_busy_program_that_execs_another_keeps_both_answers_apart() {
    let Some(_turn) = ready() else { return };
    let (before, after) = (subject("served_loop"), subject("two_counters"));
    // The shell becomes the first program in a child, and the second itself.
    let script = format!(
        "sleep 0.5; {} 2000; exec {} 2000",
        shell_word(&before.program.path),
        shell_word(&after.program.path)
    );
    let shell = Running::start(Command::new("sh").args(["-c", &script])).expect("a shell");
    let mut attach = cohtrace(["attach", "--json", "-p", &shell.pid().to_string()]);
    let ended = run(&mut attach, GRACE).expect_code(0);
    let report = Report::parse(&ended.stdout).unwrap_or_else(|e| panic!("{e:#}\n{}", ended.said()));
    let about = |name: &str| {
        let mut one = report.clone();
        one.findings
            .retain(|finding| finding.object_name.as_deref() == Some(name));
        one
    };
    before
        .judge_report(&about("desk"))
        .expect("the child's counters");
    after
        .judge_report(&about("counters"))
        .expect("the counters after the exec");
    assert_eq!(report.findings.len(), 2, "{:#?}", report.findings);
}

#[test]
fn children_that_start_and_end_during_the_run_are_followed() {
    let Some(_turn) = ready() else { return };
    let subject = subject("two_counters");
    let script = format!(
        "for i in 1 2 3; do {} 1200; done",
        shell_word(&subject.program.path)
    );
    let mut attach = cohtrace(["attach", "--json", "--", "sh", "-c", &script]);
    let ended = run(&mut attach, GRACE).expect_code(0);
    let report = Report::parse(&ended.stdout).unwrap_or_else(|e| panic!("{e:#}\n{}", ended.said()));
    // Each child is an address space of its own, so each has a line of its own.
    assert_eq!(report.findings.len(), 3, "{:#?}", report.findings);
    for finding in &report.findings {
        let mut one = report.clone();
        one.findings = vec![finding.clone()];
        subject.judge_report(&one).expect("each child's counters");
    }
}

#[test]
fn hundreds_of_processes_that_live_milliseconds_are_named() {
    let Some(_turn) = ready() else { return };
    let subject = subject("two_counters");
    let program = shell_word(&subject.program.path);
    let script = format!("i=0; while [ $i -lt 300 ]; do {program} 5; i=$((i+1)); done");
    let mut attach = cohtrace(["attach", "--json", "-F", "4000", "--", "sh", "-c", &script]);
    let ended = run(&mut attach, GRACE).expect_code(0);
    let report = Report::parse(&ended.stdout).unwrap_or_else(|e| panic!("{e:#}\n{}", ended.said()));
    let samples = report
        .run_count("samples")
        .unwrap_or_else(|error| panic!("{error:#}"));
    assert!(samples > 500, "{}", report.json["run"]);
    // The side-band must place the code of nearly all: what remains is a sample in the moment of an exec.
    let nowhere = report.unresolved("no_mapping") + report.unresolved("no_module");
    assert!(
        nowhere * 100 <= samples,
        "{nowhere} of {samples} samples have no code: {}",
        report.json["run"]
    );
    for finding in &report.findings {
        assert_eq!(
            finding.object_name.as_deref(),
            Some("counters"),
            "{finding:#?}"
        );
    }
}

#[test]
fn a_pid_that_exits_during_attach_is_a_short_run_or_a_clear_refusal() {
    let Some(_turn) = ready() else { return };
    for delay_ms in [0u64, 5, 20, 50, 100, 200, 400] {
        let seconds = format!("{}.{:03}", delay_ms / 1000, delay_ms % 1000);
        let target = Running::start(Command::new("sleep").arg(&seconds)).expect("sleep");
        let mut attach = cohtrace(["attach", "--json", "-p", &target.pid().to_string()]);
        let tool = Running::start(&mut attach).expect("cohtrace starts");
        // Reaps it: a zombie would still have a pid.
        target.wait(GRACE).expect("sleep ends");
        let ended = tool.wait(GRACE).expect("the run ends with its target");
        match ended.code() {
            0 => assert!(Report::parse(&ended.stdout).is_ok(), "{}", ended.said()),
            2 => assert!(
                !ended.stderr.contains("panicked") && !ended.stderr.is_empty(),
                "{}",
                ended.said()
            ),
            code => panic!("exit code {code} after {delay_ms} ms\n{}", ended.said()),
        }
    }
}

/// Starts a command under a process id of our choice, which must be free; `None` when others keep taking it.
fn start_as(pid: u32, command: &mut Command) -> Option<Running> {
    for _ in 0..100 {
        // The next process of this namespace gets the id after this one (Documentation/admin-guide/sysctl/kernel.rst).
        fs::write("/proc/sys/kernel/ns_last_pid", (pid - 1).to_string())
            .expect("checked by the caller");
        let started = Running::start(command).expect("it starts");
        if started.pid() == pid {
            return Some(started);
        }
    }
    None
}

#[test]
fn a_pid_that_is_given_to_another_program_is_a_target_no_more() {
    let Some(_turn) = ready() else { return };
    if !Path::new("/proc/sys/kernel/ns_last_pid").exists() {
        skipped("this kernel does not let pids be chosen (CONFIG_CHECKPOINT_RESTORE)");
        return;
    }
    let (quiet, busy) = (subject("whole_lines"), subject("two_counters"));
    let lasting = Running::start(&mut quiet.command(60_000)).expect("it starts");
    let first = Running::start(Command::new("sleep").arg("60")).expect("sleep");
    let pid = first.pid();
    let pids = format!("{pid},{}", lasting.pid());
    let mut attach = cohtrace(["attach", "--json", "--duration", "6", "-p", &pids]);
    let tool = Running::start(&mut attach).expect("cohtrace starts");
    thread::sleep(Duration::from_secs(3));
    drop(first);
    let second = start_as(pid, &mut busy.command(60_000)).expect("the pid is free again");
    let ended = tool.wait(GRACE).expect("the run ends").expect_code(0);
    drop(second);
    let report = Report::parse(&ended.stdout).unwrap_or_else(|e| panic!("{e:#}\n{}", ended.said()));
    assert_eq!(
        report.findings,
        [],
        "nobody asked about the second owner of {pid}"
    );
}

/// The one process below `parent` that runs `program`, once it does.
fn descendant(parent: u32, program: &str) -> u32 {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let mut waiting = vec![parent];
        while let Some(pid) = waiting.pop() {
            let comm = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            if comm.trim() == program {
                return pid;
            }
            let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
            waiting.extend(
                children
                    .unwrap_or_default()
                    .split(' ')
                    .filter_map(|pid| pid.parse::<u32>().ok()),
            );
        }
        assert!(
            Instant::now() < deadline,
            "no {program} below {parent} in 10 s"
        );
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_target_in_other_pid_and_mount_namespaces_is_named_from_its_own_files() {
    let Some(_turn) = ready() else { return };
    let subject = subject("two_counters");
    let directory = tempfile::tempdir().expect("a temporary directory");
    // Here, the path that the target was started by holds another program altogether.
    let decoy = directory.path().join("two_counters");
    fs::copy("/bin/true", &decoy).expect("there is a /bin/true");
    let script = r#"
        cp "$2" "$1/../two_counters.$$" && mount -t tmpfs tmpfs "$1" && mv "$1/../two_counters.$$" "$1/two_counters" &&
        exec "$1/two_counters" 60000
    "#;
    let mut unshare = Command::new("unshare");
    unshare.args([
        "--mount",
        "--propagation",
        "private",
        "--pid",
        "--fork",
        "--mount-proc",
    ]);
    unshare
        .args(["sh", "-c", script, "sh"])
        .arg(directory.path())
        .arg(&subject.program.path);
    let outside = Running::start(&mut unshare).expect("unshare starts");
    let pid = descendant(outside.pid(), "two_counters");
    let mut attach = cohtrace([
        "attach",
        "--json",
        "--duration",
        "2",
        "-p",
        &pid.to_string(),
    ]);
    let ended = run(&mut attach, GRACE);
    // Ends the namespace's first process and with it everything in there.
    Command::new("kill")
        .args(["-KILL", &pid.to_string()])
        .status()
        .expect("kill runs");
    subject
        .judge(&ended.expect_code(0))
        .expect("names from the target's own file");
}

#[test]
fn everything_on_the_machine_includes_the_workload() {
    let Some(_turn) = ready() else { return };
    let subject = subject("two_counters");
    let target = Running::start(&mut subject.command(60_000)).expect("it starts");
    let ended = run(
        &mut cohtrace(["attach", "--json", "--duration", "2", "-a"]),
        GRACE,
    )
    .expect_code(0);
    let mut report =
        Report::parse(&ended.stdout).unwrap_or_else(|e| panic!("{e:#}\n{}", ended.said()));
    let pid = u64::from(target.pid());
    report.findings.retain(|f| {
        f.accesses
            .iter()
            .flat_map(|a| &a.threads)
            .any(|t| t.pid == pid)
    });
    subject
        .judge_report(&report)
        .expect("among whatever else runs here");
}

#[test]
fn several_pids_are_watched_at_once() {
    let Some(_turn) = ready() else { return };
    let subjects: [(Subject, &str); 2] = [
        (subject("two_counters"), "counters"),
        (subject("served_loop"), "desk"),
    ];
    let targets: Vec<Running> = subjects
        .iter()
        .map(|(subject, _)| Running::start(&mut subject.command(60_000)).expect("it starts"))
        .collect();
    let pids: Vec<String> = targets
        .iter()
        .map(|target| target.pid().to_string())
        .collect();
    // Four threads share what CPUs there are: look a little longer.
    let mut attach = cohtrace(["attach", "--json", "--duration", "4", "-p", &pids.join(",")]);
    let ended = run(&mut attach, GRACE).expect_code(0);
    let report = Report::parse(&ended.stdout).unwrap_or_else(|e| panic!("{e:#}\n{}", ended.said()));
    for (subject, name) in &subjects {
        let mut one = report.clone();
        one.findings
            .retain(|finding| finding.object_name.as_deref() == Some(name));
        subject.judge_report(&one).expect("its own finding");
    }
    assert_eq!(report.findings.len(), 2, "{:#?}", report.findings);
}

#[test]
fn a_started_command_gets_its_arguments_and_the_tools_exit_code_stays_its_own() {
    let Some(_turn) = ready() else { return };
    let directory = tempfile::tempdir().expect("a temporary directory");
    let note = directory.path().join("arguments");
    let script = format!("printf '%s ' \"$@\" > {}; exit 7", shell_word(&note));
    let mut attach = cohtrace([
        "attach",
        "--json",
        "--",
        "sh",
        "-c",
        &script,
        "sh",
        "--duration",
        "-p",
    ]);
    let ended = run(&mut attach, GRACE).expect_code(0);
    assert_eq!(
        fs::read_to_string(&note).expect("the command ran"),
        "--duration -p ",
        "{}",
        ended.said()
    );
}
