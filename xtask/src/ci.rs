//! Everything that must hold before a change is taken. A step that fails does not hide the next; a
//! step that cannot be done here is named as such and never passes for done.

mod cpu_time;
mod supported_rust;
mod test_run;
mod test_times;

use std::{
    fmt, fs, io,
    process::{Command, ExitStatus, Stdio},
};

use anyhow::{Result, bail};
use clap::Args;

use self::cpu_time::{Clock, Took};
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
    took: Took,
}

/// How the task is run.
#[derive(Args)]
pub(crate) struct Options {
    /// A test of the core that is skipped is a failure: for a machine on which everything is set up, as `.ci/run` does.
    #[arg(long)]
    strict: bool,
}

/// The task. The tests come last, so that their counts are the last thing printed.
pub(crate) fn run(options: &Options) -> Result<()> {
    let mut steps = Vec::new();
    let mut step = |name, check: &dyn Fn() -> Outcome| {
        println!("=== {name}");
        let clock = Clock::start();
        let outcome = check();
        let passed = matches!(outcome, Outcome::Passed);
        if !passed {
            println!("{outcome}");
        }
        let took = clock.stop();
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
    step("the oldest supported Rust", &supported_rust::check);
    let is_built = step("release build", &release_build);
    step("LLVM plugin", &plugin);
    step("rights for the live tests", &live_tests);
    step("tests are built", &test_build);
    if is_built {
        step("the oldest kernel and the newest", &kernels);
    }
    table(&steps);
    println!("=== tests");
    let built = is_built.then(target_directory).and_then(Result::ok);
    let tests = test_run::run(built.as_deref(), options.strict);
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

/// Apart from their run, so that each has its own time.
fn test_build() -> Outcome {
    cargo(&["test", "--workspace", "--locked", "--no-run", "--quiet"])
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

/// Known before the tests, which say it each for itself.
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
        println!("{name:width$}  {took}  {first_line}");
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
