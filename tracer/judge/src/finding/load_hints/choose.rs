//! The set of hints: each load by itself first, then all of them beside each other.
//!
//! What one hint saves depends on the others where two loads ask for one line. So the order is kept, as far as it can cost
//! messages, and the best set is [searched for](super::landscape) among all that the limits allow. Then it is *run*: all of
//! its loads are hinted in a replay, which counts what they really take, and each load's part in it. Loads that would save
//! beside the others join the candidates, and the search goes on from there. Where the paper's own set is better, its
//! loads are candidates too.
//!
//! Of an order with more hand-offs than there is room for, a random part of the lines is kept and searched, and of a line
//! with very many only the first. What is found there is then run on the whole order, and taken only if it keeps the limits there.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use super::{
    Beside, Filter, LeftBecause, LoadThresholds, Policy, judge_beside, judge_load,
    landscape::Landscape, never_hinted,
};
use crate::analysis::{
    Instruction, LineStreaks, Load, LoadBounds, LoadOptions, LoadTable, LoadTotals, Loads, RunLoad,
    StreakRun,
};

/// Streaks of an order that are kept: 512 MiB.
const STREAKS: usize = 1 << 26;
/// Of those, of one line: more tell no more of which hints are good for it.
const STREAKS_PER_LINE: usize = 1 << 20;
/// Parts of the limit on load messages that are tried where only some lines were searched.
const PARTS_OF_LIMIT: [f64; 4] = [1.0, 0.9, 0.6, 0.3];

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
    /// Why it gets none.
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
    /// The search saw a part of the orders; what was found was then run on all.
    pub from_a_part: bool,
}

/// How to look at orders for [`choose`].
pub fn keeping(options: LoadOptions) -> LoadOptions {
    let bounds = LoadBounds {
        streaks: STREAKS,
        streaks_per_line: STREAKS_PER_LINE,
        ..options.bounds
    };
    LoadOptions { bounds, ..options }
}

/// Chooses the loads to hint, by what a table without hints, made to [keep](keeping) its orders, has found. `pass` feeds all
/// orders to each of the tables; it is called for each set that is run on orders that were too large to be kept.
pub fn choose<E>(
    options: LoadOptions,
    alone: &Loads,
    limits: &LoadThresholds,
    filter: Filter,
    mut pass: impl FnMut(&mut [LoadTable]) -> Result<(), E>,
) -> Result<Chosen, E> {
    let Some(streaks) = &alone.streaks else {
        return Ok(Chosen::default());
    };
    let papers: HintSet = (alone.loads.iter())
        .filter(|load| load.followed_by_store > 0)
        .map(|load| load.instruction)
        .collect();
    let limits = &limits.of_order(alone.totals.transactions);
    let mut search = Search::new(limits, streaks, &alone.loads, &papers);
    let find = |search: &Search| match filter {
        Filter::Swift => Best::of(search, &search.papers_run, papers.clone()),
        Filter::Ours => search.best(),
    };
    let (best, with_papers) = if streaks.is_whole() {
        (find(&search), search.papers_run.messages.into())
    } else {
        let mut run = |best: &Best| run_on_all(options, best, &papers, &mut pass);
        let mut accepted = None;
        let mut with_papers = Counts::default();
        for part in PARTS_OF_LIMIT {
            search.growth = limits.load_growth * part;
            let (best, of_papers) = run(&find(&search))?;
            with_papers = of_papers;
            let most = most_for_loads(alone.totals.load_transactions, limits.load_growth);
            if filter == Filter::Swift
                || best.counts.load_transactions <= most
                    && best.counts.transactions <= alone.totals.transactions
            {
                accepted = Some(best);
                break;
            }
        }
        let none = || Best::none(alone);
        (accepted.unwrap_or_else(none), with_papers)
    };
    let mut chosen = Chosen {
        without: alone.totals,
        with: best.counts,
        with_papers,
        papers: papers.len(),
        from_papers: best.from_papers,
        unknown: alone.loads.iter().map(|load| load.unknown).sum(),
        from_a_part: !streaks.is_whole(),
        ..Chosen::default()
    };
    sort_out(&mut chosen, &search, filter, &best);
    Ok(chosen)
}

/// A set's messages and parts in the whole orders, and the messages of the paper's set.
fn run_on_all<E>(
    options: LoadOptions,
    best: &Best,
    papers: &HintSet,
    pass: &mut impl FnMut(&mut [LoadTable]) -> Result<(), E>,
) -> Result<(Best, Counts), E> {
    let mut tables = [
        LoadTable::hinting(options, best.set.clone()),
        LoadTable::hinting(options.only_counting(), papers.clone()),
    ];
    pass(&mut tables)?;
    let [run, of_papers] = tables.map(LoadTable::finish);
    let run = Best {
        counts: run.totals.into(),
        net: (run.loads.iter())
            .map(|load| (load.instruction, load.net()))
            .collect(),
        ..best.clone()
    };
    Ok((run, of_papers.totals.into()))
}

/// Most messages that may serve loads.
fn most_for_loads(load_transactions: u64, growth: f64) -> u64 {
    let growth = (load_transactions as f64 * growth.max(0.0)) as u64;
    load_transactions.saturating_add(growth)
}

/// The best set that was run.
#[derive(Clone)]
struct Best {
    set: HintSet,
    counts: Counts,
    /// Messages that each load's hint saves beside the others.
    net: FxHashMap<Instruction, i64>,
    from_papers: bool,
    /// Loads that save in all orders together, and cost in one.
    costing: HintSet,
}

impl Best {
    fn of(search: &Search, run: &StreakRun, set: HintSet) -> Best {
        let loads = search.streaks.loads().iter().zip(0..);
        Best {
            set,
            counts: run.messages.into(),
            net: loads
                .map(|(load, number)| (*load, run.load(number).net()))
                .collect(),
            from_papers: false,
            costing: HintSet::new(),
        }
    }

    /// No hints.
    fn none(alone: &Loads) -> Best {
        let net = alone
            .loads
            .iter()
            .map(|load| (load.instruction, load.net()));
        Best {
            set: HintSet::new(),
            counts: alone.totals.into(),
            net: net.collect(),
            from_papers: false,
            costing: HintSet::new(),
        }
    }
}

impl From<&RunLoad> for Beside {
    fn from(run: &RunLoad) -> Beside {
        Beside {
            requests: run.requests,
            net: run.net(),
            lost: run.lost(),
            readers_hurt: run.readers_hurt(),
        }
    }
}

/// Looks for the best set that the limits allow.
struct Search<'a> {
    limits: &'a LoadThresholds,
    /// Most growth of the messages that serve loads.
    growth: f64,
    streaks: &'a LineStreaks,
    /// By instruction, as the orders were.
    alone: &'a [Load],
    papers: &'a HintSet,
    papers_run: StreakRun,
    /// Messages of each order without hints.
    without: Vec<Counts>,
}

impl<'a> Search<'a> {
    fn new(
        limits: &'a LoadThresholds,
        streaks: &'a LineStreaks,
        alone: &'a [Load],
        papers: &'a HintSet,
    ) -> Search<'a> {
        let of_order = |order| {
            let lines = streaks.lines_of_order(order);
            let counts = lines.map(|line| streaks.count(line, |_| false).into());
            counts.fold(Counts::default(), Counts::plus)
        };
        Search {
            limits,
            growth: limits.load_growth,
            streaks,
            alone,
            papers,
            papers_run: streaks.run_hinted(streaks.all_lines(), papers),
            without: (0..streaks.orders()).map(of_order).collect(),
        }
    }

    /// Runs a set on all orders.
    fn run(&self, set: &HintSet) -> StreakRun {
        self.streaks.run_hinted(self.streaks.all_lines(), set)
    }

    /// The best set; under [`Policy::Each`] the best one that costs in no order.
    fn best(&self) -> Best {
        let mut costing = HintSet::new();
        loop {
            let best = self.best_without(&costing);
            let found = match self.limits.policy {
                Policy::Sum => HintSet::new(),
                Policy::Each => self.costing(&best.set),
            };
            if found.is_empty() {
                return Best { costing, ..best };
            }
            costing.extend(found);
        }
    }

    /// The best set of loads other than these.
    fn best_without(&self, costing: &HintSet) -> Best {
        let none = HintSet::new();
        let mut run = self.run(&none);
        let mut best = Best::of(self, &run, none);
        let possible = |load: &&Load| !costing.contains(&load.instruction);
        let deserving = self.alone.iter().filter(possible);
        let deserving = deserving.filter(|load| judge_load(load, self.limits).is_ok());
        let mut candidates: HintSet = deserving.map(|load| load.instruction).collect();
        for _ in 0..=self.limits.rounds {
            if let Some(better) = self.better(&candidates, &candidates, &best) {
                (best, run) = better;
            }
            let before = candidates.len();
            let joining = self.alone.iter().filter(possible);
            candidates.extend(self.joining(joining, &run, &best.set));
            if candidates.len() == before {
                break;
            }
        }
        let with_papers = Counts::from(self.papers_run.messages);
        if self.limits.at_least_papers
            && with_papers.load_transactions <= self.most_for_loads()
            && with_papers.transactions < best.counts.transactions
        {
            let possible = self.alone.iter().filter(possible);
            let possible = possible.filter(|load| self.papers.contains(&load.instruction));
            let papers = possible.filter(|load| never_hinted(load, self.limits).is_none());
            let papers: HintSet = papers.map(|load| load.instruction).collect();
            candidates.extend(&papers);
            if let Some((better, _)) = self.better(&candidates, &papers, &best) {
                best = Best {
                    from_papers: true,
                    ..better
                };
            }
        }
        best
    }

    /// The best set of some candidates with its run, if it is better than another one.
    fn better(
        &self,
        candidates: &HintSet,
        start: &HintSet,
        than: &Best,
    ) -> Option<(Best, StreakRun)> {
        let most = self.most_for_loads();
        let landscape = Landscape::new(self.streaks, candidates, most);
        let set = landscape.best(&[start, &than.set]);
        let run = self.run(&set);
        let found = Best::of(self, &run, set);
        let is_better = found.counts.load_transactions <= most
            && found.counts.transactions < than.counts.transactions;
        is_better.then_some((found, run))
    }

    fn most_for_loads(&self) -> u64 {
        let all = self.without.iter().map(|counts| counts.load_transactions);
        most_for_loads(all.sum(), self.growth)
    }

    /// Loads that deserve a hint beside those of a run.
    fn joining<'b>(
        &self,
        loads: impl Iterator<Item = &'b Load>,
        run: &StreakRun,
        set: &HintSet,
    ) -> Vec<Instruction> {
        let numbers = self.streaks.loads().iter().zip(0..);
        let numbers: FxHashMap<Instruction, u32> = numbers.map(|(load, n)| (*load, n)).collect();
        let joining = loads.filter(|load| {
            let number = numbers.get(&load.instruction);
            let beside = number.map(|number| Beside::from(run.load(*number)));
            !set.contains(&load.instruction)
                && beside.is_some_and(|beside| judge_beside(load, &beside, self.limits).is_ok())
        });
        joining.map(|load| load.instruction).collect()
    }

    /// Loads of a set that should leave it because they cost in one order: the worst half of those that cost more there
    /// than they save beside the others, or else the one that is worth least where an order gets worse as a whole.
    fn costing(&self, set: &HintSet) -> HintSet {
        let mut costing = HintSet::new();
        if self.streaks.orders() < 2 {
            return costing;
        }
        for (order, without) in self.without.iter().enumerate() {
            let run = (self.streaks).run_hinted(self.streaks.lines_of_order(order), set);
            let counts = Counts::from(run.messages);
            let loads = self.streaks.loads().iter().zip(0..);
            let mut loads: Vec<(Instruction, &RunLoad)> = loads
                .filter(|(load, _)| set.contains(load))
                .map(|(load, number)| (*load, run.load(number)))
                .collect();
            loads.sort_by_key(|(load, run)| (run.net(), *load));
            let bad = loads.partition_point(|(_, load)| load.net() < 0);
            let worst = &loads[..bad.div_ceil(2)];
            costing.extend(worst.iter().map(|(load, _)| *load));
            let most = most_for_loads(without.load_transactions, self.growth);
            if bad == 0
                && (counts.load_transactions > most || counts.transactions > without.transactions)
            {
                let price =
                    |load: &RunLoad| load.load_messages_added() as f64 / load.net().max(1) as f64;
                let dearest = loads
                    .iter()
                    .max_by(|a, b| price(a.1).total_cmp(&price(b.1)));
                costing.extend(dearest.map(|(load, _)| *load));
            }
        }
        costing
    }
}

/// Hints and the loads that are left, each in its order.
fn sort_out(chosen: &mut Chosen, search: &Search, filter: Filter, best: &Best) {
    for load in search.alone {
        let net = best.net.get(&load.instruction).copied();
        if best.set.contains(&load.instruction) {
            chosen.hinted.push(HintedLoad {
                load: load.clone(),
                net_beside_others: net.unwrap_or(0),
            });
            continue;
        }
        let because = match (filter, judge_load(load, search.limits)) {
            (Filter::Swift, _) => LeftBecause::NoPair,
            (Filter::Ours, _) if best.costing.contains(&load.instruction) => {
                LeftBecause::CostsInOneRun
            }
            (Filter::Ours, Err(because)) => because,
            (Filter::Ours, Ok(())) if net.is_some_and(|net| net > 0) => {
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
