//! How long a person waits for the first name of a line.

use std::{
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Context as _, Result};
use cohtrace_tests::{
    answer::Variant,
    figures::{Table, spread},
    terminal::OnTerminal,
    workload,
};

use super::{Bench, Plan, program::Killed};

pub(super) static BENCH: Bench = Bench {
    name: "first-finding",
    about: "time from the start of cohtrace attach -p until its terminal names the first finding",
    rounds: 9,
    needs_root: true,
    takes: |plan| plan.rounds * Duration::from_secs(2),
    run,
};

/// A falsely shared program, as small as they come.
const WORKLOAD: &str = "two_counters";
/// What the progress line has before the worst finding's name, and never without one.
const MARK: &str = "hot:";
/// After which a finding is no longer waited for.
const LIMIT: Duration = Duration::from_secs(30);

fn run(plan: &Plan) -> Result<()> {
    let program = workload::named(WORKLOAD)?.build(Variant::Plain)?;
    let (mut line, mut finding) = (Vec::new(), Vec::new());
    let mut shown = String::new();
    for _ in 0..plan.rounds {
        let target = Command::new(&program.path)
            .arg((LIMIT * 2).as_millis().to_string())
            .stdout(Stdio::null())
            .spawn()
            .context("starting the workload")?;
        let target = Killed(target);
        let mut command = plan.cohtrace();
        command.args(["attach", "-p", &target.0.id().to_string()]);
        let mut tool = OnTerminal::start(&mut command)?;
        line.push(tool.shows("samples", LIMIT)?.as_secs_f64());
        finding.push(tool.shows(MARK, LIMIT)?.as_secs_f64());
        // The last line drawn, after the sequence that clears the one before.
        let last = tool.text().rsplit('\r').next().unwrap_or_default();
        last.trim_start_matches("\x1b[K").clone_into(&mut shown);
    }
    println!(
        "On a pseudo terminal, from before exec, with defaults; {} runs.",
        plan.rounds
    );
    let mut table = Table::new(&["until the terminal shows", "seconds"]);
    table.row(["a number of samples".into(), spread(&line, 2)]);
    table.row(["a finding by name".into(), spread(&finding, 2)]);
    print!("{table}");
    println!("the last one: {shown}");
    Ok(())
}
