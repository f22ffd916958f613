//! The parts that need no kernel, measured in-process by `tests/benches/library`.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use super::{Bench, Plan, cargo};

pub static RECORDER: Bench = Bench {
    name: "recorder",
    about: "accesses a second written to a session and read back, and bytes per access (in-process)",
    rounds: 5,
    needs_root: false,
    takes: |plan| plan.rounds * Duration::from_secs(2),
    run: |plan| run("recorder", plan),
};

pub static ANALYSIS: Bench = Bench {
    name: "analysis",
    about: "nanoseconds per access of the analysis and of decoding samples (in-process)",
    rounds: 5,
    needs_root: false,
    takes: |plan| plan.rounds * Duration::from_secs(1),
    run: |plan| run("analysis", plan),
};

fn run(name: &str, plan: &Plan) -> Result<()> {
    let status = cargo()
        .args(["bench", "--quiet", "--locked"])
        .args(["--package", "cohtrace-tests", "--bench", "library", "--"])
        .args([name, "--rounds", &plan.rounds.to_string()])
        .status()
        .context("starting cargo")?;
    ensure!(status.success(), "the bench of the library failed");
    Ok(())
}
