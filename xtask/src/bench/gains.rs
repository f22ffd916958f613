//! What reports say that padding gains, beside what it gains.

use std::{fs, path::Path, process::Command, time::Duration};

use anyhow::{Context as _, Result, ensure};
use cohtrace_tests::{
    figures::{Spread, Table},
    gains::{CASES, Case, THREADS, Twins, ahead, rates, times},
};
use serde_json::Value;

use super::{Bench, Plan};

pub(super) static BENCH: Bench = Bench {
    name: "gains",
    about: "ten programs: what padding gains, and what is said of it by samples, by rates and by holding threads",
    rounds: 5,
    needs_root: true,
    takes: |plan| plan.rounds * CASES.len() as u32 * Duration::from_secs(12),
    run,
};

/// Where `measure` keeps what it found since the machine was started.
const COSTS: &str = "/run/cohtrace/machine.json";
/// A run by itself, and one that the tool looks at.
const ALONE: Duration = Duration::from_millis(800);
const SECONDS: &str = "2.5";
const RUN_MS: &str = "3000";
/// A held gain is right within this part of the real one, a rated one within that.
const HELD_WITHIN: f64 = 0.1;
const RATED_WITHIN: f64 = 0.25;
/// Nothing to gain; and what must not be claimed then.
const NOTHING: f64 = 1.02;
const CLAIM: f64 = 1.05;

/// What was found of one program.
#[derive(Default)]
struct Found {
    plain: [Vec<f64>; 2],
    padded: [Vec<f64>; 2],
    held: [Vec<f64>; 2],
    rated: [Vec<f64>; 2],
    /// Of both together: at least and, where that is told, at most.
    estimated: Vec<(f64, Option<f64>)>,
}

/// How many said what is right, of how many.
#[derive(Default)]
struct Score {
    right: u32,
    all: u32,
}

impl Score {
    fn count(&mut self, is_right: bool) {
        self.right += u32::from(is_right);
        self.all += 1;
    }
}

fn run(plan: &Plan) -> Result<()> {
    let measured = plan.cohtrace().args(["measure", "-q"]).output();
    let measured = measured.context("running cohtrace measure")?;
    ensure!(measured.status.success(), "cohtrace measure failed");
    let directory = tempfile::tempdir().context("making a directory")?;
    let mut table = Table::new(&["program", "thread", "real", "held", "rated", "estimated"]);
    let [mut held, mut rated, mut estimated, mut claims] =
        [const { Score { right: 0, all: 0 } }; 4];
    for case in CASES {
        let found = look(plan, case, directory.path())?;
        let mut both = [0.0; 2];
        for (n, thread) in THREADS.into_iter().enumerate() {
            let medians = [&found.padded[n], &found.plain[n]].map(|all| Spread::of(all));
            let [Some(padded), Some(plain)] = medians.map(|all| all.map(|all| all.median)) else {
                continue;
            };
            both = [both[0] + padded, both[1] + plain];
            let real = padded / plain;
            let by_hold = Spread::of(&found.held[n]).map(|all| all.median);
            held.count(by_hold.is_some_and(|times| (times / real - 1.0).abs() <= HELD_WITHIN));
            if real < NOTHING {
                claims.count(by_hold.is_none_or(|times| times <= CLAIM));
            }
            let by_rate = Spread::of(&found.rated[n]).map(|all| all.median);
            if let Some(times) = by_rate {
                rated.count((times / real - 1.0).abs() <= RATED_WITHIN);
            }
            let said =
                |times: Option<f64>| times.map_or("-".to_owned(), |times| format!("{times:.2}"));
            table.row([
                case.name.to_owned(),
                thread.to_owned(),
                said(Some(real)),
                said(by_hold),
                said(by_rate),
                found.estimated.first().map_or("-".to_owned(), interval),
            ]);
        }
        let real = both[0] / both[1];
        for (low, high) in &found.estimated {
            estimated.count(*low <= real * 1.005 && high.is_none_or(|high| real <= high));
        }
    }
    print!("{table}");
    println!("held within 10 %: {} of {}", held.right, held.all);
    println!(
        "held says nothing where nothing is to be gained: {} of {}",
        claims.right, claims.all
    );
    println!("rated within 25 %: {} of {}", rated.right, rated.all);
    println!(
        "estimated intervals hold what both gain together: {} of {}",
        estimated.right, estimated.all
    );
    Ok(())
}

fn interval((low, high): &(f64, Option<f64>)) -> String {
    match high {
        Some(high) => format!("{low:.1} to {high:.1}"),
        None => format!("over {low:.1}"),
    }
}

/// One program, all of it in turns.
fn look(plan: &Plan, case: Case, directory: &Path) -> Result<Found> {
    let twins = Twins::build(case, directory)?;
    let mut found = Found::default();
    let kept = directory.join("machine.json");
    for _ in 0..plan.rounds {
        let plain = rates(&twins.plain, ALONE)?;
        let held = report(plan, &twins, &["--hold", "2"])?;
        let padded = rates(&twins.padded, ALONE)?;
        let rated = report(plan, &twins, &[])?;
        // Without what the machine charges, samples alone tell.
        fs::copy(COSTS, &kept).context("keeping the machine's costs")?;
        fs::remove_file(COSTS).context("putting the machine's costs aside")?;
        let estimated = report(plan, &twins, &[]);
        fs::copy(&kept, COSTS).context("putting the machine's costs back")?;
        let estimated = estimated?;
        for (n, thread) in THREADS.into_iter().enumerate() {
            found.plain[n].push(plain[n]);
            found.padded[n].push(padded[n]);
            let of = |report: &Value, grade| {
                let is_it = report["findings"][0]["gain"]["grade"] == grade;
                times(report, thread)
                    .filter(|_| is_it)
                    .map(|[_, times, _]| times)
            };
            found.held[n].extend(of(&held, "held"));
            found.rated[n].extend(of(&rated, "rated"));
        }
        let gain = &estimated["findings"][0]["gain"];
        found
            .estimated
            .extend(gain["low"].as_f64().map(|low| (low, gain["high"].as_f64())));
    }
    Ok(found)
}

fn report(plan: &Plan, twins: &Twins, more: &[&str]) -> Result<Value> {
    let mut tool: Command = plan.cohtrace();
    tool.args([
        "attach",
        "--json",
        "-q",
        "--source",
        "timer",
        "--duration",
        SECONDS,
    ]);
    let output = tool
        .args(more)
        .arg("--")
        .args(ahead(&twins.plain))
        .arg(RUN_MS)
        .output();
    let output = output.context("running cohtrace attach")?;
    serde_json::from_slice(&output.stdout).context("reading the report")
}
