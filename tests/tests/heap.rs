//! Heap memory by where it was allocated: the right place, at the right time, within the budget, and nothing left.

mod pages;

use std::{
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use cohtrace_tests::{
    answer::{
        Observer,
        Variant::{self, Plain},
    },
    kernel,
    live::{GRACE, RUN_MS, Subject, ready, skipped_core},
    tool::{Ended, Running, cohtrace, run},
    workload::target_directory,
};
use serde_json::Value;

/// Looks that a workload may take, as sampling is a matter of chance.
const LOOKS: u32 = 3;

/// One allocation that a report must name.
struct Expected<'a> {
    function: &'a str,
    size: u64,
    /// Function and tag of the program's own innermost call.
    site: (&'a str, &'a str),
}

/// Runs the tool on a workload until it finds its answer, and compares the allocations of the first finding.
fn names(name: &str, variant: Variant, expected: &[Expected<'_>]) {
    names_each(name, variant, &[expected]);
}

/// As [`names`], of several findings, whichever costs most.
fn names_each(name: &str, variant: Variant, expected: &[&[Expected<'_>]]) {
    let Some(_turn) = ready() else { return };
    let subject = Subject::new(name, variant).unwrap_or_else(|error| panic!("{error:#}"));
    for look in 1..=LOOKS {
        let mut command = cohtrace(["attach", "--json", "--heap", "--duration", "2", "--"]);
        command.arg(&subject.program.path).arg(RUN_MS.to_string());
        let ended = run(&mut command, Duration::from_millis(RUN_MS) + GRACE).expect_code(0);
        match subject.judge(&ended) {
            Ok(()) => return compare_all(&subject, &json(&ended), expected),
            Err(error) if look == LOOKS => panic!("{error:#}"),
            // The next look may see more.
            Err(_) => {}
        }
    }
}

fn json(ended: &Ended) -> Value {
    serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}\n{}", ended.said()))
}

fn compare_all(subject: &Subject, report: &Value, expected: &[&[Expected<'_>]]) {
    let line = |finding: &Value| {
        let site = finding["allocations"][0]["site"].as_u64()?;
        finding["allocations"][0]["stack"][site as usize]["line"].as_u64()
    };
    let mut findings: Vec<&Value> = report["findings"]
        .as_array()
        .into_iter()
        .flatten()
        .collect();
    if expected.len() > 1 {
        findings.sort_by_key(|finding| line(finding));
    }
    assert!(findings.len() >= expected.len(), "{findings:#?}");
    for (finding, expected) in findings.into_iter().zip(expected) {
        compare(subject, report, finding, expected);
    }
}

fn compare(subject: &Subject, report: &Value, finding: &Value, expected: &[Expected<'_>]) {
    let found = finding["allocations"].as_array().expect("a list");
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for (found, expected) in found.iter().zip(expected) {
        assert_eq!(found["function"], expected.function, "{found:#}");
        assert_eq!(found["size"], expected.size, "{found:#}");
        assert_eq!(found["certain"], true, "{found:#}");
        let site = found["site"].as_u64().expect("the program's own call") as usize;
        let call = &found["stack"][site];
        let (function, tag) = expected.site;
        let symbol = call["symbol"].as_str().unwrap_or_default();
        assert!(
            symbol
                .split('(')
                .next()
                .is_some_and(|name| name.ends_with(function)),
            "{call:#}"
        );
        let line =
            cohtrace_tests::answer::tagged_line(&subject.workload.text, tag).expect("the tag");
        assert_eq!(call["line"], line, "{call:#}");
        // Every program's first call is main.
        let stack = found["stack"].as_array().expect("calls");
        let is_main = |call: &Value| {
            call["symbol"]
                .as_str()
                .is_some_and(|name| name == "main" || name.ends_with("::main"))
        };
        assert!(stack.iter().any(is_main), "no main in {stack:#?}");
    }
    let name = finding["object"]["name"].as_str().unwrap_or_default();
    assert!(
        expected
            .iter()
            .any(|one| name.starts_with(&format!("{} of {} bytes at ", one.function, one.size))),
        "the object is called {name}"
    );
    assert_eq!(finding["object"]["kind"], "heap");
    let heap = &report["run"]["heap"];
    assert_eq!(heap["lost"], 0, "{heap}");
    assert!(
        heap["allocations"].as_u64() >= Some(expected.len() as u64),
        "{heap}"
    );
}

#[test]
fn two_small_mallocs_on_one_line_are_named_by_the_line_of_each() {
    let one = |site| Expected {
        function: "malloc",
        size: 24,
        site,
    };
    let both = [
        one(("make_producer", "@producer")),
        one(("make_consumer", "@consumer")),
    ];
    names("two_mallocs", Plain, &both);
}

#[test]
fn slots_of_a_calloc_are_one_object_named_by_the_call_and_its_callers() {
    let calloc = Expected {
        function: "calloc",
        size: 128,
        site: ("zeroed", "@calloc"),
    };
    names("calloc_slots", Plain, &[calloc]);
}

#[test]
fn objects_by_new_are_named_by_the_line_of_the_new() {
    let one = |site| Expected {
        function: "operator new",
        size: 8,
        site,
    };
    let both = [
        one(("make_sender", "@sender")),
        one(("make_receiver", "@receiver")),
    ];
    names("two_news", Plain, &both);
}

#[test]
fn mapped_pages_are_named_by_the_line_of_the_mmap() {
    let mmap = |tag| Expected {
        function: "mmap",
        size: 16,
        site: ("main", tag),
    };
    names_each(
        "remapper",
        Plain,
        &[&[mmap("@first_mmap")], &[mmap("@second_mmap")]],
    );
}

#[test]
fn boxes_are_named_by_the_line_of_the_box() {
    let both = [
        Expected {
            function: "malloc",
            size: 8,
            site: ("make_sent", "@make_sent"),
        },
        Expected {
            function: "malloc",
            size: 16,
            site: ("make_received", "@make_received"),
        },
    ];
    names("two_boxes", Plain, &both);
}

#[test]
fn a_block_that_was_freed_and_reallocated_is_named_by_its_last_owner() {
    let grown = Expected {
        function: "realloc",
        size: 56,
        site: ("grown", "@grown"),
    };
    names("reused_block", Plain, &[grown]);
}

/// The tool on a built workload with further arguments.
fn attach(arguments: &[&str], subject: &Subject) -> Ended {
    let mut command = cohtrace(["attach", "--json", "--duration", "2"]);
    command.args(arguments).arg("--").arg(&subject.program.path);
    run(
        command.arg(RUN_MS.to_string()),
        Duration::from_millis(RUN_MS) + GRACE,
    )
    .expect_code(0)
}

#[test]
fn without_heap_nothing_is_said_of_allocations() {
    let Some(_turn) = ready() else { return };
    let subject = Subject::new("two_mallocs", Plain).expect("it builds");
    let report = json(&attach(&[], &subject));
    assert_eq!(report["run"]["heap"], Value::Null);
    for finding in report["findings"].as_array().expect("a list") {
        assert_eq!(finding["allocations"], Value::Array(Vec::new()));
        assert_eq!(finding["object"]["allocation"], Value::Null);
    }
}

#[test]
fn objects_below_the_least_size_have_no_name() {
    let Some(_turn) = ready() else { return };
    let subject = Subject::new("two_mallocs", Plain).expect("it builds");
    let report = json(&attach(&["--heap", "--heap-min", "25"], &subject));
    assert_eq!(report["run"]["heap"]["least_bytes"], 25);
    for finding in report["findings"].as_array().expect("a list") {
        assert_eq!(finding["allocations"], Value::Array(Vec::new()));
    }
}

#[test]
fn a_recorded_heap_reports_as_it_did_live() {
    let Some(_turn) = ready() else { return };
    let subject = Subject::new("two_mallocs", Plain).expect("it builds");
    let directory =
        tempfile::tempdir_in(target_directory().expect("a directory")).expect("a directory");
    let session = directory.path().join("heap.coh");
    let kept = session.display().to_string();
    let live = json(&attach(&["--heap", "--record", &kept], &subject));
    let ended = run(cohtrace(["report", "--json"]).arg(&session), GRACE).expect_code(0);
    let replayed = json(&ended);
    assert_eq!(live["run"]["heap"], replayed["run"]["heap"]);
    assert!(live["run"]["heap"]["allocations"].as_u64() > Some(0));
    for list in ["findings", "insignificant"] {
        assert_eq!(live[list], replayed[list], "{list}");
    }
}

/// Builds a C program that is no workload: it has no answer but its allocations.
fn build(name: &str, source: &str, flags: &[&str]) -> std::path::PathBuf {
    let directory = target_directory().expect("a directory").join("heap");
    std::fs::create_dir_all(&directory).expect("a directory");
    let path = directory.join(name);
    let file = path.with_extension("c");
    std::fs::write(&file, source).expect("room");
    let mut command = Command::new("cc");
    command
        .args(["-O2", "-g", "-pthread"])
        .args(flags)
        .arg(&file)
        .arg("-o")
        .arg(&path);
    let output = command.output().expect("cc is there");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    path
}

const STORM: &str = r#"
#include <stdlib.h>
#include <time.h>
int main(void) {
    struct timespec start, now;
    clock_gettime(CLOCK_MONOTONIC, &start);
    do {
        for (int n = 0; n < 1000; n++) {
            void *block = malloc(24);
            __asm__ volatile("" : : "r"(block) : "memory");
            free(block);
        }
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (now.tv_sec - start.tv_sec < 30);
    return 0;
}
"#;

#[test]
fn a_storm_of_mallocs_is_followed_for_a_part_of_the_time_and_that_is_said() {
    let Some(_turn) = ready() else { return };
    let storm = build("storm", STORM, &[]);
    let mut command = cohtrace([
        "attach",
        "--json",
        "--no-watch",
        "--heap",
        "--duration",
        "8",
        "--",
    ]);
    let ended = run(command.arg(&storm), Duration::from_secs(8) + GRACE).expect_code(0);
    let report = json(&ended);
    let heap = &report["run"]["heap"];
    let share = |name: &str| {
        heap[name]
            .as_f64()
            .unwrap_or_else(|| panic!("no {name}: {heap}"))
    };
    assert!(share("followed_share") < 0.9, "{heap}");
    // What is saved up for the start, and one round of taking probes out, come on top in a short run.
    assert!(share("spent_share") < 3.0 * share("budget_share"), "{heap}");
    assert!(heap["allocations"].as_u64() > Some(1000), "{heap}");
    let caveats = report["caveats"].to_string();
    assert!(
        caveats.contains("Heap allocations were followed"),
        "{caveats}"
    );
}

#[test]
fn after_sigkill_no_probe_stays() {
    let Some(_turn) = ready() else { return };
    let storm = build("storm", STORM, &[]);
    let mut target = Running::start(&mut Command::new(&storm)).expect("it starts");
    let pid = target.pid().to_string();
    let breakpoints = || kernel::changed_code(target.pid(), "libc").expect("it runs");
    let deadline = Instant::now() + GRACE;
    let has_libc = || {
        let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
        maps.lines()
            .any(|line| line.contains(" r-xp ") && line.contains("libc"))
    };
    while !has_libc() {
        assert!(Instant::now() < deadline, "it does not load its libc");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(breakpoints(), 0);
    let mut attach = cohtrace([
        "attach",
        "--json",
        "--heap",
        "--heap-overhead",
        "100",
        "-p",
        &pid,
    ]);
    let tool = Running::start(&mut attach).expect("cohtrace starts");
    let wait = |wish: &str, is_met: &dyn Fn(usize) -> bool| {
        let deadline = Instant::now() + Duration::from_secs(20);
        while !is_met(breakpoints()) {
            assert!(Instant::now() < deadline, "{wish}");
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    wait("no probe came", &|now| now > 0);
    tool.signal(libc::SIGKILL);
    tool.wait(GRACE).expect("it was killed");
    wait("probes stayed", &|now| now == 0);
    assert!(target.is_running(), "the target died with the tool");
}

const TWO_BLOCKS: &str = r#"
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
static volatile int stop;
static void *count(void *argument) {
    volatile unsigned long *mine = argument;
    while (!stop)
        ++*mine;
    return 0;
}
static __attribute__((noinline)) unsigned long *make(void) {
    unsigned long *made = malloc(48);
    __asm__ volatile("" : "+r"(made));
    return made;
}
int main(void) {
    unsigned long *both = make();
    pthread_t one, other;
    pthread_create(&one, 0, count, &both[0]);
    pthread_create(&other, 0, count, &both[1]);
    usleep(2500000);
    stop = 1;
    pthread_join(one, 0);
    pthread_join(other, 0);
    return 0;
}
"#;

/// The program's block is named, whatever allocator gave it.
fn names_the_block(command: &mut Command, function: &str) {
    names_made(command, function, 48, 0);
}

/// What `make` allocated is named, and how far behind its first byte the line is (all but the last bits).
fn names_made(command: &mut Command, function: &str, size: u64, offset: i64) {
    for look in 1..=LOOKS {
        let report = json(&run(command, Duration::from_secs(3) + GRACE).expect_code(0));
        let found = &report["findings"][0]["allocations"][0];
        if found.is_null() && look < LOOKS {
            continue;
        }
        assert_eq!(found["function"], function, "{report:#}");
        assert_eq!(found["size"], size, "{found:#}");
        assert_eq!(found["certain"], true, "{found:#}");
        let away = found["offset"].as_i64().expect("a number") - offset;
        assert!(away.abs() < 64, "{found:#}");
        let site = found["site"].as_u64().expect("the program's own call") as usize;
        assert_eq!(found["stack"][site]["symbol"], "make", "{found:#}");
        return;
    }
}

fn observe(program: &Path) -> Command {
    let mut command = cohtrace(["attach", "--json", "--heap", "--duration", "2", "--"]);
    command.arg(program);
    command
}

#[test]
fn allocators_that_are_loaded_in_place_of_libcs_are_followed() {
    let Some(_turn) = ready() else { return };
    let program = build("two_blocks", TWO_BLOCKS, &[]);
    for library in [
        "libjemalloc.so.2",
        "libtcmalloc_minimal.so.4",
        "libmimalloc.so.2",
    ] {
        let places = [
            "/usr/lib/x86_64-linux-gnu",
            "/usr/lib/aarch64-linux-gnu",
            "/usr/lib64",
            "/usr/lib",
        ];
        let found = places
            .iter()
            .map(|place| Path::new(place).join(library))
            .find(|path| path.exists());
        let Some(path) = found else {
            skipped_core(format_args!("{library} is not installed"));
            continue;
        };
        let mut command = observe(&program);
        names_the_block(command.env("LD_PRELOAD", path), "malloc");
    }
}

#[test]
fn a_static_programs_own_allocator_is_followed() {
    let Some(_turn) = ready() else { return };
    let program = build("two_blocks_static", TWO_BLOCKS, &["-static"]);
    names_the_block(&mut observe(&program), "malloc");
}

const FORKED: &str = r#"
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static void *count(void *argument) {
    volatile unsigned long *mine = argument;
    for (;;)
        ++*mine;
    return 0;
}
static __attribute__((noinline)) unsigned long *inherited(void) {
    unsigned long *made = malloc(48);
    __asm__ volatile("" : "+r"(made));
    return made;
}
static __attribute__((noinline)) unsigned long *own(void) {
    unsigned long *made = malloc(200);
    __asm__ volatile("" : "+r"(made));
    return (unsigned long *)(((unsigned long)made + 63) / 64 * 64);
}
static void fight(unsigned long *both) {
    pthread_t thread;
    pthread_create(&thread, 0, count, &both[0]);
    pthread_create(&thread, 0, count, &both[1]);
}
int main(void) {
    unsigned long *old = inherited();
    if (fork() == 0) {
        // Until the child's own probes are in.
        sleep(2);
        unsigned long *new = own();
        fight(old);
        fight(new);
        sleep(4);
        _exit(0);
    }
    wait(0);
    return 0;
}
"#;

#[test]
fn a_forked_child_is_followed_and_what_it_inherits_is_in_doubt() {
    let Some(_turn) = ready() else { return };
    let program = build("forked", FORKED, &[]);
    for look in 1..=LOOKS {
        let mut command = cohtrace(["attach", "--json", "--heap", "--duration", "6", "--"]);
        let report =
            json(&run(command.arg(&program), Duration::from_secs(7) + GRACE).expect_code(0));
        let lists = ["findings", "insignificant"].map(|list| report[list].as_array().cloned());
        let of_size = |size: u64| {
            let lines = lists.iter().flatten().flatten();
            let mut objects =
                lines.flat_map(|line| line["allocations"].as_array().cloned().unwrap_or_default());
            objects.find(|object| object["size"] == size)
        };
        match (of_size(48), of_size(200)) {
            (Some(old), Some(new)) => {
                assert_eq!(
                    old["certain"], false,
                    "frees of the child were missed at first: {old:#}"
                );
                assert_eq!(new["certain"], true, "{new:#}");
                assert_eq!(new["stack"][0]["symbol"], "own", "{new:#}");
                return;
            }
            _ if look < LOOKS => {}
            missing => panic!("{missing:?} in {report:#}"),
        }
    }
}

#[test]
fn the_heaps_of_all_processes_cannot_be_followed() {
    let ended = run(&mut cohtrace(["attach", "-a", "--heap"]), GRACE).expect_code(2);
    assert!(
        ended.stderr.contains("--heap") && ended.stderr.contains("--all"),
        "{}",
        ended.said()
    );
}

/// An answer that is seen here alone is one that somebody must look at.
#[test]
fn every_workload_whose_allocations_are_compared_is_compared() {
    let text = include_str!("heap.rs");
    let workloads = cohtrace_tests::workload::all().expect("the workloads are readable");
    for workload in workloads {
        for answer in &workload.answers {
            let call = format!("(\"{}\", {:?}, ", workload.name, answer.variant);
            let is_here = answer.observer != Observer::Allocations
                || ["names", "names_each"]
                    .iter()
                    .any(|name| text.contains(&format!("{name}{call}")));
            assert!(is_here, "no test says names{call}..)");
        }
    }
}
