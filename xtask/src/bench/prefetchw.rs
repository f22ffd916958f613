//! What `prefetchw` before a load changes when a store to the same line follows: by the state of the line elsewhere, by
//! what follows, and in whole programs.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context as _, Result, bail, ensure};
use cohtrace_tests::{
    evaluation::{Build, Input, KERNELS, Kernel},
    figures::{Spread, Table, spread},
};

use super::{Bench, Plan, target_directory};
use crate::root;

pub(super) static BENCH: Bench = Bench {
    name: "prefetchw",
    about: "cycles of load and store with and without an ownership prefetch, by the line's state; with --hinted, kernels too",
    rounds: 300,
    needs_root: false,
    takes: |plan| {
        let kernels = plan.hinted.iter().map(|_| Duration::from_secs(30));
        plan.rounds * Duration::from_millis(10) + kernels.sum()
    },
    run,
};

/// Lines in each walk: fit the first cache level of any machine, with room to spare.
const LINES: &str = "128";
/// Runs of each of a kernel's two programs.
const KERNEL_RUNS: usize = 25;
/// A ratio nearer to 1 than this says nothing: independent runs differ by as much.
const NOTHING: f64 = 0.04;

/// Cycles per line of one case, a pair of a round: without and with the prefetch.
type Rounds = Vec<(f64, f64)>;
/// State of the line elsewhere, what follows the load, order of the lines.
type Case = [String; 3];

/// A program without hints and the same with them.
struct Pair {
    kernel: &'static Kernel,
    plain: PathBuf,
    hinted: PathBuf,
}

fn run(plan: &Plan) -> Result<()> {
    let cases = measure(plan.rounds)?;
    println!(
        "{} rounds of {LINES} lines; TSC cycles per line, medians; the ratio is of the two of each round, with its middle half.",
        plan.rounds
    );
    let mut table = Table::new(&[
        "line elsewhere, operation, order",
        "plain",
        "prefetchw",
        "ratio",
        "",
    ]);
    for (case, rounds) in &cases {
        let ratio = middle_half(rounds).context("each case has rounds")?;
        let median = |of: fn(&(f64, f64)) -> f64| {
            let values: Vec<f64> = rounds.iter().map(of).collect();
            Spread::of(&values).map_or_else(|| "-".to_owned(), |s| format!("{:.1}", s.median))
        };
        table.row([
            case.join(", "),
            median(|round| round.0),
            median(|round| round.1),
            ratio.text(2),
            verdict(ratio).to_owned(),
        ]);
    }
    print!("{table}");
    println!("load-only: no store follows; the other CPU's reading the lines again is counted in.");
    println!(
        "A prefetch that finds its line here, repeated for each 8-byte element of a walk; TSC cycles an element, medians:"
    );
    let repeated = built("repeated")?;
    let output = Command::new(&repeated)
        .arg("2001")
        .output()
        .context("starting repeated")?;
    ensure!(
        output.status.success(),
        "repeated ended with {}",
        output.status
    );
    print!("{}", String::from_utf8_lossy(&output.stdout));
    match &plan.hinted {
        Some(directory) => time_pairs(&pairs(directory)?),
        None => Ok(()),
    }
}

/// What a ratio says in a word.
fn verdict(ratio: Spread) -> &'static str {
    if ratio.max < 1.0 - NOTHING {
        "gains"
    } else if ratio.min > 1.0 + NOTHING {
        "costs"
    } else if (ratio.median - 1.0).abs() <= NOTHING {
        "nothing"
    } else {
        "unclear"
    }
}

/// The ratios with prefetch to without: the median, and from the first to the third quarter of the rounds.
fn middle_half(rounds: &Rounds) -> Option<Spread> {
    let mut ratios: Vec<f64> = rounds.iter().map(|(plain, with)| with / plain).collect();
    ratios.sort_by(f64::total_cmp);
    let quarter = ratios.len() / 4;
    let inner = ratios.get(quarter..ratios.len() - quarter)?;
    Spread::of(inner)
}

/// Builds a program of `tests/benches`.
fn built(name: &str) -> Result<PathBuf> {
    let directory = target_directory()?.join("bench");
    std::fs::create_dir_all(&directory)?;
    let program = directory.join(name);
    let status = Command::new("cc")
        .args(["-std=gnu11", "-O2", "-pthread", "-o"])
        .arg(&program)
        .arg(root().join("tests/benches").join(name).with_extension("c"))
        .status()
        .context("starting cc; a C compiler must be installed")?;
    ensure!(status.success(), "building {name} failed");
    Ok(program)
}

/// Runs `tests/benches/ownership.c`.
fn measure(rounds: u32) -> Result<Vec<(Case, Rounds)>> {
    let program = built("ownership")?;
    let output = Command::new(&program)
        .args([&rounds.to_string(), LINES])
        .output()
        .context("starting ownership")?;
    match output.status.code() {
        Some(0) => parse(&String::from_utf8_lossy(&output.stdout)),
        Some(3) => bail!("needs two CPUs, and PREFETCHW"),
        _ => bail!("ownership ended with {}", output.status),
    }
}

/// The rounds of each case, in the program's order of cases.
fn parse(text: &str) -> Result<Vec<(Case, Rounds)>> {
    let mut cases: Vec<(Case, Rounds)> = Vec::new();
    let mut places: BTreeMap<Case, usize> = BTreeMap::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [state, operation, order, plain, with] = words[..] else {
            bail!("ownership said {line:?}");
        };
        let case = [state, operation, order].map(str::to_owned);
        let place = *places.entry(case.clone()).or_insert_with(|| {
            cases.push((case, Vec::new()));
            cases.len() - 1
        });
        let figure = |word: &str| word.parse().with_context(|| format!("reading {line:?}"));
        cases[place].1.push((figure(plain)?, figure(with)?));
    }
    Ok(cases)
}

/// The kernels of which the directory has a hinted program under the kernel's name.
fn pairs(directory: &Path) -> Result<Vec<Pair>> {
    let mut pairs = Vec::new();
    for kernel in &KERNELS {
        let hinted = directory.join(kernel.name);
        if hinted.is_file() {
            pairs.push(Pair {
                kernel,
                plain: kernel.build(&Build::PLAIN)?,
                hinted,
            });
        }
    }
    ensure!(
        !pairs.is_empty(),
        "{} has no program with the name of a kernel",
        directory.display()
    );
    Ok(pairs)
}

/// Times each pair on the ref input, its two programs in turns.
fn time_pairs(pairs: &[Pair]) -> Result<()> {
    println!(
        "\nKernels on ref, {KERNEL_RUNS} runs each in turns; milliseconds of the whole process."
    );
    let mut table = Table::new(&["kernel", "plain", "hinted", "ratio, middle half"]);
    for pair in pairs {
        let milliseconds = |program: &Path| -> Result<f64> {
            let answered = pair.kernel.run(program, Input::Ref)?;
            ensure!(answered.right, "{} is wrong", program.display());
            Ok(answered.took.as_secs_f64() * 1e3)
        };
        let mut rounds = Rounds::new();
        for _ in 0..KERNEL_RUNS {
            rounds.push((milliseconds(&pair.plain)?, milliseconds(&pair.hinted)?));
        }
        let (plain, hinted): (Vec<f64>, Vec<f64>) = rounds.iter().copied().unzip();
        let ratio = middle_half(&rounds).map_or_else(|| "-".to_owned(), |ratio| ratio.text(2));
        table.row([
            pair.kernel.name.to_owned(),
            spread(&plain, 1),
            spread(&hinted, 1),
            ratio,
        ]);
    }
    print!("{table}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_are_gathered_by_case_and_what_is_no_round_is_refused() {
        let cases = parse(
            "shared load-cas chained 100.0 50.0\nprivate load-cas chained 3 3\nshared load-cas chained 90 45\n",
        );
        let cases = cases.unwrap();
        assert_eq!(cases.len(), 2);
        assert_eq!(cases[0].0[0], "shared");
        assert_eq!(cases[0].1, [(100.0, 50.0), (90.0, 45.0)]);
        assert!(parse("shared load-cas chained 100.0\n").is_err());
        assert!(parse("shared load-cas chained 100.0 much\n").is_err());
    }

    #[test]
    fn a_ratio_is_called_what_it_is_only_when_its_middle_half_agrees() {
        let of = |ratios: &[f64]| {
            let rounds = ratios.iter().map(|ratio| (100.0, ratio * 100.0)).collect();
            verdict(middle_half(&rounds).unwrap())
        };
        assert_eq!(of(&[0.7, 0.71, 0.72, 3.0]), "gains");
        assert_eq!(of(&[1.3, 1.31, 1.32, 0.1]), "costs");
        assert_eq!(of(&[0.99, 1.0, 1.01, 1.02]), "nothing");
        assert_eq!(of(&[0.5, 0.6, 1.2, 1.3]), "unclear");
        assert!(middle_half(&Vec::new()).is_none());
    }
}
