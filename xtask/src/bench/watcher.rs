//! A tool that has begun to watch.

use std::{
    fs,
    path::Path,
    process::Command,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};
use cohtrace_tests::{report::Report, terminal::OnTerminal, usage::Finished};

/// How long a tool may take to begin, or to end and report.
pub(super) const LIMIT: Duration = Duration::from_mins(5);

/// How long the number of its perf events must stay the same before it counts as watching.
const SETTLED: Duration = Duration::from_millis(500);

/// Waits until the tool has opened an event on each CPU, and no more come. Those of watch windows may come and go.
pub(super) fn wait_until_watching(pid: u32) -> Result<()> {
    let deadline = Instant::now() + LIMIT;
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    let mut events = 0;
    let mut since = Instant::now();
    while events < cpus || since.elapsed() < SETTLED {
        let now = perf_events(pid).context("the tool ended before it watched")?;
        if now > events {
            (events, since) = (now, Instant::now());
        }
        ensure!(Instant::now() < deadline, "not watching after {LIMIT:?}");
        thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// Perf events that a process holds; `None` when it is gone.
fn perf_events(pid: u32) -> Option<usize> {
    // The directory of a process that ended is empty until it is reaped, and a running tool holds files.
    let entries: Vec<_> = fs::read_dir(format!("/proc/{pid}/fd")).ok()?.collect();
    let is_event = |path: &Path| {
        fs::read_link(path).is_ok_and(|to| to.as_os_str() == "anon_inode:[perf_event]")
    };
    let events = entries
        .iter()
        .flatten()
        .filter(|entry| is_event(&entry.path()));
    (!entries.is_empty()).then(|| events.count())
}

/// Runs a command on a terminal to its end, or plainly.
pub(super) fn to_the_end(command: &mut Command, on_terminal: bool) -> Result<Finished> {
    let finished = if on_terminal {
        OnTerminal::start(command)?.wait(LIMIT)?
    } else {
        cohtrace_tests::usage::Measured::start(command)?.wait(LIMIT)?
    };
    finished.expect_success(&command.get_program().to_string_lossy())
}

/// What a tool wrote with `--json`.
pub(super) fn report(path: &Path) -> Result<Report> {
    let text = fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
    Report::parse(&text)
}

/// A number of the `run` part of a JSON report.
pub(super) fn number_of_run(report: &Path, key: &str) -> Result<u64> {
    let text =
        fs::read_to_string(report).with_context(|| format!("reading {}", report.display()))?;
    let report: serde_json::Value = serde_json::from_str(&text)?;
    match report["run"][key].as_u64() {
        Some(number) => Ok(number),
        None => bail!("the report's run has no number {key}"),
    }
}
