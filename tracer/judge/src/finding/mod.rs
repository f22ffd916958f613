//! Judgements: which lines are shared, how, and whether it matters.
//!
//! [`judge_table`] turns a [`LineTable`] into [`Judgement`]s, at the end of a run or at any time in it.
//! The kind of sharing is a [`Verdict`] on what hand-offs were for; whether it matters is decided by
//! [`Thresholds`]. A finding is never made of one thread or of loads only. [`shown`] judges a line by its
//! watch windows, [`hint`] a load by the store that follows it; [`choose`] finds the loads whose hints save messages.

mod complete;
mod confirmation;
mod facts;
mod gain;
mod judged_pairs;
mod latent;
mod load_hints;
mod meeting;
mod member;
mod moved;
mod ranking;
mod read_then_write;
mod same_code;
mod significance;
mod subject;
mod thresholds;
mod together;
mod verdict;
mod watched;
mod witness;

#[cfg(test)]
pub(crate) mod judged_fixture;
#[cfg(any(test, feature = "fixtures"))]
pub mod table_fixture;
#[cfg(test)]
mod tests;

pub use confirmation::Confidence;
pub use facts::Fact;
pub use gain::{Gain, Grade, Rate, ThreadGain, WORTH, waits_in_place};
pub use judged_pairs::{JudgedPair, judge_pairs};
pub use latent::{Latent, LatentWay, latent, one_more_fights, would_fight};
pub use load_hints::{
    Chosen, Counts, Filter, HintedLoad, LeftAlone, LeftBecause, LoadThresholds, Policy, choose,
    judge_load, keeping,
};
pub use meeting::Pieces;
pub use member::{Member, MemberSite};
pub use moved::Moved;
pub use ranking::{Judged, Ranking};
pub use read_then_write::{Hint, NoHint, PairThresholds, hint};
pub use significance::{Reason, Significance};
pub use subject::{Subject, shared_cost, subjects};
pub use thresholds::Thresholds;
pub use verdict::Verdict;
pub use watched::{WatchThresholds, WatchVerdict, WindowVerdict, shown};

use crate::{
    access::{Cost, LineKey, LineSize, Pid, Tid},
    analysis::{
        CpuSet, Evidence, Group, Kinds, Line, LineTable, OrderCounts, OrderedLine, OrderedLines,
        PmuCounts, SiteCounts, Uses, WatchedCounts, WatchedLine, WatchedLines, groups,
    },
    distribution::Distributions,
};
use complete::CompleteOrder;
use witness::Opinion;

/// What a judgement depends on besides the line.
#[derive(Clone, Copy, Debug)]
pub struct Model<'a> {
    /// What all that the run counted cost.
    pub whole: Cost,
    /// Stores of the run that a PMU sampled without a latency.
    pub untimed_stores: u64,
    /// Line size that lines are told apart by.
    pub line_size: LineSize,
    /// Limits.
    pub thresholds: &'a Thresholds,
}

/// Where the order of a line's accesses is known: from watch windows, or of the whole run; and what follows from it for
/// the lines' costs.
#[derive(Clone, Copy, Debug)]
pub struct Orders<'a> {
    /// Lines that windows watched.
    pub watched: &'a WatchedLines,
    /// What windows moved from one line to another.
    pub moved: &'a Moved,
    /// Lines of an emulated program.
    pub ordered: &'a OrderedLines,
}

/// What is known of a line from watch windows.
#[derive(Clone, Debug, PartialEq)]
pub struct Watched {
    /// What they show.
    pub verdict: WatchVerdict,
    /// Their sums, as far as the verdict rests on them.
    pub counts: WatchedCounts,
    /// End of the first window after which the verdict was what it is; CLOCK_MONOTONIC, nanoseconds.
    pub since_ns: Option<u64>,
}

impl Model<'_> {
    /// Share of the sampled cost, 0..=1; `None` when none was sampled.
    pub fn share(&self, cost: Cost<f64>) -> Option<f64> {
        cost.ratio_to(self.whole)
    }

    /// Whether that is too small a share for a finding; not where no cost was sampled.
    fn is_cheap(&self, cost: Cost<f64>) -> bool {
        (self.share(cost)).is_some_and(|share| share < self.thresholds.cost_share)
    }
}

/// One thread's part in a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadCounts {
    /// Process.
    pub pid: Pid,
    /// Thread.
    pub tid: Tid,
    /// Accesses of any basis.
    pub accesses: u64,
    /// Of those, stores.
    pub stores: u64,
    /// What was waited for the line.
    pub cost: Cost,
    /// Where it ran.
    pub cpus: CpuSet,
}

/// What is known and thought of one line.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// The line that is judged.
    pub key: LineKey,
    /// How it is shared; `None` when no conflict was seen within any window, or its kind could not be told.
    pub verdict: Option<Verdict>,
    /// Whether it is a finding.
    pub significance: Significance,
    /// How sure the verdict is.
    pub confidence: Confidence,
    /// What windows on it saw; `None` when there was none.
    pub watched: Option<Watched>,
    /// What the complete order of its accesses shows, where a source has that.
    pub order: Option<OrderCounts>,
    /// What was waited for the line.
    pub cost: Cost,
    /// The part of it that counts as sharing: by windows, times their interleaving. Ranks findings.
    pub shared_cost: Cost,
    /// `shared_cost` as a share of the sampled time, 0..=1; `None` when no time was sampled.
    pub shared_share: Option<f64>,
    /// Time stalled on the line while several threads used it, by turns or not, as a share of the sampled time, 0..=1;
    /// `None` when no time was sampled.
    pub together_share: Option<f64>,
    /// The same, summed over the lines that are no findings and that the same instruction waits for most; `None` where there
    /// is none.
    pub alike_share: Option<f64>,
    /// What a PMU measured of it; `None` where none sampled it.
    pub pmu: Option<PmuCounts>,
    /// How the quantities are spread that were measured of it.
    pub distributions: Distributions,
    /// Samples with an access to the line; none of an emulated line.
    pub samples: u64,
    /// Accesses: one per instruction and sample, or all executions of an emulated program.
    pub accesses: u64,
    /// 0: threads came one after the other. 1: by turns, all the time.
    pub interleaving: f64,
    /// The kinds of its hand-offs, as samples or a complete order tell; `None` where they do not.
    pub kinds: Option<Kinds>,
    /// Sites, costliest first.
    pub sites: Vec<SiteCounts>,
    /// What each thread used of it at a time.
    pub uses: Uses,
    /// Threads, costliest first.
    pub threads: Vec<ThreadCounts>,
    /// Rests on harvested accesses.
    pub weak: bool,
    /// What else to say.
    pub facts: Vec<Fact>,
}

impl Judgement {
    /// Whether it is a finding.
    pub fn is_finding(&self) -> bool {
        self.significance == Significance::Significant
    }
}

/// A judged line before all of it is put into words.
struct Candidate<'a> {
    key: LineKey,
    evidence: Evidence,
    /// With what windows trapped there.
    sites: Vec<SiteCounts>,
    uses: Uses,
    /// Bytes that belong together.
    groups: Vec<Group>,
    opinion: Opinion,
    watched: Option<(&'a WatchedLine, WatchVerdict)>,
    order: Option<OrderCounts>,
    distributions: Distributions,
}

/// Judges every line of a table. Does not disturb it; open windows count as if they ended now. `ranking` is new, and is of
/// the table's run.
pub fn judge_table(table: &LineTable, mut ranking: Ranking<'_>) -> Judged {
    for (key, line) in table.lines() {
        ranking.see(key, line);
    }
    ranking.judged()
}

fn judge<'a>(key: LineKey, line: &'a Line, orders: &Orders<'a>, model: &Model) -> Candidate<'a> {
    let watched = orders.watched.get(key);
    let mut sites = line.sites();
    orders.moved.correct_sites(key, &mut sites);
    if let Some(watched) = watched {
        add_trapped(&mut sites, watched);
    }
    let shared = line.shared(model.line_size);
    let mut uses = shared.uses().clone();
    if let Some(watched) = watched {
        uses.add_all(watched.uses());
    }
    let ordered = orders.ordered.get(key);
    if let Some(ordered) = ordered {
        uses.add_all(ordered.uses());
    }
    let groups = groups(&sites, &uses, model.line_size);
    let mut distributions = line.distributions();
    let of_windows = watched.map(WatchedLine::distributions);
    let of_order = ordered.map(OrderedLine::distributions);
    if let Some(more) = of_order.or(of_windows) {
        distributions.add_all(&more);
    }
    let mut evidence = line.evidence(shared, model.line_size, &groups);
    if let Some(ordered) = ordered {
        let order = ordered.counts(&groups);
        let evidence = complete::evidence(&order, &evidence);
        return Candidate {
            key,
            opinion: Opinion::of(&CompleteOrder::new(&order, &evidence), model),
            evidence,
            sites,
            uses,
            groups,
            watched: None,
            order: Some(order),
            distributions,
        };
    }
    orders.moved.correct(key, &mut evidence);
    let sampled = Opinion::of(&evidence, model);
    let watched = watched.map(|line| (line, shown(line, &groups, &model.thresholds.watch)));
    let mut opinion = match &watched {
        Some((_, verdict)) => sampled.confirm_with_windows(verdict, &evidence, model),
        None => sampled,
    };
    if let Significance::Insignificant(reason) = &mut opinion.significance {
        *reason = orders.moved.reason(key, *reason);
    }
    Candidate {
        key,
        evidence,
        sites,
        uses,
        groups,
        opinion,
        distributions,
        watched,
        order: None,
    }
}

/// A line with a store is listed; one without only when waiting for it took long enough to suspect a
/// writer that no sample caught.
fn worth_listing(evidence: &Evidence, model: &Model) -> bool {
    let cost = evidence.sharing.unstored_cost;
    let share = model.share(cost).unwrap_or(0.0);
    let taken = evidence.pmu_loads.taken() > 0;
    evidence.stores > 0 || taken || share >= model.thresholds.suspect_cost_share
}

impl Candidate<'_> {
    fn into_judgement(self, model: &Model) -> Judgement {
        let (evidence, opinion, sites) = (self.evidence, self.opinion, self.sites);
        let sharing = &evidence.sharing;
        let pmu = evidence.pmu();
        let weak = opinion.confidence == Confidence::Sampled
            && sharing.weight > 0.0
            && sharing.exact_weight < model.thresholds.exact_share * sharing.weight;
        let looks = member::looks(self.order.is_some(), evidence.samples, evidence.accesses);
        let mut facts = facts::facts(&evidence, &sites, weak, model.line_size);
        facts.extend(opinion.change);
        Judgement {
            key: self.key,
            verdict: opinion.verdict,
            significance: opinion.significance,
            confidence: opinion.confidence,
            watched: self.watched.map(|(line, verdict)| Watched {
                verdict,
                counts: line.telling(),
                since_ns: None,
            }),
            order: self.order,
            cost: evidence.cost,
            shared_cost: opinion.shared_cost.rounded(),
            shared_share: model.share(opinion.shared_cost),
            together_share: model.share(sharing.together_cost),
            alike_share: None,
            pmu: (pmu.sampled > 0).then_some(pmu),
            distributions: self.distributions,
            samples: evidence.samples,
            accesses: evidence.accesses,
            interleaving: sharing.weight / (looks as f64).max(1.0),
            kinds: evidence.kinds,
            threads: threads(&sites),
            weak,
            facts,
            sites,
            uses: self.uses,
        }
    }
}

/// Tells each site what windows trapped there, and appends the sites that no sample saw.
fn add_trapped(sites: &mut Vec<SiteCounts>, watched: &WatchedLine) {
    for trapped in watched.sites() {
        match sites.iter_mut().find(|known| known.site == trapped.site) {
            Some(known) => {
                known.trapped = trapped.trapped;
                known.cpus.merge(&trapped.cpus);
            }
            None => sites.push(trapped.into()),
        }
    }
}

fn threads(sites: &[SiteCounts]) -> Vec<ThreadCounts> {
    let mut by_tid: Vec<&SiteCounts> = sites.iter().collect();
    by_tid.sort_by_key(|s| (s.site.pid, s.site.tid));
    let mut threads: Vec<ThreadCounts> = by_tid
        .chunk_by(|a, b| (a.site.pid, a.site.tid) == (b.site.pid, b.site.tid))
        .map(|sites| {
            let mut cpus = CpuSet::default();
            for site in sites {
                cpus.merge(&site.cpus);
            }
            let stores = sites.iter().filter(|s| s.site.op.stores());
            ThreadCounts {
                pid: sites[0].site.pid,
                tid: sites[0].site.tid,
                accesses: sites.iter().map(|s| s.accesses()).sum(),
                stores: stores.map(|s| s.accesses()).sum(),
                cost: sites.iter().map(|s| s.cost).sum(),
                cpus,
            }
        })
        .collect();
    threads.sort_by_key(|t| (std::cmp::Reverse((t.cost, t.accesses)), t.tid));
    threads
}
