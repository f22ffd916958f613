//! The set of hints: each load by itself first, then all of them beside each other.
//!
//! What one hint saves depends on the others where two loads ask for one line. So the order is kept, as far as it can cost
//! messages, and the best set is [searched for](super::landscape) among all that the limits allow. Then it is *run*: a pass
//! over the order with all of its loads hinted counts what it really takes, and each load's part in it. Loads that would
//! save beside the others join the candidates. The best set that was run is chosen, never one that was only computed.
//! Where the paper's own set is better, its loads are candidates too.
//!
//! An order that has no room is run for each set: loads that cost beside the others leave, the worst half of them at a
//! time, as those that remain may save again without them; loads that save beside the others join.

use std::collections::BTreeSet;

use super::{Filter, LeftBecause, LoadThresholds, judge_load, landscape::Landscape, never_hinted};
use crate::analysis::{
    Instruction, LineStreaks, Load, LoadBounds, LoadOptions, LoadTable, LoadTotals, Loads,
};

/// Streaks of an order that are kept: 256 MiB.
const STREAKS: usize = 1 << 26;

pub(super) type HintSet = BTreeSet<Instruction>;

/// Messages of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Of all accesses.
    pub transactions: u64,
    /// Of those, messages that serve loads.
    pub load_transactions: u64,
}

impl From<LoadTotals> for Counts {
    fn from(totals: LoadTotals) -> Counts {
        Counts {
            transactions: totals.transactions,
            load_transactions: totals.load_transactions,
        }
    }
}

impl From<(u64, u64)> for Counts {
    fn from((transactions, load_transactions): (u64, u64)) -> Counts {
        Counts {
            transactions,
            load_transactions,
        }
    }
}

impl Counts {
    pub(super) fn plus(self, other: Counts) -> Counts {
        Counts {
            transactions: self.transactions + other.transactions,
            load_transactions: self.load_transactions + other.load_transactions,
        }
    }

    /// The counts without a part of them.
    pub(super) fn minus(self, part: Counts) -> Counts {
        Counts {
            transactions: self.transactions - part.transactions,
            load_transactions: self.load_transactions - part.load_transactions,
        }
    }
}

/// A load that gets a hint.
#[derive(Clone, Debug, PartialEq)]
pub struct HintedLoad {
    /// What it did in the order, and what its hint alone would change.
    pub load: Load,
    /// Messages that its hint saves beside all others; negative where the paper's filter hints at a loss.
    pub net_beside_others: i64,
}

/// A load that gets none.
#[derive(Clone, Debug, PartialEq)]
pub struct LeftAlone {
    /// What it did in the order, and what its hint alone would change.
    pub load: Load,
    /// Why.
    pub because: LeftBecause,
}

/// The choice.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Chosen {
    /// Hints, those that save most beside the others first.
    pub hinted: Vec<HintedLoad>,
    /// The other loads that missed, those whose hint alone would save most first.
    pub left: Vec<LeftAlone>,
    /// The order as it was.
    pub without: LoadTotals,
    /// The order with all hints.
    pub with: Counts,
    /// The order with the paper's set of hints.
    pub with_papers: Counts,
    /// Loads in the paper's set.
    pub papers: usize,
    /// The set was made from the paper's one, since that took fewer messages than ours did. Limits on single loads are not
    /// kept then.
    pub from_papers: bool,
    /// Requests of which nobody knows what a hint would have changed.
    pub unknown: u64,
    /// Passes over the order.
    pub passes: usize,
}

/// Chooses the loads to hint. `pass` feeds the whole order to each of the tables; it is called once and then once a
/// round.
pub fn choose<E>(
    options: LoadOptions,
    limits: &LoadThresholds,
    filter: Filter,
    pass: impl FnMut(&mut [LoadTable]) -> Result<(), E>,
) -> Result<Chosen, E> {
    let mut search = Search {
        options,
        pass,
        passes: 0,
        tried: BTreeSet::new(),
    };
    let [alone] = search.run([search.keeping(filter)])?;
    let papers: HintSet = (alone.loads.iter())
        .filter(|load| load.followed_by_store > 0)
        .map(|load| load.instruction)
        .collect();
    let limits = &limits.of_order(alone.totals.transactions);
    let rules = Rules {
        limits,
        most_for_loads: most_for_loads(&alone.totals, limits),
        alone: &alone.loads,
    };
    let mut chosen = Chosen {
        without: alone.totals,
        with: alone.totals.into(),
        papers: papers.len(),
        unknown: alone.loads.iter().map(|load| load.unknown).sum(),
        ..Chosen::default()
    };
    let mut best = Best {
        set: HintSet::new(),
        loads: alone.loads.clone(),
        counts: alone.totals.into(),
    };
    match filter {
        Filter::Swift => {
            let [run] = search.run([search.hinting(&papers)])?;
            best = Best::of(papers, run);
            chosen.with_papers = best.counts;
        }
        Filter::Ours if let Some(streaks) = &alone.streaks => {
            let kept = Kept {
                streaks,
                papers: &papers,
                rules: &rules,
            };
            search.over(&kept, &mut best, &mut chosen)?;
        }
        Filter::Ours => {
            let ours = rules.start();
            let plain = search.plain(&papers);
            let [run, with_papers] = search.run([search.hinting(&ours), plain])?;
            chosen.with_papers = with_papers.totals.into();
            search.improve(ours, run, &rules, &mut best)?;
            if limits.at_least_papers
                && rules.allow(chosen.with_papers)
                && chosen.with_papers.transactions < best.counts.transactions
            {
                let before = best.counts.transactions;
                let start = rules.possible(papers);
                let [run] = search.run([search.hinting(&start)])?;
                search.improve(start, run, &rules, &mut best)?;
                chosen.from_papers = best.counts.transactions < before;
            }
        }
    }
    chosen.with = best.counts;
    chosen.passes = search.passes;
    sort_out(&mut chosen, &rules, filter, &best);
    Ok(chosen)
}

/// Most messages that may serve loads.
fn most_for_loads(totals: &LoadTotals, limits: &LoadThresholds) -> u64 {
    let growth = (totals.load_transactions as f64 * limits.load_growth.max(0.0)) as u64;
    totals.load_transactions.saturating_add(growth)
}

/// The best set that was run.
struct Best {
    set: HintSet,
    /// All loads of that run, each with what its hint changes beside the others.
    loads: Vec<Load>,
    counts: Counts,
}

impl Best {
    fn of(set: HintSet, run: Loads) -> Best {
        Best {
            set,
            loads: run.loads,
            counts: run.totals.into(),
        }
    }

    /// The load of the run.
    fn load(&self, instruction: Instruction) -> Option<&Load> {
        let at = (self.loads).binary_search_by_key(&instruction, |load| load.instruction);
        at.ok().map(|at| &self.loads[at])
    }
}

/// What a set must keep.
struct Rules<'a> {
    limits: &'a LoadThresholds,
    most_for_loads: u64,
    /// By instruction, as the order was.
    alone: &'a [Load],
}

impl Rules<'_> {
    /// The loads that deserve a hint by themselves.
    fn start(&self) -> HintSet {
        let good = |load: &&Load| judge_load(load, self.limits).is_ok();
        let good = self.alone.iter().filter(good);
        good.map(|load| load.instruction).collect()
    }

    /// Without loads that no set may have.
    fn possible(&self, mut set: HintSet) -> HintSet {
        let never = |load: &&Load| never_hinted(load, self.limits).is_some();
        for load in self.alone.iter().filter(never) {
            set.remove(&load.instruction);
        }
        set
    }

    fn allow(&self, counts: Counts) -> bool {
        counts.load_transactions <= self.most_for_loads
    }

    /// The next set to run, by what the last one showed.
    fn next(&self, set: &HintSet, run: &Loads) -> HintSet {
        let mut next = set.clone();
        let excess = (run.totals.load_transactions).saturating_sub(self.most_for_loads);
        if excess > 0 {
            relieve_loads(&mut next, run, excess as i64);
            return next;
        }
        let mut bad: Vec<&Load> = (run.loads.iter())
            .filter(|load| load.hinted && load.net() <= 0)
            .collect();
        // A hinted load that never misses any more has no part in the messages.
        let missed: HintSet = run.loads.iter().map(|load| load.instruction).collect();
        next.retain(|instruction| missed.contains(instruction));
        if !bad.is_empty() {
            bad.sort_by_key(|load| load.net());
            for load in &bad[..bad.len().div_ceil(2)] {
                next.remove(&load.instruction);
            }
            return next;
        }
        next.extend(self.joining(&run.loads));
        next
    }

    /// Loads that deserve a hint beside those of a run.
    fn joining(&self, loads: &[Load]) -> HintSet {
        let join = loads.iter().filter(|load| {
            let known = (self.alone).binary_search_by_key(&load.instruction, |l| l.instruction);
            let enough = known.is_ok_and(|at| self.alone[at].requests >= self.limits.requests);
            !load.hinted && enough && judge_load(load, self.limits).is_ok()
        });
        join.map(|load| load.instruction).collect()
    }
}

/// Lets go of the loads that move most messages to loads for what they save, until the excess is gone.
fn relieve_loads(set: &mut HintSet, run: &Loads, mut excess: i64) {
    let mut heavy: Vec<&Load> = (run.loads.iter())
        .filter(|load| load.hinted && load.load_messages_added > 0)
        .collect();
    let ratio = |load: &Load| load.load_messages_added as f64 / load.net().max(1) as f64;
    heavy.sort_by(|a, b| {
        let by_ratio = ratio(b).total_cmp(&ratio(a));
        by_ratio.then(a.instruction.cmp(&b.instruction))
    });
    for load in heavy {
        if excess <= 0 {
            break;
        }
        set.remove(&load.instruction);
        excess -= load.load_messages_added;
    }
}

/// An order that is kept.
struct Kept<'a> {
    streaks: &'a LineStreaks,
    papers: &'a HintSet,
    rules: &'a Rules<'a>,
}

impl Kept<'_> {
    /// The best set of some candidates that is found from any of these sets.
    fn best(&self, candidates: &HintSet, starts: &[&HintSet]) -> HintSet {
        Landscape::new(self.streaks, candidates, self.rules.most_for_loads).best(starts)
    }

    /// Messages of the paper's set.
    fn with_papers(&self) -> Counts {
        Landscape::new(self.streaks, self.papers, self.rules.most_for_loads).counts(self.papers)
    }
}

struct Search<P> {
    options: LoadOptions,
    pass: P,
    passes: usize,
    tried: BTreeSet<Vec<Instruction>>,
}

impl<E, P: FnMut(&mut [LoadTable]) -> Result<(), E>> Search<P> {
    fn run<const N: usize>(&mut self, mut tables: [LoadTable; N]) -> Result<[Loads; N], E> {
        self.passes += 1;
        (self.pass)(&mut tables)?;
        Ok(tables.map(LoadTable::finish))
    }

    /// Searches a kept order.
    fn over(&mut self, kept: &Kept, best: &mut Best, chosen: &mut Chosen) -> Result<(), E> {
        let rules = kept.rules;
        chosen.with_papers = kept.with_papers();
        let mut candidates = rules.start();
        for _ in 0..=rules.limits.rounds {
            let set = kept.best(&candidates, &[&candidates, &best.set]);
            self.run_if_better(set, rules, best)?;
            let before = candidates.len();
            candidates.extend(rules.joining(&best.loads));
            if candidates.len() == before {
                break;
            }
        }
        if rules.limits.at_least_papers
            && rules.allow(chosen.with_papers)
            && chosen.with_papers.transactions < best.counts.transactions
        {
            let before = best.counts.transactions;
            let papers = rules.possible(kept.papers.clone());
            candidates.extend(&papers);
            let set = kept.best(&candidates, &[&papers, &best.set]);
            self.run_if_better(set, rules, best)?;
            chosen.from_papers = best.counts.transactions < before;
        }
        Ok(())
    }

    /// Runs a set, which is the best from then on if it is better.
    fn run_if_better(&mut self, set: HintSet, rules: &Rules, best: &mut Best) -> Result<(), E> {
        if set == best.set {
            return Ok(());
        }
        let [run] = self.run([self.hinting(&set)])?;
        let counts = Counts::from(run.totals);
        if rules.allow(counts) && counts.transactions < best.counts.transactions {
            *best = Best::of(set, run);
        }
        Ok(())
    }

    /// A world without hints, whose order is kept where sets are searched for.
    fn keeping(&self, filter: Filter) -> LoadTable {
        let bounds = LoadBounds {
            streaks: if filter == Filter::Ours { STREAKS } else { 0 },
            ..self.options.bounds
        };
        let options = LoadOptions {
            bounds,
            ..self.options
        };
        LoadTable::new(options)
    }

    fn hinting(&self, set: &HintSet) -> LoadTable {
        LoadTable::hinting(self.options, set.clone())
    }

    /// Only counts.
    fn plain(&self, set: &HintSet) -> LoadTable {
        let bounds = LoadBounds {
            shadows_per_line: 0,
            ..self.options.bounds
        };
        let options = LoadOptions {
            bounds,
            ..self.options
        };
        LoadTable::hinting(options, set.clone())
    }

    /// Corrects a set by its run until nothing changes, or the rounds are over.
    fn improve(
        &mut self,
        mut set: HintSet,
        mut run: Loads,
        rules: &Rules,
        best: &mut Best,
    ) -> Result<(), E> {
        for round in 0..=rules.limits.rounds {
            let next = rules.next(&set, &run);
            self.tried.insert(set.iter().copied().collect());
            let counts = Counts::from(run.totals);
            if rules.allow(counts) && counts.transactions < best.counts.transactions {
                *best = Best::of(set, run);
            }
            let is_new = !self
                .tried
                .contains(&next.iter().copied().collect::<Vec<_>>());
            if !is_new || round == rules.limits.rounds {
                break;
            }
            [run] = self.run([self.hinting(&next)])?;
            set = next;
        }
        Ok(())
    }
}

/// Hints and the loads that are left, each in its order.
fn sort_out(chosen: &mut Chosen, rules: &Rules, filter: Filter, best: &Best) {
    for load in rules.alone {
        let beside = best.load(load.instruction);
        if best.set.contains(&load.instruction) {
            chosen.hinted.push(HintedLoad {
                load: load.clone(),
                net_beside_others: beside.map_or(0, Load::net),
            });
            continue;
        }
        let because = match (filter, judge_load(load, rules.limits)) {
            (Filter::Swift, _) => LeftBecause::NoPair,
            (Filter::Ours, Err(because)) => because,
            (Filter::Ours, Ok(())) if beside.is_some_and(|load| load.net() > 0) => {
                LeftBecause::MovesMessagesToLoads
            }
            (Filter::Ours, Ok(())) => LeftBecause::CostsBesideOthers,
        };
        chosen.left.push(LeftAlone {
            load: load.clone(),
            because,
        });
    }
    let order = |load: &Load| {
        (
            std::cmp::Reverse(load.saved),
            std::cmp::Reverse(load.requests),
        )
    };
    (chosen.hinted).sort_by_key(|hint| {
        let saved = std::cmp::Reverse(hint.net_beside_others);
        (saved, order(&hint.load), hint.load.instruction)
    });
    (chosen.left).sort_by_key(|left| (order(&left.load), left.load.instruction));
}
