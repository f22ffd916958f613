//! Everything that must hold before a change is taken. A step that fails does not hide the next; a
//! step that cannot be done here is named as such and never passes for done.

use std::{
    fmt, fs,
    io::{self, BufRead, BufReader},
    path::Path,
    process::{Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Result, bail};

use crate::{
    bench::target_directory,
    ebpf::{self, Check},
    llvm_plugin, root, vm,
};

/// How a step ended.
enum Outcome {
    Passed,
    Failed(String),
    /// Not a failure of the change: the machine lacks something.
    CouldNotCheck(String),
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Passed => f.write_str("ok"),
            Outcome::Failed(why) => write!(f, "FAILED: {why}"),
            Outcome::CouldNotCheck(why) => write!(f, "could not check: {why}"),
        }
    }
}

struct Step {
    name: &'static str,
    outcome: Outcome,
    took: Duration,
}

/// The task. The tests come last, so that their counts are the last thing printed.
pub fn run() -> Result<()> {
    let mut steps = Vec::new();
    let mut step = |name, check: &dyn Fn() -> Outcome| {
        println!("=== {name}");
        let start = Instant::now();
        let outcome = check();
        let passed = matches!(outcome, Outcome::Passed);
        if !passed {
            println!("{outcome}");
        }
        let took = start.elapsed();
        steps.push(Step {
            name,
            outcome,
            took,
        });
        passed
    };
    step("formatting", &formatting);
    step("lints", &lints);
    step("BPF objects follow from their sources", &bpf_objects);
    step("documentation", &documentation);
    let is_built = step("release build", &release_build);
    step("LLVM plugin", &plugin);
    step("rights for the live tests", &live_tests);
    if is_built {
        step("the oldest kernel and the newest", &kernels);
    }
    table(&steps);
    println!("=== tests");
    let tests = tests(
        is_built
            .then(target_directory)
            .and_then(Result::ok)
            .as_deref(),
    );
    let failed: Vec<&str> = steps
        .iter()
        .filter(|step| matches!(step.outcome, Outcome::Failed(_)))
        .map(|step| step.name)
        .chain(matches!(tests, Outcome::Failed(_)).then_some("tests"))
        .collect();
    if !failed.is_empty() {
        bail!("failed: {}", failed.join(", "));
    }
    Ok(())
}

/// Runs all tests, and sums up what each runner counted: the last of them may have none. Those that run the tool run what
/// users do, where it was built just now (`built` is where): a debug build takes minutes longer over recordings.
fn tests(built: Option<&Path>) -> Outcome {
    let mut command = command();
    command
        .args(["test", "--workspace", "--locked", "--no-fail-fast"])
        .stdout(Stdio::piped());
    if let Some(built) = built {
        command.env("COHTRACE_BIN", built.join("release/cohtrace"));
    }
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return Outcome::Failed(format!("cargo did not start: {error}")),
    };
    let (mut passed, mut failed) = (0, 0);
    for line in child
        .stdout
        .take()
        .map(BufReader::new)
        .into_iter()
        .flat_map(BufRead::lines)
    {
        let Ok(line) = line else { break };
        println!("{line}");
        if let Some((ok, not_ok)) = counts(&line) {
            passed += ok;
            failed += not_ok;
        }
    }
    let outcome = ended(child.wait());
    println!("\ntests: {passed} passed, {failed} failed");
    outcome
}

/// Passed and failed, from a runner's `test result: ok. 12 passed; 0 failed; ..`.
fn counts(line: &str) -> Option<(u64, u64)> {
    let (_, numbers) = line.strip_prefix("test result: ")?.split_once(". ")?;
    let mut numbers = numbers.split("; ");
    let passed = numbers.next()?.strip_suffix(" passed")?.parse().ok()?;
    let failed = numbers.next()?.strip_suffix(" failed")?.parse().ok()?;
    Some((passed, failed))
}

fn formatting() -> Outcome {
    if !has_subcommand("fmt") {
        return Outcome::CouldNotCheck("rustup component add rustfmt".to_owned());
    }
    cargo(&["fmt", "--all", "--check"])
}

fn lints() -> Outcome {
    if !has_subcommand("clippy") {
        return Outcome::CouldNotCheck("rustup component add clippy".to_owned());
    }
    let arguments = "clippy --workspace --all-targets --locked -- -D warnings";
    cargo(&arguments.split(' ').collect::<Vec<_>>())
}

fn bpf_objects() -> Outcome {
    match ebpf::check() {
        Ok(Check::Same) => Outcome::Passed,
        Ok(Check::CannotCompare(why)) => Outcome::CouldNotCheck(why),
        Ok(Check::Differ(what)) => Outcome::Failed(format!("{what}; run `cargo xtask ebpf`")),
        Err(error) => Outcome::Failed(format!("{error:#}")),
    }
}

fn documentation() -> Outcome {
    let mut command = command();
    command
        .args(["doc", "--workspace", "--no-deps", "--locked"])
        .env("RUSTDOCFLAGS", "-D warnings");
    run_to_end(command)
}

fn release_build() -> Outcome {
    cargo(&["build", "--release", "--locked", "--package", "cohtrace"])
}

/// The tests of load hints in clang and rustc use it.
fn plugin() -> Outcome {
    match llvm_plugin::check() {
        Ok(None) => Outcome::Passed,
        Ok(Some(why)) => Outcome::CouldNotCheck(why),
        Err(error) => Outcome::Failed(format!("{error:#}")),
    }
}

/// In emulated machines; `cargo xtask vm` has more of them.
fn kernels() -> Outcome {
    match vm::check() {
        Ok(None) => Outcome::Passed,
        Ok(Some(why)) => Outcome::CouldNotCheck(why),
        Err(error) => Outcome::Failed(format!("{error:#}")),
    }
}

/// The live tests say why they do not run, but the test runner hides what a passing test prints.
fn live_tests() -> Outcome {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let uid = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    let effective = uid.and_then(|uids| uids.split_whitespace().nth(1));
    if effective == Some("0") {
        Outcome::Passed
    } else {
        Outcome::CouldNotCheck("not root: the tests that sample programs will not run".to_owned())
    }
}

fn table(steps: &[Step]) {
    let width = steps.iter().map(|step| step.name.len()).max().unwrap_or(0);
    println!();
    for Step {
        name,
        outcome,
        took,
    } in steps
    {
        let outcome = outcome.to_string();
        let first_line = outcome.lines().next().unwrap_or_default();
        println!("{name:width$}  {:5.1} s  {first_line}", took.as_secs_f64());
    }
    println!();
}

fn cargo(arguments: &[&str]) -> Outcome {
    let mut command = command();
    command.args(arguments);
    run_to_end(command)
}

fn command() -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(root());
    command
}

fn run_to_end(mut command: Command) -> Outcome {
    ended(command.status())
}

fn ended(status: io::Result<ExitStatus>) -> Outcome {
    match status {
        Ok(status) if status.success() => Outcome::Passed,
        Ok(status) => Outcome::Failed(status.to_string()),
        Err(error) => Outcome::Failed(format!("cargo did not start: {error}")),
    }
}

fn has_subcommand(name: &str) -> bool {
    let mut command = command();
    command
        .args([name, "--version"])
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
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
}
