//! Reports of long recordings: cohtrace of a session, perf c2c of the same accesses as perf.data.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use cohtrace_tests::{
    figures::{Spread, Table, spread},
    usage::Measured,
};

use super::{Bench, Plan, cargo, peer};

pub(super) static BENCH: Bench = Bench {
    name: "scale",
    about: "time and peak memory of a report on millions of samples: cohtrace report, and perf c2c report",
    rounds: 3,
    needs_root: false,
    takes: |plan| {
        let of = |millions: &u64| Duration::from_secs(millions * 4 + millions.min(&10) * 30);
        millions(plan).iter().map(of).sum::<Duration>() + Duration::from_mins(1)
    },
    run,
};

/// Million samples of each session unless asked otherwise (`--millions 1,10,100`).
const MILLIONS: [u64; 2] = [1, 10];
/// Longer recordings are not exported for perf: its file would take 100 bytes a sample.
const MOST_OF_PERF: u64 = 10;
/// Longer ones are reported once: what is compared is above.
const MOST_REPEATED: u64 = 10;
/// A session of a million samples with what is sorted in its temporary file.
const DISK_BYTES_A_MILLION: u64 = 80 << 20;
/// The same with perf's file.
const PERF_BYTES_A_MILLION: u64 = 120 << 20;
/// The tools are given up after.
const LIMIT: Duration = Duration::from_mins(30);

fn millions(plan: &Plan) -> Vec<u64> {
    if plan.millions.is_empty() {
        MILLIONS.to_vec()
    } else {
        plan.millions.clone()
    }
}

/// Of one tool.
#[derive(Default)]
struct Figures {
    seconds: Vec<f64>,
    cpu_seconds: Vec<f64>,
    mib: Vec<f64>,
}

impl Figures {
    fn take(&mut self, command: &mut Command) -> Result<()> {
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let finished = Measured::start(command)?.wait(LIMIT)?;
        let finished = finished.expect_success(&format!("{command:?}"))?;
        self.seconds.push(finished.usage.wall.as_secs_f64());
        let cpu = finished.usage.cpu().as_secs_f64();
        self.cpu_seconds.push(cpu);
        let peak = finished.usage.peak_bytes.map(|bytes| bytes as f64);
        self.mib
            .extend(peak.map(|bytes| bytes / f64::from(1 << 20)));
        Ok(())
    }
}

fn run(plan: &Plan) -> Result<()> {
    if !plan.has_perf {
        println!("perf is not installed: figures of cohtrace only");
    }
    let mut table = Table::new(&[
        "millions of samples",
        "wall, s",
        "CPU, s",
        "peak resident, MiB",
    ]);
    let mut ratios = Table::new(&["perf : cohtrace", "wall", "CPU", "peak resident"]);
    for millions in millions(plan) {
        // Beside the builds and not in /tmp, which is memory on many machines.
        let directory = tempfile::tempdir_in(super::target_directory()?)?;
        let with_perf = plan.has_perf && millions <= MOST_OF_PERF;
        let perf_bytes = if with_perf { PERF_BYTES_A_MILLION } else { 0 };
        let needed = millions * (DISK_BYTES_A_MILLION + perf_bytes);
        let free = free_bytes(directory.path())?;
        if free < needed {
            println!(
                "SKIPPED: {millions} million samples: {} MiB of disk are free, {} wanted",
                free >> 20,
                needed >> 20
            );
            continue;
        }
        let session = directory.path().join("made-up.coh");
        generate(millions, &session)?;
        let file = directory.path().join("perf.data");
        if with_perf {
            export(plan, &session, &file)?;
        }
        let rounds = if millions > MOST_REPEATED {
            1
        } else {
            plan.rounds
        };
        let (mut ours, mut stats, mut perf) =
            (Figures::default(), Figures::default(), Figures::default());
        for _ in 0..rounds {
            let mut command = plan.cohtrace();
            ours.take(command.arg("report").arg(&session))?;
            if with_perf {
                stats.take(&mut peer::c2c_report(&file, true))?;
                perf.take(&mut peer::c2c_report(&file, false))?;
            }
        }
        let rows = [
            ("cohtrace report", &ours),
            ("perf c2c report --stats", &stats),
            ("perf c2c report", &perf),
        ];
        for (name, figures) in rows.iter().filter(|(_, f)| !f.seconds.is_empty()) {
            table.row([
                format!("{millions:>4}  {name}"),
                spread(&figures.seconds, 2),
                spread(&figures.cpu_seconds, 2),
                spread(&figures.mib, 0),
            ]);
        }
        for (name, figures) in &rows[1..] {
            if !figures.seconds.is_empty() {
                ratios.row([
                    format!("{millions:>4}  {name}"),
                    ratio(&figures.seconds, &ours.seconds),
                    ratio(&figures.cpu_seconds, &ours.cpu_seconds),
                    ratio(&figures.mib, &ours.mib),
                ]);
            }
        }
    }
    print!("\n{table}\n");
    if plan.has_perf {
        print!("{ratios}");
    }
    Ok(())
}

/// Of the medians.
fn ratio(theirs: &[f64], ours: &[f64]) -> String {
    match (Spread::of(theirs), Spread::of(ours)) {
        (Some(theirs), Some(ours)) => format!("{:.1}", theirs.median / ours.median),
        _ => "-".to_owned(),
    }
}

fn generate(millions: u64, session: &Path) -> Result<()> {
    let status = cargo()
        .args(["bench", "--quiet", "--locked"])
        .args(["--package", "cohtrace-tests", "--bench", "library", "--"])
        .args(["generate", "--samples", &(millions * 1_000_000).to_string()])
        .arg("--output")
        .arg(session)
        .status()
        .context("starting cargo")?;
    ensure!(status.success(), "the session could not be made");
    Ok(())
}

fn export(plan: &Plan, session: &Path, file: &Path) -> Result<()> {
    let mut command = plan.cohtrace();
    command
        .arg("export")
        .arg(session)
        .arg("--perf-data")
        .arg(file);
    let finished = Measured::start(&mut command)?.wait(LIMIT)?;
    finished.expect_success("cohtrace export")?;
    Ok(())
}

/// Free room for files in a directory, as df(1) says it.
fn free_bytes(directory: &Path) -> Result<u64> {
    let output = Command::new("df")
        .args(["--output=avail", "--block-size=1"])
        .arg::<PathBuf>(directory.into())
        .output()
        .context("starting df")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let number = text
        .lines()
        .nth(1)
        .and_then(|line| line.trim().parse().ok());
    number.with_context(|| format!("df says no number: {text}"))
}
