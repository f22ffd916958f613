//! Where the time of the tests goes: by program, as their runners say it, and the longest of the integration tests.

use std::{cmp::Reverse, fmt, time::Duration};

use cohtrace_tests::{figures::Table, times::Time};

/// Programs that took less are one row.
const LEAST_S: f64 = 2.0;
/// Tests that are named.
const NAMED: usize = 20;

/// What cargo and the runners said. They say it on two streams, but each in one order: the n-th result is the n-th program's.
#[derive(Debug, Default)]
pub(super) struct Programs {
    names: Vec<String>,
    seconds: Vec<f64>,
}

impl Programs {
    /// A line of either stream.
    pub(super) fn line(&mut self, line: &str) {
        let is_result = line.starts_with("test result: ");
        if let Some(seconds) = is_result.then(|| finished_in(line)).flatten() {
            self.seconds.push(seconds);
        } else if let Some(name) = begun(line) {
            self.names.push(name);
        }
    }
}

impl fmt::Display for Programs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rows: Vec<(&str, f64)> = self
            .names
            .iter()
            .map(String::as_str)
            .zip(self.seconds.iter().copied())
            .collect();
        rows.sort_by(|a, b| b.1.total_cmp(&a.1));
        let long = rows
            .iter()
            .take_while(|(_, seconds)| *seconds >= LEAST_S)
            .count();
        let rest: f64 = rows[long..].iter().map(|(_, seconds)| seconds).sum();
        let mut table = Table::new(&["tests of", "seconds"]);
        for (name, seconds) in &rows[..long] {
            table.row([(*name).to_owned(), format!("{seconds:.1}")]);
        }
        table.row([
            format!("{} others", rows.len() - long),
            format!("{rest:.1}"),
        ]);
        write!(f, "{table}")
    }
}

/// The program that cargo says it runs: `Running unittests src/lib.rs (target/debug/deps/symbolizer-0123456789abcdef)`.
fn begun(line: &str) -> Option<String> {
    let line = line.trim_start();
    if let Some(name) = line.strip_prefix("Doc-tests ") {
        return Some(format!("{name}, documentation"));
    }
    let (what, program) = line.strip_prefix("Running ")?.split_once(" (")?;
    let program = program.strip_suffix(')')?.rsplit('/').next()?;
    let (name, _) = program.rsplit_once('-')?;
    Some(if what.starts_with("unittests") {
        name.to_owned()
    } else {
        format!("{name}, {what}")
    })
}

fn finished_in(line: &str) -> Option<f64> {
    let (_, seconds) = line.rsplit_once("finished in ")?;
    seconds.trim().strip_suffix('s')?.parse().ok()
}

/// The longest of the tests, and the sums of all, from what they wrote.
pub(super) fn longest(written: &str) -> String {
    let mut times: Vec<Time> = written
        .lines()
        .filter_map(|line| line.parse().ok())
        .collect();
    times.sort_by_key(|time| Reverse(time.took));
    let alone: Duration = times.iter().map(|time| time.alone).sum();
    let beside: Duration = times
        .iter()
        .map(|time| time.took.saturating_sub(time.alone))
        .sum();
    let mut table = Table::new(&["integration test", "seconds", "of these alone"]);
    let seconds = |time: Duration| format!("{:.1}", time.as_secs_f64());
    for time in times.iter().take(NAMED) {
        table.row([time.test.clone(), seconds(time.took), seconds(time.alone)]);
    }
    table.row([
        format!("all {}", times.len()),
        seconds(alone + beside),
        seconds(alone),
    ]);
    table.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_program_has_its_own_time_however_the_streams_are_mixed() {
        let mut programs = Programs::default();
        for line in [
            "   Compiling symbolizer v0.1.0",
            "     Running unittests src/lib.rs (target/debug/deps/symbolizer-0123456789abcdef)",
            "     Running tests/it/main.rs (target/debug/deps/it-0123456789abcdef)",
            "test a::finished in 3s ... ok",
            "test result: ok. 12 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 3.25s",
            "   Doc-tests cohtrace_model",
            "test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 61.50s",
            "test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s",
        ] {
            programs.line(line);
        }
        let printed = programs.to_string();
        let rows: Vec<Vec<&str>> = printed
            .lines()
            .map(|line| line.split_whitespace().collect())
            .collect();
        let has = |row: &[&str]| rows.iter().any(|printed| printed == row);
        assert!(has(&["it,", "tests/it/main.rs", "61.5"]), "{printed}");
        assert!(has(&["symbolizer", "3.2"]), "{printed}");
        assert!(has(&["1", "others", "0.0"]), "{printed}");
    }

    #[test]
    fn the_longest_test_is_first_and_the_sums_are_of_all() {
        let printed = longest("100 0 a::short\n9000 8000 b::long\nnothing\n");
        let first = printed.find("b::long").unwrap();
        assert!(first < printed.find("a::short").unwrap(), "{printed}");
        let last: Vec<&str> = printed.lines().last().unwrap().split_whitespace().collect();
        assert_eq!(last, ["all", "2", "9.1", "8.0"]);
    }
}
