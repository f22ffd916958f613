//! Peak memory of watching a busy machine for a minute.

use std::{process::Stdio, time::Duration};

use anyhow::Result;
use cohtrace_tests::{
    figures::{Table, spread},
    usage::Usage,
};

use super::{
    Bench, Plan, peer,
    program::{Compiling, TwoThreads},
    watcher,
};

pub static BENCH: Bench = Bench {
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

fn run(plan: &Plan) -> Result<()> {
    let program = TwoThreads::build()?;
    let duration = seconds(plan).to_string();
    let (mut attach, mut record, mut report) = (Vec::new(), Vec::new(), Vec::new());
    let mut compiled = Vec::new();
    for _ in 0..plan.rounds {
        let busy = (program.working()?, Compiling::start());
        let mut command = plan.cohtrace();
        command
            .args(["attach", "-a", "--duration", &duration])
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        attach.extend(peak_mib(watcher::to_the_end(&mut command, false)?.usage));
        compiled.push(busy.1.stop() as f64);
        if plan.has_perf {
            let directory = tempfile::tempdir()?;
            let file = directory.path().join("perf.data");
            let busy = (program.working()?, Compiling::start());
            let mut command = peer::record(1000, &file);
            command.arg("--").args(["sleep", &duration]);
            record.extend(peak_mib(watcher::to_the_end(&mut command, false)?.usage));
            compiled.push(busy.1.stop() as f64);
            report.extend(peak_mib(peer::report(&file)?.usage));
        }
    }
    println!(
        "{duration} s at 1,000 Hz, beside a two-thread program and a compiler run again and again ({} files \
         compiled in each). Resident memory as wait4 accounts it: mapped rings are part of it where the kernel \
         counts them.",
        spread(&compiled, 0)
    );
    let mut table = Table::new(&["tool", "peak, MiB"]);
    table.row(["cohtrace attach -a".into(), spread(&attach, 1)]);
    if plan.has_perf {
        table.row(["perf record -a".into(), spread(&record, 1)]);
        table.row(["perf report".into(), spread(&report, 1)]);
    }
    print!("{table}");
    Ok(())
}

fn peak_mib(usage: Usage) -> Option<f64> {
    usage
        .peak_bytes
        .map(|bytes| bytes as f64 / f64::from(1 << 20))
}
