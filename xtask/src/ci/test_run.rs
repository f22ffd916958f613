//! All tests, and what their runners say: how many passed and failed, what was skipped, and where the time went.

use std::{
    fs,
    io::{self, BufRead as _, BufReader, Read, Write},
    path::Path,
    process::{Child, Stdio},
    sync::{Mutex, PoisonError},
    thread,
};

use cohtrace_skips::{CORE_MARK, MARK};
use cohtrace_tests::times;

use super::{
    Outcome, command,
    cpu_time::Clock,
    ended,
    test_times::{Programs, longest},
};
use crate::bench::target_directory;

/// What all runners counted: the last of them may have none.
#[derive(Debug, Default)]
struct Counted {
    passed: u64,
    failed: u64,
    /// What was not tested, as the test says it.
    skipped: Vec<String>,
    /// Of these, what must have been tested where everything is set up.
    core: u64,
    programs: Programs,
}

impl Counted {
    fn line(&mut self, line: &str) {
        self.programs.line(line);
        if let Some((passed, failed)) = counts(line) {
            self.passed += passed;
            self.failed += failed;
        } else if let Some(what) = line.strip_prefix(MARK) {
            self.core += u64::from(line.starts_with(CORE_MARK));
            self.skipped.push(what.trim().to_owned());
        }
    }

    /// Why a run in which every test passed is none that shows anything.
    fn hidden(&self, strict: bool) -> Option<String> {
        (strict && self.core > 0).then(|| {
            let core = self.core;
            format!("{core} of the tests that were skipped must run here (they are marked as core)")
        })
    }
}

/// Runs all tests. Those that run the tool run what users do, where it was built just now (`built` is where): a debug build
/// takes minutes longer over recordings.
pub(super) fn run(built: Option<&Path>, strict: bool) -> Outcome {
    let mut command = command();
    command
        .args(["test", "--workspace", "--locked", "--no-fail-fast"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    if let Some(built) = built {
        command.env("COHTRACE_BIN", built.join("release/cohtrace"));
    }
    let times = target_directory().map(|directory| directory.join("test-times"));
    if let Ok(times) = &times {
        fs::remove_file(times).ok();
        command.env(times::FILE, times);
    }
    let clock = Clock::start();
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return Outcome::Failed(format!("cargo did not start: {error}")),
    };
    let counted = relayed(&mut child);
    let outcome = ended(child.wait());
    let took = clock.stop();
    println!("\n{}", counted.programs);
    if let Some(times) = times.ok().and_then(|times| fs::read_to_string(times).ok()) {
        println!("{}", longest(&times));
    }
    println!("tests  {took}");
    if !counted.skipped.is_empty() {
        println!("\nskipped, in whole or in part:");
        for what in &counted.skipped {
            println!("  {what}");
        }
    }
    let hidden = counted.hidden(strict);
    if let Some(why) = &hidden {
        println!("\n{why}");
    }
    println!(
        "\ntests: {} passed, {} failed, {} times something was skipped",
        counted.passed,
        counted.failed,
        counted.skipped.len()
    );
    match (outcome, hidden) {
        (Outcome::Passed, Some(why)) => Outcome::Failed(why),
        (outcome, _) => outcome,
    }
}

/// Passes on what a child prints while it prints it.
fn relayed(child: &mut Child) -> Counted {
    let counted = Mutex::new(Counted::default());
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    thread::scope(|scope| {
        scope.spawn(|| relay(stderr, &mut io::stderr(), &counted));
        relay(stdout, &mut io::stdout(), &counted);
    });
    counted.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn relay(from: Option<impl Read>, to: &mut impl Write, counted: &Mutex<Counted>) {
    let Some(from) = from else { return };
    for line in BufReader::new(from).split(b'\n') {
        let Ok(line) = line else { return };
        let line = String::from_utf8_lossy(&line);
        // Whoever closed it does not want to know.
        writeln!(to, "{line}").ok();
        let mut counted = counted.lock().unwrap_or_else(PoisonError::into_inner);
        counted.line(&line);
    }
}

/// Passed and failed, from a runner's `test result: ok. 12 passed; 0 failed; ..`.
fn counts(line: &str) -> Option<(u64, u64)> {
    let (_, numbers) = line.strip_prefix("test result: ")?.split_once(". ")?;
    let mut numbers = numbers.split("; ");
    let passed = numbers.next()?.strip_suffix(" passed")?.parse().ok()?;
    let failed = numbers.next()?.strip_suffix(" failed")?.parse().ok()?;
    Some((passed, failed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_runners_result_is_counted_and_other_lines_are_not() {
        let line =
            "test result: FAILED. 12 passed; 3 failed; 0 ignored; 0 measured; 0 filtered out";
        assert_eq!(counts(line), Some((12, 3)));
        assert_eq!(
            counts("test result: ok. 7 passed; 0 failed; finished"),
            Some((7, 0))
        );
        assert_eq!(counts("test some_test ... ok"), None);
        assert_eq!(counts("test result: ok. many passed; 0 failed"), None);
    }

    #[test]
    fn a_skip_is_listed_and_fails_the_run_only_if_it_is_of_the_core_and_everything_is_set_up() {
        let mut counted = Counted::default();
        counted.line("*** SKIPPED pmu: this machine has none");
        counted.line("test pmu ... ok");
        assert_eq!(counted.skipped, ["pmu: this machine has none"]);
        assert_eq!(counted.hidden(true), None);
        counted.line("*** SKIPPED (core) live: not root");
        assert_eq!(counted.skipped[1], "(core) live: not root");
        assert_eq!(counted.hidden(false), None);
        assert!(
            counted
                .hidden(true)
                .is_some_and(|why| why.starts_with("1 of"))
        );
    }
}
