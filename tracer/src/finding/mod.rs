//! Judgements: which lines are shared, how, and whether it matters.
//!
//! [`judge_all`] turns a [`LineTable`] into [`Judgement`]s, at the end of a run or at any time in it.
//! The kind of sharing is decided by the [`FINDERS`], one per file; whether it matters by
//! [`Thresholds`]. A finding is never made of one thread or of loads only. [`shown`] judges a line by its
//! watch windows, [`hint`] a load by the store that follows it; [`choose`] finds the loads whose hints save messages.

mod complete;
mod confirmation;
mod facts;
mod false_sharing;
mod judged_pairs;
mod load_hints;
mod mixed_sharing;
mod ranking;
mod read_then_write;
mod standing;
mod thresholds;
mod true_sharing;
mod watched;

#[cfg(test)]
mod complete_shapes;
#[cfg(test)]
mod laws;
#[cfg(test)]
mod pmu_shapes;
#[cfg(test)]
mod pmu_simulation;
#[cfg(test)]
mod shapes;
#[cfg(test)]
mod simulation;
#[cfg(test)]
mod watched_laws;
#[cfg(test)]
mod watched_pairs;
#[cfg(test)]
mod watched_shapes;

pub use confirmation::Confidence;
pub use facts::Fact;
pub use judged_pairs::{JudgedPair, judge_pairs};
pub use load_hints::{
    Chosen, Counts, Filter, HintedLoad, LeftAlone, LeftBecause, LoadThresholds, choose, judge_load,
};
pub use ranking::Ranking;
pub use read_then_write::{Hint, NoHint, PairThresholds, hint};
pub use standing::{Reason, Standing};
pub use thresholds::Thresholds;
pub use watched::{Shown, WatchThresholds, WatchVerdict, shown};

use crate::{
    access::{LineKey, LineSize, Pid, Tid},
    analysis::{
        CpuSet, Evidence, Line, LineTable, OrderBounds, OrderCounts, OrderedLines, PmuCounts,
        SiteCounts, WatchedCounts, WatchedLine, WatchedLines,
    },
};
use confirmation::Opinion;

/// How the bytes of a shared line are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// No byte that one thread stores is touched by another, or hardly ever.
    FalseSharing,
    /// The threads use the same bytes; separating fields would not help.
    TrueSharing,
    /// Both on one line, each in a share worth saying.
    MixedSharing,
}

/// What a finder may look at besides the line.
#[derive(Clone, Copy, Debug)]
pub struct Model<'a> {
    /// Target time that all samples of the run stand for, nanoseconds, or their latency, cycles
    /// ([`CostUnit`](crate::access::CostUnit)).
    pub sampled_ns: u64,
    /// Stores of the run that a PMU sampled without a latency.
    pub untimed_stores: u64,
    /// Granule.
    pub line_size: LineSize,
    /// Limits.
    pub thresholds: &'a Thresholds,
}

/// Where the order of a line's accesses is known: from watch windows, or of the whole run.
#[derive(Clone, Copy, Debug)]
pub struct Orders<'a> {
    /// Lines that windows watched.
    pub watched: &'a WatchedLines,
    /// Lines of an emulated program.
    pub ordered: &'a OrderedLines,
}

/// What is known of a line from watch windows.
#[derive(Clone, Debug, PartialEq)]
pub struct Watched {
    /// What they show.
    pub verdict: WatchVerdict,
    /// Their sums.
    pub counts: WatchedCounts,
    /// End of the first window after which the verdict was what it is; CLOCK_MONOTONIC, nanoseconds.
    pub since_ns: Option<u64>,
}

impl Model<'_> {
    /// Share of the sampled cost, 0..=1; `None` when none was sampled.
    pub fn share(&self, cost_ns: f64) -> Option<f64> {
        (self.sampled_ns > 0).then(|| cost_ns / self.sampled_ns as f64)
    }
}

/// Decides one kind of sharing.
pub trait Finder: Sync {
    /// Stable name, as in reports: `false-sharing`.
    fn name(&self) -> &'static str;
    /// The rule in one sentence, with the thresholds in force.
    fn rule(&self, thresholds: &Thresholds) -> String;
    /// The verdict, when the line is of this kind. At most one finder claims a line.
    fn judge(&self, line: &Evidence, model: &Model) -> Option<Verdict>;
}

/// All finders.
pub static FINDERS: &[&dyn Finder] = &[
    &false_sharing::FalseSharing,
    &true_sharing::TrueSharing,
    &mixed_sharing::MixedSharing,
];

/// One thread's part in a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadCounts {
    /// Process.
    pub pid: Pid,
    /// Thread.
    pub tid: Tid,
    /// Accesses.
    pub accesses: u64,
    /// Of those, stores.
    pub stores: u64,
    /// Sampled time spent waiting for the line, nanoseconds.
    pub cost_ns: u64,
    /// Where it ran.
    pub cpus: CpuSet,
}

/// What is known and thought of one line.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// Which line.
    pub key: LineKey,
    /// How it is shared; `None` when no conflict was seen within any window, or its kind could not be told.
    pub verdict: Option<Verdict>,
    /// Whether it is a finding.
    pub standing: Standing,
    /// How sure the verdict is.
    pub confidence: Confidence,
    /// What windows on it saw; `None` when there was none.
    pub watched: Option<Watched>,
    /// What the complete order of its accesses shows, where a source has that.
    pub order: Option<OrderCounts>,
    /// Sampled time spent waiting for the line, nanoseconds.
    pub cost_ns: u64,
    /// The part of it that counts as sharing: by windows, times their interleaving. Ranks findings.
    pub shared_cost_ns: u64,
    /// `shared_cost_ns` as a share of the sampled time, 0..=1; `None` when no time was sampled.
    pub shared_share: Option<f64>,
    /// What a PMU measured of it; `None` where none sampled it.
    pub pmu: Option<PmuCounts>,
    /// Samples with an access to the line.
    pub samples: u64,
    /// Accesses, one per instruction and sample.
    pub accesses: u64,
    /// 0: threads came one after the other. 1: by turns, all the time.
    pub interleaving: f64,
    /// Share of the sharing, 0..=1, that would remain if every field had a line of its own.
    pub true_weight: f64,
    /// Share of the sharing, 0..=1, that is between accesses to different bytes. The two may overlap.
    pub false_weight: f64,
    /// Sites, costliest first.
    pub sites: Vec<SiteCounts>,
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
        self.standing == Standing::Significant
    }
}

/// A judged line before its sites are copied.
struct Candidate<'a> {
    key: LineKey,
    line: &'a Line,
    evidence: Evidence,
    opinion: Opinion,
    watched: Option<(&'a WatchedLine, WatchVerdict)>,
    order: Option<OrderCounts>,
}

/// Judges every line: findings first, highest shared cost first; then those that other CPUs' caches served, whose
/// writer is not known; then at most [`Thresholds::insignificant_listed`] others, highest cost first. Does not disturb the table; open
/// windows count as if they ended now.
pub fn judge_all(
    table: &LineTable,
    watched: &WatchedLines,
    sampled_ns: u64,
    thresholds: &Thresholds,
) -> Vec<Judgement> {
    let ordered = OrderedLines::new(table.line_size(), OrderBounds::default());
    let orders = Orders {
        watched,
        ordered: &ordered,
    };
    judge_table(table, &orders, sampled_ns, thresholds)
}

/// The same for lines whose order may be known otherwise than by windows.
pub fn judge_table(
    table: &LineTable,
    orders: &Orders<'_>,
    sampled_ns: u64,
    thresholds: &Thresholds,
) -> Vec<Judgement> {
    let untimed_stores = table.totals().untimed_stores();
    let mut ranking = Ranking::new(
        orders,
        table.line_size(),
        sampled_ns,
        untimed_stores,
        thresholds,
    );
    for (key, line) in table.lines() {
        ranking.see(key, line);
    }
    ranking.judgements()
}

fn judge<'a>(key: LineKey, line: &'a Line, orders: &Orders<'a>, model: &Model) -> Candidate<'a> {
    let mut evidence = line.evidence(model.line_size);
    if let Some(ordered) = orders.ordered.get(key) {
        let order = ordered.counts();
        evidence.sharing = complete::sharing(&order, &evidence);
        return Candidate {
            key,
            line,
            opinion: complete::opinion(&order, &evidence, model),
            evidence,
            watched: None,
            order: Some(order),
        };
    }
    let kind = |evidence: &Evidence| FINDERS.iter().find_map(|f| f.judge(evidence, model));
    let certain = kind(&evidence);
    // What holds only if an access of unknown size is small, or only if it is large, is no verdict.
    let verdict = certain.filter(|verdict| kind(&evidence.widest()) == Some(*verdict));
    let undecided = certain.is_some() && verdict.is_none();
    let standing = standing::standing(&evidence, verdict, undecided, model);
    let sampled = Opinion::sampled(verdict, standing, &evidence);
    let watched = orders.watched.get(key);
    let watched = watched.map(|line| (line, shown(line, &model.thresholds.watch)));
    let opinion = match &watched {
        Some((_, verdict)) => sampled.hear(verdict, &evidence, model),
        None => sampled,
    };
    Candidate {
        key,
        line,
        evidence,
        opinion,
        watched,
        order: None,
    }
}

/// A line with a store is listed; one without only when waiting for it took long enough to suspect a
/// writer that no sample caught.
fn worth_listing(evidence: &Evidence, model: &Model) -> bool {
    let cost_ns = evidence.sharing.unstored_cost_ns;
    let share = model.share(cost_ns).unwrap_or(0.0);
    let taken = evidence.pmu_loads.taken() > 0;
    evidence.stores > 0 || taken || share >= model.thresholds.suspect_cost_share
}

impl Candidate<'_> {
    fn into_judgement(self, model: &Model) -> Judgement {
        let Evidence {
            accesses,
            stores: _,
            samples,
            cost_ns,
            several_store: _,
            one_cpu: _,
            folded: _,
            pmu_loads: _,
            pmu_stores: _,
            unknown_sizes: _,
            sharing,
        } = self.evidence;
        let pmu = self.evidence.pmu();
        let of_weight = |part: f64| {
            if sharing.weight > 0.0 {
                part / sharing.weight
            } else {
                0.0
            }
        };
        let mut sites = self.line.sites();
        if let Some((watched, _)) = self.watched {
            add_trapped(&mut sites, watched);
        }
        let Opinion {
            verdict,
            standing,
            confidence,
            shared_cost_ns,
            change,
        } = self.opinion;
        let weak = confidence == Confidence::Sampled
            && sharing.weight > 0.0
            && of_weight(sharing.exact_weight) < model.thresholds.exact_share;
        let mut facts = facts::facts(&self.evidence, &sites, weak, model.line_size);
        facts.extend(change);
        Judgement {
            key: self.key,
            verdict,
            standing,
            confidence,
            watched: self.watched.map(|(line, verdict)| Watched {
                verdict,
                counts: line.counts().clone(),
                since_ns: None,
            }),
            order: self.order,
            cost_ns,
            shared_cost_ns: shared_cost_ns.round() as u64,
            shared_share: model.share(shared_cost_ns),
            pmu: (pmu.sampled > 0).then_some(pmu),
            samples,
            accesses,
            interleaving: sharing.weight / (samples as f64).max(1.0),
            true_weight: of_weight(sharing.true_weight),
            false_weight: of_weight(sharing.false_weight),
            threads: threads(&sites),
            weak,
            facts,
            sites,
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
            None => sites.push(SiteCounts {
                site: trapped.site,
                stalled: 0,
                decoded: 0,
                harvested: 0,
                emulated: 0,
                trapped: trapped.trapped,
                pmu: PmuCounts::default(),
                cost_ns: 0,
                cpus: trapped.cpus,
            }),
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
                cost_ns: sites.iter().map(|s| s.cost_ns).sum(),
                cpus,
            }
        })
        .collect();
    threads.sort_by_key(|t| (std::cmp::Reverse((t.cost_ns, t.accesses)), t.tid));
    threads
}
