//! A finding of many lines: what they are of, how the cost is spread over them, whether threads meet in one piece or in
//! neighbours, and what the code does there.

use crate::number::{count, grouped, percent};
use std::collections::{BTreeMap, BTreeSet};

use super::{
    model::{AccessRow, Hex, Lines, Share},
    rows,
    subject::{OnLine, accessed_by},
    waits,
};
use crate::{
    access::{Cost, CostUnit, LineKey, LineSize, Op, SpaceId, Tid},
    analysis::{PmuCounts, Site, SiteCounts, Uses, groups},
    finding::{Confidence, Member, Significance, Subject},
    names::Names,
};

/// Lines named one by one in the JSON form.
const WORST: usize = 10;

/// Lines among which one is looked for that shows what threads do.
const LOOKED_AT: usize = 256;

/// Where half of the cost is on so few of the lines, they are the few hot ones.
const FEW: f64 = 0.1;

/// Places of one instruction on its lines up to which they tell something: that each thread has bytes of its own, at the same
/// place of each line.
const PLACES: usize = 4;

/// Sites of one instruction and thread on all lines of a subject, by their place on the line where that matters, and the
/// costliest line that has it.
type Sums = BTreeMap<(SpaceId, u64, bool, Op, u8, u8, Tid, Option<u8>), (usize, SiteCounts)>;

/// Offset and size of a site, and its [`Site::within`].
type Bytes = (u8, u8, u8);

/// The lines of a subject as the report shows them; `None` of one line.
pub(super) fn lines(subject: &Subject, names: &dyn Names, whole: Cost) -> Option<Lines> {
    if subject.is_one_line() {
        return None;
    }
    let worst = subject.shared_lines().take(WORST).map(|member| Share {
        key: member.key,
        address: names.address(member.key).map(Hex),
        share: member.cost.share_of(whole),
    });
    Some(Lines {
        name: subject
            .owned
            .as_ref()
            .map(|owned| owned.owner.label.clone()),
        count: subject.lines,
        of: subject.owned.as_ref().and_then(|owned| owned.lines),
        watched: subject.watched_lines,
        half: subject.lines_of_half(),
        pieces: subject.pieces,
        worst: worst.collect(),
    })
}

/// The line of a subject that shows best what threads do on all of them: the costliest where more than one part is used, or
/// else the costliest.
pub(super) fn example(
    subject: &Subject,
    line_size: LineSize,
) -> Option<(LineKey, Vec<SiteCounts>)> {
    let lines = || {
        let looked_at = subject.shared_lines().take(LOOKED_AT);
        looked_at.map(|member| (member.key, member.counts()))
    };
    let has_parts = |(_, sites): &(LineKey, Vec<SiteCounts>)| {
        groups(sites, &Uses::default(), line_size).len() > 1
    };
    lines().find(has_parts).or_else(|| lines().next())
}

/// Whether bytes of a line are the same thing on each of the lines, as far as the instructions show: nothing is known to repeat,
/// and they are few.
fn is_placed(subject: &Subject) -> bool {
    let mut places: BTreeMap<(SpaceId, u64), BTreeSet<u8>> = BTreeMap::new();
    for touch in subject.shared_lines().flat_map(|member| &member.sites) {
        let at = &touch.site;
        places
            .entry((at.space, at.ip))
            .or_default()
            .insert(at.offset);
    }
    subject.pieces.is_none() && places.values().all(|offsets| offsets.len() <= PLACES)
}

/// What the code does on all of the lines: a row for each instruction and part, whichever line it is on.
pub(super) fn rows(
    subject: &Subject,
    names: &dyn Names,
    line_size: LineSize,
    whole: Cost,
) -> rows::Rows {
    let is_placed = is_placed(subject);
    let mut sums = Sums::new();
    let members: Vec<&Member> = subject.shared_lines().collect();
    for (line, member) in members.iter().enumerate() {
        for touch in &member.sites {
            let at = &touch.site;
            let place = is_placed.then_some(at.offset);
            let key = (
                at.space, at.ip, at.kernel, at.op, at.size, at.within, at.tid, place,
            );
            let nothing = || (line, SiteCounts::unseen(*at));
            let (_, sum) = sums.entry(key).or_insert_with(nothing);
            add(sum, &touch.counts());
        }
    }
    let mut on_lines: BTreeMap<usize, OnLine> = BTreeMap::new();
    let mut labels: BTreeMap<(usize, Bytes), Option<String>> = BTreeMap::new();
    for (line, sum) in sums.values() {
        let line = *line;
        let on_line = on_lines.entry(line).or_insert_with(|| {
            let member = members[line];
            OnLine::new(names, member.key, line_size, &member.counts()).generic()
        });
        labels
            .entry((line, bytes(&sum.site)))
            .or_insert_with(|| on_line.label(&sum.site).1);
    }
    // What a line cannot tell of its bytes is as on the costliest line that can: lines of elements are alike, and those of
    // one struct are named each by itself.
    let by_place: BTreeMap<Bytes, &String> = (labels.iter().rev())
        .filter_map(|((_, bytes), label)| Some((*bytes, label.as_ref()?)))
        .collect();
    let label = |line: usize, site: &Site| {
        let own = labels.get(&(line, bytes(site))).and_then(Option::as_ref);
        own.or_else(|| by_place.get(&bytes(site)).copied()).cloned()
    };
    let labelled = (sums.values()).map(|(line, sum)| (sum, label(*line, &sum.site)));
    let mut rows = rows::rows_of(names, labelled, whole);
    rows.rows = merged(rows.rows, is_placed);
    rows
}

fn bytes(site: &Site) -> Bytes {
    (site.offset, site.size, site.within)
}

/// Rows that are one but for their place on the line; where places tell something, those of one field.
fn merged(rows: Vec<AccessRow>, is_placed: bool) -> Vec<AccessRow> {
    let mut out: Vec<AccessRow> = Vec::new();
    for row in rows {
        let same = |other: &&mut AccessRow| {
            (
                &other.field,
                &other.op,
                &other.code.symbol,
                &other.code.inlined,
            ) == (&row.field, &row.op, &row.code.symbol, &row.code.inlined)
                && other.within.is_some() == row.within.is_some()
                && (&other.code.file, other.code.line, other.code.column)
                    == (&row.code.file, row.code.line, row.code.column)
                && (row.code.line.is_some() || other.code.ip == row.code.ip)
                && (!is_placed || row.field.is_some() || other.offset == row.offset)
        };
        match out.iter_mut().find(same) {
            Some(known) => {
                known.count = known.count.saturating_add(row.count);
                known.trapped = known.trapped.saturating_add(row.trapped);
                known.cost_share = (known.cost_share + row.cost_share).min(1.0);
                known.at_barrier_share += row.at_barrier_share;
                known.spinning_share += row.spinning_share;
                for thread in row.threads {
                    if !known.threads.iter().any(|other| other.tid == thread.tid) {
                        known.threads.push(thread);
                    }
                }
            }
            None => out.push(row),
        }
    }
    out.sort_by(|a, b| b.cost_share.total_cmp(&a.cost_share));
    out
}

fn add(sum: &mut SiteCounts, other: &SiteCounts) {
    sum.stalled = sum.stalled.saturating_add(other.stalled);
    sum.decoded = sum.decoded.saturating_add(other.decoded);
    sum.harvested = sum.harvested.saturating_add(other.harvested);
    sum.emulated = sum.emulated.saturating_add(other.emulated);
    sum.trapped = sum.trapped.saturating_add(other.trapped);
    sum.cost += other.cost;
    sum.waits.add(other.waits);
}

/// Why the subject was judged as it was, in sentences; with its rows.
pub(super) fn sentences(
    subject: &Subject,
    rows: &[AccessRow],
    whole: Cost,
    unit: CostUnit,
) -> Vec<String> {
    let mut out = vec![over_lines(subject, whole, unit)];
    out.extend(waits::sentences(rows));
    out.extend(in_pieces(subject));
    out.extend(handed_off(subject, unit));
    out
}

/// `2,048 lines are used by several threads, of 2,048 that it has. The cost is spread over them ..`
fn over_lines(subject: &Subject, whole: Cost, unit: CostUnit) -> String {
    let of = subject.owned.as_ref().and_then(|owned| owned.lines);
    let of = of.map_or_else(String::new, |all| {
        format!(", of {} that it has", grouped(all))
    });
    let worst = subject.shared_lines().next();
    let worst = worst.map_or(0.0, |member| member.cost.share_of(whole));
    let of_unit = super::cost_words::of(unit);
    let half = subject.lines_of_half();
    let spread = if (half as f64) <= FEW * subject.lines as f64 {
        format!(
            "A few of them are hot: {} half of it, the worst {} {of_unit}",
            count(half, "line takes", "lines take"),
            percent(worst)
        )
    } else {
        format!(
            "The cost is spread over them: half of it is on {}, and the worst takes {} {of_unit}",
            count(half, "line", "lines"),
            percent(worst)
        )
    };
    format!(
        "{} used by several threads{of}. {spread}.",
        count(subject.lines, "line is", "lines are")
    )
}

/// Whether threads use the same elements.
fn in_pieces(subject: &Subject) -> Option<String> {
    let pieces = subject.pieces.filter(|pieces| pieces.used > 1)?;
    let elements = format!(
        "{} elements of {} bytes",
        grouped(pieces.used),
        grouped(pieces.stride)
    );
    Some(if pieces.shared == 0 {
        format!(
            "Of {elements} that were seen in use, each is one thread's: neighbours on a line are of different threads."
        )
    } else {
        format!(
            "Of {elements} that were seen in use, several threads use {}.",
            if pieces.shared == pieces.used {
                "all".to_owned()
            } else {
                grouped(pieces.shared)
            }
        )
    })
}

fn handed_off(subject: &Subject, unit: CostUnit) -> Option<String> {
    let hand_offs = subject
        .hand_offs
        .filter(|hand_offs| hand_offs.total() > 0)?;
    let (saw, to) = if unit == CostUnit::Transactions {
        ("Every access was seen, in order".to_owned(), "processor")
    } else {
        let lines = count(subject.watched_lines, "of the lines", "of the lines");
        (format!("Watch windows saw threads meet on {lines}"), "CPU")
    };
    let mut text = format!("{saw}{}", super::facts::handed_off(&hand_offs, to));
    if subject.significance == Significance::Significant
        && subject.confidence == Confidence::Sampled
    {
        text.push_str(" That is too little to confirm the verdict.");
    }
    Some(text)
}

/// What instructions are known to access a line.
pub(super) fn accessed(member: &Member) -> Vec<crate::names::AccessedBy> {
    member.counts().iter().filter_map(accessed_by).collect()
}

/// What a PMU measured of several lines.
pub(super) fn many_pmu(subject: &Subject) -> Option<PmuCounts> {
    let measured = subject
        .shared_lines()
        .filter_map(|member| member.pmu.as_deref());
    measured.copied().reduce(|mut all, one| {
        all.add(&one);
        all
    })
}
