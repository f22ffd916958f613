//! What the figures were measured on, and whether it had anything else to do.

use std::fs;

use super::peer;

/// Machine, kernel and versions, a line each.
pub(super) fn statement() -> String {
    let model = value(&read("/proc/cpuinfo"), "model name");
    let kernel = read("/proc/sys/kernel/osrelease");
    let cpus = std::thread::available_parallelism().map_or(0, usize::from);
    format!(
        "{cpus} CPUs, {}, Linux {}\n{}\n",
        model.unwrap_or_else(|| "model unknown".to_owned()),
        kernel.trim(),
        peer::version().unwrap_or_else(|| "perf: not installed, column left out".to_owned())
    )
}

/// The load of the last minute, with a warning where it leaves too little for a measurement.
pub(super) fn load() -> String {
    let text = read("/proc/loadavg");
    let load = text
        .split_whitespace()
        .next()
        .and_then(|word| word.parse::<f64>().ok());
    match load {
        Some(load) if load > QUIET => {
            format!("{load:.2} (this machine is not quiet: trust no figure below)")
        }
        Some(load) => format!("{load:.2}"),
        None => "unknown".to_owned(),
    }
}

/// Load that a machine without other work has shortly after a build.
const QUIET: f64 = 1.0;

fn value(text: &str, key: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == key).then(|| value.trim().to_owned())
    })
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}
