//! `doctor`: what this machine offers, and with --bpf-log, what the kernel half leaves out and why.

use std::{path::Path, process::ExitCode};

use anyhow::Result;

use super::{
    args::{Color, DoctorArgs},
    bpf_log, machine_costs, output,
};
use crate::{
    machine::{LiveProbe, Machine},
    report::doctor::{Diagnosis, MeasuredCosts, Paint, render_json, render_text},
    source::emulate,
    sys::probe,
};

/// Probes and prints; exit code 2 when no source can run.
pub(super) fn run(args: &DoctorArgs) -> Result<ExitCode> {
    output::check(None)?;
    if args.bpf_log {
        return bpf_log::run(&args.log, args.json);
    }
    let machine = Machine::probe(Path::new("/"));
    let live = LiveProbe {
        emulator: Some(emulate::is_installed()),
        ..probe::probe(&machine)
    };
    let diagnosis = Diagnosis {
        costs: machine_costs::of_this_boot().map(|costs| MeasuredCosts {
            age_s: costs.age_s(),
            class_ns: costs.classes.iter().map(|class| class.ns).collect(),
            doubts: costs.doubts.len(),
        }),
        ..Diagnosis::new(machine, live)
    };
    let text = if args.json {
        render_json(&diagnosis)
    } else {
        render_text(
            &diagnosis,
            if output::colour(Color::Auto, None) {
                Paint::Colour
            } else {
                Paint::Plain
            },
        )
    };
    output::write_stdout(&text)?;
    Ok(ExitCode::SUCCESS)
}
