//! The command line: the only home of clap, anyhow, printing and exit codes.
//!
//! Exit codes: 0 ran, 1 findings under `--check`, 2 could not run, 3 could not tell under `--check`.

mod args;
mod assemble;
mod attach;
mod bpf_log;
mod c2c;
mod counting;
mod deciding;
mod demo;
mod destination;
mod diff;
mod doctor;
mod export;
mod failure;
mod gain_tally;
mod heap_options;
mod hints;
mod import;
mod latent;
mod layout;
mod load_hints;
mod log;
mod machine_costs;
mod measure;
mod names_ahead;
mod observe;
mod output;
mod pairs;
mod progress;
mod reading;
mod record;
mod report;
mod rights;
mod session_code;
mod simulate;
mod source_files;
mod source_options;
mod stats;
mod stats_names;
mod usage;
mod validate;
mod watch_options;
mod writing;

use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::Parser;

use args::{Cli, Command};

use crate::sys::limits;

/// Could not run, or not to the end.
const EXIT_FAILURE: u8 = 2;

/// Runs the tool on the process's arguments.
pub fn main() -> ExitCode {
    let command = match Cli::try_parse() {
        Ok(cli) => cli.command,
        Err(error) => return usage::tell(error),
    };
    let ran = prepare(&command).and_then(|()| run(command));
    ran.unwrap_or_else(|error| {
        output::say(&format!("cohtrace: {}", failure::words(&error)));
        ExitCode::from(EXIT_FAILURE)
    })
}

/// What holds for the whole process, before it has other threads.
fn prepare(command: &Command) -> Result<()> {
    match command {
        // These need what they have, until all is open.
        Command::Attach(_)
        | Command::Record(_)
        | Command::Demo(_)
        | Command::Doctor(_)
        | Command::Validate(_) => {}
        // It takes real-time priority later.
        Command::Measure(args) if args.realtime => {}
        Command::As(_) => rights::read_only(true)?,
        Command::Report(_)
        | Command::Import(_)
        | Command::Pairs(_)
        | Command::Hints(_)
        | Command::Diff(_)
        | Command::Log(_)
        | Command::Simulate(_)
        | Command::Layout(_)
        | Command::Measure(_)
        | Command::Export(_) => rights::read_only(false)?,
    }
    // The assembler in our place has what its compiler gave it.
    if !matches!(command, Command::As(_)) {
        limits::raise_descriptors();
    }
    limits::survive_large_files().context("installing signal handlers")
}

fn run(command: Command) -> Result<ExitCode> {
    match command {
        Command::Attach(args) => attach::run(&args),
        Command::Record(args) => record::run(&args),
        Command::Report(args) => report::run(&args),
        Command::Import(args) => import::run(&args),
        Command::Pairs(args) => pairs::run(&args),
        Command::Hints(args) => hints::run(&args),
        Command::Diff(args) => diff::run(&args),
        Command::Log(args) => log::run(&args),
        Command::Simulate(args) => simulate::run(&args),
        Command::Layout(args) => layout::run(&args),
        Command::Export(args) => export::run(&args),
        Command::As(args) => assemble::run(&args),
        Command::Measure(args) => measure::run(&args),
        Command::Demo(args) => demo::run(args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Validate(args) => validate::run(&args),
    }
}
