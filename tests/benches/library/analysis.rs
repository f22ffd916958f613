//! What folding one access into the table of lines costs, and one judgement of the whole table.

use std::{hint::black_box, time::Instant};

use cohtrace::{
    analysis::AnalysisOptions,
    finding::{Judgement, Thresholds},
    pipeline::Pipeline,
};
use cohtrace_tests::figures::{Table, spread};

use crate::stream;

/// What 8 CPUs bring in about 40 s: enough to fill the table of lines.
const ACCESSES: u64 = 2_000_000;

/// Feeds the stream `rounds` times and prints the table.
pub fn run(rounds: usize) -> anyhow::Result<()> {
    let batches = stream::batches(ACCESSES);
    let accesses = stream::accesses(&batches);
    let (mut feed_ns, mut judge_ms) = (Vec::new(), Vec::new());
    let mut lines = 0;
    for _ in 0..rounds {
        let mut pipeline = Pipeline::new(AnalysisOptions::default(), Thresholds::default());
        let start = Instant::now();
        for batch in &batches {
            pipeline.feed(batch);
        }
        feed_ns.push(start.elapsed().as_nanos() as f64 / accesses as f64);
        let start = Instant::now();
        let judgements = black_box(pipeline.judge());
        judge_ms.push(start.elapsed().as_secs_f64() * 1e3);
        lines = pipeline.lines();
        // Figures of an analysis that sees nothing would be worth nothing.
        anyhow::ensure!(
            judgements.first().is_some_and(Judgement::is_finding),
            "the falsely shared line of the stream is no finding"
        );
    }
    println!("Analysis of {accesses} made-up accesses to {lines} lines kept; one thread.");
    let mut table = Table::new(&["analysis", "median (min..max)"]);
    table.row(["Pipeline::feed, ns per access".into(), spread(&feed_ns, 1)]);
    table.row([
        "Pipeline::judge, ms per call at the end".into(),
        spread(&judge_ms, 2),
    ]);
    print!("{table}");
    Ok(())
}
