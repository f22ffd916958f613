//! How much longer a CPU-bound program takes while it is watched.

use std::{fmt, process::Stdio, time::Duration};

use anyhow::Result;
use cohtrace_tests::{
    figures::{Spread, Table, spread},
    usage::Measured,
};

use super::{
    Bench, Plan, peer,
    program::{Took, TwoThreads},
    watcher,
};

pub(super) static BENCH: Bench = Bench {
    name: "slowdown",
    about: "a two-thread CPU-bound program alone, under cohtrace attach -p, and under perf record -a, at two rates",
    rounds: 7,
    needs_root: true,
    takes: |plan| {
        let runs = if plan.has_perf { 7 } else { 3 };
        plan.rounds * runs * (WORK + Duration::from_millis(1500))
    },
    run,
};

/// Time of the program alone.
const WORK: Duration = Duration::from_secs(5);
/// Samples per second and CPU: the default, and a close look.
const RATES_HZ: [u32; 2] = [1000, 4000];

#[derive(Clone, Copy, PartialEq)]
enum Watched {
    Alone,
    Cohtrace(u32),
    Perf(u32),
    /// The cpu-clock event with as little as perf records of it: what the interrupts cost whoever asks for them, and
    /// what no tool that samples by them can be below.
    Interrupts(u32),
}

impl fmt::Display for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Watched::Alone => f.write_str("alone"),
            Watched::Cohtrace(rate) => write!(f, "cohtrace attach, {rate} Hz"),
            Watched::Perf(rate) => write!(f, "perf record, {rate} Hz"),
            Watched::Interrupts(rate) => write!(f, "interrupts alone, {rate} Hz"),
        }
    }
}

fn run(plan: &Plan) -> Result<()> {
    let program = TwoThreads::build()?;
    let work = program.rounds_for(WORK)?;
    let mut ways = vec![Watched::Alone];
    for rate in RATES_HZ {
        ways.push(Watched::Cohtrace(rate));
        if plan.has_perf {
            ways.extend([Watched::Perf(rate), Watched::Interrupts(rate)]);
        }
    }
    let mut took: Vec<Vec<Took>> = vec![Vec::new(); ways.len()];
    for round in 0..plan.rounds as usize {
        // Each way takes each place of the round in turn, so that none always follows the same other.
        for place in 0..ways.len() {
            let way = (round + place) % ways.len();
            took[way].push(once(plan, &program, work, ways[way])?);
        }
    }
    let alone = &took[0];
    println!(
        "Fixed work, {} rounds. The ratio is to the run alone of the same round, in percent.",
        plan.rounds
    );
    let mut table = Table::new(&[
        "watched",
        "wall, s",
        "wall, +%",
        "CPU time, s",
        "CPU time, +%",
    ]);
    for (way, took) in ways.iter().zip(&took) {
        let (wall, cpu) = (
            |t: &Took| t.wall.as_secs_f64(),
            |t: &Took| t.cpu.as_secs_f64(),
        );
        table.row([
            way.to_string(),
            spread(&took.iter().map(wall).collect::<Vec<_>>(), 3),
            more(took, alone, wall),
            spread(&took.iter().map(cpu).collect::<Vec<_>>(), 3),
            more(took, alone, cpu),
        ]);
    }
    print!("{table}");
    if plan.has_perf {
        println!("Interrupts alone: perf record -e cpu-clock without addresses and registers.");
    }
    Ok(())
}

/// How much more than alone, percent. Alone, it is the noise: each run against the median of all.
fn more(took: &[Took], alone: &[Took], of: impl Fn(&Took) -> f64) -> String {
    let is_alone = std::ptr::eq(took, alone);
    let all: Vec<f64> = alone.iter().map(&of).collect();
    let Some(middle) = Spread::of(&all) else {
        return "-".to_owned();
    };
    let ratios: Vec<f64> = took
        .iter()
        .zip(alone)
        .map(|(run, alone)| {
            let base = if is_alone { middle.median } else { of(alone) };
            (of(run) / base - 1.0) * 100.0
        })
        .collect();
    spread(&ratios, 2)
}

fn once(plan: &Plan, program: &TwoThreads, work: u64, way: Watched) -> Result<Took> {
    let target = program.ready(work)?;
    let directory = tempfile::tempdir()?;
    let mut command = match way {
        Watched::Alone => return target.go(),
        Watched::Cohtrace(rate) => {
            let mut command = plan.cohtrace();
            command
                .args(["attach", "-p", &target.pid().to_string()])
                .args(["-F", &rate.to_string()])
                .stdin(Stdio::null())
                .stdout(Stdio::null());
            command
        }
        Watched::Perf(rate) => peer::record(rate, &directory.path().join("perf.data")),
        Watched::Interrupts(rate) => peer::interrupts(rate, &directory.path().join("perf.data")),
    };
    let tool = Measured::start(&mut command)?;
    watcher::wait_until_watching(tool.pid())?;
    let took = target.go()?;
    if matches!(way, Watched::Perf(_) | Watched::Interrupts(_)) {
        // Watching everything, it does not end by itself; and Ctrl-C is how it dies, not a failure.
        tool.interrupt()?;
        tool.wait(watcher::LIMIT)?;
    } else {
        tool.wait(watcher::LIMIT)?.expect_success("cohtrace")?;
    }
    Ok(took)
}
