//! What reports say that padding gains, beside what it gains.

use std::{fs, path::Path, process::Command, time::Duration};

use anyhow::{Context as _, Result, ensure};
use cohtrace_tests::{
    figures::{Spread, Table},
    gains::{CASES, Case, THREADS, Twins, ahead, rates, real, said, times},
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
/// A run by itself, and one that the tool looks at to its end.
const ALONE: Duration = Duration::from_millis(600);
const RUN_MS: &str = "2800";
/// A held gain is right within this part of the real one, a rated one within that.
const HELD_WITHIN: f64 = 0.1;
const RATED_WITHIN: f64 = 0.25;
/// Nothing to gain; and what must not be claimed then.
const NOTHING: f64 = 1.02;
const CLAIM: f64 = 1.05;

/// What was found of one program, by thread: what each grade said, with what was real in the run that it looked at.
#[derive(Default)]
struct Found {
    held: [Vec<(f64, f64)>; 2],
    rated: [Vec<(f64, f64)>; 2],
    /// Real gains of the runs with holds, where nothing was said too.
    real: [Vec<f64>; 2],
    /// Of both together: at least, at most where that is told, and what was real.
    estimated: Vec<(f64, Option<f64>, f64)>,
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
    let mut table = Table::new(&[
        "program",
        "thread",
        "real",
        "held : real",
        "rated : real",
        "estimated",
    ]);
    let [mut held, mut rated, mut estimated, mut claims] =
        [const { Score { right: 0, all: 0 } }; 4];
    for case in CASES {
        let found = look(plan, case, directory.path())?;
        for (n, thread) in THREADS.into_iter().enumerate() {
            let Some(real) = Spread::of(&found.real[n]) else {
                continue;
            };
            // What was said by what was real, each of its own run: a host may move a CPU from one run to the next.
            let ratio = |of: &[(f64, f64)]| {
                let ratios: Vec<f64> = of.iter().map(|(said, real)| said / real).collect();
                Spread::of(&ratios)
            };
            let (by_hold, by_rate) = (ratio(&found.held[n]), ratio(&found.rated[n]));
            let within = |ratio: Option<Spread>, part: f64| {
                ratio.is_some_and(|ratio| (ratio.median - 1.0).abs() <= part)
            };
            held.count(within(by_hold, HELD_WITHIN));
            for (said, real) in &found.held[n] {
                if *real < NOTHING {
                    claims.count(*said <= CLAIM);
                }
            }
            if by_rate.is_some() {
                rated.count(within(by_rate, RATED_WITHIN));
            }
            let told = |ratio: Option<Spread>| ratio.map_or("-".to_owned(), |ratio| ratio.text(2));
            table.row([
                case.name.to_owned(),
                thread.to_owned(),
                real.text(2),
                told(by_hold),
                told(by_rate),
                found.estimated.first().map_or("-".to_owned(), interval),
            ]);
        }
        for (low, high, real) in &found.estimated {
            estimated.count(*low <= real * 1.005 && high.is_none_or(|high| *real <= high * 1.005));
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

fn interval((low, high, _): &(f64, Option<f64>, f64)) -> String {
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
        let padded = rates(&twins.padded, ALONE)?;
        let (held, of_held) = report(plan, &twins, &["--hold", "2"], padded)?;
        let (rated, of_rated) = report(plan, &twins, &[], padded)?;
        // Without what the machine charges, samples alone tell.
        fs::copy(COSTS, &kept).context("keeping the machine's costs")?;
        fs::remove_file(COSTS).context("putting the machine's costs aside")?;
        let estimated = report(plan, &twins, &[], padded);
        fs::copy(&kept, COSTS).context("putting the machine's costs back")?;
        let (estimated, of_estimated) = estimated?;
        for (n, thread) in THREADS.into_iter().enumerate() {
            let of = |report: &Value, grade| {
                let is_it = report["findings"][0]["gain"]["grade"] == grade;
                let said = times(report, thread).filter(|_| is_it);
                said.map(|[_, times, _]| times)
            };
            found.real[n].push(of_held[n]);
            found.held[n].extend(of(&held, "held").map(|said| (said, of_held[n])));
            found.rated[n].extend(of(&rated, "rated").map(|said| (said, of_rated[n])));
        }
        let gain = &estimated["findings"][0]["gain"];
        let both = f64::midpoint(of_estimated[0], of_estimated[1]);
        let low = gain["low"].as_f64();
        (found.estimated).extend(low.map(|low| (low, gain["high"].as_f64(), both)));
    }
    Ok(found)
}

/// A report of the plain form, and what padding would gain each thread in that very run.
fn report(
    plan: &Plan,
    twins: &Twins,
    more: &[&str],
    padded: [f64; 2],
) -> Result<(Value, [f64; 2])> {
    let mut tool: Command = plan.cohtrace();
    tool.args(["attach", "--json", "-q", "--source", "timer"]);
    let tool = tool.args(more).arg("--").args(ahead(&twins.plain));
    let output = tool.arg(RUN_MS).output();
    let output = output.context("running cohtrace attach")?;
    let report = serde_json::from_slice(&output.stdout).context("reading the report")?;
    let plain = said(&String::from_utf8_lossy(&output.stderr));
    let plain = plain.context("the program did not say what it did")?;
    Ok((report, real(plain, padded)))
}
