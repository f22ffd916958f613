//! Random and damaged files for everything that symbolizer and sessions read, found by a coverage-guided fuzzer.

use std::{
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Context as _, Result, bail, ensure};
use cohtrace_tests::figures::Table;

use super::{Bench, Plan, cargo, target_directory};
use crate::root;

pub static BENCH: Bench = Bench {
    name: "fuzz",
    about: "files made by a fuzzer, read by symbolizer, import or as a session: crashes, hangs and memory (--runs: inputs for each target)",
    rounds: 1,
    needs_root: false,
    // The slowest target reads some hundred files a second.
    takes: |plan| {
        Duration::from_mins(5) + TARGETS.len() as u32 * plan.inputs * Duration::from_millis(4)
    },
    run,
};

/// Of `fuzz/fuzz_targets/`.
const TARGETS: [&str; 9] = [
    "elf",
    "dwarf",
    "split",
    "minidebug",
    "perf_map",
    "jitdump",
    "hint_texts",
    "perf_data",
    "session",
];

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
    let mut failed = Vec::new();
    for target in TARGETS {
        let ran = fuzz(target, plan.inputs)?;
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
        "Each with {}. What was found is in fuzz/artifacts/.",
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

/// Runs a target on the committed seeds, and on what earlier runs found.
fn fuzz(target: &str, inputs: u32) -> Result<Ran> {
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
    command.arg("--").args(LIMITS);
    if target == "perf_data" {
        // What zstd takes to unpack a stream of perf's highest level; the last one counts.
        command.arg("-malloc_limit_mb=300");
    }
    command.args([&format!("-runs={inputs}"), "-print_final_stats=1"]);
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
