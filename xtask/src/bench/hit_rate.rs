//! How often the tool gives a workload's answer and nothing else.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use cohtrace_tests::{live, workload};

use super::{Bench, Plan, cargo};

pub(super) static BENCH: Bench = Bench {
    name: "hit-rate",
    about: "runs of each workload's variants that give the known answer, of --runs (named only: it takes long)",
    rounds: 1,
    needs_root: true,
    takes: |plan| {
        let variants: usize = workload::all()
            .unwrap_or_default()
            .iter()
            .filter(|w| plan.workloads.is_empty() || plan.workloads.contains(&w.name))
            .map(|w| w.answers.len())
            .sum();
        plan.runs * variants as u32 * Duration::from_millis(live::RUN_MS + 300)
    },
    run,
};

/// The counting has a program of its own, so that the tool it runs can be named to it.
fn run(plan: &Plan) -> Result<()> {
    let status = cargo()
        .args(["run", "--quiet", "--locked"])
        .args(["--package", "cohtrace-tests", "--bin", "hit_rate", "--"])
        .arg(plan.runs.to_string())
        .args(&plan.workloads)
        .env("COHTRACE_BIN", &plan.tool)
        .status()
        .context("starting cargo")?;
    ensure!(status.success(), "counting hits failed");
    Ok(())
}
