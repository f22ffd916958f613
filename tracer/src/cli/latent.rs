//! `report --latent`: session → pipeline and neighbours, session → the same memory elsewhere → report with what would be. Of
//! sessions without an order: session → pipeline and neighbours → report with where threads would meet.

use std::path::Path;

use anyhow::{Result, bail};

use super::{
    args::{ReportArgs, ReportFormat},
    reading::Reading,
    report::{make_with, replay_for},
};
use crate::{
    access::{LineKey, LineSize},
    analysis::{
        ByThread, Elsewhere, NeighbourBounds, Neighbours, OneMoreThread, OneMoves, Runs,
        SampledUses, ThreadArrays,
    },
    event::Batch,
    module::ModuleStore,
    names::{Names as _, ObjectKind, Resolver},
    number::count,
    pipeline::Pipeline,
    report::{
        Caveat,
        latent::{Replayed, latent, sampled_latent},
        model,
    },
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

/// Whether what it has tells what memory would cost elsewhere: what an emulator saw has to have the order of neighbours too.
fn has_order(path: &Path, meta: &Meta) -> Result<()> {
    if is_emulated(meta) && !meta.exact_elsewhere {
        bail!(
            "{}: recorded by a version of cohtrace that kept the order of accesses to each line, but not to \
             neighbouring ones, so nothing can be predicted; record it again",
            path.display()
        );
    }
    Ok(())
}

fn is_emulated(meta: &Meta) -> bool {
    let mut sources = meta.sources.iter();
    sources.any(|source| source.name == emulate::KIND.name())
}

/// The report of a session, with what would be.
pub(super) fn of_session(args: &ReportArgs) -> Result<model::Report> {
    let session = SessionReader::open(args.session())?;
    if is_emulated(session.meta()) {
        of_order(args)
    } else {
        of_samples(args)
    }
}

/// Of samples and watch windows: where threads would meet, at no known cost.
fn of_samples(args: &ReportArgs) -> Result<model::Report> {
    let mut uses = SampledUses::default();
    let mut spaces = AddressSpaces::default();
    let replayed = replay_for(
        args.session(),
        &args.analysis,
        args.pairs.thresholds(),
        &args.reading,
        |batch| {
            for due in batch.in_order() {
                if let Some((access, space, place)) = spaces.follow(due) {
                    uses.observe(access, place, space);
                }
            }
        },
    )?;
    let (runs, facts) = (uses.runs(), &replayed.facts);
    Ok(make_with(
        &replayed.pipeline,
        &replayed.modules,
        facts,
        |report, names| {
            report.latent = Some(sampled_latent(&runs, names, facts));
            report.caveats.push(Caveat::reading(
                "Of sharing that is not there yet, samples show what threads use often; a session of `cohtrace record \
                 --source emulate` has all of it, and the cost.",
            ));
            report.caveats.extend(untracked(uses.untracked()));
        },
    ))
}

/// Of a complete order: what is predicted by replaying it.
fn of_order(args: &ReportArgs) -> Result<model::Report> {
    let mut neighbours = Neighbours::new(NeighbourBounds::default());
    let mut by_thread = ByThread::default();
    let mut spaces = AddressSpaces::default();
    let replayed = replay_for(
        args.session(),
        &args.analysis,
        args.pairs.thresholds(),
        &args.reading,
        |batch| {
            for due in batch.in_order() {
                if let Some((access, space, place)) = spaces.follow(due) {
                    neighbours.observe(access, place);
                    by_thread.observe(access, place, space);
                }
            }
        },
    )?;
    let hand_offs = replayed.pipeline.thresholds().hand_offs as u64;
    let runs = neighbours.runs(hand_offs);
    let (pipeline, facts) = (&replayed.pipeline, &replayed.facts);
    let found = Found {
        blocks: on_heap(&runs.pairs, pipeline, &replayed.modules),
        runs,
        arrays: by_thread.arrays(hand_offs),
        hand_offs,
    };
    drop((neighbours, by_thread, spaces));
    let elsewhere = replay(args, &found)?;
    Ok(make_with(
        pipeline,
        &replayed.modules,
        facts,
        |report, names| {
            let found_latent = latent(&elsewhere, names, &pipeline.tally, facts);
            report.latent = Some(found_latent);
            report.caveats.extend(left_out(&found));
        },
    ))
}

/// What is worth a replay.
struct Found {
    runs: Runs,
    arrays: ThreadArrays,
    /// The first line of each two neighbours that may have two blocks of the heap.
    blocks: Vec<LineKey>,
    /// More than today that are worth a look.
    hand_offs: u64,
}

/// Those of the first lines that are heap memory.
fn on_heap(pairs: &[LineKey], pipeline: &Pipeline, modules: &ModuleStore) -> Vec<LineKey> {
    let names = Resolver::new(&pipeline.spaces, modules).with_heap(&pipeline.heap);
    let is_heap = |key: &&LineKey| {
        let objects = names.objects(**key, LineSize::B64, &[]);
        objects.iter().any(|object| object.kind == ObjectKind::Heap)
    };
    pairs.iter().filter(is_heap).copied().collect()
}

/// Reads the session again.
fn replay(args: &ReportArgs, found: &Found) -> Result<Replayed> {
    if found.runs.runs.is_empty() && found.arrays.arrays.is_empty() {
        return Ok(Replayed::default());
    }
    let quiet = args.reading.quiet;
    let mut reading = Reading::open(args.session(), LineSize::B64, "predicting", quiet)?;
    let mut elsewhere = Elsewhere::new(found.runs.runs.clone());
    let mut one_more = OneMoreThread::new(&found.arrays);
    let mut one_moves = OneMoves::new(found.blocks.clone());
    let mut spaces = AddressSpaces::default();
    let mut batch = Batch::default();
    while reading.next_batch(&mut batch)? {
        for due in batch.in_order() {
            if let Some((access, space, place)) = spaces.follow(due) {
                elsewhere.observe(access, place, space);
                one_more.observe(access, place, space);
                one_moves.observe(access, place, space);
            }
        }
        batch.clear();
    }
    reading.clear();
    Ok(Replayed {
        runs: elsewhere.finish(found.hand_offs),
        one_more: one_more.finish(),
        one_moves: one_moves.finish(),
    })
}

/// What was not replayed.
fn left_out(found: &Found) -> Vec<Caveat> {
    let mut caveats = Vec::new();
    let (found, arrays) = (&found.runs, &found.arrays);
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
    caveats.extend(untracked(found.untracked));
    if arrays.left_out > 0 {
        caveats.push(Caveat::reading(format!(
            "{} left out of what one more thread would bring: others are used more.",
            count(arrays.left_out, "array was", "arrays were")
        )));
    }
    caveats
}

fn untracked(accesses: u64) -> Option<Caveat> {
    (accesses > 0).then(|| {
        Caveat::reading(format!(
            "{} on more lines than are looked at for sharing that is not there yet.",
            count(accesses, "access was", "accesses were")
        ))
    })
}
