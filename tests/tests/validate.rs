//! Whether the tool's own counts are right: programs are asked to do so many events, each in a process of its own.

use std::{path::Path, thread, time::Duration};

use cohtrace::validate::{
    events::{Counter, EVENTS, Event, named},
    run::{self, Machinery, Plan, Row},
};
use cohtrace_tests::{
    live::{GRACE, has_emulator, ready, ready_to_watch},
    tool::{Ended, Running, cohtrace, run},
};
use serde_json::Value;

/// Runs `validate` with `--json`.
fn validate(arguments: &[&str]) -> Ended {
    let mut tool = cohtrace(["validate", "--json"]);
    run(tool.args(arguments), GRACE * 3)
}

/// The events of a document.
fn events(ended: &Ended) -> Vec<Value> {
    let document: Value = serde_json::from_str(&ended.stdout)
        .unwrap_or_else(|error| panic!("{error}\n{}", ended.said()));
    assert_eq!(document["schema"], 1);
    let events = document["events"].as_array();
    events.expect("the document has events").clone()
}

/// Panics unless every count of every event is what was asked for.
fn assert_exact(ended: &Ended) {
    for event in events(ended) {
        let name = &event["event"];
        assert_eq!(event["missing"], Value::Null, "{name}");
        assert_eq!(event["class"], "none", "{name}");
        assert_eq!(event["lost"], 0, "{name}");
        let sizes = event["sizes"].as_array().expect("an event has sizes");
        assert!(!sizes.is_empty(), "{name}");
        for size in sizes {
            assert_eq!(size["mean"], size["predicted"], "{name}: {size}");
            assert_eq!(size["deviation"], 0.0, "{name}: {size}");
        }
    }
}

#[test]
fn the_emulated_source_counts_exactly_what_programs_were_asked_for() {
    if !has_emulator() {
        return;
    }
    let ended = validate(&[
        "--source",
        "emulate",
        "--runs",
        "2",
        "--sizes",
        "1,100,2000",
        "--check",
    ]);
    let ended = ended.expect_code(0);
    assert_eq!(events(&ended).len(), 18);
    assert_exact(&ended);
}

#[test]
fn a_watch_window_has_every_access_of_its_word_and_loses_none() {
    let Some(_turn) = ready_to_watch() else {
        return;
    };
    let ended = validate(&[
        "--event",
        "accesses",
        "--runs",
        "2",
        "--sizes",
        "1,100,5000",
        "--check",
    ]);
    assert_exact(&ended.expect_code(0));
}

#[test]
fn the_kernel_counts_pages_touched_and_probes_count_executions() {
    let Some(_turn) = ready() else { return };
    let events = ["--source", "software,uprobes"];
    let more = ["--runs", "3", "--sizes", "1,10,5000", "--check"];
    let ended = validate(&[&events[..], &more].concat());
    assert_exact(&ended.expect_code(0));
}

#[test]
fn the_timer_finds_a_function_as_often_as_its_share_of_the_time_says() {
    let Some(_turn) = ready() else { return };
    let ended = validate(&["--event", "time-share", "--runs", "3", "--sizes", "100000"]);
    let ended = ended.expect_code(0);
    for event in events(&ended) {
        assert_eq!(event["class"], "none", "{event}");
    }
}

#[test]
fn pairs_of_a_window_are_upgrades_where_another_thread_has_read_too_and_not_where_it_has_not() {
    let Some(_turn) = ready_to_watch() else {
        return;
    };
    if !Path::new("/sys/devices/system/cpu/cpu1").exists() {
        cohtrace_skips::skipped("one CPU: no two threads have a copy each");
        return;
    }
    let ended = validate(&[
        "--source", "pairs", "--runs", "2", "--sizes", "1,10,200", "--check",
    ]);
    assert_exact(&ended.expect_code(0));
    // The twin: only one thread reads, only the other one writes.
    let row = counted(of(Counter::Pairs, "upgrade"), 'o', &[200]);
    assert_eq!(row.missing, None);
    assert_eq!(row.sizes[0].size.counted, [0.0; 2]);
}

#[test]
fn pages_are_counted_once_and_lines_are_no_pages() {
    if !has_emulator() {
        return;
    }
    let event = of(Counter::Emulate, "page-touch");
    let pages = |letter| {
        let row = counted(event, letter, &[640]);
        assert_eq!(row.missing, None);
        row.sizes[0].size.mean() as u64
    };
    // The twin: lines one behind the other, 64 a page.
    assert_eq!((pages('q'), pages('e')), (640, 10));
}

#[test]
fn executions_are_counted_by_what_the_instructions_do_and_a_loop_without_divisions_has_none() {
    if !has_emulator() {
        return;
    }
    let executions = |name, letter| {
        let row = counted(of(Counter::Emulate, name), letter, &[500]);
        assert_eq!(row.missing, None);
        row.sizes[0].size.mean() as u64
    };
    assert_eq!(executions("instructions", 'v'), 8 * 500);
    assert_eq!(executions("branches", 'v'), 500);
    assert_eq!(executions("fp-div", 'v'), 500);
    // The twin: a loop of a load, a decrement and a branch.
    assert_eq!(executions("instructions", 'a'), 3 * 500);
    assert_eq!(executions("fp-div", 'a'), 0);
}

#[test]
fn a_pmu_that_is_not_there_is_told_and_one_that_is_counts() {
    let _turn = ready();
    let ended = validate(&[
        "--source",
        "pmu",
        "--runs",
        "2",
        "--sizes",
        "1000,100000",
        "--check",
    ]);
    let events = events(&ended);
    assert_eq!(events.len(), 6);
    let is_absent = |event: &Value| event["absent"] == true;
    if events.iter().all(is_absent) {
        cohtrace_skips::skipped("no PMU to count by");
        ended.expect_code(3);
        for event in events {
            let missing = event["missing"].as_str().expect("a reason");
            assert!(missing.starts_with("unavailable: "), "{event}");
        }
        return;
    }
    for event in events.iter().filter(|event| event["missing"].is_null()) {
        for size in event["sizes"].as_array().expect("sizes") {
            assert!(size["mean"].as_f64() > Some(0.0), "{event}");
        }
    }
}

#[test]
fn costs_are_measured_by_name_and_a_random_branch_costs_more_than_a_predicted_one() {
    let _turn = ready();
    let ended = validate(&["--event", "branch-predicted,branch-random", "--runs", "5"]);
    let ended = ended.expect_code(0);
    let document: Value = serde_json::from_str(&ended.stdout).expect("JSON");
    assert_eq!(document["events"].as_array().map(Vec::len), Some(0));
    let [predicted, random] = [0, 1].map(|at| {
        let cost = &document["costs"][at];
        assert_eq!((&cost["runs"], &cost["missing"]), (&5.into(), &Value::Null));
        let at = |name: &str| cost["cycles"][name].as_f64().expect("a number");
        assert!(at("least") <= at("median") && at("median") <= at("most"));
        at("least")
    });
    assert!(random > predicted + 3.0, "{random} {predicted}");
    assert!(document["derived"]["branch_miss_cycles"].is_number());
    assert_eq!(document["derived"]["issue_width"], Value::Null);
}

/// The event that a source counts.
fn of(counter: Counter, name: &str) -> Event {
    let mut events = EVENTS.iter();
    let found = events.find(|event| (event.counter, event.name) == (counter, name));
    *found.expect("there is the event")
}

/// What is counted as an event of a program that runs the loop of a letter.
fn counted(event: Event, letter: char, sizes: &[u64]) -> Row {
    let event = Box::leak(Box::new(Event { letter, ..event }));
    planned(event, sizes, |n| n)
}

/// What the library makes of programs that are asked for something else than is predicted.
fn asked_for(event: &str, asked_for: fn(u64) -> u64) -> Row {
    let event = named(event).expect("there is the event");
    planned(event, &[1, 100, 1000, 10_000], asked_for)
}

fn planned(event: &'static Event, sizes: &[u64], asked_for: fn(u64) -> u64) -> Row {
    let plan = Plan {
        events: vec![event],
        sizes: sizes.to_vec(),
        runs: 2,
        asked_for,
    };
    let mut machinery = Machinery::new(None).expect("the program can be laid down");
    run::run(&plan, &mut machinery, &|| false, &mut |_| ()).remove(0)
}

#[test]
fn a_program_that_does_another_number_than_it_was_asked_for_is_found_out() {
    if !has_emulator() {
        return;
    }
    let of = |event, asked| {
        let row = asked_for(event, asked);
        assert_eq!(row.missing, None, "{event}");
        let class = row.class.expect("it was counted").to_string();
        (class, row.is_right())
    };
    let drops = |n: u64| n - n * 3 / 100;
    assert_eq!(
        of("stores", drops),
        ("multiplicative (0.970)".to_owned(), false)
    );
    assert_eq!(of("stores", |n| n + 5), ("bias (+5.0)".to_owned(), true));
    let twice = |n: u64| 2 * n;
    assert_eq!(
        of("intervention", twice),
        ("multiplicative (2.000)".to_owned(), false)
    );
    assert_eq!(of("intervention", |n| n), ("none".to_owned(), true));
}

#[test]
fn a_source_that_cannot_run_here_is_told_and_is_no_success() {
    let ended = validate(&["--event", "loads", "--qemu", "/no/such/emulator", "--check"]);
    let ended = ended.expect_code(3);
    let [event] = &events(&ended)[..] else {
        panic!("one event was asked for: {}", ended.said());
    };
    assert_eq!(event["class"], Value::Null);
    assert_eq!(event["sizes"].as_array().map(Vec::len), Some(0));
    let missing = event["missing"].as_str().unwrap_or_default();
    assert!(missing.contains("/no/such/emulator"), "{missing}");
}

#[test]
fn events_sizes_and_sources_that_are_none_are_refused() {
    for wrong in [
        &["--event", "nothing"][..],
        &["--source", "nobody"],
        &["--sizes", "0"],
        &["--sizes", "2000000"],
        &["--runs", "0"],
        &["--event", "loads", "--source", "watch"],
    ] {
        let ended = validate(wrong).expect_code(2);
        assert!(!ended.stderr.contains("panicked"), "{}", ended.said());
        assert!(!ended.stderr.is_empty());
    }
}

#[test]
fn ctrl_c_prints_what_was_counted_until_then() {
    if !has_emulator() {
        return;
    }
    let mut tool = cohtrace(["validate", "--json", "--event", "loads,stores"]);
    tool.args(["--sizes", "10", "--runs", "10000"]);
    let running = Running::start(&mut tool).expect("the tool starts");
    thread::sleep(Duration::from_secs(2));
    running.signal(libc::SIGINT);
    let ended = running.wait(GRACE).expect("it ends").expect_code(0);
    let events = events(&ended);
    let [loads, stores] = &events[..] else {
        panic!("two events were asked for: {}", ended.said());
    };
    assert_eq!(
        (&loads["missing"], &loads["class"]),
        (&"interrupted".into(), &Value::Null)
    );
    assert!(loads["sizes"][0]["runs"].as_u64() >= Some(1), "{loads}");
    assert_eq!(stores["missing"], "interrupted");
}
