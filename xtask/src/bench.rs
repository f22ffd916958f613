//! What cohtrace costs and how often it is right, beside perf where perf can do the same.
//!
//! Figures are printed, never asserted. What is compared is measured in one run, in turns, and shown as
//! median (min..max). One file for each benchmark; each says what it compares.

mod confirmed;
mod daemon;
mod emulate;
mod field;
mod first_finding;
mod fuzz;
mod gains;
mod hit_rate;
mod library;
mod machine;
mod measure;
mod memory;
mod overhead;
mod peer;
mod prefetchw;
mod program;
mod scale;
mod slowdown;
mod soak;
mod symbolize;
mod typed;
mod validate;
mod watcher;

use std::{path::PathBuf, time::Duration};

use anyhow::{Context as _, Result, bail, ensure};
use cohtrace_tests::{kernel, workload};

use crate::root;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Which benchmarks (--list explains them); all but gains, hit-rate, fuzz, field, soak and validate unless named. After hit-rate or confirmed:
    /// workloads.
    names: Vec<String>,
    /// How often each measurement is repeated, where the benchmark's own number will not do.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: Option<u32>,
    /// Seconds that the tools watch, in `daemon` and `memory`, up to 240; in `soak`, whose simulated day is then as much
    /// shorter, 600 unless given.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: Option<u64>,
    /// Runs of each workload in `hit-rate`, 20 unless given; of each target in `fuzz`, 200,000; of each program in `field`, 1; of
    /// each size in `validate`, 100.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    runs: Option<u32>,
    /// Minutes of `fuzz`, divided evenly among its targets, instead of --runs.
    #[arg(long, conflicts_with = "runs", value_parser = clap::value_parser!(u32).range(1..))]
    minutes: Option<u32>,
    /// Millions of samples in each session of `scale`; 1 and 10 unless given.
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u64).range(1..=1000))]
    millions: Vec<u64>,
    /// Directory of kernels built with hints, each under its kernel's name, which `prefetchw` times beside its own builds.
    #[arg(long, value_name = "DIR")]
    hinted: Option<PathBuf>,
    /// Programs of `field`; all unless given, which takes some 5 minutes, and the first time 10 more to install and build.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    only: Vec<String>,
    /// Explain the benchmarks and stop; after `field`, its programs.
    #[arg(long)]
    list: bool,
}

/// One benchmark.
struct Bench {
    name: &'static str,
    about: &'static str,
    /// Repetitions unless asked otherwise.
    rounds: u32,
    needs_root: bool,
    /// About how long it takes, without builds.
    takes: fn(&Plan) -> Duration,
    run: fn(&Plan) -> Result<()>,
}

/// In the order in which they run. The last six take longest, and run when named.
static BENCHES: &[&Bench] = &[
    &slowdown::BENCH,
    &overhead::BENCH,
    &daemon::BENCH,
    &first_finding::BENCH,
    &confirmed::BENCH,
    &memory::BENCH,
    &library::RECORDER,
    &library::ANALYSIS,
    &scale::BENCH,
    &symbolize::BENCH,
    &typed::BENCH,
    &prefetchw::BENCH,
    &emulate::BENCH,
    &measure::BENCH,
    &gains::BENCH,
    &fuzz::BENCH,
    &hit_rate::BENCH,
    &field::BENCH,
    &soak::BENCH,
    &validate::BENCH,
];

/// Those that run when named.
const LONGEST: [&str; 6] = ["gains", "fuzz", "hit-rate", "field", "soak", "validate"];

/// What a benchmark is to do.
struct Plan {
    rounds: u32,
    seconds: Option<u64>,
    runs: u32,
    /// Of each target of `fuzz`.
    fuzzing: fuzz::Fuzzing,
    /// Runs of each program of `field`.
    field_runs: u32,
    /// Of each size of `validate`.
    validate_runs: u32,
    /// Programs of `field`.
    only: Vec<String>,
    workloads: Vec<String>,
    /// Of each session of `scale`.
    millions: Vec<u64>,
    /// Kernels with hints, for `prefetchw`.
    hinted: Option<PathBuf>,
    /// The release build of cohtrace.
    tool: PathBuf,
    /// Whether perf can be run here.
    has_perf: bool,
}

impl Plan {
    /// The tool, without arguments.
    fn cohtrace(&self) -> std::process::Command {
        std::process::Command::new(&self.tool)
    }
}

/// The task.
pub(crate) fn run(options: &Options) -> Result<()> {
    if options.list {
        if options.names.iter().any(|name| name == field::BENCH.name) {
            return field::list();
        }
        list();
        return Ok(());
    }
    let (chosen, workloads) = choose(&options.names)?;
    if let Some(bench) = chosen.iter().find(|bench| bench.needs_root)
        && !kernel::is_root()
    {
        bail!("{} samples running programs: run it as root", bench.name);
    }
    let mut plan = Plan {
        rounds: 1,
        seconds: options.seconds,
        runs: options.runs.unwrap_or(20),
        fuzzing: fuzz::Fuzzing::planned(options.minutes, options.runs.unwrap_or(200_000)),
        field_runs: options.runs.unwrap_or(1),
        validate_runs: options.runs.unwrap_or(100),
        only: options.only.clone(),
        workloads,
        millions: options.millions.clone(),
        hinted: options.hinted.clone(),
        tool: if chosen.iter().all(|bench| needs_no_tool(bench)) {
            PathBuf::new()
        } else {
            release_build()?
        },
        has_perf: peer::version().is_some(),
    };
    let plan_of = |plan: &mut Plan, bench: &Bench| {
        plan.rounds = options.rounds.unwrap_or(bench.rounds);
    };
    let mut estimate = Duration::ZERO;
    for bench in &chosen {
        plan_of(&mut plan, bench);
        estimate += (bench.takes)(&plan);
    }
    print!("{}", machine::statement());
    println!("takes about {}", minutes(estimate));
    for bench in chosen {
        plan_of(&mut plan, bench);
        println!("\n=== {}: {}", bench.name, bench.about);
        println!("load before: {}", machine::load());
        (bench.run)(&plan).with_context(|| format!("bench {}", bench.name))?;
        println!("load after: {}", machine::load());
    }
    Ok(())
}

/// Whether a benchmark does without the tool, and so without its release build.
fn needs_no_tool(bench: &Bench) -> bool {
    [
        symbolize::BENCH.name,
        fuzz::BENCH.name,
        prefetchw::BENCH.name,
    ]
    .contains(&bench.name)
}

fn list() {
    for bench in BENCHES {
        println!("{:<14} {}", bench.name, bench.about);
    }
    println!(
        "\nWithout names: all but gains, hit-rate, fuzz, field, soak and validate. `cargo xtask bench hit-rate WORKLOAD..` runs some workloads only, \
         as does confirmed; `cargo xtask bench field --only NAME,..` some programs."
    );
}

/// Benchmarks by name, each once and in their own order; and the workloads that hit-rate shall run.
fn choose(names: &[String]) -> Result<(Vec<&'static Bench>, Vec<String>)> {
    let is_bench = |name: &String| BENCHES.iter().any(|bench| bench.name == name);
    let (named, others): (Vec<String>, Vec<String>) = names.iter().cloned().partition(is_bench);
    let chosen: Vec<&Bench> = BENCHES
        .iter()
        .copied()
        .filter(|bench| {
            if names.is_empty() {
                !LONGEST.contains(&bench.name)
            } else {
                named.iter().any(|name| name == bench.name)
            }
        })
        .collect();
    let of_workloads = [hit_rate::BENCH.name, confirmed::BENCH.name];
    let takes_workloads = named.iter().any(|name| of_workloads.contains(&&**name));
    for name in &others {
        ensure!(
            takes_workloads,
            "no benchmark is called {name}; `cargo xtask bench --list` names them"
        );
        workload::named(name)?;
    }
    Ok((chosen, others))
}

/// The tool as users run it; `COHTRACE_BIN` names another build to measure.
pub(crate) fn release_build() -> Result<PathBuf> {
    if let Some(path) = std::env::var_os("COHTRACE_BIN") {
        return Ok(path.into());
    }
    let status = cargo()
        .args(["build", "--quiet", "--release", "--locked"])
        .args(["--package", "cohtrace"])
        .status()
        .context("starting cargo")?;
    ensure!(status.success(), "the release build failed");
    Ok(target_directory()?.join("release/cohtrace"))
}

/// Cargo, in the root of the repository.
pub(crate) fn cargo() -> std::process::Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = std::process::Command::new(cargo);
    command.current_dir(root());
    command
}

/// Where cargo builds.
pub(crate) fn target_directory() -> Result<PathBuf> {
    let profile = workload::profile_directory()?;
    let parent = profile.parent();
    Ok(parent
        .context("the profile directory has a parent")?
        .to_path_buf())
}

fn minutes(time: Duration) -> String {
    let seconds = time.as_secs();
    if seconds < 120 {
        format!("{seconds} s")
    } else {
        format!("{} min", seconds.div_ceil(60))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(names: &[&str]) -> Result<(Vec<&'static str>, Vec<String>)> {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let (benches, workloads) = choose(&names)?;
        Ok((benches.iter().map(|bench| bench.name).collect(), workloads))
    }

    #[test]
    fn without_names_everything_but_the_longest_runs() {
        let (benches, workloads) = chosen(&[]).unwrap();
        assert_eq!(benches.len(), BENCHES.len() - LONGEST.len());
        assert!(LONGEST.iter().all(|name| !benches.contains(name)));
        assert!(workloads.is_empty());
    }

    #[test]
    fn what_is_no_benchmark_is_a_workload_of_one_that_takes_them() {
        let (benches, workloads) = chosen(&["hit-rate", "two_counters"]).unwrap();
        assert_eq!(benches, ["hit-rate"]);
        assert_eq!(workloads, ["two_counters"]);
        let (benches, workloads) = chosen(&["get_set", "confirmed"]).unwrap();
        assert_eq!(
            (benches, workloads),
            (vec!["confirmed"], vec!["get_set".to_owned()])
        );
        assert!(chosen(&["hit-rate", "no_such_workload"]).is_err());
    }

    #[test]
    fn a_name_that_means_nothing_is_refused() {
        assert!(chosen(&["slowdwon"]).is_err());
        assert!(chosen(&["slowdown", "two_counters"]).is_err());
    }
}
