//! What the emulated source costs beside the emulator itself, measured by `tests/benches/emulated`.

use std::{process::Command, time::Duration};

use anyhow::{Context as _, Result, ensure};

use super::{Bench, Plan, cargo};

pub(super) static BENCH: Bench = Bench {
    name: "emulate",
    about: "programs native, in QEMU, with an empty callback, under --source emulate, and under valgrind's lackey",
    rounds: 5,
    needs_root: false,
    takes: |plan| plan.rounds * Duration::from_secs(30) + Duration::from_mins(1),
    run,
};

fn run(plan: &Plan) -> Result<()> {
    let found = |tool: &str| Command::new(tool).arg("--version").output().is_ok();
    if !found("qemu-x86_64") {
        println!("no qemu-x86_64 (apt install qemu-user): not measured");
        return Ok(());
    }
    let mut command = cargo();
    command
        .args(["bench", "--quiet", "--locked"])
        .args(["--package", "cohtrace-tests", "--bench", "emulated", "--"])
        .args(["--rounds", &plan.rounds.to_string()])
        .env("COHTRACE_BIN", &plan.tool);
    if found("valgrind") {
        command.arg("--lackey");
    } else {
        println!("no valgrind: not compared with lackey");
    }
    let status = command.status().context("starting cargo")?;
    ensure!(status.success(), "the bench of the emulated source failed");
    Ok(())
}
