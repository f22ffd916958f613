//! What is counted: hints in code that you build, loads that are worth one, and accesses from a place in the program on.

use std::path::Path;

use cohtrace::access::{Access, Basis, Op};
use cohtrace_tests::{
    live::GRACE,
    tool::{Ended, cohtrace, run},
};
use serde_json::Value;

use super::{
    BIASED, PLAIN,
    crafted::{
        COUNTER, Program, SUM, access, adds, json, recorded_turns, session, simulate, table, turns,
    },
};

fn hints(arguments: &[&str], session: &Path) -> Ended {
    run(cohtrace(["hints"]).args(arguments).arg(session), GRACE)
}

fn hints_json(arguments: &[&str], session: &Path) -> Value {
    let ended = hints(arguments, session).expect_code(0);
    serde_json::from_str(&ended.stdout).expect("JSON")
}

/// Transactions with the hints in code that you build.
fn reached(session: &Value) -> [u64; 2] {
    ["your_code_integer_hinted", "your_code_all_hinted"].map(|scenario| {
        session[scenario]["transactions"]
            .as_u64()
            .expect("a number")
    })
}

#[test]
fn hints_in_a_c_library_are_counted_apart_unless_it_is_named() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let program = Program::build(directory.path(), "libc-9.so", "nop");
    let session = recorded_turns(directory.path(), "c.coh", &program);
    let all = [2 * PLAIN, PLAIN + BIASED, 2 * BIASED];
    let row = &json(&[], &[&session])["sessions"][0];
    assert_eq!(table(row)[0], all);
    assert_eq!(reached(row), [2 * PLAIN; 2]);
    assert_eq!(row["hints"]["your_code"]["integer"], 0);
    assert!(
        row["caveats"]
            .to_string()
            .contains("no hint is in code that you build")
    );
    let text = simulate(&[], &[&session]).expect_code(0).stdout;
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        "in code that you build: 0 messages fewer of 632 (0.0 %). With 2 hints too that `cohtrace as` does not place, elsewhere or in loops: 316",
        "c your code 632 632 0.0 % 632 0.0 %",
        "c all code 632 474 25.0 % 316 50.0 %",
    ] {
        assert!(text.contains(words), "{words}\n{text}");
    }
    let row = &json(&["--module", "libc-9.so"], &[&session])["sessions"][0];
    assert_eq!((table(row)[0], reached(row)), (all, [all[1], all[2]]));
    let row = &json(&["--module", "other", "--filter", "swift"], &[&session])["sessions"][0];
    assert_eq!((table(row)[0], reached(row)), (all, [2 * PLAIN; 2]));

    let yours = |file: &Value| file["evidence"]["your_code"].clone();
    let file = hints_json(&[], &session);
    assert_eq!(yours(&file)["hints"], 0);
    assert_eq!(yours(&file)["transactions"], 2 * PLAIN);
    assert_eq!(file["evidence"]["hinted_transactions"], 2 * BIASED);
    let file = hints_json(&["--module", "libc-9.so"], &session);
    assert_eq!(yours(&file)["hints"], 2);
    assert_eq!(yours(&file)["transactions"], 2 * BIASED);
    let text = hints(&["--format", "text"], &session).expect_code(0).stdout;
    assert!(
        text.contains("In code that you build: 0 load hints. With 2 loads elsewhere: 2 load hints, expected to save 316 of 632"),
        "{text}"
    );
    // Hints that are left out take their share of the sums with them.
    let file = hints_json(&["--module", "other"], &session);
    assert_eq!(file["hints"], serde_json::json!([]));
    assert_eq!(file["evidence"]["hinted_transactions"], 2 * PLAIN);
}

#[test]
fn of_two_modules_only_the_hints_of_yours_are_what_a_rebuild_reaches() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let program = Program::build(directory.path(), "adds", "nop");
    // Without lines, the same code is out of reach.
    let bare = Program::build(directory.path(), "bare", "nop");
    bare.strip_debug();
    let of = |program: &Program, name: &str| recorded_turns(directory.path(), name, program);
    let (with, without) = (of(&program, "with.coh"), of(&bare, "without.coh"));
    let report = json(&[], &[&with, &without]);
    let rows = &report["sessions"];
    assert_eq!(table(&rows[0]), table(&rows[1]));
    assert_eq!(reached(&rows[0]), [PLAIN + BIASED, 2 * BIASED]);
    assert_eq!(reached(&rows[1]), [2 * PLAIN; 2]);
}

/// 400 turns of four threads with the counter, and a few with the sum.
fn few_sums(program: &Program, sums: u32) -> Vec<Access> {
    let turn = |n: u32, load: &str, store: &str, addr| {
        let of = |symbol, op| access(10 + n % 4, program.at(symbol), addr, op, Basis::Emulated);
        [of(load, Op::Load), of(store, Op::Store)]
    };
    let counters = (0..400).flat_map(|n| turn(n, "int_load", "int_store", COUNTER));
    let sums = (0..sums).flat_map(|n| turn(n, "fp_load", "fp_store", SUM));
    counters.chain(sums).collect()
}

#[test]
fn a_load_that_asks_a_few_times_in_a_long_run_is_told_apart_and_not_hinted() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let program = Program::build(directory.path(), "adds", "nop");
    let of = |sums: u32| {
        let name = format!("sums{sums}.coh");
        session(directory.path(), &name, &program, few_sums(&program, sums))
    };
    let counters = [4 + 399 * 8, 2 + 399 * 4];
    let three = of(3);
    let file = hints_json(&[], &three);
    assert_eq!(file["hints"].as_array().map(Vec::len), Some(1));
    assert_eq!(file["left"][0]["reason"], "one-off");
    // 2 of the first turn and 4 of each other.
    assert_eq!(
        file["evidence"]["one_off"],
        serde_json::json!({"loads": 1, "saved": 10})
    );
    let row = &json(&[], &[&three])["sessions"][0];
    let plain = counters[0] + 4 + 2 * 8;
    assert_eq!(
        table(row)[0],
        [
            plain,
            plain - counters[0] + counters[1],
            plain - counters[0] + counters[1]
        ]
    );
    assert_eq!(row["hints"]["one_off"]["saved"], 10);
    assert!(
        row["caveats"]
            .to_string()
            .contains("1 one-off load was left"),
        "{row}"
    );
    for (sums, arguments, hinted) in [
        (3, &["--min-requests", "1"][..], 2),
        (3, &["--min-requests", "3"], 2),
        (3, &["--min-requests", "4"], 1),
        (3, &["--filter", "swift"], 2),
        (8, &[], 2),
        (8, &["--min-requests", "9"], 1),
    ] {
        let found = hints_json(arguments, &of_or(&of, &three, sums));
        let found = found["hints"].as_array().map(Vec::len);
        assert_eq!(found, Some(hinted), "{sums} {arguments:?}");
    }
}

fn of_or(of: &dyn Fn(u32) -> std::path::PathBuf, three: &Path, sums: u32) -> std::path::PathBuf {
    if sums == 3 {
        return three.to_owned();
    }
    let path = three.with_file_name(format!("sums{sums}.coh"));
    if path.exists() { path } else { of(sums) }
}

#[test]
fn accesses_before_a_function_or_a_second_thread_change_where_lines_are_and_no_count() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let program = Program::build(directory.path(), "adds", "nop");
    let at =
        |name: &str, accesses: Vec<Access>| session(directory.path(), name, &program, accesses);
    // First all turns with the counter, then all with the sum.
    let mut apart = turns(&program, Basis::Emulated);
    apart.sort_by_key(|access| access.addr);
    let apart = at("apart.coh", apart);
    let row =
        |arguments: &[&str], session: &Path| json(arguments, &[session])["sessions"][0].clone();
    let after = row(&["--after", "fp_load"], &apart);
    assert_eq!(table(&after)[0], [PLAIN, PLAIN, BIASED]);
    assert_eq!(reached(&after), [PLAIN, BIASED]);
    assert_eq!(after["executed"]["loads"], 40);
    // The twin: from the first instruction on everything counts.
    let all = row(&["--after", "int_load"], &apart);
    assert_eq!(table(&all), table(&row(&[], &apart)));
    let swift = row(&["--after", "fp_load", "--filter", "swift"], &apart);
    assert_eq!(table(&swift), table(&after));

    let file = hints_json(&["--after", "fp_load"], &apart);
    assert_eq!(file["evidence"]["after"], "fp_load");
    assert_eq!(file["evidence"]["transactions"], PLAIN);
    assert_eq!(file["hints"].as_array().map(Vec::len), Some(1));
    assert_eq!(file["evidence"]["hinted_transactions"], BIASED);
    let text = simulate(&["--after", "fp_load"], &[&apart])
        .expect_code(0)
        .stdout;
    assert!(text.contains("Counted from fp_load on"), "{text}");

    // The first of four threads has each line to itself for its first turn; the second one finds it modified, as all
    // that follow.
    let threads = at("threads.coh", turns(&program, Basis::Emulated));
    let second = row(&["--after", "second-thread"], &threads);
    assert_eq!(table(&second)[0], [2 * 39 * 8, 39 * 12, 2 * 39 * 4]);
    assert_eq!(second["executed"]["stores"], 2 * 39);
}

#[test]
fn a_place_to_count_from_that_never_comes_is_refused_with_what_there_is() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let program = Program::build(directory.path(), "adds", "nop");
    let mut counters = turns(&program, Basis::Emulated);
    counters.retain(|access| access.addr == COUNTER);
    let alone = counters
        .iter()
        .map(|access| Access {
            tid: counters[0].tid,
            ..*access
        })
        .collect();
    let at = |name: &str, accesses| session(directory.path(), name, &program, accesses);
    let (counters, alone) = (at("counters.coh", counters), at("alone.coh", alone));
    for (asked, session, words) in [
        ("fp_load", &counters, "never ran"),
        ("int_lode", &counters, "there is int_load"),
        ("worker", &counters, "nor one like it"),
        ("second-thread", &alone, "no second thread"),
        ("", &counters, "expected a function's name"),
    ] {
        for ended in [
            simulate(&["--after", asked], &[session]),
            hints(&["--after", asked], session),
        ] {
            assert_eq!(ended.code(), 2, "{}", ended.said());
            assert!(ended.stderr.contains(words), "{words}\n{}", ended.said());
            assert!(!ended.stderr.contains("panicked"), "{}", ended.said());
        }
    }
}

#[test]
fn each_command_that_reads_long_sessions_can_be_quiet() {
    let (_directory, _program, session) = adds();
    for command in ["report", "pairs", "hints", "simulate", "log"] {
        let ended = run(cohtrace([command, "-q"]).arg(&session), GRACE);
        assert!(ended.expect_code(0).stderr.is_empty(), "{command}");
    }
    let diff = run(cohtrace(["diff", "-q"]).args([&session, &session]), GRACE);
    diff.expect_code(0);
}
