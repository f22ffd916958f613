//! The request log of a recorded session: rows as SWIFT monitors keep them, and the pairs that its filter finds.

use std::{collections::BTreeSet, path::Path};

use cohtrace_tests::{
    answer::Variant::{self, Plain, Unpaired},
    live::{GRACE, Subject, ready_to_watch, record},
    report::{Report, hex},
    tool::{Ended, cohtrace, run},
};

/// One request, as printed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Row {
    line: u64,
    number: u64,
    processor: u64,
    thread: u64,
    ip: u64,
    target: u64,
    /// `READ_SHAR` for a load, `READ_PRIV` for a store.
    request: String,
}

/// Every row; a line that is none ends the test.
fn rows(printed: &str) -> Vec<Row> {
    let row = |text: &str| -> Option<Row> {
        let columns: Vec<&str> = text.split(',').collect();
        let [number, processor, thread, ip, target, line, request] = columns.try_into().ok()?;
        Some(Row {
            line: hex(line)?,
            number: number.parse().ok()?,
            processor: processor.parse().ok()?,
            thread: thread.parse().ok()?,
            ip: hex(ip)?,
            target: hex(target)?,
            request: request.to_owned(),
        })
    };
    printed
        .lines()
        .map(|text| row(text).unwrap_or_else(|| panic!("not a row: {text:?}")))
        .collect()
}

/// The filter of section 4.1 of the paper on a sorted log: adjacent rows of one line and one processor, a load's request
/// and then a store's. Gives the instructions.
fn filtered(sorted: &[Row]) -> BTreeSet<(u64, u64)> {
    let is_pair = |pair: &&[Row]| {
        pair[0].line == pair[1].line
            && pair[0].processor == pair[1].processor
            && pair[0].request == "READ_SHAR"
            && pair[1].request == "READ_PRIV"
    };
    let pairs = sorted.windows(2).filter(is_pair);
    pairs.map(|pair| (pair[0].ip, pair[1].ip)).collect()
}

/// A command about the session.
fn about(session: &Path, command: &str, arguments: &[&str]) -> Ended {
    run(cohtrace([command]).arg(session).args(arguments), GRACE).expect_code(0)
}

fn report(session: &Path) -> Report {
    let ended = about(session, "report", &["--json"]);
    Report::parse(&ended.stdout).unwrap_or_else(|error| panic!("{error:#}\n{}", ended.said()))
}

/// Where in its page an instruction is: the same in the file and in memory.
fn in_page(ip: u64) -> u64 {
    ip & 0xfff
}

#[test]
fn the_log_is_in_the_order_of_requests_or_of_lines() {
    let Some(_turn) = ready_to_watch() else {
        return;
    };
    let directory = tempfile::tempdir().expect("a temporary directory");
    let session = directory.path().join("get_set.coh");
    record("get_set", Plain, &session, &[]);

    let by_request = rows(&about(&session, "log", &[]).stdout);
    assert!(!by_request.is_empty(), "nothing was logged");
    let asked = about(&session, "log", &["--sort", "request"]);
    assert_eq!(rows(&asked.stdout), by_request, "it is the default order");
    assert!(
        by_request.is_sorted_by(|a, b| a.number < b.number),
        "requests are not in order, or two have one number"
    );
    for row in &by_request {
        assert_eq!(row.line, row.target & !63, "{row:?}");
        assert!(
            matches!(row.request.as_str(), "READ_SHAR" | "READ_PRIV"),
            "{row:?}"
        );
    }
    let distinct = |of: fn(&Row) -> u64| by_request.iter().map(of).collect::<BTreeSet<_>>().len();
    assert_eq!(distinct(|row| row.thread), 2, "two threads touch the line");
    assert_eq!(distinct(|row| row.processor), 2, "on a CPU each");

    let by_line = rows(&about(&session, "log", &["--sort", "line"]).stdout);
    let mut sorted = by_request.clone();
    sorted.sort();
    assert_eq!(by_line, sorted, "by line, then by number, nothing else");
}

#[test]
fn the_log_of_one_line_has_its_rows_and_no_others() {
    let Some(_turn) = ready_to_watch() else {
        return;
    };
    let directory = tempfile::tempdir().expect("a temporary directory");
    let session = directory.path().join("locks.coh");
    // Two lines that move.
    record("two_locks", Variant::Padded, &session, &[]);
    let keys: Vec<String> = report(&session)
        .findings
        .into_iter()
        .map(|finding| finding.line_key)
        .collect();
    assert_eq!(keys.len(), 2, "{keys:?}");
    let all = rows(&about(&session, "log", &[]).stdout);
    let mut of_lines = Vec::new();
    for key in &keys {
        let of_line = rows(&about(&session, "log", &["--line", key]).stdout);
        let lines: BTreeSet<u64> = of_line.iter().map(|row| row.line).collect();
        assert_eq!(lines.len(), 1, "{key} is one line: {lines:x?}");
        let line = lines.first();
        let expected: Vec<&Row> = all.iter().filter(|row| Some(&row.line) == line).collect();
        assert_eq!(of_line.iter().collect::<Vec<_>>(), expected, "{key}");
        of_lines.extend(lines);
    }
    assert_ne!(of_lines[0], of_lines[1], "two keys, one line");
}

#[test]
fn the_papers_filter_on_the_sorted_log_finds_the_pairs_that_are_listed() {
    let Some(_turn) = ready_to_watch() else {
        return;
    };
    let directory = tempfile::tempdir().expect("a temporary directory");
    let session = directory.path().join("get_set.coh");
    record("get_set", Plain, &session, &[]);
    let pairs = filtered(&rows(&about(&session, "log", &["--sort", "line"]).stdout));
    let listed = report(&session).pairs;
    let hinted = listed.iter().find(|pair| pair.hint.is_some());
    let hinted = hinted.unwrap_or_else(|| panic!("no pair with a hint: {listed:?}"));
    let [load, store] = [&hinted.load, &hinted.store].map(|code| code.ip.map(in_page));
    assert!(
        pairs
            .iter()
            .any(|&(from, to)| (Some(in_page(from)), Some(in_page(to))) == (load, store)),
        "{load:x?} and {store:x?} are listed, the log has {pairs:x?}"
    );
}

#[test]
fn the_papers_filter_finds_nothing_where_no_processor_stores_what_it_loads() {
    let Some(_turn) = ready_to_watch() else {
        return;
    };
    let directory = tempfile::tempdir().expect("a temporary directory");
    let session = directory.path().join("unpaired.coh");
    record("get_set", Unpaired, &session, &[]);
    let sorted = rows(&about(&session, "log", &["--sort", "line"]).stdout);
    assert!(!sorted.is_empty(), "nothing was logged");
    assert_eq!(filtered(&sorted), BTreeSet::new());
}

#[test]
fn the_pairs_of_a_session_are_those_of_its_report() {
    let Some(_turn) = ready_to_watch() else {
        return;
    };
    let directory = tempfile::tempdir().expect("a temporary directory");
    let session = directory.path().join("get_set.coh");
    record("get_set", Plain, &session, &[]);
    let subject = Subject::new("get_set", Plain).unwrap_or_else(|error| panic!("{error:#}"));
    let reported = report(&session);
    assert!(!reported.pairs.is_empty(), "{:?}", reported.watch);
    subject
        .judge_report(&reported)
        .expect("the session holds the answer");
    let json = about(&session, "pairs", &["--json"]);
    let json: serde_json::Value = serde_json::from_str(&json.stdout).expect("it is JSON");
    assert_eq!(json["pairs"], reported.json["pairs"]);
    let text = about(&session, "pairs", &[]);
    for word in ["get", "set", "get_set.c", "gauges"] {
        assert!(text.stdout.contains(word), "no {word}\n{}", text.said());
    }
}

#[test]
fn a_session_without_windows_has_neither_rows_nor_pairs() {
    let Some(_turn) = ready_to_watch() else {
        return;
    };
    let directory = tempfile::tempdir().expect("a temporary directory");
    let session = directory.path().join("sampled.coh");
    record("get_set", Plain, &session, &["--no-watch"]);
    assert_eq!(rows(&about(&session, "log", &[]).stdout), []);
    let json = about(&session, "pairs", &["--json"]);
    let json: serde_json::Value = serde_json::from_str(&json.stdout).expect("it is JSON");
    assert_eq!(json["pairs"], serde_json::json!([]));
}
