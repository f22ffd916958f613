//! What folding one access into the table of lines costs, and one judgement of the whole table.

use std::{hint::black_box, time::Instant};

use cohtrace::{
    analysis::AnalysisOptions,
    finding::{Judgement, Thresholds},
    pipeline::Pipeline,
    spill::{Budget, SpillOptions},
};
use cohtrace_tests::figures::{Table, spread};

use crate::input::Input;

/// Feeds the inputs in turns, `rounds` times, and prints the table.
pub(crate) fn run(rounds: usize, inputs: &[Input]) -> anyhow::Result<()> {
    let mut feed_ns = vec![Vec::new(); inputs.len()];
    let mut sort_ns = vec![Vec::new(); inputs.len()];
    let mut judge_ms = vec![Vec::new(); inputs.len()];
    let mut lines = vec![(0, 0); inputs.len()];
    for _ in 0..rounds {
        for (n, input) in inputs.iter().enumerate() {
            let mut pipeline = Pipeline::new(AnalysisOptions::default(), Thresholds::default());
            let start = Instant::now();
            for batch in &input.batches {
                pipeline.feed(batch);
            }
            feed_ns[n].push(start.elapsed().as_nanos() as f64 / input.accesses as f64);
            sort_ns[n].push(sorted(input)?);
            let start = Instant::now();
            let judgements = black_box(pipeline.judge());
            judge_ms[n].push(start.elapsed().as_secs_f64() * 1e3);
            lines[n] = (pipeline.lines(), pipeline.totals().evicted_lines);
            // Figures of an analysis that sees nothing would be worth nothing.
            anyhow::ensure!(
                judgements.first().is_some_and(Judgement::is_finding),
                "the falsely shared line of the {} stream is no finding",
                input.name
            );
        }
    }
    let mut table = Table::new(&[
        "analysis",
        "lines kept",
        "evicted",
        "feed, ns per access",
        "sorted and judged by one thread, ns per access",
        "judge at the end, ms",
    ]);
    for (n, input) in inputs.iter().enumerate() {
        table.row([
            input.name.to_owned(),
            lines[n].0.to_string(),
            lines[n].1.to_string(),
            spread(&feed_ns[n], 1),
            spread(&sort_ns[n], 1),
            spread(&judge_ms[n], 2),
        ]);
    }
    print!("{table}");
    Ok(())
}

/// What a report of a recorded stream takes, from the first batch to the judgements, nanoseconds per access.
fn sorted(input: &Input) -> anyhow::Result<f64> {
    let spill = SpillOptions {
        budget: Budget(1 << 30),
        directories: vec![std::env::temp_dir()],
        threads: 1,
    };
    let mut pipeline = Pipeline::sorted(AnalysisOptions::default(), Thresholds::default(), spill);
    let start = Instant::now();
    for batch in &input.batches {
        pipeline.feed(batch);
    }
    pipeline.finish()?;
    black_box(pipeline.judge());
    Ok(start.elapsed().as_nanos() as f64 / input.accesses as f64)
}
