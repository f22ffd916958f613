//! Each query against the report that its header names.

use std::{collections::BTreeMap, path::Path};

use cohtrace_tests::report::hex;

use super::{
    duck::{Answers, Row},
    replayed::{self, PairCounts, ReportedLine, Watched},
};

/// Lines that a report lists below its findings.
const LISTED: usize = 20;

/// Compares everything; gives the numbers of rows compared, by query, for the caller to say what must not be none.
pub(super) fn check(session: &Path, answers: &Answers) -> BTreeMap<&'static str, usize> {
    let log = request_log(session, answers);
    let replayed = replayed::replay(session);
    BTreeMap::from([
        ("request_log", log),
        ("swift_pairs", swift_pairs(session, answers)),
        (
            "transactions",
            transactions(session, answers, &replayed.watched),
        ),
        ("false_sharing", false_sharing(session, answers, &replayed)),
        ("touched_bytes", touched_bytes(answers, &replayed)),
        ("rates", rates(answers, &replayed)),
    ])
}

/// Row by row what `cohtrace log` prints.
fn request_log(session: &Path, answers: &Answers) -> usize {
    let rows = answers.rows("request_log");
    let text = |row: &Row| {
        let numbers = ["number", "cpu", "tid"].map(|column| row.number(column).to_string());
        let texts = ["ip", "target", "line", "request"].map(|column| row.text(column));
        [&numbers[..], &texts[..]].concat().join(",")
    };
    let by_sql: Vec<String> = rows.iter().map(text).collect();
    let printed = replayed::printed(&["log"], session);
    assert_eq!(by_sql, printed.lines().collect::<Vec<_>>());
    by_sql.len()
}

/// The counts of `cohtrace pairs --json`, in which a pair needs three of them to be listed.
fn swift_pairs(session: &Path, answers: &Answers) -> usize {
    let mut by_sql = PairCounts::new();
    let listed = |row: &Row| row.number("count") >= 3;
    for row in answers.rows("swift_pairs").into_iter().filter(listed) {
        let ip = |column: &str| hex(&row.text(column)).expect("an address") & 0xfff;
        let sums = by_sql.entry((ip("load_ip"), ip("store_ip"))).or_default();
        sums.0 += row.number("global_count");
        sums.1 += row.number("count");
    }
    assert_eq!(by_sql, replayed::reported_pairs(session));
    by_sql.len()
}

/// Requests by instruction as the log has them; messages by line as the library counts them.
fn transactions(session: &Path, answers: &Answers, watched: &BTreeMap<String, Watched>) -> usize {
    let rows = answers.rows("transactions_per_instruction");
    let mut asked: BTreeMap<(u64, &str), u64> = BTreeMap::new();
    let mut lines: BTreeMap<String, Watched> = BTreeMap::new();
    for row in &rows {
        let ip = hex(&row.text("ip")).expect("an address");
        for (column, request) in [("read_shar", "READ_SHAR"), ("read_priv", "READ_PRIV")] {
            *asked.entry((ip, request)).or_default() += row.number(column);
        }
        let executions = row.number("executions");
        let sums = lines.entry(row.text("line")).or_default();
        sums.accesses += executions;
        sums.stores += if row.number("op") > 0 { executions } else { 0 };
        sums.requests.read_shar += row.number("read_shar");
        sums.requests.read_priv += row.number("read_priv");
        sums.requests.cold += row.number("cold");
        sums.requests.recall_priv += row.number("owner_recalls");
        sums.requests.recall_shar += row.number("sharer_recalls");
        sums.requests.transactions += row.number("transactions");
    }
    asked.retain(|_, count| *count > 0);
    let printed = replayed::printed(&["log"], session);
    let mut logged: BTreeMap<(u64, &str), u64> = BTreeMap::new();
    for row in printed.lines() {
        let columns: Vec<&str> = row.split(',').collect();
        let ip = hex(columns[3]).expect("an address");
        *logged.entry((ip, columns[6])).or_default() += 1;
    }
    assert_eq!(asked, logged);
    let without_windows = |(line, sums): (&String, &Watched)| {
        let sums = Watched {
            windows: 0,
            ..*sums
        };
        (line.clone(), sums)
    };
    assert_eq!(lines, watched.iter().map(without_windows).collect());
    rows.len()
}

/// The same lines as the report, with the same numbers.
fn false_sharing(session: &Path, answers: &Answers, replayed: &replayed::Replayed) -> usize {
    let rows = answers.rows("false_sharing");
    let line = |row: &Row| {
        let line = ReportedLine {
            accesses: row.number("accesses"),
            stores: row.number("stores"),
            stalled: row.number("stalled"),
            trapped: row.number("trapped"),
            threads: row.number("threads"),
            common_bytes: row.number("common_bytes"),
            private_bytes: row.number("private_bytes"),
        };
        (row.text("line"), line)
    };
    let by_sql: BTreeMap<String, ReportedLine> = rows.iter().map(line).collect();
    let report = replayed::json(&["report", "--json"], session);
    let reported = replayed::reported_lines(&report);
    for (key, line) in &reported {
        assert_eq!(by_sql.get(key), Some(line), "{key}");
    }
    let listed = report["insignificant"].as_array().map_or(0, Vec::len);
    if listed < LISTED {
        let told = replayed::lines_of_several(&report);
        let missing = |key: &&String| !reported.contains_key(*key) && !told.contains(*key);
        assert_eq!(
            by_sql.keys().find(missing),
            None,
            "{reported:#?}\n{told:#?}"
        );
    }
    for judgement in &replayed.judgements {
        let key = judgement.key.to_string();
        let Some(row) = rows.iter().find(|row| row.text("line") == key) else {
            continue;
        };
        assert_eq!(row.number("samples"), judgement.samples, "{key}");
        assert_eq!(row.number("cost_ns"), judgement.cost.0, "{key}");
        let map = row.text("byte_map");
        let count = |letter| map.chars().filter(|c| *c == letter).count() as u64;
        assert_eq!(count('C'), row.number("common_bytes"), "{key}: {map}");
        assert_eq!(count('P'), row.number("private_bytes"), "{key}: {map}");
        assert_eq!(map.len(), 64, "{key}: {map}");
    }
    reported.len()
}

/// Added up over slices, what each thread did to the line.
fn touched_bytes(answers: &Answers, replayed: &replayed::Replayed) -> usize {
    let rows = answers.rows("touched_bytes");
    let mut by_sql: BTreeMap<(String, u64), [u64; 3]> = BTreeMap::new();
    for row in &rows {
        let key = (row.text("line"), row.number("tid"));
        let sums = by_sql.entry(key).or_default();
        for (sum, column) in sums.iter_mut().zip(["accesses", "stores", "cost_ns"]) {
            *sum += row.number(column);
        }
    }
    let mut compared = 0;
    for judgement in &replayed.judgements {
        let line = judgement.key.to_string();
        let sampled = judgement
            .threads
            .iter()
            .filter(|thread| thread.accesses > 0);
        let threads: BTreeMap<(String, u64), [u64; 3]> = sampled
            .map(|thread| {
                let sums = [thread.accesses, thread.stores, thread.cost.0];
                ((line.clone(), u64::from(thread.tid.0)), sums)
            })
            .collect();
        if threads.values().all(|[_, stores, _]| *stores == 0) {
            continue;
        }
        let mut found = by_sql.clone();
        found.retain(|(of, _), _| *of == line);
        assert_eq!(found, threads, "{line}");
        compared += threads.len();
    }
    compared
}

/// Added up over slices, what each line had in samples and in windows.
fn rates(answers: &Answers, replayed: &replayed::Replayed) -> usize {
    let mut sampled: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    let mut watched: BTreeMap<String, (u64, u64, u64)> = BTreeMap::new();
    for row in answers.rows("rates") {
        let line = row.text("line");
        if row.number("accesses") > 0 {
            let sums = sampled.entry(line.clone()).or_default();
            *sums = (
                sums.0 + row.number("accesses"),
                sums.1 + row.number("stores"),
            );
        }
        if row.number_or_none("window_ns").is_some() {
            let sums = watched.entry(line).or_default();
            let more = ["windows", "trapped", "trapped_stores"].map(|column| row.number(column));
            *sums = (sums.0 + more[0], sums.1 + more[1], sums.2 + more[2]);
        }
    }
    assert_eq!(sampled, replayed.lines);
    let expected = replayed.watched.iter().map(|(line, sums)| {
        let sums = (sums.windows, sums.accesses, sums.stores);
        (line.clone(), sums)
    });
    assert_eq!(watched, expected.collect());
    sampled.len()
}

/// Executions of an emulated session: the same lines as the report, with the same numbers. Costs are in no table.
pub(super) fn check_executions(session: &Path, answers: &Answers) -> usize {
    let replayed = replayed::replay(session);
    let touched = answers.rows("touched_bytes");
    let mut lines = 0;
    for row in answers.rows("false_sharing") {
        let key = row.text("line");
        let judged = (replayed.judgements.iter()).find(|judged| judged.key.to_string() == key);
        let Some(judged) = judged else { continue };
        assert_eq!(row.number("accesses"), judged.accesses, "{key}");
        assert_eq!(row.number("samples"), judged.accesses, "{key}");
        let stores = judged
            .threads
            .iter()
            .map(|thread| thread.stores)
            .sum::<u64>();
        assert_eq!(row.number("stores"), stores, "{key}");
        for thread in &judged.threads {
            let of_thread = |row: &&Row| {
                row.text("line") == key && row.number("tid") == u64::from(thread.tid.0)
            };
            let slices = touched.iter().filter(of_thread);
            let accesses = slices.map(|row| row.number("accesses")).sum::<u64>();
            assert_eq!(accesses, thread.accesses, "{key} {:?}", thread.tid);
        }
        lines += 1;
    }
    lines
}
