//! How long a build takes.

use std::{
    fs::File,
    path::Path,
    time::{Duration, Instant, SystemTime},
};

use anyhow::{Context as _, Result, ensure};
use cohtrace_tests::figures::Table;

use crate::bench::{cargo, target_directory};

/// Rebuilt after a touch of this file.
const TOUCHED: &str = "tracer/report/src/report/mod.rs";

/// Builds the tool as `cargo build` does, twice, in a directory that vanishes afterwards.
pub(super) fn measure(root: &Path) -> Result<Table> {
    let target = tempfile::Builder::new()
        .prefix("house-")
        .tempdir_in(target_directory()?)
        .context("making a directory to build in")?;
    let clean = timed_build(target.path())?;
    // Only its time changes.
    let touched = File::options().append(true).open(root.join(TOUCHED));
    touched
        .and_then(|file| file.set_modified(SystemTime::now()))
        .with_context(|| format!("touching {TOUCHED}"))?;
    let again = timed_build(target.path())?;
    let mut table = Table::new(&["cargo build, unoptimized", "seconds"]);
    for (name, time) in [
        ("clean".to_owned(), clean),
        (format!("after a touch of {TOUCHED}"), again),
    ] {
        table.row([name, format!("{:.1}", time.as_secs_f64())]);
    }
    Ok(table)
}

fn timed_build(target: &Path) -> Result<Duration> {
    let start = Instant::now();
    let status = cargo()
        .args(["build", "--locked", "--quiet", "--package", "cohtrace"])
        .env("CARGO_TARGET_DIR", target)
        .status()?;
    ensure!(status.success(), "the build failed");
    Ok(start.elapsed())
}
