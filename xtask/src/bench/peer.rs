//! perf, asked to collect what cohtrace's timer source collects: time, address, registers, mappings.

use std::{
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result};

/// General registers, instruction and stack pointer: what the addresses of operands can be computed from.
const X86_REGISTERS: &str = "ax,bx,cx,dx,si,di,bp,sp,ip,r8,r9,r10,r11,r12,r13,r14,r15";
const ARM_REGISTERS: &str = "x0,x1,x2,x3,x4,x5,x6,x7,x8,x9,x10,x11,x12,x13,x14,x15,x16,x17,x18,x19,x20,x21,x22,x23,\
                             x24,x25,x26,x27,x28,x29,lr,sp,pc";

/// `perf version N`; `None` where it is not installed.
pub(super) fn version() -> Option<String> {
    let output = Command::new("perf").arg("--version").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

/// `perf record` of all CPUs at that rate into the file.
pub(super) fn record(frequency_hz: u32, file: &Path) -> Command {
    let registers = if cfg!(target_arch = "aarch64") {
        ARM_REGISTERS
    } else {
        X86_REGISTERS
    };
    let mut command = sample(frequency_hz);
    command
        .arg("-d")
        .arg(format!("--user-regs={registers}"))
        .arg("-o")
        .arg(file);
    command
}

fn sample(frequency_hz: u32) -> Command {
    let mut command = Command::new("perf");
    command
        .args(["record", "-e", "cpu-clock", "-a", "-F"])
        .arg(frequency_hz.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    command
}

/// The same event with the least that `perf record` keeps of it.
pub(super) fn interrupts(frequency_hz: u32, file: &Path) -> Command {
    let mut command = sample(frequency_hz);
    command.arg("-o").arg(file);
    command
}

/// `perf report --stdio` of a recording, printed to nowhere.
pub(super) fn report(file: &Path) -> Command {
    let mut command = Command::new("perf");
    command.args(["report", "--stdio", "-i"]).arg(file);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command
}

/// `perf c2c report` of a file, printed to nowhere; with `stats` the sums only.
pub(super) fn c2c_report(file: &Path, stats: bool) -> Command {
    // perf writes to the addr2line that it starts, and ends by a signal when that has ended before: a shell's trap makes
    // it go on instead.
    let mut command = Command::new("sh");
    command.args([
        "-c",
        "trap '' PIPE; exec perf c2c report --stdio \"$@\"",
        "perf",
        "-i",
    ]);
    command.arg(file);
    if stats {
        command.arg("--stats");
    }
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command
}

/// Samples in a recording.
pub(super) fn samples(file: &Path) -> Result<u64> {
    let output = Command::new("perf")
        .args(["report", "--stats", "-i"])
        .arg(file)
        .output()
        .context("starting perf")?;
    let text = String::from_utf8_lossy(&output.stdout);
    samples_in(&text).with_context(|| format!("perf report --stats says no samples:\n{text}"))
}

/// From `SAMPLE events:       2033  (31.8%)`; the first such line is of all events together.
fn samples_in(statistics: &str) -> Option<u64> {
    let value = statistics
        .lines()
        .find_map(|line| line.trim().strip_prefix("SAMPLE events:"))?;
    value.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_samples_is_read_from_the_statistics() {
        let text = "\nAggregated stats:\n  TOTAL events:  6398\n  SAMPLE events:  2033  (31.8%)\n";
        assert_eq!(samples_in(text), Some(2033));
        assert_eq!(samples_in("no samples"), None);
    }
}
