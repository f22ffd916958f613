//! Arguments of `validate`.

use std::path::PathBuf;

use clap::{Args, builder::PossibleValuesParser};

use crate::validate::{
    costs::COSTS,
    events::{Counter, EVENTS, MOST},
};

/// What `diff` keeps, which no program is run for.
pub(crate) const GAIN: &str = "gain";

/// `validate`.
#[derive(Debug, Args)]
pub(crate) struct ValidateArgs {
    /// Only what these sources count. Costs are of `clock`.
    #[arg(long, value_name = "SOURCE", value_delimiter = ',', value_parser = sources())]
    pub source: Vec<String>,
    /// Only these events, and costs.
    ///
    /// `gain`, alone: how often gains that were predicted came true, of all that `diff` compared.
    #[arg(long, value_name = "EVENT", value_delimiter = ',', value_parser = events())]
    pub event: Vec<String>,
    /// How many of an event a program is asked for, 1 to 1,000,000. An event leaves out sizes that it cannot have: windows
    /// cost some 10 us for each access, and a share of the time needs time.
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1,10,100,1000,10000,100000",
          value_parser = clap::value_parser!(u64).range(1..=MOST))]
    pub sizes: Vec<u64>,
    /// Processes for each size, and for each cost. The published method takes 100.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub runs: u32,
    /// The emulator qemu-x86_64 [default: COHTRACE_QEMU, else the first in PATH].
    #[arg(long, value_name = "PATH")]
    pub qemu: Option<PathBuf>,
    /// Print JSON (schema 1) instead of text.
    #[arg(long)]
    pub json: bool,
    /// Exit with code 1 when a class is another than none and bias, or something was lost; with 3 when an event was not
    /// counted to the end. What the machine does not have, as a PMU, counts only where --event or --source names it, and costs
    /// that do not repeat are told and are no failure.
    #[arg(long)]
    pub check: bool,
    /// No progress on the terminal.
    #[arg(short, long)]
    pub quiet: bool,
}

fn sources() -> PossibleValuesParser {
    Counter::ALL.map(Counter::name).into()
}

fn events() -> PossibleValuesParser {
    let costs = COSTS.iter().map(|cost| cost.name);
    let mut names: Vec<&str> = Vec::new();
    for name in EVENTS.iter().map(|event| event.name).chain(costs) {
        // Several sources may count one.
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.push(GAIN);
    names.into()
}
