//! Text, JSON and CSV.

use super::{
    Batch, ContextKind, Per, Pid, Table, Tid, batch, context, count, executed, lost, options,
    sample,
};
use crate::{TextOptions, access::Op, csv, json, read_csv, text};

/// Thread 0 at work from the start, thread 1 in the second half, each with a name.
fn run(names: &str) -> Table {
    let name = |tid, comm: &str| {
        let kind = ContextKind::Comm {
            pid: Pid(10),
            tid: Tid(tid),
            comm: comm.to_owned(),
            exec: false,
        };
        context(0, kind)
    };
    let mut accesses: Vec<_> = (0..100).map(|n| sample(n * 10, 0, 64)).collect();
    accesses.extend((50..100).map(|n| sample(n * 10 + 1, 1, 64)));
    accesses.sort_by_key(|access| access.time_ns);
    let feed = Batch {
        context: vec![name(11, "main"), name(12, "a, \"b\"\n\u{1b}[2J")],
        ..batch(accesses)
    };
    count(options(names, Some(100), Per::Thread), &[feed])
}

const OPTIONS: TextOptions = TextOptions {
    width: 100,
    ascii: true,
    all: false,
};

#[test]
fn text_shows_when_who_was_at_work() {
    let said = text(&run("samples,executions.loads"), "run", OPTIONS);
    assert!(
        said.starts_with("run: 1.000 s in 10 slices of 100ms, per thread\n"),
        "{said}"
    );
    let line = |label: &str| {
        said.lines()
            .find(|line| line.trim_start().starts_with(label))
    };
    assert!(
        line("thread 11 main").unwrap().ends_with("|@@@@@@@@@@|"),
        "{said}"
    );
    assert!(
        line("thread 12 a").unwrap().ends_with("|     @@@@@|"),
        "{said}"
    );
    assert!(
        line("all").unwrap().ends_with("|+++++@@@@@|") || said.contains("|=====@@@@@|"),
        "{said}"
    );
    assert!(
        said.contains("Not known, no emulator saw this run"),
        "{said}"
    );
    assert!(
        said.lines().all(|line| line.chars().count() <= 100),
        "{said}"
    );
    assert!(!said.contains('\u{1b}'), "{said}");
}

#[test]
fn text_of_the_whole_run_has_no_slices() {
    let table = count(
        options("samples", None, Per::All),
        &[batch(vec![sample(1, 0, 64)])],
    );
    let said = text(&table, "run", OPTIONS);
    assert_eq!(
        said,
        "run: 1.000 s, per all\n\nsamples (samples)\n  all                          1\n"
    );
}

#[test]
fn csv_reads_back_as_the_values_that_were_written() {
    let table = run("samples,samples.kernel_share,time.spinning,requests.read");
    let lines = read_csv(&csv(&table));
    let header = lines[0].clone();
    let at = |name: &str| {
        header
            .iter()
            .position(|field| field == name)
            .expect("a column")
    };
    assert!(lines.iter().all(|line| line.len() == header.len()));
    let mut rest = lines[1..].iter();
    let number = |field: &String| field.parse::<u64>().ok();
    for row in &table.rows {
        for (column, value) in table.columns.iter().zip(&row.total) {
            let line = rest.next().expect("a line for each");
            assert_eq!(line[at("slice")], "");
            assert_eq!(line[at("statistic")], column.statistic.name());
            assert_eq!(number(&line[at("amount")]), value.amount);
        }
    }
    for slice in 0..table.slice_count as usize {
        for row in &table.rows {
            for (column, values) in table.columns.iter().zip(&row.slices) {
                let (line, value) = (rest.next().expect("a line for each"), values[slice]);
                assert_eq!(
                    line[at("from_ns")],
                    (slice as u64 * 100_000_000).to_string()
                );
                assert_eq!(line[at("statistic")], column.statistic.name());
                assert_eq!(number(&line[at("amount")]), value.amount);
                assert_eq!(number(&line[at("whole")]), value.whole);
                let low = line[at("low")].parse::<f64>().ok();
                assert_eq!(low, value.estimate.map(|estimate| estimate.low));
                assert_eq!(line[at("reason")], value.reason.unwrap_or_default());
            }
        }
    }
    assert_eq!(rest.next(), None);
    let hostile = lines
        .iter()
        .map(|line| &line[at("key")])
        .find(|key| key.contains("12"));
    assert!(hostile.unwrap().contains("a, \"b\""), "{hostile:?}");
}

#[test]
fn json_has_exact_counts_and_null_with_a_reason() {
    let table = count(
        options("executions.loads,samples", Some(500), Per::Cpu),
        &[
            batch(vec![executed(1, 0, 64, Op::Load), sample(2, 0, 64)]),
            lost(0),
        ],
    );
    let read: serde_json::Value = serde_json::from_str(&json(&table, "run")).unwrap();
    assert_eq!(
        (&read["schema"], &read["kind"]),
        (&1.into(), &"stats".into())
    );
    let key = &read["keys"][1];
    assert_eq!((&key["key"], &key["cpu"]), (&"cpu 0".into(), &0.into()));
    let [loads, samples] = [0, 1].map(|at| &key["values"][at]);
    assert_eq!(loads["total"]["value"], 1);
    assert_eq!(loads["slices"][1]["value"], 0);
    assert_eq!(samples["slices"][0]["value"], 1);
    assert_eq!(samples["slices"][1]["value"], serde_json::Value::Null);
    assert!(samples["slices"][1]["reason"].is_string());
}

#[test]
fn of_many_threads_the_greatest_are_printed_and_the_rest_is_counted() {
    let accesses = (0..40_u64).flat_map(|n| (0..=n).map(move |ms| sample(ms, n as u32, 64)));
    let mut accesses: Vec<_> = accesses.collect();
    accesses.sort_by_key(|access| access.time_ns);
    let table = count(options("samples", None, Per::Thread), &[batch(accesses)]);
    let said = text(&table, "run", OPTIONS);
    assert!(
        said.contains("thread 50 ") && !said.contains("thread 11 "),
        "{said}"
    );
    assert!(said.ends_with("  24 more\n"), "{said}");
    let all = text(
        &table,
        "run",
        TextOptions {
            all: true,
            ..OPTIONS
        },
    );
    assert!(
        all.contains("thread 11 ") && !all.contains(" more"),
        "{all}"
    );
}
