//! Whether the tool's own counts are right, as published: 100 processes for each of seven sizes.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use super::{Bench, Plan};

pub(super) static BENCH: Bench = Bench {
    name: "validate",
    about: "counts of the tool's own sources beside what programs were asked to do, 1 to 1,000,000 times, 100 runs unless --runs \
            (named only: it takes long)",
    rounds: 1,
    needs_root: true,
    // Half a minute for one run of every size of every event.
    takes: |plan| plan.validate_runs * Duration::from_secs(30),
    run,
};

const SIZES: &str = "1,10,100,1000,10000,100000,1000000";

/// Prints the table; a count that errs by more than a constant is no failure of the benchmark.
fn run(plan: &Plan) -> Result<()> {
    let status = plan
        .cohtrace()
        .args(["validate", "--sizes", SIZES])
        .args(["--runs", &plan.validate_runs.to_string()])
        .status()
        .context("starting cohtrace")?;
    ensure!(status.success(), "counting failed");
    Ok(())
}
