//! How threads meet on the lines of one thing: whether at all, and whether in one piece of it or in neighbours.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::{Member, MemberSite};
use crate::{
    access::{Cost, Tid},
    analysis::Kinds,
    names::Unit,
};

/// Below this part of the hand-offs that chance would give, lines are used by one thread each, or one after the other.
const APART_BELOW: f64 = 0.25;

/// Samples of a line, or executions in its order, from which on its own order tells which pieces of it threads use.
const DENSE: u64 = 100;

/// How the pieces that an array or the like is made of are used, as far as seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Pieces {
    /// Bytes of each.
    #[serde(rename = "bytes")]
    pub stride: u64,
    /// Pieces that were touched.
    pub used: u64,
    /// Of those, pieces that several threads touched.
    pub shared: u64,
}

/// How much threads meet on the lines: 0 where each line is one thread's, or its users come one after the other; 1 where
/// neighbouring samples of a line are of different threads as often as when they came at random.
pub(super) fn meeting(members: &[Member]) -> f64 {
    let mut threads: FxHashMap<Tid, f64> = FxHashMap::default();
    let (mut accesses, mut stores) = (0.0, 0.0);
    for member in members {
        for (tid, n) in member.threads() {
            *threads.entry(tid).or_default() += n as f64;
        }
        accesses += member.accesses as f64;
        stores += member.stores as f64;
    }
    let all: f64 = threads.values().sum();
    let same: f64 = threads.values().map(|n| (n / all).powi(2)).sum();
    let stored = 1.0 - (1.0 - stores / f64::max(accesses, 1.0)).max(0.0).powi(2);
    let neighbours: u64 = members.iter().map(|member| member.neighbours).sum();
    let expected = neighbours as f64 * (1.0 - same) * stored;
    let seen: f64 = members.iter().map(|member| member.hand_offs).sum();
    let part = if expected > 0.0 { seen / expected } else { 0.0 };
    if part < APART_BELOW {
        0.0
    } else {
        part.min(1.0)
    }
}

/// The kinds of hand-offs of all lines, by what each costs. Lines that hold several small pieces and have too few samples
/// for a verdict of their own are judged together, by the piece that threads meet in.
pub(super) fn kinds<'a>(
    members: impl Iterator<Item = &'a Member>,
    shared: impl Fn(&Member) -> Cost<f64>,
    unit: Option<Unit>,
) -> Option<Kinds> {
    let mut sum = Kinds::default();
    let mut weights = 0.0;
    let mut add = |kinds: Kinds, weight: f64| {
        sum.truly += kinds.truly * weight;
        sum.falsely += kinds.falsely * weight;
        weights += weight;
    };
    let mut meetings = Meetings::default();
    let mut undecided: Vec<(&Member, f64)> = Vec::new();
    for member in members {
        // Lines whose cost is not known, or nothing, still tell.
        let weight = shared(member).0.max(1.0);
        let tells = member.verdict.is_some() && (unit.is_none() || member.looks() >= DENSE);
        match (member.kinds.filter(|_| tells), unit) {
            (Some(kinds), _) => add(kinds, weight),
            (None, Some(unit)) => {
                meetings.see(member, unit);
                undecided.push((member, weight));
            }
            (None, None) => undecided.push((member, weight)),
        }
    }
    let by_piece = meetings.kinds();
    for (member, weight) in undecided {
        if let Some(kinds) = by_piece.or(member.kinds) {
            add(kinds, weight);
        }
    }
    (weights > 0.0).then(|| Kinds {
        truly: sum.truly / weights,
        falsely: sum.falsely / weights,
    })
}

/// Pairs of accesses to one line, of which one stores.
#[derive(Clone, Copy, Debug, Default)]
struct Pairs {
    all: f64,
    /// Of those, pairs of two threads.
    crossing: f64,
}

impl Pairs {
    fn add(&mut self, weight: f64, crossing: bool) {
        self.all += weight;
        self.crossing += if crossing { weight } else { 0.0 };
    }
}

/// Whether threads meet in one piece of a line as often as in two of its pieces. Where they do, the same threads use all
/// pieces: it is for these that the line moves. Where each piece is one thread's, they never do.
#[derive(Clone, Copy, Debug, Default)]
struct Meetings {
    in_one: Pairs,
    in_two: Pairs,
}

/// Pairs in one piece that it takes to tell.
const LEAST_PAIRS: f64 = 16.0;

impl Meetings {
    fn see(&mut self, member: &Member, unit: Unit) {
        let line = member.key.0.position();
        let piece =
            |touch: &MemberSite| unit.number(line.wrapping_add(u64::from(touch.site.offset)));
        for (n, one) in member.sites.iter().enumerate() {
            let weight = one.accesses as f64;
            if one.site.op.stores() {
                self.in_one.add(weight * (weight - 1.0) / 2.0, false);
            }
            for other in &member.sites[n + 1..] {
                if !one.site.op.stores() && !other.site.op.stores() {
                    continue;
                }
                let pairs = if piece(one) == piece(other) {
                    &mut self.in_one
                } else {
                    &mut self.in_two
                };
                let crossing = one.site.tid != other.site.tid;
                pairs.add(weight * other.accesses as f64, crossing);
            }
        }
    }

    fn kinds(&self) -> Option<Kinds> {
        let Meetings { in_one, in_two } = self;
        if in_one.all < LEAST_PAIRS || in_one.crossing + in_two.crossing == 0.0 {
            return None;
        }
        let truly = if in_two.crossing == 0.0 {
            1.0
        } else {
            let (one, two) = (in_one.crossing / in_one.all, in_two.crossing / in_two.all);
            // The costliest sites of a line are kept, which are those that one thread was seen at twice: of meetings in
            // one piece, up to half is missing.
            (2.0 * one / two).min(1.0)
        };
        Some(Kinds {
            truly,
            falsely: 1.0 - truly,
        })
    }
}

/// Which pieces of the lines are used, and by how many threads.
pub(super) fn pieces<'a>(members: impl Iterator<Item = &'a Member>, unit: Unit) -> Pieces {
    let mut users: BTreeMap<u64, (Tid, bool)> = BTreeMap::new();
    for member in members {
        let line = member.key.0.position();
        for touch in &member.sites {
            let Some(number) = unit.number(line.wrapping_add(u64::from(touch.site.offset))) else {
                continue;
            };
            let (first, several) = users.entry(number).or_insert((touch.site.tid, false));
            *several |= *first != touch.site.tid;
        }
    }
    Pieces {
        stride: unit.stride,
        used: users.len() as u64,
        shared: users.values().filter(|(_, several)| *several).count() as u64,
    }
}
