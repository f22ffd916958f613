//! Variable, type and field by instruction, judged by the sources of the symbolizer's fixtures.

use std::{process::Command, time::Duration};

use anyhow::{Context as _, Result, ensure};

use super::{Bench, Plan, cargo};

pub(super) static BENCH: Bench = Bench {
    name: "typed",
    about: "how many memory operands get type and field from their instruction, by compiler and optimisation, and how \
            many a wrong one",
    rounds: 1,
    needs_root: false,
    takes: |_| Duration::from_mins(1),
    run,
};

fn run(_: &Plan) -> Result<()> {
    let test = "access_truth::every_answer_is_what_the_source_says";
    let mut judge = cargo();
    judge.args(["test", "--quiet", "--locked", "--package", "symbolizer"]);
    judge.args(["--test", "it", "--", "--exact", test, "--nocapture"]);
    let output = judge.output().context("starting cargo")?;
    let said = String::from_utf8_lossy(&output.stdout);
    let told = String::from_utf8_lossy(&output.stderr);
    for line in said.lines().chain(told.lines()) {
        if line.contains("  wrong ") || line.starts_with("SKIPPED") {
            println!("{line}");
        }
    }
    ensure!(
        output.status.success(),
        "an operand got a wrong name:\n{said}{told}"
    );
    println!("{}", peer());
    Ok(())
}

/// What can be said of `perf annotate --data-type`, which came with Linux 6.8.
fn peer() -> String {
    let help = Command::new("perf").args(["annotate", "-h"]).output();
    match help {
        Ok(output) => {
            let text = [output.stdout, output.stderr].concat();
            if String::from_utf8_lossy(&text).contains("--data-type") {
                "perf annotate --data-type is there, but takes perf.data with memory samples: compare by hand".to_owned()
            } else {
                "perf here has no `annotate --data-type` (Linux 6.8): not compared".to_owned()
            }
        }
        Err(error) => format!("perf does not run ({error}): not compared"),
    }
}
