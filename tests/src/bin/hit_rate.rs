//! Prints how often the tool gives each workload's answer: `hit_rate RUNS [WORKLOAD..]`.

#![expect(
    clippy::print_stdout,
    reason = "a table on standard output is its purpose"
)]

use std::io::Write as _;

use anyhow::{Context, bail};
use cohtrace_tests::{
    live,
    repeat::{self, HitRate},
    workload,
};

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let runs: usize = arguments
        .next()
        .context("usage: hit_rate RUNS [WORKLOAD..]")?
        .parse()
        .context("RUNS is a number")?;
    let mut names: Vec<String> = arguments.collect();
    if names.is_empty() {
        names = workload::all()?
            .into_iter()
            .map(|workload| workload.name)
            .collect();
    }
    let Some(_turn) = live::ready() else {
        bail!("this machine cannot run live tests");
    };
    let mut rates: Vec<HitRate> = Vec::new();
    print!("{}", repeat::heading());
    for name in names {
        for answer in workload::named(&name)?.answers {
            let rate = repeat::hit_rate(&name, answer.variant, runs);
            print!("{}", repeat::row(&rate));
            // A row as it is known: all of them take an hour.
            std::io::stdout().flush()?;
            rates.push(rate);
        }
    }
    print!("{}", repeat::sum(&rates));
    for rate in rates.iter().filter(|rate| !rate.misses.is_empty()) {
        for miss in &rate.misses {
            println!("\n{} ({}): {miss}", rate.name, rate.variant.name());
        }
    }
    Ok(())
}
