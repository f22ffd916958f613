//! What any set of hints takes, from the streaks of an order, and the best set.
//!
//! Hints meet where two loads ask for one line, and nowhere else. So the messages of a set are a sum over groups of lines,
//! each of which the same candidates ask for; within a group every combination is counted once, and only when it is asked
//! for. That makes sets so cheap that they are tried by the thousand.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
};

use rustc_hash::FxHashMap;

use super::choose::{Counts, HintSet};
use crate::analysis::{Instruction, LineStreaks};

/// Candidates up to which all sets are tried, or where that would count too much, three at a time decide otherwise; among
/// more, two at a time.
const FEW: usize = 12;
/// Candidates up to which every two are tried; among more, those that promise most.
const SOME: usize = 64;
/// Loads that may join, and hints that may leave for them, among many candidates.
const PROMISING: usize = 24;
/// Steps to a better set among many candidates.
const MOST_STEPS: usize = 256;
/// Part of many candidates that leaves at a time to get within the limit.
const LEAVING: usize = 32;
/// Combinations of a group that are remembered: all of few candidates.
const MOST_KNOWN: usize = 1 << FEW;
/// Streaks that are counted to try all sets, at most: some 2 seconds.
const COUNTED_FOR_ALL_SETS: u64 = 1 << 28;
/// Streaks that are counted in a search, after which only single candidates decide otherwise: some 10 seconds.
const MOST_COUNTED: u64 = 1 << 30;
/// The same, after which the best set so far must do.
const ALL_COUNTED: u64 = 4 * MOST_COUNTED;

/// A set of candidates, by their numbers.
pub(super) type Set = Vec<bool>;

/// Messages of every set of some candidates.
pub(super) struct Landscape<'a> {
    streaks: &'a LineStreaks,
    candidates: Vec<Instruction>,
    /// Candidates by the order's numbers of loads.
    numbers: Vec<Option<usize>>,
    groups: Vec<Group>,
    /// Groups by candidate.
    groups_of: Vec<Vec<usize>>,
    /// Most messages that may serve loads.
    most_for_loads: u64,
    /// Of the lines that no candidate asks for.
    rest: Counts,
    /// Streaks that were counted.
    counted: Cell<u64>,
}

/// Lines that the same candidates ask for.
struct Group {
    candidates: Vec<usize>,
    lines: Vec<usize>,
    /// Of its lines.
    streaks: u64,
    /// By which of the candidates are hinted.
    known: RefCell<FxHashMap<Vec<bool>, Counts>>,
}

impl<'a> Landscape<'a> {
    /// That of these candidates.
    pub(super) fn new(
        streaks: &'a LineStreaks,
        candidates: &HintSet,
        most_for_loads: u64,
    ) -> Landscape<'a> {
        let candidates: Vec<Instruction> = candidates.iter().copied().collect();
        let number = |load: &Instruction| candidates.binary_search(load).ok();
        let numbers: Vec<Option<usize>> = streaks.loads().iter().map(number).collect();
        let mut lines_of: BTreeMap<Vec<usize>, Vec<usize>> = BTreeMap::new();
        for line in 0..streaks.lines() {
            let loads = streaks.loads_of(line);
            let mut asking: Vec<usize> = loads.filter_map(|load| numbers[load as usize]).collect();
            asking.sort_unstable();
            asking.dedup();
            lines_of.entry(asking).or_default().push(line);
        }
        let mut rest = Counts::default();
        for line in lines_of.remove(&Vec::new()).unwrap_or_default() {
            rest = rest.plus(streaks.count(line, |_| false).into());
        }
        let groups: Vec<Group> = (lines_of.into_iter())
            .map(|(candidates, lines)| Group {
                candidates,
                streaks: lines.iter().map(|line| streaks.length(*line) as u64).sum(),
                lines,
                known: RefCell::default(),
            })
            .collect();
        let mut groups_of = vec![Vec::new(); candidates.len()];
        for (n, group) in groups.iter().enumerate() {
            for candidate in &group.candidates {
                groups_of[*candidate].push(n);
            }
        }
        Landscape {
            streaks,
            candidates,
            numbers,
            groups,
            groups_of,
            most_for_loads,
            rest,
            counted: Cell::new(0),
        }
    }

    /// The best set; where there are too many to try all, the best that is found from these and from none.
    pub(super) fn best(&self, starts: &[&HintSet]) -> HintSet {
        let best = if self.can_try_all() {
            self.best_of_all()
        } else {
            self.best_found(starts)
        };
        let hinted = self.candidates.iter().zip(&best);
        hinted
            .filter(|(_, hinted)| **hinted)
            .map(|(load, _)| *load)
            .collect()
    }

    /// Whether counting all sets is cheap.
    fn can_try_all(&self) -> bool {
        let sets = |group: &Group| group.streaks << group.candidates.len();
        self.candidates.len() <= FEW
            && self.groups.iter().map(sets).sum::<u64>() <= COUNTED_FOR_ALL_SETS
    }

    /// The best of all sets that are within the limit, in the order of the reflected binary (Gray) code: each differs from
    /// the one before it in one candidate.
    pub(super) fn best_of_all(&self) -> Set {
        let mut set = vec![false; self.candidates.len()];
        let mut counts = self.all(&set);
        let mut best = (set.clone(), counts);
        for n in 1..1_u32 << set.len() {
            let toggled = [n.trailing_zeros() as usize];
            counts = self.after(&mut set, counts, &toggled);
            toggle(&mut set, &toggled);
            if counts.load_transactions <= self.most_for_loads
                && counts.transactions < best.1.transactions
            {
                best = (set.clone(), counts);
            }
        }
        best.0
    }

    /// The best set that is found from these and from none, by steps.
    pub(super) fn best_found(&self, starts: &[&HintSet]) -> Set {
        let none = vec![false; self.candidates.len()];
        let mut best = if none.len() <= SOME {
            self.climb(none)
        } else {
            let counts = self.all(&none);
            (none, counts)
        };
        for start in starts {
            let found = self.climb(self.allowed(self.of(start)));
            if found.1.transactions < best.1.transactions {
                best = found;
            }
        }
        best.0
    }

    fn of(&self, set: &HintSet) -> Set {
        self.candidates
            .iter()
            .map(|load| set.contains(load))
            .collect()
    }

    pub(super) fn all(&self, set: &Set) -> Counts {
        let groups = self.groups.iter().map(|group| self.of_group(group, set));
        groups.fold(self.rest, Counts::plus)
    }

    fn of_group(&self, group: &Group, set: &Set) -> Counts {
        let hinted: Vec<bool> = group.candidates.iter().map(|n| set[*n]).collect();
        if let Some(known) = group.known.borrow().get(&hinted) {
            return *known;
        }
        let is_hinted = |load: u32| self.numbers[load as usize].is_some_and(|n| set[n]);
        let lines = group
            .lines
            .iter()
            .map(|line| self.streaks.count(*line, is_hinted).into());
        let counts = lines.fold(Counts::default(), Counts::plus);
        self.counted.set(self.counted.get() + group.streaks);
        let mut known = group.known.borrow_mut();
        if known.len() >= MOST_KNOWN {
            known.clear();
        }
        known.insert(hinted, counts);
        counts
    }

    /// The counts after some candidates decided otherwise.
    fn after(&self, set: &mut Set, counts: Counts, toggled: &[usize]) -> Counts {
        let mut touched: Vec<usize> = toggled
            .iter()
            .flat_map(|n| self.groups_of[*n].iter().copied())
            .collect();
        touched.sort_unstable();
        touched.dedup();
        let sum = |set: &Set| {
            let groups = touched.iter().map(|n| self.of_group(&self.groups[*n], set));
            groups.fold(Counts::default(), Counts::plus)
        };
        let before = sum(set);
        toggle(set, toggled);
        let after = sum(set);
        toggle(set, toggled);
        counts.plus(after).minus(before)
    }

    /// Goes from a set to better ones that differ in a few candidates, until none is better.
    fn climb(&self, mut set: Set) -> (Set, Counts) {
        let mut counts = self.all(&set);
        let steps = if set.len() <= SOME {
            usize::MAX
        } else {
            MOST_STEPS
        };
        for _ in 0..steps {
            if self.counted.get() > ALL_COUNTED {
                break;
            }
            let single: Vec<Counts> = (0..set.len())
                .map(|n| self.after(&mut set, counts, &[n]))
                .collect();
            let mut best: Option<(Counts, Vec<usize>)> = None;
            for toggled in moves(&set, counts, &single) {
                if toggled.len() > 1 && self.counted.get() > MOST_COUNTED {
                    continue;
                }
                let after = self.after(&mut set, counts, &toggled);
                let than = best.as_ref().map_or(counts, |(best, _)| *best);
                if after.load_transactions <= self.most_for_loads
                    && after.transactions < than.transactions
                {
                    best = Some((after, toggled));
                }
            }
            let Some((after, toggled)) = best else {
                break;
            };
            toggle(&mut set, &toggled);
            counts = after;
        }
        (set, counts)
    }

    /// The set without those that save least for the messages they move, until it is within the limit.
    fn allowed(&self, mut set: Set) -> Set {
        let mut counts = self.all(&set);
        while counts.load_transactions > self.most_for_loads {
            let hinted: Vec<usize> = (0..set.len()).filter(|n| set[*n]).collect();
            let without = hinted
                .iter()
                .map(|n| (*n, self.after(&mut set, counts, &[*n])));
            let price = |after: &Counts| {
                let relief = counts.load_transactions as f64 - after.load_transactions as f64;
                let loss = after.transactions as f64 - counts.transactions as f64;
                if relief > 0.0 {
                    loss / relief
                } else {
                    f64::INFINITY
                }
            };
            let mut without: Vec<(usize, Counts)> = without.collect();
            if without.is_empty() {
                break;
            }
            without.sort_by(|a, b| price(&a.1).total_cmp(&price(&b.1)));
            let some = match set.len() {
                _ if self.counted.get() > ALL_COUNTED => without.len().div_ceil(2),
                ..=SOME => 1,
                _ => without.len().div_ceil(LEAVING),
            };
            for (leaves, _) in &without[..some] {
                set[*leaves] = false;
            }
            counts = self.all(&set);
        }
        set
    }
}

fn toggle(set: &mut Set, toggled: &[usize]) {
    for n in toggled {
        set[*n] = !set[*n];
    }
}

/// Candidates that may decide otherwise together.
fn moves(set: &Set, counts: Counts, single: &[Counts]) -> Vec<Vec<usize>> {
    let all: Vec<usize> = (0..set.len()).collect();
    let mut moves: Vec<Vec<usize>> = all.iter().map(|n| vec![*n]).collect();
    if set.len() <= SOME {
        for (at, a) in all.iter().enumerate() {
            for (further, b) in all[at + 1..].iter().enumerate() {
                moves.push(vec![*a, *b]);
                if set.len() <= FEW {
                    let third = all[at + further + 2..].iter();
                    moves.extend(third.map(|c| vec![*a, *b, *c]));
                }
            }
        }
        return moves;
    }
    let gain = |n: &usize| counts.transactions as i64 - single[*n].transactions as i64;
    let relief = |n: &usize| counts.load_transactions as i64 - single[*n].load_transactions as i64;
    // Those that would save by deciding otherwise, those that save most first.
    let saving = |is_hinted: bool| {
        let mut saving: Vec<usize> = all.clone();
        saving.retain(|n| set[*n] == is_hinted && gain(n) > 0);
        saving.sort_by_key(|n| std::cmp::Reverse(gain(n)));
        saving
    };
    let mut joining = saving(false);
    joining.truncate(PROMISING);
    let mut leaving: Vec<usize> = all
        .iter()
        .copied()
        .filter(|n| set[*n] && relief(n) > 0)
        .collect();
    // Those that save least for what they move.
    let price = |n: &usize| -gain(n) as f64 / relief(n) as f64;
    leaving.sort_by(|a, b| price(a).total_cmp(&price(b)));
    leaving.truncate(PROMISING);
    // What costs beside the others leaves, all or the worst half of it; what saves joins.
    let costing = saving(true);
    let half = costing[..costing.len().div_ceil(2)].to_vec();
    moves.extend(
        [half, costing, joining.clone()]
            .into_iter()
            .filter(|together| together.len() > 1),
    );
    for join in &joining {
        let mut together = vec![*join];
        for leave in &leaving {
            moves.push(vec![*join, *leave]);
            together.push(*leave);
            moves.push(together.clone());
        }
    }
    moves
}
