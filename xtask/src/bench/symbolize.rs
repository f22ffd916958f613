//! Our symbolizer beside others, in a package of its own: only who measures builds the others.

use std::{path::PathBuf, time::Duration};

use anyhow::{Context as _, Result, ensure};

use super::{Bench, Plan, cargo, target_directory};
use crate::root;

pub(super) static BENCH: Bench = Bench {
    name: "symbolize",
    about: "a million addresses of cohtrace's debug build named by our symbolizer, the addr2line and blazesym crates, \
            LLVM's and binutils' tools",
    rounds: 5,
    needs_root: false,
    takes: |plan| Duration::from_mins(3) + plan.rounds * Duration::from_secs(30),
    run,
};

fn run(plan: &Plan) -> Result<()> {
    let manifest = root().join("tests/benches/symbolize/Cargo.toml");
    // Not among the workspace's own builds: other features of the same crates would make both build again and again.
    let target = target_directory()?.join("peers");
    let mut build = cargo();
    build.args([
        "build",
        "--quiet",
        "--release",
        "--locked",
        "--manifest-path",
    ]);
    let status = build
        .arg(manifest)
        .arg("--target-dir")
        .arg(&target)
        .status();
    ensure!(
        status.context("starting cargo")?.success(),
        "the peers do not build"
    );
    let mut measure = std::process::Command::new(target.join("release/symbolize"));
    measure.args(["--rounds", &plan.rounds.to_string()]);
    let status = measure.arg(subject()?).status();
    ensure!(
        status.context("starting the peers")?.success(),
        "measuring failed"
    );
    Ok(())
}

/// A large program with full debug info: our own. `SYMBOLIZE_FILE` names another.
fn subject() -> Result<PathBuf> {
    if let Some(path) = std::env::var_os("SYMBOLIZE_FILE") {
        return Ok(path.into());
    }
    let status = cargo()
        .args(["build", "--quiet", "--locked", "--package", "cohtrace"])
        .status()
        .context("starting cargo")?;
    ensure!(status.success(), "the debug build failed");
    Ok(target_directory()?.join("debug/cohtrace"))
}
