//! Random and damaged input for everything that is read, found by a coverage-guided fuzzer.

use std::{
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Context as _, Result, bail, ensure};
use cohtrace_tests::figures::Table;

use super::{Bench, Plan, cargo, target_directory};
use crate::root;

pub(super) static BENCH: Bench = Bench {
    name: "fuzz",
    about: "input made by a fuzzer, for everything that is read: crashes, hangs and memory (--runs: inputs for each target; \
            --minutes: time of all targets)",
    rounds: 1,
    needs_root: false,
    // The slowest target reads some hundred files a second.
    takes: |plan| Duration::from_mins(5) + TARGETS.len() as u32 * plan.fuzzing.longest(),
    run,
};

/// Of `fuzz/fuzz_targets/`.
const TARGETS: [&str; 15] = [
    "elf",
    "dwarf",
    "split",
    "minidebug",
    "debuglink",
    "perf_map",
    "jitdump",
    "hints_json",
    "assembly",
    "source_edit",
    "machine_code",
    "kernel_types",
    "proc_maps",
    "perf_data",
    "session",
];

/// How long each target is fuzzed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fuzzing {
    Inputs(u32),
    Time(Duration),
}

impl Fuzzing {
    /// An equal part of this time, or else so many inputs.
    pub(super) fn planned(minutes: Option<u32>, inputs: u32) -> Fuzzing {
        match minutes {
            Some(minutes) => {
                Fuzzing::Time(Duration::from_mins(minutes.into()) / TARGETS.len() as u32)
            }
            None => Fuzzing::Inputs(inputs),
        }
    }

    /// The slowest target reads some hundred inputs a second.
    fn longest(self) -> Duration {
        match self {
            Fuzzing::Inputs(inputs) => inputs * Duration::from_millis(4),
            Fuzzing::Time(time) => time,
        }
    }

    /// As the fuzzer takes it.
    fn argument(self) -> String {
        match self {
            Fuzzing::Inputs(inputs) => format!("-runs={inputs}"),
            Fuzzing::Time(time) => format!("-max_total_time={}", time.as_secs().max(1)),
        }
    }
}

/// What ends a target: ten seconds for one file, and memory far out of proportion to it. The address sanitizer itself
/// takes several times what the program does.
const LIMITS: [&str; 4] = [
    "-timeout=10",
    "-rss_limit_mb=2048",
    "-malloc_limit_mb=128",
    "-max_len=20000",
];

fn run(plan: &Plan) -> Result<()> {
    let has_fuzzer = Command::new("cargo").args(["fuzz", "--version"]).output();
    ensure!(
        has_fuzzer.is_ok_and(|output| output.status.success()),
        "the fuzzer is not installed: cargo install cargo-fuzz"
    );
    let mut table = Table::new(&[
        "target",
        "executions",
        "crashes",
        "peak RSS, MiB",
        "slowest input, s",
    ]);
    let (mut failed, mut executions) = (Vec::new(), 0);
    for target in TARGETS {
        let ran = fuzz(target, plan.fuzzing)?;
        executions += ran.executions();
        table.row([
            target.to_owned(),
            ran.number("number_of_executed_units"),
            if ran.crashed {
                "1, which ended it"
            } else {
                "0"
            }
            .to_owned(),
            ran.number("peak_rss_mb"),
            ran.number("slowest_unit_time_sec"),
        ]);
        if ran.crashed {
            println!("{}", ran.output);
            failed.push(target);
        }
    }
    print!("{table}");
    println!(
        "{executions} executions, each with {}. What was found is in fuzz/artifacts/.",
        LIMITS.join(" ")
    );
    if !failed.is_empty() {
        bail!("failed: {}", failed.join(", "));
    }
    Ok(())
}

struct Ran {
    output: String,
    crashed: bool,
}

impl Ran {
    fn executions(&self) -> u64 {
        let number = self.number("number_of_executed_units");
        number.parse().unwrap_or(0)
    }

    /// `stat::NAME: VALUE` of the fuzzer's last words.
    fn number(&self, name: &str) -> String {
        let prefix = format!("stat::{name}:");
        let value = self
            .output
            .lines()
            .find_map(|line| line.strip_prefix(&*prefix));
        value.map_or("-", str::trim).to_owned()
    }
}

/// Runs a target on the committed seeds and finds, and on what earlier runs found.
fn fuzz(target: &str, fuzzing: Fuzzing) -> Result<Ran> {
    let fuzz = root().join("fuzz");
    let corpus = fuzz.join("corpus").join(target);
    std::fs::create_dir_all(&corpus)?;
    let mut command = cargo();
    // The sanitizer's flags are not stable; the compiler is.
    command.env("RUSTC_BOOTSTRAP", "1");
    command.args([
        "fuzz",
        "run",
        "--release",
        "--debug-assertions",
        "--fuzz-dir",
    ]);
    command
        .arg(&fuzz)
        .arg("--target-dir")
        .arg(target_directory()?.join("fuzz"));
    command
        .arg(target)
        .arg(corpus)
        .arg(fuzz.join("seeds").join(target));
    // A part of what reached other code, of a fuzzing of all targets.
    let found = fuzz.join("found").join(target);
    if found.is_dir() {
        command.arg(found);
    }
    command.arg("--").args(LIMITS);
    if target == "perf_data" {
        // What zstd takes to unpack a stream of perf's highest level; the last one counts.
        command.arg("-malloc_limit_mb=300");
    }
    command.args([&fuzzing.argument(), "-print_final_stats=1"]);
    let output = command
        .stdin(Stdio::null())
        .output()
        .context("starting cargo fuzz")?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let ran = text.contains("stat::") || text.contains("SUMMARY:");
    ensure!(ran, "cargo fuzz did not run:\n{text}");
    Ok(Ran {
        output: text,
        crashed: !output.status.success(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minutes_are_divided_evenly_among_the_targets() {
        let each = Fuzzing::planned(Some(30), 9);
        assert_eq!(each, Fuzzing::Time(Duration::from_mins(2)));
        assert_eq!(each.argument(), "-max_total_time=120");
        assert_eq!(Fuzzing::planned(None, 9).argument(), "-runs=9");
    }

    #[test]
    fn every_target_is_a_file_and_every_file_is_a_target() {
        let files = std::fs::read_dir(root().join("fuzz/fuzz_targets")).unwrap();
        let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
        let mut files: Vec<String> = names
            .filter_map(|name| name.strip_suffix(".rs").map(str::to_owned))
            .collect();
        let mut targets = TARGETS.to_vec();
        files.sort();
        targets.sort_unstable();
        assert_eq!(files, targets);
    }
}
