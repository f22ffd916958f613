//! Whether two sessions can be compared.

use super::Session;
use crate::{
    access::CostUnit,
    number::{grouped, percent, seconds},
};

/// Lengths that differ by more are told.
const LENGTHS: f64 = 2.0;
/// Share of the samples whose loss is told.
const LOST: f64 = 0.01;

/// What to be careful of, and whether shares are of the same thing at all.
pub(super) fn cautions(before: &Session<'_>, after: &Session<'_>) -> (Vec<String>, bool) {
    let (old, new) = (&before.report.run, &after.report.run);
    let (how_old, how_new) = (&old.observed, &new.observed);
    let mut out = Vec::new();
    let comparable = old.cost_unit == new.cost_unit;
    if !comparable {
        out.push(format!(
            "Costs are in different units ({} before, {} after): shares do not compare, only which lines are findings, and of \
             what kind.",
            old.cost_unit, new.cost_unit
        ));
    }
    if how_old.sources != how_new.sources {
        out.push(format!(
            "Recorded by different sources ({} before, {} after), which see different things: a finding may be new because only \
             one of them could see it.",
            how_old.sources.join(", "),
            how_new.sources.join(", ")
        ));
    }
    if old.line_size != new.line_size {
        out.push(format!(
            "Lines are of {} bytes before and {} after.",
            old.line_size, new.line_size
        ));
    }
    // An emulated run is as long as its program.
    let emulated = new.cost_unit == CostUnit::Transactions && comparable;
    let (shorter, longer) = (
        how_old.duration_s().min(how_new.duration_s()),
        how_old.duration_s().max(how_new.duration_s()),
    );
    if !emulated && longer > shorter * LENGTHS {
        out.push(format!(
            "Sampled for {} before and {} after: what is rare is seen in the longer one only.",
            seconds(how_old.duration_s()),
            seconds(how_new.duration_s())
        ));
    }
    if how_old.frequency_hz != how_new.frequency_hz {
        let hertz = |hz: Option<u64>| {
            hz.map_or("an unknown rate".to_owned(), |hz| {
                format!("{} Hz", grouped(hz))
            })
        };
        out.push(format!(
            "Sampled at {} before and {} after: what is rare is seen at the higher rate only.",
            hertz(how_old.frequency_hz),
            hertz(how_new.frequency_hz)
        ));
    }
    if old.watch.is_some() != new.watch.is_some() {
        let which = if old.watch.is_some() {
            "before"
        } else {
            "after"
        };
        out.push(format!(
            "Only the session {which} has watch windows: pairs, hand-offs and confirmed verdicts are of that one alone."
        ));
    }
    if old.heap.is_some() != new.heap.is_some() {
        let which = if old.heap.is_some() {
            "before"
        } else {
            "after"
        };
        out.push(format!(
            "Only the session {which} followed the heap: its heap objects have other names."
        ));
    }
    if how_old.cpus != how_new.cpus {
        out.push(format!(
            "{} CPUs before, {} after.",
            how_old.cpus, how_new.cpus
        ));
    }
    for (name, run) in [("before", old), ("after", new)] {
        if run.accesses == 0 {
            out.push(format!(
                "The session {name} has no accesses: nothing could be found in it."
            ));
        }
        let lost = run.lost as f64 / run.produced.max(1) as f64;
        if lost > LOST {
            out.push(format!(
                "The session {name} lost {} of its samples.",
                percent(lost)
            ));
        }
    }
    (out, comparable)
}
