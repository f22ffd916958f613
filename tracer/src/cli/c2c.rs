//! `report --format c2c`: a session's tables in the form of `perf c2c report`.

use std::path::Path;

use anyhow::Result;

use super::{
    args::{AnalysisArgs, ReadingArgs},
    reading::Reading,
    report::{Replayed, make, replay},
};
use crate::{
    access::{LineKey, LineSize},
    event::Batch,
    finding::PairThresholds,
    names::Resolver,
    report::{
        c2c::{self, Seen, TotalFold},
        model::Report,
    },
    space::{AddressSpaces, KERNEL_START},
};

/// Lines counted because they were judged.
const MOST_JUDGED: usize = 1 << 16;

/// The tables, and the report that they take their verdicts from. Reads the session three times.
pub(super) fn of_session(
    path: &Path,
    analysis: &AnalysisArgs,
    pairs: PairThresholds,
    reading: &ReadingArgs,
) -> Result<(String, Report)> {
    let replayed = replay(path, analysis, pairs, reading)?;
    let Replayed {
        pipeline,
        modules,
        facts,
    } = &replayed;
    let report = make(pipeline, modules, facts);
    let line_size = pipeline.line_size();
    let mut totals = TotalFold::new(line_size);
    walk(path, line_size, reading.quiet, |seen| totals.observe(seen))?;
    let judged: Vec<LineKey> = pipeline
        .judge()
        .iter()
        .map(|judgement| judgement.key)
        .collect();
    let mut lines = totals.second(judged.into_iter().take(MOST_JUDGED));
    walk(path, line_size, reading.quiet, |seen| lines.observe(seen))?;
    let names = Resolver::new(&pipeline.spaces, modules).with_heap(&pipeline.heap);
    let tables = tables(&lines.finish(), &report, &names, line_size);
    Ok((tables, report))
}

fn tables(
    lines: &c2c::Lines,
    report: &Report,
    names: &Resolver<'_>,
    line_size: LineSize,
) -> String {
    c2c::render(&c2c::name(lines, report, names, line_size))
}

/// Places every access, in the order in which [`Pipeline`](crate::pipeline::Pipeline) does, so that address spaces
/// have the same numbers.
fn walk(
    path: &Path,
    line_size: LineSize,
    quiet: bool,
    mut see: impl FnMut(&Seen<'_>),
) -> Result<()> {
    let mut reading = Reading::open(path, line_size, "counting", quiet)?;
    let mut spaces = AddressSpaces::default();
    let mut batch = Batch::default();
    while reading.next_batch(&mut batch)? {
        for due in batch.in_order() {
            // By virtual addresses alone, as perf does.
            let Some((access, space, place)) = spaces.follow(due) else {
                continue;
            };
            let known = |addr: u64| spaces.mapping(space, addr).is_some();
            let data = if access.kernel {
                access.addr >= KERNEL_START
            } else {
                known(access.addr)
            };
            see(&Seen {
                access,
                space,
                place,
                mapped: data && (access.ip >= KERNEL_START || known(access.ip)),
            });
        }
        for window in &batch.windows {
            for word in &window.words {
                spaces.place(word.pid, word.addr);
            }
        }
    }
    Ok(())
}
