//! Real programs under load, and what is known of them: is the report right?
//!
//! A program is a file in `tests/benches/field/`: a driver in its language, or a script that starts a server and its
//! load. Its leading comment says how the answer is known, and holds the answer (`answer`). The drivers are ours; the
//! programs come from the registries (`install`). `compare` looks at what a report means, not at its figures.

mod answer;
mod compare;
mod install;
mod program;
mod running;
mod tally;

use std::{
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use cohtrace_tests::{figures::Table, live, report::Report};

use self::{
    compare::{Grade, Verdict},
    program::{Built, FieldProgram},
    running::UnderLoad,
    tally::Tally,
};
use super::{Bench, Plan, target_directory};

pub(super) static BENCH: Bench = Bench {
    name: "field",
    about: "real programs under load: is what the report says of them right, partly right or wrong? Named only: it \
            installs packages, and takes some 5 minutes, the first time 10 more. --only, --runs; reports stay in \
            target/field",
    rounds: 1,
    needs_root: true,
    takes: |plan| {
        let programs = chosen(plan).unwrap_or_default();
        let seconds: u64 = programs.iter().map(|program| program.answer.seconds).sum();
        let around = AROUND * programs.len() as u32;
        (Duration::from_secs(seconds) + around) * plan.field_runs
    },
    run,
};

/// Building, starting, reporting and ending, beside the time that the tool looks.
const AROUND: Duration = Duration::from_secs(5);

/// A tenth of one CPU: the tool samples each 1,000 times per second.
const LEAST_SAMPLES_PER_SECOND: u64 = 100;

/// Names and first sentences of the programs.
pub(super) fn list() -> Result<()> {
    for program in program::all()? {
        println!("{:<24} {}", program.name, program.about);
    }
    Ok(())
}

fn chosen(plan: &Plan) -> Result<Vec<FieldProgram>> {
    let mut programs = program::all()?;
    for name in &plan.only {
        ensure!(
            programs.iter().any(|program| program.name == *name),
            "no program of tests/benches/field is called {name}"
        );
    }
    programs.retain(|program| plan.only.is_empty() || plan.only.contains(&program.name));
    Ok(programs)
}

fn run(plan: &Plan) -> Result<()> {
    let directory = target_directory()?.join("field");
    std::fs::create_dir_all(&directory)?;
    let mut table = Table::new(&["program", "right", "partly", "wrong", "not run"]);
    let mut details = Vec::new();
    for program in chosen(plan)? {
        let mut tally = Tally::default();
        let built =
            install::install(&program, &directory).and_then(|()| Built::new(&program, &directory));
        for number in 1..=plan.field_runs {
            let name = match plan.field_runs {
                1 => program.name.clone(),
                _ => format!("{}.{number}", program.name),
            };
            tally.add(match &built {
                Ok(built) => look(plan, &program, built, &directory.join(name)),
                Err(error) => Err(anyhow!("{error:#}")),
            });
        }
        let [right, partly, wrong, not_run] = tally.cells();
        println!(
            "{}: right {right}, partly {partly}, wrong {wrong}, not run {not_run}",
            program.name
        );
        details.push((program.name.clone(), tally.details(&program.answer)));
        table.row([program.name, right, partly, wrong, not_run]);
    }
    print!("\n{table}");
    println!("reports: {}", directory.display());
    for (program, lines) in details.iter().filter(|(_, lines)| !lines.is_empty()) {
        println!("\n{program}");
        for line in lines {
            println!("  {line}");
        }
    }
    Ok(())
}

/// One run under the tool, whose reports are kept: `kept` with an extension.
fn look(plan: &Plan, program: &FieldProgram, built: &Built, kept: &Path) -> Result<Verdict> {
    let file = |extension: &str| kept.with_added_extension(extension);
    let (json, text, session) = (file("json"), file("txt"), file("coh"));
    for old in [&json, &text] {
        std::fs::remove_file(old).ok();
    }
    std::fs::remove_dir_all(&session).ok();
    let under_load = UnderLoad::start(built)?;
    let pid = under_load.pid().to_string();
    let seconds = program.answer.seconds.to_string();
    let mut attach = plan.cohtrace();
    attach.args([
        "attach",
        "--quiet",
        "--json",
        "--duration",
        &seconds,
        "-p",
        &pid,
    ]);
    attach.arg("-o").arg(&json).arg("--record").arg(&session);
    let attached = ended(&mut attach, Duration::from_secs(program.answer.seconds));
    drop(under_load);
    attached?;
    let mut report = plan.cohtrace();
    report.arg("report").arg(&session).arg("-o").arg(&text);
    ended(&mut report, Duration::ZERO)?;
    std::fs::remove_dir_all(&session).ok();
    let read = |path: &PathBuf| {
        std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))
    };
    let report = match Report::parse(&read(&json)?) {
        Ok(report) => report,
        Err(error) => {
            return Ok(Verdict {
                reasons: vec![format!("{error:#}")],
                ..Verdict::of(Grade::Wrong)
            });
        }
    };
    // Of a program that hardly ran, silence would be right.
    let samples = report.run_count("samples")?;
    let least = LEAST_SAMPLES_PER_SECOND * program.answer.seconds;
    ensure!(
        samples >= least,
        "{samples} samples: it had no work, or other programs had the CPUs"
    );
    Ok(compare::compare(&program.answer, &report, &read(&text)?))
}

/// Runs the tool to its end, which is an error when it fails or takes far longer than it was asked to look.
fn ended(command: &mut Command, looks: Duration) -> Result<()> {
    let ended = cohtrace_tests::tool::Running::start(command)?.wait(looks + 2 * live::GRACE)?;
    if !ended.status.success() {
        bail!("cohtrace: {}\n{}", ended.status, ended.stderr);
    }
    Ok(())
}
