//! Sharing that is not there yet, as the report has it: which memory, in which ways, and at what cost.

mod one_more;
mod one_moves;
mod sampled;
mod thing;

use serde::Serialize;

pub use self::{
    one_more::OneMoreThread,
    one_moves::{MovingBlock, OneMoves},
    sampled::sampled_latent,
};
use self::{
    one_more::one_more_thread,
    one_moves::one_moves,
    thing::{Thing, Used, things},
};
use super::{
    model::{AccessRow, Hex, Line, Object},
    rows,
    run_facts::RunFacts,
};
use crate::{
    access::{Cost, LineSize, Tid},
    analysis::{OneMoreElement, PairMoved, RunElsewhere, There, Way},
    event::Tally,
    finding::{self, Latent, LatentWay},
    names::{Names, ObjectKind},
};

/// Lines are told apart as they are today.
const LINE: LineSize = LineSize::B64;

/// Start addresses that malloc promises are multiples of so many bytes, on 64-bit machines (glibc manual, 3.2.3.6).
const MALLOC_ALIGNMENT: u8 = 16;

/// What its kind is called: never among findings.
pub const KIND: &str = "latent-sharing";

/// What tells it.
#[derive(Debug, Clone, Copy, Serialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum LatentBasis {
    /// A complete order, replayed with the memory elsewhere: costs are known.
    Order,
    /// Samples or watch windows: which bytes threads use at the same time. Nothing is replayed, for the order is not known.
    Samples,
}

/// Memory for which threads would fight if it began elsewhere, or if lines were longer. No finding: nobody fights today, or
/// less.
#[derive(Debug, Clone, Serialize, PartialEq)]
pub struct LatentSharing {
    /// `L1`, `L2`, .. by what the worst way adds.
    pub id: String,
    /// [`KIND`].
    pub kind: &'static str,
    /// What tells it.
    pub basis: LatentBasis,
    /// What the memory is, in its order: `struct part`, `counters[]`; several that lie next to each other, and move together.
    /// Empty where nothing has a name.
    pub names: Vec<String>,
    /// Of the first of the two lines in `neighbours`.
    pub object: Object,
    /// Lines of 64 bytes that threads would fight for.
    pub lines: u64,
    /// Bytes that the program asks it to start at a multiple of, by a declaration or a type, and that it starts at; of several
    /// objects, the most. Null where that is not known.
    pub alignment: Option<u64>,
    /// Threads that use them; not those that hardly ever do.
    pub threads: u64,
    /// What it costs as it is.
    pub today: LatentCost,
    /// What it would cost, each way that was replayed or looked at.
    pub ways: Vec<LatentCost>,
    /// Where threads have an element each: what the element of one more thread would bring at its end, if they would fight there;
    /// else null.
    pub one_more_thread: Option<OneMoreThread>,
    /// Of blocks of the heap: the ways in which one of two comes closer to the other, and threads would fight.
    pub one_moves: Vec<OneMoves>,
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
    /// Whether it keeps the alignment that the program asks for: else it never lies so. Null where none is known.
    pub keeps_alignment: Option<bool>,
    /// Whether threads would fight here that do not today, if it may lie so; by samples, whether they would meet. Of today, false.
    pub fights: bool,
    /// Hand-offs from one CPU to another, of all its lines; this and what follows is null where nothing was replayed.
    pub hand_offs: Option<u64>,
    /// Of those, hand-offs of nothing that the taker used. The rest brought a change that it used, or its kind is not known.
    pub falsely: Option<u64>,
    /// Of the others, hand-offs that took along bytes which the taker used and nobody had changed.
    pub dragged: Option<u64>,
    /// Messages of the directory protocol that sharing causes.
    pub messages: Option<u64>,
}

/// One of two neighbouring lines as they lie today.
#[derive(Debug, Clone, Serialize, PartialEq)]
pub struct LatentLine {
    /// Where it is.
    pub line: Line,
    /// Who does what often, most executions first.
    pub accesses: Vec<AccessRow>,
}

/// Names and judges what was replayed: the worst first.
pub fn latent(
    replayed: &Replayed,
    names: &dyn Names,
    tally: &Tally,
    facts: &RunFacts,
) -> Vec<LatentSharing> {
    let whole = tally.whole_cost();
    let mut judged: Vec<Judged<'_>> = Vec::new();
    for thing in things(&replayed.runs, names) {
        let (ways, alignment) = (&thing.ways, thing.alignment);
        if let Some(latent) = finding::latent(ways, alignment, whole, &facts.thresholds) {
            judged.push(Judged {
                thing,
                latent,
                one_more: None,
                one_moves: Vec::new(),
            });
        }
    }
    for element in &replayed.one_more {
        if let Some(found) = one_more_thread(element, names, whole, &facts.thresholds) {
            add_one_more(&mut judged, element, found, names);
        }
    }
    for pair in &replayed.one_moves {
        let found = one_moves(pair, names, whole, &facts.thresholds);
        if !found.is_empty() {
            add_one_moves(&mut judged, pair, &found, names);
        }
    }
    // Stable: equal ones stay in the order of their place.
    judged.sort_by_key(|judged| std::cmp::Reverse(judged.most_added()));
    let numbered = judged.iter().zip(1..);
    numbered
        .map(|(judged, n)| sharing(n, judged, names, facts))
        .collect()
}

/// What came of the replays.
#[derive(Debug, Default)]
pub struct Replayed {
    /// All memory of a run of lines elsewhere, or with longer lines.
    pub runs: Vec<RunElsewhere>,
    /// Arrays with one more thread.
    pub one_more: Vec<OneMoreElement>,
    /// Neighbours of which one moves.
    pub one_moves: Vec<PairMoved>,
}

/// Some memory for which threads would fight.
struct Judged<'a> {
    thing: Thing<'a>,
    latent: Latent,
    one_more: Option<OneMoreThread>,
    one_moves: Vec<OneMoves>,
}

impl Judged<'_> {
    fn most_added(&self) -> u64 {
        let messages = self.one_more.map_or(0, |one_more| one_more.messages);
        let moved = self.one_moves.iter().map(|moved| moved.messages).max();
        self.latent
            .most_added()
            .max(messages)
            .max(moved.unwrap_or(0))
    }
}

/// Adds it to what is told of the array already, or as a thing of its own.
fn add_one_more<'a>(
    judged: &mut Vec<Judged<'a>>,
    element: &'a OneMoreElement,
    found: OneMoreThread,
    names: &dyn Names,
) {
    let last = element.array.last.line(LINE);
    let has_last = |judged: &&mut Judged<'_>| {
        let mut lines = judged.thing.fighting.iter();
        judged.one_more.is_none() && lines.any(|used| used.line.key == last)
    };
    if let Some(judged) = judged.iter_mut().find(has_last) {
        judged.one_more = Some(found);
        return;
    }
    let things = things(std::slice::from_ref(&element.run), names);
    judged.extend(things.into_iter().map(|thing| Judged {
        thing,
        latent: Latent {
            today: element.today,
            ways: Vec::new(),
        },
        one_more: Some(found),
        one_moves: Vec::new(),
    }));
}

/// Adds it to what is told of the same things already, or as a thing of its own.
fn add_one_moves<'a>(
    judged: &mut Vec<Judged<'a>>,
    pair: &'a PairMoved,
    found: &[OneMoves],
    names: &dyn Names,
) {
    for thing in things(std::slice::from_ref(&pair.run), names) {
        let is_same =
            |judged: &&mut Judged<'_>| !thing.names.is_empty() && judged.thing.names == thing.names;
        if let Some(known) = judged.iter_mut().find(is_same) {
            one_moves::add(&mut known.one_moves, found);
            continue;
        }
        judged.push(Judged {
            thing,
            latent: Latent {
                today: pair.today,
                ways: Vec::new(),
            },
            one_more: None,
            one_moves: found.to_owned(),
        });
    }
}

/// What is told of memory, besides what it is.
struct Told {
    basis: LatentBasis,
    today: LatentCost,
    ways: Vec<LatentCost>,
    one_more_thread: Option<OneMoreThread>,
    one_moves: Vec<OneMoves>,
}

fn sharing(
    number: usize,
    judged: &Judged<'_>,
    names: &dyn Names,
    facts: &RunFacts,
) -> LatentSharing {
    let (thing, latent) = (&judged.thing, &judged.latent);
    let of = |way: &LatentWay| LatentCost {
        fights: way.fights,
        ..LatentCost::at(thing, way.way, way.keeps_alignment).of(&way.there)
    };
    let keeps_alignment = thing.alignment.map(|_| true);
    let told = Told {
        basis: LatentBasis::Order,
        today: LatentCost::at(thing, Way::TODAY, keeps_alignment).of(&latent.today),
        ways: latent.ways.iter().map(of).collect(),
        one_more_thread: judged.one_more,
        one_moves: judged.one_moves.clone(),
    };
    LatentSharing {
        id: format!("L{number}"),
        ..described(thing, told, names, facts)
    }
}

impl LatentCost {
    /// Where a thing lies that way; no cost.
    fn at(thing: &Thing<'_>, way: Way, keeps_alignment: Option<bool>) -> LatentCost {
        let (moved, line) = (u16::from(way.moved), u16::from(way.line_bytes));
        let is_heap = thing.kind == ObjectKind::Heap;
        LatentCost {
            moved_bytes: way.moved,
            line_bytes: way.line_bytes,
            start_offset: (thing.start).map(|start| ((u16::from(start) + moved) % line) as u8),
            malloc_may: is_heap.then(|| way.moved.is_multiple_of(MALLOC_ALIGNMENT)),
            keeps_alignment,
            fights: false,
            hand_offs: None,
            falsely: None,
            dragged: None,
            messages: None,
        }
    }

    /// The same, at a cost.
    fn of(self, there: &There) -> LatentCost {
        LatentCost {
            hand_offs: Some(there.hand_offs.total()),
            falsely: Some(there.hand_offs.falsely),
            dragged: Some(there.hand_offs.dragged),
            messages: Some(there.messages),
            ..self
        }
    }
}

/// All but the number.
fn described(thing: &Thing<'_>, told: Told, names: &dyn Names, facts: &RunFacts) -> LatentSharing {
    let worst = (thing.runs.iter().copied()).max_by_key(|run| messages_added(&run.ways));
    let pair = worst.and_then(|run| run.worst_neighbours());
    let neighbours: Vec<Used<'_>> = pair.into_iter().flatten().map(Used::new).collect();
    let object = (neighbours.first()).map(|used| used.objects(names).object(&used.sites, facts));
    let sites = thing.fighting.iter().flat_map(|used| &used.sites);
    let mut threads: Vec<Tid> = sites.map(|counts| counts.site.tid).collect();
    threads.sort_unstable();
    threads.dedup();
    LatentSharing {
        id: String::new(),
        kind: KIND,
        basis: told.basis,
        names: thing.names.clone(),
        object: object.unwrap_or_default(),
        lines: thing.fighting.len() as u64,
        alignment: thing.alignment,
        threads: threads.len() as u64,
        today: told.today,
        ways: told.ways,
        one_more_thread: told.one_more_thread,
        one_moves: told.one_moves,
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
