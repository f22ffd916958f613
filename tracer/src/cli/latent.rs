//! `report --latent`: session → pipeline and neighbours, session → the same memory elsewhere → report with what would be.

use std::path::Path;

use anyhow::{Result, bail};

use super::{
    args::{ReportArgs, ReportFormat},
    reading::Reading,
    report::{make_with, replay_for},
};
use crate::{
    access::LineSize,
    analysis::{Elsewhere, NeighbourBounds, Neighbours, RunElsewhere, Runs},
    event::Batch,
    number::count,
    report::{Caveat, latent::latent, model},
    session::{Meta, SessionReader},
    source::{SourceKind as _, emulate},
    space::AddressSpaces,
};

/// Refuses what does not go with `--latent`, before anything is read.
pub(super) fn check(args: &ReportArgs) -> Result<()> {
    if !args.latent {
        return Ok(());
    }
    if !matches!(args.format, ReportFormat::Text | ReportFormat::Json) {
        bail!("--latent is for text and JSON: leave --format away, or give --format json");
    }
    if args.analysis.line_size != LineSize::B64.bytes() {
        bail!(
            "--latent starts from lines of 64 bytes, and looks at lines of 128 by itself: leave --line-size away"
        );
    }
    let session = SessionReader::open(args.session())?;
    has_order(args.session(), session.meta())
}

/// Whether what it has tells what memory would cost elsewhere.
fn has_order(path: &Path, meta: &Meta) -> Result<()> {
    let name = path.display();
    let emulated = (meta.sources.iter()).any(|source| source.name == emulate::KIND.name());
    if !emulated {
        bail!(
            "{name}: no emulator saw its accesses, so their order is not complete, and without that nothing can be \
             predicted; record such a session with `cohtrace record --source emulate -o x.coh -- PROGRAM`"
        );
    }
    if !meta.exact_elsewhere {
        bail!(
            "{name}: recorded by a version of cohtrace that kept the order of accesses to each line, but not to \
             neighbouring ones, so nothing can be predicted; record it again"
        );
    }
    Ok(())
}

/// The report of a session, with what would be.
pub(super) fn of_session(args: &ReportArgs) -> Result<model::Report> {
    let mut neighbours = Neighbours::new(NeighbourBounds::default());
    let mut spaces = AddressSpaces::default();
    let replayed = replay_for(
        args.session(),
        &args.analysis,
        args.pairs.thresholds(),
        &args.reading,
        |batch| {
            for due in batch.in_order() {
                if let Some((access, _, place)) = spaces.follow(due) {
                    neighbours.observe(access, place);
                }
            }
        },
    )?;
    let least = replayed.pipeline.thresholds().hand_offs as u64;
    let found = neighbours.runs(least);
    drop((neighbours, spaces));
    let elsewhere = elsewhere(args, &found, least)?;
    let (pipeline, facts) = (&replayed.pipeline, &replayed.facts);
    Ok(make_with(
        pipeline,
        &replayed.modules,
        facts,
        |report, names| {
            report.latent = Some(latent(&elsewhere, names, &pipeline.tally, facts));
            report.caveats.extend(left_out(&found));
        },
    ))
}

/// Reads the session again. So many hand-offs more than today are worth a look.
fn elsewhere(args: &ReportArgs, found: &Runs, hand_offs: u64) -> Result<Vec<RunElsewhere>> {
    if found.runs.is_empty() {
        return Ok(Vec::new());
    }
    let quiet = args.reading.quiet;
    let mut reading = Reading::open(args.session(), LineSize::B64, "predicting", quiet)?;
    let mut elsewhere = Elsewhere::new(found.runs.clone());
    let mut spaces = AddressSpaces::default();
    let mut batch = Batch::default();
    while reading.next_batch(&mut batch)? {
        for due in batch.in_order() {
            if let Some((access, space, place)) = spaces.follow(due) {
                elsewhere.observe(access, place, space);
            }
        }
        batch.clear();
    }
    reading.clear();
    Ok(elsewhere.finish(hand_offs))
}

/// What was not replayed.
fn left_out(found: &Runs) -> Vec<Caveat> {
    let mut caveats = Vec::new();
    if found.left_out > 0 {
        caveats.push(Caveat::reading(format!(
            "{} left out of what is not there yet: threads are rarer there than on those that were replayed.",
            count(
                found.left_out,
                "pair of neighbouring lines was",
                "pairs of neighbouring lines were"
            )
        )));
    }
    if found.untracked > 0 {
        caveats.push(Caveat::reading(format!(
            "{} on more lines than are looked at for sharing that is not there yet.",
            count(found.untracked, "access was", "accesses were")
        )));
    }
    caveats
}
