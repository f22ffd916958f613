//! What watch windows take from a program that fights over a line, against the budget they were given.

use std::{fmt, process::Stdio, time::Duration};

use anyhow::Result;
use cohtrace_tests::{
    figures::{Table, spread},
    report::Watch,
    usage::Measured,
};

use super::{
    Bench, Plan,
    program::{CONTENDED, Took, TwoThreads},
    watcher,
};

pub(super) static BENCH: Bench = Bench {
    name: "overhead",
    about: "two threads that fight over one line, always watched, at budgets of 1 to 10 percent, against sampling only",
    rounds: 7,
    needs_root: true,
    takes: |plan| plan.rounds * (1 + BUDGETS.len() as u32) * (WORK + Duration::from_millis(1500)),
    run,
};

/// Time of the program alone.
const WORK: Duration = Duration::from_secs(4);
/// Percent.
const BUDGETS: [u32; 4] = [1, 2, 5, 10];

#[derive(Clone, Copy)]
enum Way {
    Sampled,
    /// With that budget, percent.
    Watched(u32),
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Way::Sampled => f.write_str("--no-watch"),
            Way::Watched(budget) => write!(f, "--overhead {budget}"),
        }
    }
}

/// One run of the program, and what the tool says it did.
struct Run {
    took: Took,
    watch: Option<Watch>,
}

fn run(plan: &Plan) -> Result<()> {
    let program = TwoThreads::build_contended()?;
    let work = program.rounds_for(WORK)?;
    let ways: Vec<Way> = [Way::Sampled]
        .into_iter()
        .chain(BUDGETS.map(Way::Watched))
        .collect();
    let mut runs: Vec<Vec<Run>> = ways.iter().map(|_| Vec::new()).collect();
    for round in 0..plan.rounds as usize {
        // Each way takes each place of the round in turn, so that none always follows the same other.
        for place in 0..ways.len() {
            let way = (round + place) % ways.len();
            runs[way].push(once(plan, &program, work, ways[way])?);
        }
    }
    println!(
        "Fixed work, {} rounds. The ratio is to the run of the same round that was only sampled.",
        plan.rounds
    );
    let mut table = Table::new(&[
        "watched",
        "wall, s",
        "wall, +%",
        "CPU time, +%",
        "the tool says, %",
        "windows",
        "hits",
        "cost of a hit, us",
    ]);
    for (way, of_way) in ways.iter().zip(&runs) {
        let wall = |run: &Run| run.took.wall.as_secs_f64();
        let cpu = |run: &Run| run.took.cpu.as_secs_f64();
        let more = |of: fn(&Run) -> f64| {
            let pairs = of_way.iter().zip(&runs[0]);
            let ratios: Vec<f64> = pairs
                .map(|(run, sampled)| (of(run) / of(sampled) - 1.0) * 100.0)
                .collect();
            match way {
                Way::Sampled => "-".to_owned(),
                Way::Watched(_) => spread(&ratios, 2),
            }
        };
        let said = |decimals, of: fn(&Watch) -> Option<f64>| {
            let figures: Vec<f64> = of_way
                .iter()
                .filter_map(|run| of(run.watch.as_ref()?))
                .collect();
            spread(&figures, decimals)
        };
        table.row([
            way.to_string(),
            spread(&of_way.iter().map(wall).collect::<Vec<_>>(), 3),
            more(wall),
            more(cpu),
            said(2, |watch| watch.spent_share.map(|share| share * 100.0)),
            said(0, |watch| Some(watch.windows as f64)),
            said(0, |watch| Some(watch.hits as f64)),
            said(1, |watch| watch.hit_cost_ns.map(|ns| ns / 1000.0)),
        ]);
    }
    print!("{table}");
    Ok(())
}

fn once(plan: &Plan, program: &TwoThreads, work: u64, way: Way) -> Result<Run> {
    let target = program.ready(work)?;
    let directory = tempfile::tempdir()?;
    let report = directory.path().join("report.json");
    let mut command = plan.cohtrace();
    command
        .args(["attach", "--json", "-p", &target.pid().to_string(), "-o"])
        .arg(&report)
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    match way {
        Way::Sampled => command.arg("--no-watch"),
        Way::Watched(budget) => {
            command.args(["--watch", CONTENDED, "--overhead", &budget.to_string()])
        }
    };
    let tool = Measured::start(&mut command)?;
    watcher::wait_until_watching(tool.pid())?;
    let took = target.go()?;
    tool.wait(watcher::LIMIT)?.expect_success("cohtrace")?;
    Ok(Run {
        took,
        watch: watcher::report(&report)?.watch,
    })
}
