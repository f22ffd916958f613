//! The emulated source: programs run in QEMU, every access of which is known beforehand.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::Path,
    process::Command,
    time::Duration,
};

use cohtrace::{
    access::{Access, Basis, LineSize, Op},
    event::{Batch, Context, ContextKind, Tally},
    session::SessionReader,
};
use cohtrace_tests::{
    answer::Variant,
    emulated::{build, record},
    kernel,
    live::{GRACE, Subject, has_emulator, skipped_core},
    tool::{Running, cohtrace, path, run},
};

/// Rounds of each loop of [`COUNTED`].
const ROUNDS: u64 = 20_000;
/// Threads on lines of their own, and all on one; in each way of changing a number. Prints where.
const COUNTED: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
static _Alignas(64) long plain[8][8], added[8][8], locked[8], hinted[8][8];
static void *work(void *which) {
    long n = (long)which;
    for (int i = 0; i < 20000; i++)
        __asm__ volatile("mov (%0),%%rax; inc %%rax; mov %%rax,(%0)" :: "r"(plain[n]) : "rax", "memory");
    for (int i = 0; i < 20000; i++)
        __asm__ volatile("addq $1,(%0)" :: "r"(added[n]) : "memory");
    for (int i = 0; i < 20000; i++)
        __asm__ volatile("lock addq $1,(%0)" :: "r"(locked) : "memory");
    for (int i = 0; i < 20000; i++)
        __asm__ volatile("prefetchw 8(%0); mov 8(%0),%%rax" :: "r"(hinted[n]) : "rax", "memory");
    return NULL;
}
int main(int argc, char **argv) {
    long threads = argc > 1 ? atol(argv[1]) : 1;
    pthread_t others[8];
    printf("%p %p %p %p\n", (void *)plain, (void *)added, (void *)locked, (void *)hinted);
    fflush(stdout);
    for (long n = 1; n < threads; n++)
        pthread_create(&others[n], NULL, work, (void *)n);
    work(NULL);
    for (long n = 1; n < threads; n++)
        pthread_join(others[n], NULL);
    return 0;
}
"#;

fn attach(options: &[&str], command: &[&str]) -> Command {
    let mut tool = cohtrace(["attach", "--quiet", "--source", "emulate"]);
    tool.args(options).arg("--").args(command);
    tool
}

/// Everything in a session.
#[derive(Default)]
struct Recorded {
    accesses: Vec<Access>,
    context: Vec<Context>,
    tally: Tally,
    caveats: Vec<String>,
}

fn read(session: &Path) -> Recorded {
    let mut reader = SessionReader::open(session).expect("the session reads");
    let mut recorded = Recorded::default();
    let mut batch = Batch::default();
    while reader.next_batch(&mut batch).expect("the session reads") {
        recorded.accesses.append(&mut batch.accesses);
        recorded.context.append(&mut batch.context);
        recorded.tally.add(&batch.tally);
        batch.clear();
    }
    recorded.caveats.clone_from(&reader.meta().caveats);
    recorded
}

/// Executions by processor and kind, at one address.
fn executions(recorded: &Recorded, addr: u64) -> BTreeMap<(u32, &'static str, bool), u64> {
    let mut counts = BTreeMap::new();
    for access in recorded
        .accesses
        .iter()
        .filter(|access| access.addr == addr)
    {
        let op = match access.op {
            Op::Load => "load",
            Op::Store => "store",
            Op::Rmw => "rmw",
            Op::PrefetchOwn => "prefetchw",
            Op::Prefetch | Op::Unknown => "other",
        };
        *counts.entry((access.cpu.0, op, access.locked)).or_default() += access.executions();
    }
    counts
}

fn check_counts(threads: u32, flags: &[&str]) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let program = build(directory.path(), "counted", COUNTED, flags);
    let session = directory.path().join("counted.coh");
    let command = [
        program.to_str().expect("a plain path"),
        &threads.to_string(),
    ];
    let ended = record(&session, &command).expect_code(0);
    let recorded = read(&session);
    let at: Vec<u64> = ended
        .stdout
        .split_whitespace()
        .map(|word| u64::from_str_radix(word.trim_start_matches("0x"), 16).expect("an address"))
        .collect();
    let [plain, added, locked, hinted] = at[..] else {
        panic!("four addresses: {}", ended.said());
    };
    let mut all_locked = 0;
    for n in 0..threads {
        let line = u64::from(n) * 64;
        let expected =
            BTreeMap::from([((n, "load", false), ROUNDS), ((n, "store", false), ROUNDS)]);
        assert_eq!(
            executions(&recorded, plain + line),
            expected,
            "plain of thread {n}"
        );
        let expected = BTreeMap::from([((n, "rmw", false), ROUNDS)]);
        assert_eq!(
            executions(&recorded, added + line),
            expected,
            "added of thread {n}"
        );
        let mut hinted = executions(&recorded, hinted + line + 8);
        assert!(
            hinted
                .remove(&(n, "prefetchw", false))
                .is_some_and(|rows| rows >= 1)
        );
        assert_eq!(
            hinted,
            BTreeMap::from([((n, "load", false), ROUNDS)]),
            "hinted of thread {n}"
        );
        all_locked += executions(&recorded, locked)[&(n, "rmw", true)];
    }
    assert_eq!(all_locked, u64::from(threads) * ROUNDS);
    assert_eq!(executions(&recorded, locked).len(), threads as usize);
    let tally = &recorded.tally;
    assert_eq!((tally.produced, tally.lost_total()), (tally.executions, 0));
    let all = recorded
        .accesses
        .iter()
        .filter(|access| access.op.touches());
    let all: u64 = all.map(Access::executions).sum();
    assert_eq!((all, tally.samples), (tally.executions, 0));
    assert!(
        recorded
            .accesses
            .iter()
            .all(|access| access.basis == Basis::Emulated)
    );
    assert!(recorded.accesses.is_sorted_by_key(|access| access.time_ns));
}

#[test]
fn one_thread_is_counted_exactly() {
    if has_emulator() {
        check_counts(1, &[]);
    }
}

#[test]
fn two_threads_are_counted_exactly() {
    if has_emulator() {
        check_counts(2, &[]);
    }
}

#[test]
fn four_threads_of_a_static_program_are_counted_exactly() {
    if has_emulator() {
        check_counts(4, &["-static"]);
    }
}

/// Lines on which at least two threads store more than a few times while both are there.
fn fought_over(recorded: &Recorded) -> usize {
    let mut stores: BTreeMap<u64, BTreeMap<u32, u64>> = BTreeMap::new();
    for access in recorded.accesses.iter().filter(|access| access.op.stores()) {
        let line = access.addr / LineSize::B64.bytes();
        *stores
            .entry(line)
            .or_default()
            .entry(access.cpu.0)
            .or_default() += 1;
    }
    let fights = |threads: &BTreeMap<u32, u64>| threads.values().filter(|n| **n > 100).count() > 1;
    stores.values().filter(|threads| fights(threads)).count()
}

#[test]
fn a_falsely_shared_line_has_rows_of_both_threads_and_its_padded_twin_has_none() {
    if !has_emulator() {
        return;
    }
    for (variant, lines) in [(Variant::Plain, 1), (Variant::Padded, 0)] {
        let subject = Subject::new("two_counters", variant).expect("it builds");
        let directory = tempfile::tempdir().expect("a temporary directory");
        let session = directory.path().join("two.coh");
        let program = subject.program.path.to_str().expect("a plain path");
        record(&session, &[program, "300"]).expect_code(0);
        let recorded = read(&session);
        assert_eq!(fought_over(&recorded), lines, "{variant:?}");
        // pthread_setname_np by the thread itself, or by its starter.
        let named = |name: &str| {
            recorded
                .context
                .iter()
                .any(|c| matches!(&c.kind, ContextKind::Comm { comm, .. } if comm == name))
        };
        assert!(named("hits") && named("misses"));
    }
}

#[test]
fn what_was_recorded_is_counted_in_executions_and_not_in_samples() {
    if !has_emulator() {
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let program = build(directory.path(), "counted", COUNTED, &[]);
    let session = directory.path().join("counted.coh");
    let mut tool = cohtrace(["record", "--source", "emulate", "--output"]);
    tool.arg(&session).arg("--").arg(program);
    let ended = run(&mut tool, GRACE).expect_code(0);
    let recorded = read(&session);
    let (executions, rows) = (recorded.tally.executions, recorded.accesses.len());
    let said =
        format!("recorded {executions} executions ({rows} rows, 0 executions lost); now run");
    assert!(ended.stderr.contains(&said), "{said}\n{}", ended.said());
    assert!(!ended.stderr.contains("sample"), "{}", ended.said());
}

#[test]
fn it_needs_no_rights() {
    if !has_emulator() {
        return;
    }
    if !kernel::is_root() {
        skipped_core("not root, so every other test here shows it");
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let place = directory.path();
    fs::set_permissions(place, fs::Permissions::from_mode(0o777)).expect("ours");
    let program = build(place, "counted", COUNTED, &[]);
    let tool = place.join("cohtrace");
    fs::copy(path().expect("the tool builds"), &tool).expect("it copies");
    let mut command = Command::new(&tool);
    command
        .args([
            "record",
            "--quiet",
            "--source",
            "emulate",
            "--output",
            "nobody.coh",
            "--",
        ])
        .arg(&program)
        .current_dir(place)
        .uid(65534)
        .gid(65534);
    run(&mut command, GRACE).expect_code(0);
    assert!(read(&place.join("nobody.coh")).accesses.len() > 100);
}

#[test]
fn what_cannot_be_emulated_is_refused_with_advice() {
    if !has_emulator() {
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = |name: &str, bytes: &[u8], mode: u32| {
        let file = directory.path().join(name);
        fs::write(&file, bytes).expect("writable");
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).expect("ours");
        file.display().to_string()
    };
    let script = file("script", b"#!/bin/sh\nexit 0\n", 0o755);
    let mut foreign = b"\x7fELF\x02\x01".to_vec();
    foreign.resize(64, 0);
    foreign[18] = 183;
    let foreign = file("foreign", &foreign, 0o755);
    let mut empty = b"\x7fELF\x02\x01".to_vec();
    empty.resize(64, 0);
    empty[18] = 62;
    let empty = file("empty", &empty, 0o755);
    let cases: [(&[&str], &[&str], &str); 10] = [
        (&[], &[&script], "script"),
        (&[], &[&foreign], "aarch64"),
        (&[], &[&empty], "ran nothing of"),
        (&[], &["no-such-program"], "no-such-program"),
        (&["--heap"], &["true"], "--heap does not go with"),
        (&["--watch", "x"], &["true"], "--watch does not go with"),
        (&["-F", "99"], &["true"], "does not go with"),
        (&["--ldlat", "30"], &["true"], "--ldlat does not go with"),
        (
            &["--qemu", "/no/such/qemu"],
            &["true"],
            "/no/such/qemu is no file",
        ),
        (&["--qemu", "/bin/true"], &["true"], "--enable-plugins"),
    ];
    for (options, command, says) in cases {
        let ended = run(&mut attach(options, command), GRACE).expect_code(2);
        assert!(
            ended.stderr.contains(says),
            "{options:?} {command:?}\n{}",
            ended.said()
        );
    }
    let running = ["attach", "--source", "emulate", "-p", "1"];
    let ended = run(&mut cohtrace(running), GRACE).expect_code(2);
    assert!(ended.stderr.contains("after `--`"), "{}", ended.said());
    let mut without = attach(&[], &["/bin/true"]);
    without
        .env("PATH", directory.path())
        .env_remove("COHTRACE_QEMU");
    let ended = run(&mut without, GRACE).expect_code(2);
    assert!(
        ended.stderr.contains("apt install qemu-user"),
        "{}",
        ended.said()
    );
}

const ENDLESS: &str = "
    static volatile long count;
    int main(void) { for (;;) count++; }
";

#[test]
fn a_signal_or_the_duration_ends_it_with_a_report() {
    if !has_emulator() {
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let program = build(directory.path(), "endless", ENDLESS, &[]);
    let program = program.to_str().expect("a plain path");
    let running = Running::start(&mut attach(&["--json"], &[program])).expect("it starts");
    std::thread::sleep(Duration::from_millis(1500));
    running.signal(libc::SIGINT);
    let ended = running.wait(GRACE).expect("it ends").expect_code(0);
    assert!(ended.stdout.contains("\"findings\""), "{}", ended.said());
    let mut timed = attach(&["--json", "--duration", "0.5"], &[program]);
    let ended = run(&mut timed, GRACE).expect_code(0);
    assert!(ended.stdout.contains("\"findings\""), "{}", ended.said());
    assert!(!is_running(program), "the program outlived the tool");
}

/// Whether a process has this word in its command line.
fn is_running(word: &str) -> bool {
    let processes = fs::read_dir("/proc").expect("there is /proc").flatten();
    let lines = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
    lines.into_iter().any(|line| {
        line.split(|byte| *byte == 0)
            .any(|part| part == word.as_bytes())
    })
}

#[test]
fn the_program_ends_when_the_tool_is_killed_or_runs_on_unobserved() {
    if !has_emulator() {
        return;
    }
    // Each line is new, so that the ring is soon full.
    let source = "
        #include <stdlib.h>
        int main(void) {
            volatile char *memory = malloc(64 << 20);
            for (int n = 0; n < 6; n++)
                for (long i = 0; i < 64 << 20; i += 64) memory[i]++;
        }
    ";
    let directory = tempfile::tempdir().expect("a temporary directory");
    let program = build(directory.path(), "writer", source, &[]);
    let program = program.to_str().expect("a plain path");
    let running = Running::start(&mut attach(&[], &[program])).expect("it starts");
    std::thread::sleep(Duration::from_millis(700));
    running.signal(libc::SIGKILL);
    running.wait(GRACE).expect("it is dead");
    let deadline = std::time::Instant::now() + GRACE;
    while is_running(program) {
        assert!(std::time::Instant::now() < deadline, "the program hangs");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn children_are_processes_of_their_own_and_the_way_the_program_ended_is_said() {
    if !has_emulator() {
        return;
    }
    let source = "
        #include <stdlib.h>
        #include <sys/wait.h>
        #include <unistd.h>
        int main(void) {
            for (int n = 0; n < 2; n++)
                if (fork() == 0) { char *p = malloc(100); p[0] = 1; _exit(p[0] - 1); }
            while (wait(NULL) > 0) ;
            abort();
        }
    ";
    let directory = tempfile::tempdir().expect("a temporary directory");
    let program = build(directory.path(), "parent", source, &[]);
    let session = directory.path().join("parent.coh");
    record(&session, &[program.to_str().expect("a plain path")]).expect_code(0);
    let recorded = read(&session);
    let says = |what: &str| recorded.caveats.iter().any(|caveat| caveat.contains(what));
    assert!(!says("child processes"), "{:?}", recorded.caveats);
    assert!(says("signal: 6"), "{:?}", recorded.caveats);
    let whose = recorded.accesses.iter().map(|a| (a.pid, a.tid, a.cpu.0));
    let whose: BTreeSet<_> = whose.collect();
    let pids: BTreeSet<_> = whose.iter().map(|(pid, ..)| pid).collect();
    assert_eq!((whose.len(), pids.len()), (3, 3), "{whose:?}");
}

#[test]
fn a_library_that_is_loaded_later_is_mapped_as_code() {
    if !has_emulator() {
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let library = "long total; void add(long n) { for (long i = 0; i < n; i++) total += i; }";
    let library = build(directory.path(), "later.so", library, &["-shared", "-fPIC"]);
    let library = library.to_str().expect("a plain path");
    let source = format!(
        "#include <dlfcn.h>
         int main(void) {{
             void *loaded = dlopen(\"{library}\", RTLD_NOW);
             ((void (*)(long))dlsym(loaded, \"add\"))(1000);
             return 0;
         }}"
    );
    let program = build(directory.path(), "loader", &source, &["-ldl"]);
    let session = directory.path().join("loader.coh");
    record(&session, &[program.to_str().expect("a plain path")]).expect_code(0);
    let recorded = read(&session);
    let code = |path: &str| {
        recorded
            .context
            .iter()
            .find_map(|context| match &context.kind {
                ContextKind::Mapping { mapping, .. }
                    if mapping.executable && mapping.name == path =>
                {
                    Some(mapping.clone())
                }
                _ => None,
            })
    };
    let code_of = code(library).expect("its code is mapped");
    let inside = recorded
        .accesses
        .iter()
        .filter(|access| code_of.contains(access.ip));
    assert!(inside.count() > 2);
    assert!(code(program.to_str().expect("a plain path")).is_some());
    let names = |word: &str| {
        recorded.context.iter().any(
            |c| matches!(&c.kind, ContextKind::Mapping { mapping, .. } if mapping.name.contains(word)),
        )
    };
    assert!(names("[heap]") && names("[stack]"));
    assert!(
        !names("qemu") && !names("memfd"),
        "the emulator's own are not the program's"
    );
}
