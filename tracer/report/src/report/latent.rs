//! Sharing that is not there yet, as the report has it: which memory, in which ways, and at what cost.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{
    model::{AccessRow, Hex, Line, Object},
    rows,
    run_facts::RunFacts,
    subject::{OnLine, accessed_by},
};
use crate::{
    access::{Cost, LineSize, Tid},
    analysis::{RunElsewhere, SiteCounts, There, UsedLine, Way},
    event::Tally,
    finding::{self, Latent, LatentWay},
    names::{AccessedBy, Names, ObjectKind, Owner},
};

/// Lines are told apart as they are today.
const LINE: LineSize = LineSize::B64;

/// Lines of a run whose names are asked for.
const LOOKED_AT: usize = 256;

/// What is executed less often than this part of the busiest instruction on the line tells no name and is not told: who sets
/// memory up, and allocators, do not fight for it.
const RARE: f64 = 0.02;

/// Start addresses that malloc promises are multiples of so many bytes, on 64-bit machines (glibc manual, 3.2.3.6).
const MALLOC_ALIGNMENT: u8 = 16;

/// What its kind is called: never among findings.
pub const KIND: &str = "latent-sharing";

/// Memory for which threads would fight if it began elsewhere, or if lines were longer. No finding: nobody fights today, or
/// less.
#[derive(Debug, Clone, Serialize, PartialEq)]
pub struct LatentSharing {
    /// `L1`, `L2`, .. by what the worst way adds.
    pub id: String,
    /// [`KIND`].
    pub kind: &'static str,
    /// What the memory is, in its order: `struct part`, `counters[]`; several that lie next to each other, and move together.
    /// Empty where nothing has a name.
    pub names: Vec<String>,
    /// Of the first of the two lines in `neighbours`.
    pub object: Object,
    /// Lines of 64 bytes that threads would fight for.
    pub lines: u64,
    /// Threads that use them; not those that hardly ever do.
    pub threads: u64,
    /// What it costs as it is.
    pub today: LatentCost,
    /// What it would cost, each way that was replayed.
    pub ways: Vec<LatentCost>,
    /// The two neighbouring lines that threads would fight for most, and who does what there.
    pub neighbours: Vec<LatentLine>,
    /// What to do about it, before it happens.
    pub advice: String,
}

/// A way in which the memory may lie.
#[derive(Debug, Clone, Copy, Serialize, PartialEq)]
pub struct LatentCost {
    /// Bytes by which it begins later than it does; 0 for where it is.
    pub moved_bytes: u8,
    /// 64 or 128.
    pub line_bytes: u8,
    /// Where the object would begin, bytes from the start of a line of that size; null where it is not known where it
    /// begins, or where there are several that begin elsewhere.
    pub start_offset: Option<u8>,
    /// Of heap memory: whether malloc, which promises multiples of 16 bytes, may place it so; null of other memory.
    pub malloc_may: Option<bool>,
    /// Whether threads would fight here that do not today; of today, false.
    pub fights: bool,
    /// Hand-offs from one CPU to another, of all its lines.
    pub hand_offs: u64,
    /// Of those, hand-offs of nothing that the taker used. The rest brought a change that it used, or its kind is not known.
    pub falsely: u64,
    /// Of the others, hand-offs that took along bytes which the taker used and nobody had changed.
    pub dragged: u64,
    /// Messages of the directory protocol that sharing causes.
    pub messages: u64,
}

/// One of two neighbouring lines as they lie today.
#[derive(Debug, Clone, Serialize, PartialEq)]
pub struct LatentLine {
    /// Where it is.
    pub line: Line,
    /// Who does what often, most executions first.
    pub accesses: Vec<AccessRow>,
}

/// Runs that are one thing.
struct Thing<'a> {
    runs: Vec<&'a RunElsewhere>,
    ways: Vec<(Way, There)>,
    /// What the lines are that threads would fight for.
    fighting: Vec<Used<'a>>,
    names: Vec<String>,
    kind: ObjectKind,
    /// Where it begins, bytes from the start of 128.
    start: Option<u8>,
}

/// Names and judges what was replayed: the worst first.
pub fn latent(
    runs: &[RunElsewhere],
    names: &dyn Names,
    tally: &Tally,
    facts: &RunFacts,
) -> Vec<LatentSharing> {
    let judged = things(runs, names).into_iter().filter_map(|thing| {
        let latent = finding::latent(&thing.ways, tally.whole_cost(), &facts.thresholds)?;
        Some((thing, latent))
    });
    let mut judged: Vec<(Thing<'_>, Latent)> = judged.collect();
    // Stable: equal ones stay in the order of their place.
    judged.sort_by_key(|(_, latent)| std::cmp::Reverse(latent.most_added()));
    let numbered = judged.iter().zip(1..);
    numbered
        .map(|((thing, latent), n)| sharing(n, thing, latent, names, facts))
        .collect()
}

/// A line with what is done there often.
struct Used<'a> {
    line: &'a UsedLine,
    sites: Vec<SiteCounts>,
}

impl<'a> Used<'a> {
    fn new(line: &'a UsedLine) -> Used<'a> {
        let executions = line.sites.iter().map(|counts| counts.emulated);
        let least = executions.max().unwrap_or(0) as f64 * RARE;
        let often = line
            .sites
            .iter()
            .filter(|counts| counts.emulated as f64 >= least);
        Used {
            line,
            sites: often.cloned().collect(),
        }
    }

    fn owner(&self, names: &dyn Names) -> Option<Owner> {
        let by: Vec<AccessedBy> = self.sites.iter().filter_map(accessed_by).collect();
        let owned = names.owner(self.line.key, LINE, &by)?;
        // Which of an object's lines it is, is no matter here.
        Some(Owner {
            part: 0,
            ..owned.owner
        })
    }

    fn objects(&self, names: &dyn Names) -> OnLine {
        OnLine::new(names, self.line.key, LINE, &self.sites)
    }
}

/// Puts runs together that are of the same owners. Those without a line that threads would fight for are nothing.
fn things<'a>(runs: &'a [RunElsewhere], names: &dyn Names) -> Vec<Thing<'a>> {
    let mut things: Vec<Thing<'a>> = Vec::new();
    let mut named: BTreeMap<Vec<Owner>, usize> = BTreeMap::new();
    for run in runs {
        let fighting = run.lines.iter().filter(|line| line.fights);
        let fighting: Vec<Used<'a>> = fighting.map(Used::new).collect();
        let looked_at = &fighting[..fighting.len().min(LOOKED_AT)];
        let owners: Vec<Option<Owner>> = looked_at.iter().map(|used| used.owner(names)).collect();
        let is_whole = owners.iter().all(Option::is_some) && looked_at.len() == fighting.len();
        let mut each: Vec<Owner> = Vec::new();
        for owner in owners.into_iter().flatten() {
            if !each.contains(&owner) {
                each.push(owner);
            }
        }
        let (kind, start) = objects(looked_at, names);
        if fighting.is_empty() {
            continue;
        }
        let mut labels: Vec<String> = each.iter().map(|owner| owner.label.clone()).collect();
        labels.dedup();
        let thing = Thing {
            runs: vec![run],
            ways: run.ways.clone(),
            fighting,
            names: labels,
            kind,
            start,
        };
        if let Some(known) = named.get(&each).filter(|_| is_whole) {
            things[*known].add(thing);
        } else {
            if is_whole {
                named.insert(each, things.len());
            }
            things.push(thing);
        }
    }
    things
}

/// The kind of the objects, and where they begin, bytes from the start of 128, if it is the same for all of the lines.
fn objects(lines: &[Used<'_>], names: &dyn Names) -> (ObjectKind, Option<u8>) {
    let mut kind = None;
    let mut starts: Vec<Option<u64>> = Vec::new();
    for used in lines {
        let on_line = used.objects(names);
        let object = on_line.main().and_then(|main| on_line.objects.get(main));
        kind = kind.or_else(|| object.map(|object| object.kind));
        starts.push(object.and_then(|object| object.start));
    }
    // Elements of a line each begin alike on lines of 64 bytes.
    let alike = |start: &Option<u64>| start.map(|start| start % LINE.bytes());
    let first = starts.first().copied().flatten();
    let same = starts.iter().all(|start| alike(start) == alike(&first));
    let start = first.filter(|_| same);
    (
        kind.unwrap_or_default(),
        start.map(|start| (start % LineSize::B128.bytes()) as u8),
    )
}

impl<'a> Thing<'a> {
    fn add(&mut self, other: Thing<'a>) {
        self.runs.extend(other.runs);
        self.fighting.extend(other.fighting);
        for ((_, all), (_, there)) in self.ways.iter_mut().zip(&other.ways) {
            *all = all.plus(there);
        }
        self.start = self.start.filter(|start| other.start == Some(*start));
    }
}

fn sharing(
    number: usize,
    thing: &Thing<'_>,
    latent: &Latent,
    names: &dyn Names,
    facts: &RunFacts,
) -> LatentSharing {
    let cost = |way: Way, there: &There, fights: bool| LatentCost {
        moved_bytes: way.moved,
        line_bytes: way.line_bytes,
        start_offset: thing.start.map(|start| {
            ((u16::from(start) + u16::from(way.moved)) % u16::from(way.line_bytes)) as u8
        }),
        malloc_may: (thing.kind == ObjectKind::Heap)
            .then(|| way.moved.is_multiple_of(MALLOC_ALIGNMENT)),
        fights,
        hand_offs: there.hand_offs.total(),
        falsely: there.hand_offs.falsely,
        dragged: there.hand_offs.dragged,
        messages: there.messages,
    };
    let of = |way: &LatentWay| cost(way.way, &way.there, way.fights);
    let worst = (thing.runs.iter().copied()).max_by_key(|run| messages_added(&run.ways));
    let pair = worst.and_then(|run| run.worst_neighbours());
    let neighbours: Vec<Used<'_>> = pair.into_iter().flatten().map(Used::new).collect();
    let object = (neighbours.first()).map(|used| used.objects(names).object(&used.sites, facts));
    let sites = thing.fighting.iter().flat_map(|used| &used.sites);
    let mut threads: Vec<Tid> = sites.map(|counts| counts.site.tid).collect();
    threads.sort_unstable();
    threads.dedup();
    LatentSharing {
        id: format!("L{number}"),
        kind: KIND,
        names: thing.names.clone(),
        object: object.unwrap_or_default(),
        lines: thing.fighting.len() as u64,
        threads: threads.len() as u64,
        today: cost(Way::TODAY, &latent.today, false),
        ways: latent.ways.iter().map(of).collect(),
        neighbours: (neighbours.iter())
            .map(|used| latent_line(used, names))
            .collect(),
        advice: advice(thing.names.len()).to_owned(),
    }
}

/// Messages that the worst way adds to today's, which is the first.
fn messages_added(ways: &[(Way, There)]) -> u64 {
    let messages = || ways.iter().map(|(_, there)| there.messages);
    let today = messages().next().unwrap_or(0);
    messages().max().unwrap_or(0).saturating_sub(today)
}

fn latent_line(used: &Used<'_>, names: &dyn Names) -> LatentLine {
    // No costs: of what is not there, no row has a share.
    let mut accesses = rows::rows(names, &used.objects(names), &used.sites, Cost(0)).rows;
    accesses.sort_by_key(|row| std::cmp::Reverse(row.count));
    let line = used.line;
    LatentLine {
        line: Line {
            key: line.key,
            address: names.address(line.key).map(Hex),
            bytes: LINE.bytes(),
        },
        accesses,
    }
}

fn advice(names: usize) -> &'static str {
    if names > 1 {
        "Start each of them at a multiple of 128 bytes (alignas(128), aligned_alloc), so that they share no line however \
         long lines are and whatever lies before them; multiples of 64 do where lines are of 64 bytes."
    } else {
        "Give what each thread uses lines of its own wherever the memory begins: start it at a multiple of 128 bytes \
         (alignas(128), aligned_alloc) and make its size a multiple of 128; multiples of 64 do where lines are of 64 bytes."
    }
}
