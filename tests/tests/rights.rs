//! Rights: which are asked for, which are kept, and whose files are opened. On a copy of the tool that has capabilities by
//! setcap(8), run by a user who has none.

use std::{
    fs,
    io::Write as _,
    os::unix::{
        fs::{PermissionsExt as _, chown},
        process::CommandExt as _,
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use cohtrace_tests::{
    answer::Variant,
    gains::holder,
    live::{GRACE, Subject, ready, skipped_core},
    tool::{Ended, Running, cohtrace, path, run},
    turn,
};
use tempfile::TempDir;

/// `nobody`.
const USER: u32 = 65534;
/// What docs/security.md says to give.
const OBSERVE: &str =
    "cap_bpf,cap_perfmon,cap_dac_read_search,cap_sys_ptrace,cap_syslog,cap_ipc_lock";

/// Numbers of include/uapi/linux/capability.h.
const DAC_READ_SEARCH: u64 = 1 << 2;
const SYS_MODULE: u64 = 1 << 16;
const SYS_PTRACE: u64 = 1 << 19;
const SYS_ADMIN: u64 = 1 << 21;
const PERFMON: u64 = 1 << 38;
const BPF: u64 = 1 << 39;

/// A directory that the user may write to, and a copy of the tool in it.
struct Place {
    folder: TempDir,
}

impl Place {
    /// `None`, said loudly, where files cannot be given capabilities.
    fn new(capabilities: &str) -> Option<Place> {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let place = Place { folder };
        fs::set_permissions(place.folder.path(), fs::Permissions::from_mode(0o777)).expect("ours");
        fs::copy(path().expect("cohtrace is built"), place.tool()).expect("it is readable");
        fs::set_permissions(place.tool(), fs::Permissions::from_mode(0o755)).expect("ours");
        if !capabilities.is_empty() {
            let mut setcap = Command::new("setcap");
            setcap.arg(format!("{capabilities}+ep")).arg(place.tool());
            match setcap.output() {
                Ok(output) if output.status.success() => {}
                _ => {
                    skipped_core(
                        "no setcap (apt install libcap2-bin), or a file system without capabilities",
                    );
                    return None;
                }
            }
        }
        Some(place)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn tool(&self) -> PathBuf {
        self.at("cohtrace")
    }

    /// The copy, as the user.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.tool());
        command
            .args(arguments)
            .current_dir(self.folder.path())
            .gid(USER)
            .uid(USER);
        command
    }

    fn run(&self, arguments: &[&str]) -> Ended {
        run(&mut self.command(arguments), GRACE)
    }

    /// A program that the user may run and not read.
    fn program(&self) -> PathBuf {
        let subject = Subject::new("two_counters", Variant::Plain).expect("it builds");
        let program = self.at("program");
        fs::copy(&subject.program.path, &program).expect("it is readable");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o711)).expect("ours");
        program
    }
}

/// The program, run by root.
struct Target(Child);

impl Target {
    fn start(program: &Path) -> Target {
        let mut command = Command::new(program);
        let child = command.arg("30000").stdout(Stdio::null()).spawn();
        Target(child.expect("it starts"))
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// The effective capabilities of each thread of a process, by the thread's name.
fn held(pid: u32) -> Vec<(String, u64)> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("it runs");
    let mut held = Vec::new();
    for task in tasks.flatten() {
        let Ok(status) = fs::read_to_string(task.path().join("status")) else {
            continue;
        };
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.unwrap_or_default().trim().to_owned()
        };
        let bits = |name| u64::from_str_radix(&field(name), 16).unwrap_or(u64::MAX);
        held.push((field("Name:"), bits("CapEff:") | bits("CapPrm:")));
    }
    held
}

/// Asks until the answer is yes; what the threads had at last.
#[track_caller]
fn eventually(pid: u32, is_so: impl Fn(&[(String, u64)]) -> bool) -> Vec<(String, u64)> {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let held = held(pid);
        if is_so(&held) {
            return held;
        }
        assert!(Instant::now() < deadline, "{held:x?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn only_root() -> bool {
    let root = cohtrace_tests::kernel::is_root();
    if !root {
        skipped_core("only root gives capabilities to files");
    }
    root
}

#[test]
fn the_documented_capabilities_find_and_name_what_others_run_and_fewer_are_told_apart() {
    let Some(_turn) = ready() else { return };
    let Some(place) = Place::new(OBSERVE) else {
        return;
    };
    let target = Target::start(&place.program());
    let pid = target.0.id().to_string();
    let ended = place
        .run(&["attach", "--json", "--duration", "3", "-p", &pid])
        .expect_code(0);
    let report: serde_json::Value = serde_json::from_str(&ended.stdout).expect("it is JSON");
    let name = report["findings"][0]["object"]["name"].as_str();
    assert!(
        name.is_some_and(|name| !name.is_empty()),
        "{}",
        ended.stdout
    );
    for (fewer, lacking) in [("cap_perfmon", "cap_bpf"), ("cap_bpf", "cap_perfmon")] {
        let Some(place) = Place::new(fewer) else {
            return;
        };
        let ended = place
            .run(&["attach", "--duration", "1", "-p", &pid])
            .expect_code(2);
        assert!(
            ended.stderr.contains(&format!("it takes {lacking}:")),
            "{}",
            ended.stderr
        );
        assert!(ended.stderr.contains(OBSERVE), "{}", ended.stderr);
    }
}

#[test]
fn heap_says_that_it_takes_one_right_more_and_runs_with_it() {
    let Some(_turn) = ready() else { return };
    let Some(place) = Place::new(OBSERVE) else {
        return;
    };
    place.program();
    let arguments = [
        "attach",
        "--heap",
        "--duration",
        "1",
        "--",
        "./program",
        "2000",
    ];
    let ended = place.run(&arguments);
    // Kernels between 5.8 and 6.16 may be content.
    if ended.code() == 2 {
        assert!(
            ended.stderr.contains("it takes cap_sys_admin:"),
            "{}",
            ended.stderr
        );
        assert!(
            ended
                .stderr
                .contains(&format!("{OBSERVE},cap_sys_admin+ep")),
            "{}",
            ended.stderr
        );
        let doctor = place.run(&["doctor"]).expect_code(0);
        let said = doctor
            .stdout
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        assert!(said.contains("(--heap) without cap_sys_admin"), "{said}");
    }
    let Some(more) = Place::new(&format!("{OBSERVE},cap_sys_admin")) else {
        return;
    };
    more.program();
    more.run(&arguments).expect_code(0);
    let doctor = more.run(&["doctor"]).expect_code(0);
    assert!(
        !doctor.stdout.contains("without cap_sys_admin"),
        "{}",
        doctor.stdout
    );
}

#[test]
fn what_observes_keeps_what_it_still_needs_and_its_command_has_nothing() {
    let Some(_turn) = ready() else { return };
    let Some(place) = Place::new(&format!("{OBSERVE},cap_sys_admin,cap_sys_module")) else {
        return;
    };
    place.program();
    let script = "grep -E 'Cap(Prm|Eff|Amb)' /proc/self/status > rights; exec ./program 4000";
    let mut record = place.command(&[
        "record", "-o", "run.coh", "--heap", "--", "sh", "-c", script,
    ]);
    let recording = Running::start(&mut record).expect("it starts");
    // What a thread was given when it began it has for a moment.
    let is_right = |(name, rights): &(String, u64)| {
        let expected = match &**name {
            "write" | "heap-closing" => Some(0),
            name if name.starts_with("cohtrace/") => Some(PERFMON),
            _ => None,
        };
        rights & SYS_MODULE == 0
            && (rights & SYS_ADMIN != 0) == (name == "heap-probes")
            && expected.is_none_or(|expected| *rights == expected)
    };
    let held = eventually(recording.pid(), |held| {
        place.at("rights").exists()
            && held.iter().any(|(name, _)| name == "write")
            && held.iter().all(is_right)
    });
    let main = held
        .iter()
        .find(|(name, _)| name == "cohtrace")
        .expect("it runs");
    assert_ne!(main.1 & (BPF | DAC_READ_SEARCH), 0, "{held:x?}");
    recording.wait(GRACE).expect("it ends").expect_code(0);
    let command = fs::read_to_string(place.at("rights")).expect("it ran");
    assert!(
        command
            .lines()
            .all(|line| line.ends_with("\t0000000000000000")),
        "{command}"
    );
}

#[test]
fn the_process_that_holds_threads_has_what_that_takes_and_ends_with_the_tool() {
    let Some(_turn) = ready() else { return };
    let Some(place) = Place::new(&format!("{OBSERVE},cap_sys_admin,cap_sys_module")) else {
        return;
    };
    place.program();
    let mut record = place.command(&[
        "record",
        "-o",
        "run.coh",
        "--hold",
        "2",
        "--",
        "./program",
        "4000",
    ]);
    let recording = Running::start(&mut record).expect("it starts");
    let holder = holder(recording.pid(), GRACE);
    let is_right = |(_, rights): &(String, u64)| {
        rights & !(SYS_ADMIN | PERFMON) == DAC_READ_SEARCH | SYS_PTRACE
    };
    eventually(holder, |held| held.iter().all(is_right));
    recording.signal(libc::SIGKILL);
    recording.wait(GRACE).expect("it was killed");
    let deadline = Instant::now() + Duration::from_secs(5);
    while Path::new(&format!("/proc/{holder}")).exists() {
        assert!(Instant::now() < deadline, "it outlived the tool");
    }
}

#[test]
fn ambient_capabilities_are_not_the_commands() {
    let Some(_turn) = ready() else { return };
    if !only_root() {
        return;
    }
    let Some(place) = Place::new("") else { return };
    let run_with = |program: &[&str]| {
        let set = "-all,+bpf,+perfmon";
        let mut command = Command::new("setpriv");
        command
            .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
            .args([format!("--inh-caps={set}"), format!("--ambient-caps={set}")])
            .args(program)
            .current_dir(place.folder.path());
        run(&mut command, GRACE).expect_code(0);
        let file = place.at("rights");
        let text = fs::read_to_string(&file).expect("it ran");
        fs::remove_file(file).expect("it is there");
        text
    };
    let script = "grep CapEff /proc/self/status > rights; sleep 1";
    assert!(
        !run_with(&["sh", "-c", script]).contains("0000000000000000"),
        "they are inherited"
    );
    let below = run_with(&["./cohtrace", "attach", "--", "sh", "-c", script]);
    assert!(below.contains("0000000000000000"), "{below}");
}

#[test]
fn what_observes_nothing_gives_up_all_that_it_has_first() {
    if !only_root() {
        return;
    }
    let _turn = turn::alone();
    let Some(place) = Place::new(OBSERVE) else {
        return;
    };
    // It waits for the other end of its pipe, so that it can be looked at.
    let mut import = place.command(&["import", "-", "-o", "x.coh"]);
    import
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut child = import.spawn().expect("it starts");
    let held = eventually(child.id(), |held| {
        held.iter().all(|(_, rights)| *rights == 0)
    });
    assert!(!held.is_empty());
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).expect("it runs");
    assert!(status.contains("NoNewPrivs:\t1"), "{status}");
    child
        .stdin
        .take()
        .expect("piped")
        .write_all(b"nothing")
        .ok();
    child.wait().expect("it ends");
    // The twin: root, who keeps what reaches files, and nothing of the kernel's.
    let mut import = cohtrace(["import", "-", "-o"]);
    import.arg(place.at("y.coh"));
    import
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut child = import.spawn().expect("it starts");
    let given_up = |held: &[(String, u64)]| held.iter().all(|(_, rights)| rights & SYS_ADMIN == 0);
    for (_, rights) in eventually(child.id(), given_up) {
        assert_ne!(rights & DAC_READ_SEARCH, 0);
        assert_eq!(rights & (BPF | PERFMON | SYS_MODULE), 0, "{rights:x}");
    }
    drop(child.stdin.take());
    child.wait().expect("it ends");
}

#[test]
fn files_that_are_named_are_opened_with_the_rights_of_who_names_them() {
    let Some(_turn) = ready() else { return };
    let Some(place) = Place::new(&format!("{OBSERVE},cap_dac_override,cap_chown")) else {
        return;
    };
    let secret = place.at("secret");
    fs::create_dir(&secret).expect("ours");
    let record = |session: &Path| {
        let mut record = cohtrace(["record", "--duration", "1", "-o"]);
        run(record.arg(session).args(["--", "sleep", "2"]), GRACE).expect_code(0);
    };
    record(&secret.join("run.coh"));
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o700)).expect("ours");
    let attach = ["attach", "--duration", "1"];
    let command = ["--", "touch", "ran"];
    for arguments in [
        &["report", "secret/run.coh"][..],
        &["diff", "secret/run.coh", "secret/run.coh"],
        &["hints", "secret/run.coh/meta.json"],
        &["import", "secret/run.coh/meta.json", "-o", "x.coh"],
        &["export", "secret/run.coh", "--perf-data", "perf.data"],
        &[&attach[..], &["-o", "secret/report"], &command].concat(),
        &[&attach[..], &["--record", "secret/new.coh"], &command].concat(),
        &[
            "record",
            "--duration",
            "1",
            "-o",
            "secret/new.coh",
            "--",
            "touch",
            "ran",
        ],
    ] {
        let ended = place.run(arguments).expect_code(2);
        assert!(
            ended.stderr.contains("Permission denied"),
            "{arguments:?}\n{}",
            ended.said()
        );
    }
    assert_eq!(
        fs::read_dir(&secret).expect("ours").count(),
        1,
        "nothing was made there"
    );
    // The twins: root may, and the user may in a directory of theirs.
    run(cohtrace(["report"]).arg(secret.join("run.coh")), GRACE).expect_code(0);
    let theirs = place.at("theirs");
    fs::create_dir(&theirs).expect("ours");
    chown(&theirs, Some(USER), Some(USER)).expect("we are root");
    fs::set_permissions(&theirs, fs::Permissions::from_mode(0o700)).expect("ours");
    place
        .run(
            &[
                &attach[..],
                &["-o", "theirs/report", "--record", "theirs/run.coh"],
                &command,
            ]
            .concat(),
        )
        .expect_code(0);
    place.run(&["report", "theirs/run.coh"]).expect_code(0);
    run(cohtrace(["report"]).arg(theirs.join("run.coh")), GRACE).expect_code(0);
}
