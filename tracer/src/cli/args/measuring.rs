//! Arguments of `measure`.

use std::path::PathBuf;

use clap::Args;

use super::values::seconds;
use crate::{
    access::Cpu,
    measure::{state::State, survey::Pairs},
};

/// `measure`.
#[derive(Debug, Args)]
pub(crate) struct MeasureArgs {
    /// Pairs of CPUs: `classes` (one of each distance that the kernel tells, and three more, to find out whether that is
    /// true), `all` (a short look at each, and all costs of one of each class that shows), or pairs by number: 0-1,0-8.
    #[arg(long, value_name = "PAIRS", default_value = "classes", value_parser = pairs)]
    pub pairs: Pairs,
    /// States of the line to measure, separated by commas [default: all]: own-l1, own-l2, own-l3, shared-by-both,
    /// other-modified, other-exclusive, memory; with a third CPU also shared-by-three and other-shared.
    #[arg(long, value_name = "STATES", value_delimiter = ',', value_parser = state)]
    pub states: Vec<State>,
    /// Measure too what the other CPU's accesses add to one's own, as it asks more and more often, for a line and for
    /// memory, beside what two models say.
    #[arg(long)]
    pub contention: bool,
    /// Seconds to spend at most. What there was no time for is said, and --resume measures it. [default: as long as it takes]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub seconds: Option<f64>,
    #[command(flatten)]
    pub kept: KeptArgs,
    /// Run before all ordinary threads of the CPUs that are measured (SCHED_FIFO). Needs CAP_SYS_NICE; what else runs there
    /// waits.
    #[arg(long)]
    pub realtime: bool,
    /// Bring lines into each state once, and say where they are: for tests that run the tool in an emulator.
    #[arg(long, hide = true)]
    pub show_states: bool,
}

/// Where what was found goes.
#[derive(Debug, Args)]
pub(crate) struct KeptArgs {
    /// Print JSON (schema 1).
    #[arg(long)]
    pub json: bool,
    /// No progress on the terminal.
    #[arg(short, long)]
    pub quiet: bool,
    /// Write what was measured (JSON) to a file too.
    #[arg(short, long, value_name = "machine.json")]
    pub output: Option<PathBuf>,
    /// Measure only what the file of -o (else the last run since the machine was started) does not have yet.
    #[arg(long)]
    pub resume: bool,
}

fn state(text: &str) -> Result<State, String> {
    State::named(text).ok_or_else(|| {
        let names: Vec<&str> = State::ALL.iter().map(|state| state.name()).collect();
        format!("expected one of {}", names.join(", "))
    })
}

fn pairs(text: &str) -> Result<Pairs, String> {
    let pair = |pair: &str| {
        let (own, other) = pair.split_once('-')?;
        let cpu = |text: &str| Some(Cpu(text.trim().parse().ok()?));
        let (own, other) = (cpu(own)?, cpu(other)?);
        (own != other).then_some((own, other))
    };
    match text {
        "classes" => Ok(Pairs::Classes),
        "all" => Ok(Pairs::All),
        text => (text.split(',').map(pair).collect::<Option<Vec<_>>>())
            .map(Pairs::These)
            .ok_or_else(|| "expected classes, all, or pairs of two CPUs such as 0-1,0-8".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_words_or_two_different_numbers_each() {
        assert_eq!(pairs("all"), Ok(Pairs::All));
        let these = vec![(Cpu(0), Cpu(1)), (Cpu(8), Cpu(0))];
        assert_eq!(pairs("0-1,8-0"), Ok(Pairs::These(these)));
        for wrong in ["", "0", "0-0", "0-1,", "a-b", "0-1-2", "0--1"] {
            assert!(pairs(wrong).is_err(), "{wrong}");
        }
    }
}
