//! Whether the tool's own counts are right: programs are asked to do so many events, each in a process of its own.

use std::{thread, time::Duration};

use cohtrace::validate::{
    events::named,
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
            assert_eq!(size["mean"].as_f64(), size["n"].as_f64(), "{name}: {size}");
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
    assert_eq!(events(&ended).len(), 11);
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

/// What the library makes of programs that are asked for something else than is predicted.
fn asked_for(event: &str, asked_for: fn(u64) -> u64) -> Row {
    let plan = Plan {
        events: vec![named(event).expect("there is the event")],
        sizes: vec![1, 100, 1000, 10_000],
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
