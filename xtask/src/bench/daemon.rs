//! Processor time of the tool itself, its report included, per 100,000 samples.

use std::{process::Stdio, time::Duration};

use anyhow::{Context as _, Result, ensure};
use cohtrace_tests::{
    figures::{Table, spread},
    usage::Finished,
};

use super::{Bench, Plan, peer, program::TwoThreads, watcher};

pub(super) static BENCH: Bench = Bench {
    name: "daemon",
    about: "CPU time of cohtrace attach -a with its report, and of perf record -a plus perf report, per 100,000 samples",
    rounds: 3,
    needs_root: true,
    takes: |plan| {
        let tools = if plan.has_perf { 3 } else { 2 };
        let each = Duration::from_secs(seconds(plan)) + Duration::from_millis(1500);
        plan.rounds * RATES_HZ.len() as u32 * tools * each
    },
    run,
};

/// The default rate, where start and report weigh most, and a high one, where the samples do.
const RATES_HZ: [u32; 2] = [1000, 4000];

fn seconds(plan: &Plan) -> u64 {
    plan.seconds.unwrap_or(10)
}

/// The ways to watch that are compared.
const WAYS: [&str; 3] = [
    "cohtrace attach",
    "cohtrace attach on a terminal",
    "perf record + report",
];

/// Processor time in seconds, and samples.
#[derive(Default)]
struct Cost {
    watching: f64,
    reporting: Option<f64>,
    samples: u64,
}

impl Cost {
    fn total(&self) -> f64 {
        self.watching + self.reporting.unwrap_or(0.0)
    }
}

fn run(plan: &Plan) -> Result<()> {
    let program = TwoThreads::build()?;
    let ways = if plan.has_perf { 3 } else { 2 };
    println!(
        "{} s of watching everything while a two-thread program works. User and system time of the tool alone; \
         on a terminal cohtrace also shows its progress.",
        seconds(plan)
    );
    let mut table = Table::new(&[
        "tool",
        "samples",
        "recording, CPU s",
        "report, CPU s",
        "sum per 100,000 samples, s",
    ]);
    for rate in RATES_HZ {
        let mut costs: [Vec<Cost>; 3] = Default::default();
        for _ in 0..plan.rounds {
            for (way, costs) in costs.iter_mut().enumerate().take(ways) {
                let _target = program.working()?;
                costs.push(match way {
                    0 => cohtrace(plan, rate, false)?,
                    1 => cohtrace(plan, rate, true)?,
                    _ => perf(plan, rate)?,
                });
            }
        }
        for (name, costs) in WAYS.iter().zip(&costs).take(ways) {
            let of = |figure: fn(&Cost) -> Option<f64>, decimals| {
                let figures: Vec<f64> = costs.iter().filter_map(figure).collect();
                spread(&figures, decimals)
            };
            table.row([
                format!("{name}, {rate} Hz"),
                of(|cost| Some(cost.samples as f64), 0),
                of(|cost| Some(cost.watching), 2),
                of(|cost| cost.reporting, 2),
                of(|cost| Some(cost.total() / cost.samples as f64 * 1e5), 2),
            ]);
        }
    }
    print!("{table}");
    println!("cohtrace's report is part of the same process, and of its first figure.");
    Ok(())
}

fn cohtrace(plan: &Plan, rate: u32, on_terminal: bool) -> Result<Cost> {
    let directory = tempfile::tempdir()?;
    let report = directory.path().join("report.json");
    let mut command = plan.cohtrace();
    command
        .args(["attach", "-a", "--json"])
        .args(["--duration", &seconds(plan).to_string()])
        .args(["-F", &rate.to_string()])
        .arg("-o")
        .arg(&report)
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    let finished = watcher::to_the_end(&mut command, on_terminal)?;
    if on_terminal {
        ensure!(
            finished.stderr.contains("samples"),
            "no progress was shown:\n{}",
            finished.stderr
        );
    }
    Ok(Cost {
        watching: cpu(&finished),
        reporting: None,
        samples: watcher::number_of_run(&report, "samples")?,
    })
}

fn perf(plan: &Plan, rate: u32) -> Result<Cost> {
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("perf.data");
    let mut command = peer::record(rate, &file);
    // Of what it starts, perf's figure includes the time: for this, next to none.
    command
        .arg("--")
        .args(["sleep", &seconds(plan).to_string()]);
    let recorded = watcher::to_the_end(&mut command, false).context("perf record")?;
    let reported = watcher::to_the_end(&mut peer::report(&file), false).context("perf report")?;
    Ok(Cost {
        watching: cpu(&recorded),
        reporting: Some(cpu(&reported)),
        samples: peer::samples(&file)?,
    })
}

fn cpu(finished: &Finished) -> f64 {
    finished.usage.cpu().as_secs_f64()
}
