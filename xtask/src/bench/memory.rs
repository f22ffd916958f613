//! Peak memory of watching a busy machine for a minute.

use std::{
    fs,
    process::{Command, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use anyhow::Result;
use cohtrace_tests::{
    figures::{Table, spread},
    usage::Measured,
};

use super::{
    Bench, Plan, peer,
    program::{Compiling, TwoThreads},
    watcher,
};

pub(super) static BENCH: Bench = Bench {
    name: "memory",
    about: "peak resident memory of a system-wide minute: cohtrace attach -a, and perf record -a, then perf report",
    rounds: 1,
    needs_root: true,
    takes: |plan| {
        let tools = if plan.has_perf { 2 } else { 1 };
        plan.rounds * tools * Duration::from_secs(seconds(plan) + 3)
    },
    run,
};

fn seconds(plan: &Plan) -> u64 {
    plan.seconds.unwrap_or(60)
}

/// Between two looks at a tool's anonymous memory.
const LOOK: Duration = Duration::from_millis(50);

/// Peaks of one run, bytes.
struct Peaks {
    resident: Option<u64>,
    /// As seen every [`LOOK`]; without mapped files and rings, which the kernel can drop or shares.
    anonymous: Option<u64>,
}

fn run(plan: &Plan) -> Result<()> {
    let program = TwoThreads::build()?;
    let duration = seconds(plan).to_string();
    let names = ["cohtrace attach -a", "perf record -a", "perf report"];
    let mut peaks: [Vec<Peaks>; 3] = Default::default();
    let mut compiled = Vec::new();
    for _ in 0..plan.rounds {
        let _target = program.working()?;
        let compiling = Compiling::start();
        let mut command = plan.cohtrace();
        command
            .args(["attach", "-a", "--duration", &duration])
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        peaks[0].push(watch(&mut command)?);
        compiled.push(compiling.stop() as f64);
        if plan.has_perf {
            let directory = tempfile::tempdir()?;
            let file = directory.path().join("perf.data");
            let compiling = Compiling::start();
            let mut command = peer::record(1000, &file);
            command.arg("--").args(["sleep", &duration]);
            peaks[1].push(watch(&mut command)?);
            compiled.push(compiling.stop() as f64);
            peaks[2].push(watch(&mut peer::report(&file))?);
        }
    }
    println!(
        "{duration} s at 1,000 Hz, beside a two-thread program and a compiler run again and again ({} files \
         compiled in each).",
        spread(&compiled, 0)
    );
    let mut table = Table::new(&["tool", "resident, peak MiB", "anonymous, peak MiB"]);
    for (name, peaks) in names.iter().zip(&peaks) {
        if peaks.is_empty() {
            continue;
        }
        table.row([
            (*name).to_owned(),
            mib(peaks, |peaks| peaks.resident),
            mib(peaks, |peaks| peaks.anonymous),
        ]);
    }
    print!("{table}");
    println!("Resident as wait4 accounts it: mapped files and rings are part of it.");
    Ok(())
}

fn mib(peaks: &[Peaks], of: impl Fn(&Peaks) -> Option<u64>) -> String {
    let bytes = peaks.iter().filter_map(of);
    let mib: Vec<f64> = bytes
        .map(|bytes| bytes as f64 / f64::from(1 << 20))
        .collect();
    spread(&mib, 1)
}

/// Runs a tool to its end, and looks at its memory meanwhile.
fn watch(command: &mut Command) -> Result<Peaks> {
    let tool = Measured::start(command)?;
    let pid = tool.pid();
    let ended = AtomicBool::new(false);
    let (finished, anonymous) = thread::scope(|scope| {
        let looking = scope.spawn(|| {
            let mut peak = None;
            while !ended.load(Ordering::Relaxed) {
                peak = peak.max(anonymous_bytes(pid));
                thread::sleep(LOOK);
            }
            peak
        });
        let finished = tool.wait(watcher::LIMIT);
        ended.store(true, Ordering::Relaxed);
        (finished, looking.join().unwrap_or(None))
    });
    let finished = finished?.expect_success(&command.get_program().to_string_lossy())?;
    Ok(Peaks {
        resident: finished.usage.peak_bytes,
        anonymous,
    })
}

/// Anonymous resident memory of a process, proc_pid_status(5).
fn anonymous_bytes(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib * 1024)
}
