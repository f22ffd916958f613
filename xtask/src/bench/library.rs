//! The parts that need no kernel, measured in-process by `tests/benches/library`.

use std::{
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use cohtrace_tests::{answer::Variant, kernel, workload};

use super::{
    Bench, Plan, cargo,
    program::{Compiling, Killed},
    watcher,
};

pub(super) static RECORDER: Bench = Bench {
    name: "recorder",
    about: "accesses a second written to a session and read back, and bytes per access (in-process)",
    rounds: 5,
    needs_root: false,
    takes: |plan| RECORDED + plan.rounds * Duration::from_secs(2),
    run: |plan| run("recorder", plan),
};

pub(super) static ANALYSIS: Bench = Bench {
    name: "analysis",
    about: "nanoseconds per access of the analysis and of decoding samples (in-process)",
    rounds: 5,
    needs_root: false,
    takes: |plan| RECORDED + plan.rounds * Duration::from_secs(5),
    run: |plan| run("analysis", plan),
};

/// How long the recorded stream is.
const RECORDED: Duration = Duration::from_secs(8);
/// High, so that it has many accesses in little time.
const RATE_HZ: u32 = 4000;

fn run(name: &str, plan: &Plan) -> Result<()> {
    let directory = tempfile::tempdir()?;
    let session = directory.path().join("recorded.coh");
    let mut command = cargo();
    command
        .args(["bench", "--quiet", "--locked"])
        .args(["--package", "cohtrace-tests", "--bench", "library", "--"])
        .args([name, "--rounds", &plan.rounds.to_string()]);
    if kernel::is_root() {
        record(plan, &session)?;
        command.arg("--session").arg(&session);
    } else {
        println!("not root: the made-up stream only, none recorded");
    }
    let status = command.status().context("starting cargo")?;
    ensure!(status.success(), "the bench of the library failed");
    Ok(())
}

/// The whole machine, with a falsely shared program and a compiler at work.
fn record(plan: &Plan, session: &Path) -> Result<()> {
    let shared = workload::named("two_counters")?.build(Variant::Plain)?;
    let target = Command::new(&shared.path)
        .arg((RECORDED * 4).as_millis().to_string())
        .stdout(Stdio::null())
        .spawn()
        .context("starting the workload")?;
    let _target = Killed(target);
    let compiling = Compiling::start();
    let mut command = plan.cohtrace();
    command
        .args(["record", "-a", "-F", &RATE_HZ.to_string()])
        .args(["--duration", &RECORDED.as_secs().to_string()])
        .arg("-o")
        .arg(session);
    watcher::to_the_end(&mut command, false)?;
    compiling.stop();
    Ok(())
}
