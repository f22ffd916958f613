//! How long it takes until windows confirm what sampling found.

use std::{process::Stdio, time::Duration};

use anyhow::Result;
use cohtrace_tests::{
    answer::Variant,
    figures::{Table, spread},
    live::RUN_MS,
    report::Report,
    workload::{self, Workload},
};

use super::{Bench, Plan, watcher};

pub(super) static BENCH: Bench = Bench {
    name: "confirmed",
    about: "time from the start of sampling until windows confirm a finding, for each workload that has findings",
    rounds: 3,
    needs_root: true,
    takes: |plan| {
        let workloads = chosen(plan).map_or(0, |chosen| chosen.len());
        plan.rounds * workloads as u32 * Duration::from_millis(RUN_MS + 300)
    },
    run,
};

/// Workloads whose findings windows can confirm.
fn chosen(plan: &Plan) -> Result<Vec<Workload>> {
    let mut workloads = workload::all()?;
    workloads.retain(|workload| {
        let is_wanted = plan.workloads.is_empty() || plan.workloads.contains(&workload.name);
        is_wanted
            && workload.answer(Variant::Plain).is_ok_and(|answer| {
                !answer.findings.is_empty() && answer.unconfirmed_because.is_none()
            })
    });
    Ok(workloads)
}

fn run(plan: &Plan) -> Result<()> {
    println!(
        "With defaults, {} runs of each workload, {RUN_MS} ms long and watched for 2 s.",
        plan.rounds
    );
    let mut table = Table::new(&[
        "workload",
        "first finding, s",
        "last finding, s",
        "findings confirmed",
    ]);
    let mut firsts = Vec::new();
    for workload in chosen(plan)? {
        let (mut first, mut last) = (Vec::new(), Vec::new());
        let (mut confirmed, mut all) = (0, 0);
        for _ in 0..plan.rounds {
            let report = once(plan, &workload)?;
            let times: Vec<f64> = report
                .findings
                .iter()
                .filter_map(|finding| finding.confirmed_after_s)
                .collect();
            confirmed += times.len();
            all += report.findings.len();
            first.extend(times.iter().copied().reduce(f64::min));
            // The last of some is not the last of all.
            if times.len() == report.findings.len() {
                last.extend(times.iter().copied().reduce(f64::max));
            }
        }
        table.row([
            workload.name,
            spread(&first, 2),
            spread(&last, 2),
            format!("{confirmed} of {all}"),
        ]);
        firsts.extend(first);
    }
    table.row([
        "all".to_owned(),
        spread(&firsts, 2),
        String::new(),
        String::new(),
    ]);
    print!("{table}");
    Ok(())
}

fn once(plan: &Plan, workload: &Workload) -> Result<Report> {
    let program = workload.build(Variant::Plain)?;
    let directory = tempfile::tempdir()?;
    let report = directory.path().join("report.json");
    let mut command = plan.cohtrace();
    command
        .args(["attach", "--json", "--duration", "2"])
        .args(&workload.answer(Variant::Plain)?.tool_arguments)
        .arg("-o")
        .arg(&report)
        .arg("--")
        .arg(&program.path)
        .arg(RUN_MS.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    watcher::to_the_end(&mut command, false)?;
    watcher::report(&report)
}
