//! Sharing that is not there yet: what is predicted from one place of an array, and what is seen at the others.

mod sampled;

use std::path::{Path, PathBuf};

use cohtrace_tests::{
    emulated::{address, build, record},
    live::{GRACE, has_emulator},
    tool::{Ended, cohtrace, run},
    workload::directory,
};
use serde_json::Value;

/// As in `tests/workloads/latent/regression.c`.
const THREADS: u64 = 4;
const ROUNDS: u64 = 60;
/// As in `tests/workloads/latent/elements.c`.
const ELEMENT_ROUNDS: u64 = 100;
/// As in `tests/workloads/latent/blocks.c`.
const BLOCK_ROUNDS: u64 = 200;
/// The words that each thread writes, bytes from the start of its struct, in the order of a round.
const WRITTEN: [u64; 5] = [24, 48, 32, 56, 40];
const STRUCT: u64 = 64;

/// Builds a program of `tests/workloads/latent` and records it.
fn session(directory: &Path, name: &str, flags: &[&str]) -> PathBuf {
    let sources = self::directory().join("latent");
    let source = std::fs::read_to_string(sources.join(format!("{name}.c"))).expect("it is there");
    let include = format!("-I{}", sources.display());
    let flags = [&[&*include], flags].concat();
    let program = build(directory, name, &source, &flags);
    let session = directory.join(format!("{name}{}.coh", flags[1..].concat()));
    record(&session, &[program.to_str().expect("a plain path")]).expect_code(0);
    session
}

fn report(session: &Path, options: &[&str]) -> Ended {
    let mut tool = cohtrace(["report", "--quiet", "--latent"]);
    run(tool.args(options).arg(session), GRACE)
}

fn json(session: &Path) -> Value {
    let ended = report(session, &["--json"]).expect_code(0);
    serde_json::from_str(&ended.stdout).expect("it is JSON")
}

fn latent(report: &Value) -> &[Value] {
    report["latent"].as_array().expect("asked for")
}

fn number(value: &Value) -> u64 {
    value.as_u64().expect("a number")
}

/// Hand-offs of lines of so many bytes, with the array's start so many bytes behind the start of one: each time that another
/// thread writes to a line than did before.
fn hand_offs(start: u64, line: u64) -> u64 {
    let mut last = std::collections::BTreeMap::new();
    let mut hand_offs = 0;
    for _ in 0..ROUNDS {
        for word in WRITTEN {
            for thread in 0..THREADS {
                let at = start + thread * STRUCT + word;
                let before = last.insert(at / line, thread);
                hand_offs += u64::from(before.is_some_and(|before| before != thread));
            }
        }
    }
    hand_offs
}

/// Whether two numbers agree within a fifth, or are both next to nothing.
fn agree(a: u64, b: u64) -> bool {
    let few = 2 * THREADS;
    a.abs_diff(b) <= few.max(a.max(b) / 5)
}

/// What a report has of the array: by bytes moved and size of lines, whether it fights and hand-offs.
fn ways(report: &Value) -> Vec<(u64, u64, bool, u64)> {
    let [only] = latent(report) else {
        panic!("one thing: {:#}", report["latent"]);
    };
    let way = |way: &Value| {
        let [moved, line, hand_offs] =
            ["moved_bytes", "line_bytes", "hand_offs"].map(|name| number(&way[name]));
        (moved, line, way["fights"] == true, hand_offs)
    };
    let ways = only["ways"].as_array().expect("a list");
    [&only["today"]].into_iter().chain(ways).map(way).collect()
}

/// Hand-offs of the array where it lies, by what is a finding or close to one.
fn seen(report: &Value) -> u64 {
    let lists = ["findings", "insignificant"].map(|list| report[list].as_array().expect("a list"));
    let ours = lists.into_iter().flatten();
    let ours = ours.filter(|finding| finding["object"]["type"] == "struct part");
    ours.map(|finding| number(&finding["handoffs"]["observed"]))
        .sum()
}

#[test]
fn an_array_that_is_clean_today_is_told_with_each_start_at_which_two_threads_write_to_one_line() {
    if !has_emulator() {
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let session = session(directory.path(), "regression", &["-DSTART=0"]);
    let report = json(&session);
    assert!(agree(seen(&report), 0));
    let ways = ways(&report);
    for (moved, line, fights, found) in &ways {
        let expected = hand_offs(*moved, *line);
        assert!(
            agree(*found, expected),
            "{moved} of {line}: {found}, {expected}"
        );
        assert_eq!(*fights, expected > 0, "{moved} of {line}");
    }
    let short = || ways.iter().filter(|(_, line, ..)| *line == 64);
    let (worst, ..) = short().max_by_key(|(.., found)| *found).expect("some");
    assert!([16, 24].contains(worst), "{ways:?}");
    let clean: Vec<u64> = short()
        .filter(|way| !way.2)
        .map(|(moved, ..)| *moved)
        .collect();
    assert_eq!(clean, [0, 40, 48, 56]);
    let only = &latent(&report)[0];
    assert_eq!(
        (&only["kind"], &only["id"]),
        (&"latent-sharing".into(), &"L1".into())
    );
    assert_eq!(only["names"], serde_json::json!(["struct part"]));
    assert_eq!(only["threads"], THREADS);
    let malloc_may = |way: &&Value| way["malloc_may"] == true && way["line_bytes"] == 64;
    let ways = only["ways"].as_array().expect("a list").iter();
    let moved: Vec<u64> = ways
        .filter(malloc_may)
        .map(|way| number(&way["moved_bytes"]))
        .collect();
    assert_eq!(moved, [16, 32, 48]);
    // And where it fights, that is no finding.
    let findings = report["findings"].as_array().expect("a list");
    assert!(
        findings
            .iter()
            .all(|finding| finding["kind"] != "latent-sharing")
    );
}

#[test]
fn what_is_predicted_for_a_start_is_what_is_seen_there() {
    if !has_emulator() {
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let today = session(directory.path(), "regression", &["-DSTART=0"]);
    let predicted = ways(&json(&today));
    for start in [8, 24, 40] {
        let flag = format!("-DSTART={start}");
        let there = json(&session(directory.path(), "regression", &[&flag]));
        let way = predicted.iter().find(|way| (way.0, way.1) == (start, 64));
        let (.., hand_offs) = way.expect("replayed");
        let seen = seen(&there);
        assert!(agree(*hand_offs, seen), "{start}: {hand_offs}, {seen}");
    }
}

#[test]
fn at_the_worst_start_it_is_a_finding_and_no_other_start_is_told_but_longer_lines() {
    if !has_emulator() {
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let report = json(&session(directory.path(), "regression", &["-DSTART=24"]));
    let findings = report["findings"].as_array().expect("a list");
    let ours = |finding: &&Value| finding["object"]["type"] == "struct part";
    let kinds: Vec<&Value> = findings
        .iter()
        .filter(ours)
        .map(|one| &one["kind"])
        .collect();
    assert_eq!(kinds, ["false-sharing"]);
    let ways = latent(&report)
        .iter()
        .flat_map(|one| one["ways"].as_array().expect("a list"));
    let short = ways.filter(|way| way["line_bytes"] == 64 && way["fights"] == true);
    assert_eq!(short.collect::<Vec<_>>(), Vec::<&Value>::new());
}

#[test]
fn structs_of_128_bytes_each_are_told_at_no_start_that_is_a_line_s_and_fight_nowhere() {
    if !has_emulator() {
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let session = session(directory.path(), "regression", &["-DPADDED"]);
    let found = json(&session);
    assert_eq!(found["latent"], serde_json::json!([]));
    let text = report(&session, &[]).expect_code(0).stdout;
    assert!(text.contains("No sharing that is not there yet"), "{text}");
}

#[test]
fn two_variables_and_two_blocks_of_the_heap_fight_if_both_move() {
    if !has_emulator() {
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    for (flag, names) in [("-DCHANCE", 2), ("-DMALLOC", 0)] {
        let found = json(&session(directory.path(), "neighbours", &[flag]));
        let ways = ways(&found);
        // The words are at bytes 48 and 64 of both together, which begin with a line.
        let first = latent(&found)[0]["neighbours"][0]["line"]["address"].as_str();
        let begin = address(first.expect("known")) % 128;
        for (moved, line, fights, hand_offs) in &ways {
            let [first, second] = [48, 64].map(|at| (begin + at + moved) / line);
            assert_eq!(
                *fights,
                first == second,
                "{flag} {moved} of {line}: {hand_offs}"
            );
        }
        let only = &latent(&found)[0];
        if names == 2 {
            let names = only["names"].as_array().expect("a list");
            let mut names: Vec<&str> = names.iter().filter_map(Value::as_str).collect();
            names.sort_unstable();
            assert_eq!(names, ["lower_or_upper[]", "upper_or_lower[]"]);
        }
    }
}

#[test]
fn variables_that_ask_to_begin_with_a_line_are_told_no_other_start() {
    if !has_emulator() {
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    // The twin of the variables above, which begin with a line by chance.
    let session = session(directory.path(), "neighbours", &[]);
    let found = json(&session);
    for (moved, line, fights, hand_offs) in ways(&found) {
        let may_fight = line == 128;
        assert!(may_fight || !fights, "{moved} of {line}: {hand_offs}");
    }
    let only = &latent(&found)[0];
    assert_eq!(only["alignment"], 64);
    let text = report(&session, &[]).expect_code(0).stdout;
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let bound = "The program asks for a start at a multiple of 64 bytes: no other is told.";
    assert!(text.contains(bound), "{text}");
}

#[test]
fn what_only_longer_lines_bring_together_is_told_for_these() {
    if !has_emulator() {
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let found = json(&session(directory.path(), "neighbours", &["-DAPART"]));
    let ways = ways(&found);
    let fighting = ways.iter().filter(|way| way.2);
    let lines: Vec<u64> = fighting.map(|way| way.1).collect();
    assert_eq!(lines, [128]);
}

#[test]
fn text_has_a_section_of_its_own_and_nothing_is_there_that_nobody_asked_for() {
    if !has_emulator() {
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let session = session(directory.path(), "regression", &["-DSTART=0"]);
    let text = report(&session, &[]).expect_code(0).stdout;
    for words in [
        "Sharing that is not there yet:",
        "L1  LATENT SHARING  struct part",
        "24 bytes later",
        "64 bytes later",
        "No worse than today: 40 bytes later",
        "alignas(128)",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let mut tool = cohtrace(["report", "--quiet"]);
    let plain = run(tool.arg(&session), GRACE).expect_code(0).stdout;
    assert!(!plain.contains("not there yet"), "{plain}");
    let mut tool = cohtrace(["report", "--quiet", "--json"]);
    let plain = run(tool.arg(&session), GRACE).expect_code(0).stdout;
    let plain: Value = serde_json::from_str(&plain).expect("it is JSON");
    assert_eq!(plain["latent"], Value::Null);
}

#[test]
fn sessions_and_options_that_cannot_be_predicted_from_are_refused_with_what_to_do() {
    if !has_emulator() {
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let session = session(directory.path(), "neighbours", &[]);
    for (options, words) in [
        (&["--line-size", "128"][..], "leave --line-size away"),
        (&["--format", "sarif"], "give --format json"),
    ] {
        let refused = report(&session, options).expect_code(2);
        assert!(refused.stderr.contains(words), "{}", refused.said());
    }
    let meta = session.join("meta.json");
    let text = std::fs::read_to_string(&meta).expect("a session has it");
    let said: Value = serde_json::from_str(&text).expect("it is JSON");
    let mut older: Value = said;
    drop((older.as_object_mut()).and_then(|said| said.remove("exact_elsewhere")));
    std::fs::write(&meta, older.to_string()).expect("the session is writable");
    let older = report(&session, &[]).expect_code(2);
    assert!(older.stderr.contains("record it again"), "{}", older.said());
}

/// What one more thread would bring to the one array of a report.
fn one_more(report: &Value) -> Option<&Value> {
    let told = latent(report).iter().map(|one| &one["one_more_thread"]);
    let told: Vec<&Value> = told.filter(|one| !one.is_null()).collect();
    assert!(told.len() <= 1, "{told:#?}");
    told.first().copied()
}

#[test]
fn what_one_more_thread_brings_is_what_a_program_with_one_more_shows() {
    if !has_emulator() {
        return;
    }
    // Three elements of half a line, and the fourth, whose line the third has alone.
    let directory = tempfile::tempdir().expect("a temporary directory");
    let three = session(directory.path(), "elements", &["-DTHREADS=3"]);
    let three = json(&three);
    let told = one_more(&three).expect("the third meets the fourth");
    assert_eq!(
        (&told["element_bytes"], &told["elements"]),
        (&32.into(), &3.into())
    );
    let predicted = number(&told["hand_offs"]);
    assert!(agree(predicted, 2 * ELEMENT_ROUNDS), "{told}");
    // With four threads both lines are fought for alike, and the fifth has one for itself.
    let four = json(&session(directory.path(), "elements", &["-DTHREADS=4"]));
    assert_eq!(one_more(&four), None);
    let findings = four["findings"].as_array().expect("a list").iter();
    let ours = findings.filter(|finding| finding["object"]["name"] == "all");
    let seen: u64 = ours
        .map(|finding| number(&finding["handoffs"]["observed"]))
        .sum();
    assert!(agree(2 * predicted, seen), "{predicted}, {seen}");
}

#[test]
fn a_word_behind_an_array_meets_the_next_element_and_one_a_line_farther_does_not() {
    if !has_emulator() {
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let found = |word: &str| {
        let flags = ["-DBYTES=64", word];
        json(&session(directory.path(), "elements", &flags))
    };
    let beside = found("-DWORD=200");
    let told = one_more(&beside).expect("it is on the line of the fourth");
    assert_eq!(told["behind_moved_bytes"], 0);
    assert!(number(&told["falsely"]) > 0);
    assert_eq!(one_more(&found("-DWORD=256")), None);
}

#[test]
fn of_two_blocks_with_one_between_them_one_meets_the_other_if_that_is_gone() {
    if !has_emulator() {
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let moves = |flags: &[&str]| -> Vec<(String, i64, u64)> {
        let found = json(&session(directory.path(), "blocks", flags));
        let things = latent(&found).iter();
        let moves = things.flat_map(|one| one["one_moves"].as_array().expect("a list").clone());
        let moved = |one: Value| {
            let bytes = one["moved_bytes"].as_i64().expect("a number");
            let which = one["moves"].as_str().expect("a word").to_owned();
            (which, bytes, number(&one["hand_offs"]))
        };
        moves.map(moved).collect()
    };
    // At 16 and 96; the block between them has 48 bytes.
    let told = moves(&[]);
    let ways: Vec<(&str, i64)> = (told.iter())
        .map(|(which, bytes, _)| (which.as_str(), *bytes))
        .collect();
    assert_eq!(ways, [("first", 48), ("second", -48)]);
    for (which, _, hand_offs) in &told {
        assert!(agree(*hand_offs, 2 * BLOCK_ROUNDS), "{which}: {hand_offs}");
    }
    // The twin: as far as they are from each other, the first reaches.
    assert_eq!(moves(&["-DNEXT"]), []);
}
