//! What is kept of each line, so that lines of one thing can be judged together.

use std::cmp::Reverse;

use super::{
    Candidate, Confidence, Judgement, Model, Significance, Verdict, WatchVerdict, threads,
};
use crate::{
    access::{Basis, Cost, LineKey, LineSize, Op, Tid},
    analysis::{HandOffs, Kinds, Line, OrderCounts, PmuCounts, Site, SiteCounts, Uses, WaitTimes},
    distribution::Distributions,
};

/// Sites kept of a line, the costliest. An element of an array is touched by a handful of instructions.
const MOST_SITES: usize = 12;

/// One line, as a part of what it belongs to.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    /// The line.
    pub key: LineKey,
    /// All that was waited for it, as [`Judgement::cost`].
    pub cost: Cost,
    /// The part of it that counts as sharing, by the line alone.
    pub shared_cost: Cost<f64>,
    /// Samples with an access to it; none of an emulated line.
    pub samples: u64,
    /// Of those, samples that waited for it.
    pub stalled: u64,
    /// Of an emulated line, requests for it since a second thread came.
    pub requests: u64,
    /// Accesses: one per instruction and sample, or all executions of an emulated program.
    pub accesses: u64,
    /// Of those, stores.
    pub stores: u64,
    /// Several threads touched it.
    pub several_threads: bool,
    /// Neighbouring samples that were a hand-off.
    pub hand_offs: f64,
    /// Neighbouring samples that may have been.
    pub neighbours: u64,
    /// What was thought of it alone.
    pub verdict: Option<Verdict>,
    /// Whether it is a finding alone, and if not, why.
    pub significance: Significance,
    /// How sure that is.
    pub confidence: Confidence,
    /// The kinds of its hand-offs, by the order of its accesses, or else by which thread touches which bytes.
    pub kinds: Option<Kinds>,
    /// What windows on it saw.
    pub watched: Option<Box<WatchVerdict>>,
    /// Windows on it that had an access.
    pub busy_windows: u64,
    /// All its hand-offs, where a source saw every access.
    pub order: Option<HandOffs>,
    /// What a PMU measured of it; `None` where none sampled it.
    pub pmu: Option<Box<PmuCounts>>,
    /// How the quantities are spread that were measured of it.
    pub distributions: Distributions,
    /// Its costliest sites.
    pub sites: Vec<MemberSite>,
}

/// A [`Site`] with what counts for many lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberSite {
    /// Instruction, thread and bytes.
    pub site: Site,
    /// Accesses, or hits in windows where no sample saw it.
    pub accesses: u64,
    /// What was waited here.
    pub cost: Cost,
    /// Of that, where the CPU stood meanwhile.
    pub waits: WaitTimes,
    /// The strongest basis that it is known on.
    pub basis: Basis,
}

impl MemberSite {
    /// The site with its counts, where CPUs do not matter.
    pub fn counts(&self) -> SiteCounts {
        let accesses = u32::try_from(self.accesses).unwrap_or(u32::MAX);
        let of = |basis| if self.basis == basis { accesses } else { 0 };
        SiteCounts {
            stalled: of(Basis::Stalled),
            decoded: of(Basis::Decoded).saturating_add(of(Basis::Sampled)),
            harvested: of(Basis::Harvested),
            emulated: if self.basis == Basis::Emulated {
                self.accesses
            } else {
                0
            },
            trapped: of(Basis::Trapped).into(),
            cost: self.cost,
            waits: self.waits,
            ..SiteCounts::unseen(self.site)
        }
    }
}

impl Member {
    /// Its accesses, as counts of sites.
    pub fn counts(&self) -> Vec<SiteCounts> {
        self.sites.iter().map(MemberSite::counts).collect()
    }

    pub(super) fn of(candidate: &Candidate<'_>, line: &Line, line_size: LineSize) -> Member {
        let (evidence, opinion) = (&candidate.evidence, &candidate.opinion);
        let kinds = evidence
            .kinds
            .or_else(|| line.kinds_by_bytes(&candidate.groups, line_size));
        let counts = candidate.watched.as_ref().map(|(line, _)| line.telling());
        Member {
            key: candidate.key,
            cost: evidence.cost,
            shared_cost: opinion.shared_cost,
            samples: evidence.samples,
            stalled: stalled(&candidate.sites),
            requests: requests(candidate.order.as_ref()),
            accesses: evidence.accesses,
            stores: evidence.stores,
            several_threads: true,
            hand_offs: evidence.sharing.hand_offs,
            neighbours: line.neighbours(),
            verdict: opinion.verdict,
            significance: opinion.significance,
            confidence: opinion.confidence,
            kinds,
            watched: (candidate.watched.as_ref()).map(|(_, verdict)| Box::new(*verdict)),
            busy_windows: counts.as_ref().map_or(0, |counts| counts.busy_windows),
            order: candidate.order.map(|order| order.hand_offs),
            pmu: measured(evidence.pmu()),
            distributions: candidate.distributions.clone(),
            sites: touches(&candidate.sites),
        }
    }

    /// A line that one thread was seen to use; `None` where that took no time.
    pub(super) fn of_one_thread(key: LineKey, line: &Line) -> Option<Member> {
        if line.cost() == Cost(0) {
            return None;
        }
        let sites = line.sites();
        let stores = sites.iter().filter(|site| site.site.op.stores());
        Some(Member {
            key,
            cost: line.cost(),
            shared_cost: Cost(0.0),
            samples: line.samples(),
            stalled: stalled(&sites),
            requests: 0,
            accesses: line.accesses(),
            stores: stores.map(SiteCounts::accesses).sum(),
            several_threads: false,
            hand_offs: 0.0,
            neighbours: line.neighbours(),
            verdict: None,
            significance: Significance::Insignificant(super::Reason::TooFewSamples),
            confidence: Confidence::Sampled,
            kinds: None,
            watched: None,
            busy_windows: 0,
            order: None,
            pmu: None,
            distributions: Distributions::default(),
            sites: touches(&sites),
        })
    }

    /// The member that a judgement is of.
    pub fn of_judgement(judgement: &Judgement) -> Member {
        let watched = judgement.watched.as_ref();
        Member {
            key: judgement.key,
            cost: judgement.cost,
            shared_cost: judgement.shared_cost.estimate(),
            samples: judgement.samples,
            stalled: stalled(&judgement.sites),
            requests: requests(judgement.order.as_ref()),
            accesses: judgement.accesses,
            stores: judgement.threads.iter().map(|thread| thread.stores).sum(),
            several_threads: judgement.threads.len() > 1,
            hand_offs: 0.0,
            neighbours: 0,
            verdict: judgement.verdict,
            significance: judgement.significance,
            confidence: judgement.confidence,
            kinds: judgement.kinds,
            watched: watched.map(|watched| Box::new(watched.verdict)),
            busy_windows: watched.map_or(0, |watched| watched.counts.busy_windows),
            order: judgement.order.map(|order| order.hand_offs),
            pmu: judgement.pmu.and_then(measured),
            distributions: judgement.distributions.clone(),
            sites: touches(&judgement.sites),
        }
    }

    /// A judgement of the line, as far as it is kept.
    pub(super) fn judgement(&self, model: &Model) -> Judgement {
        let sites = self.counts();
        Judgement {
            key: self.key,
            verdict: self.verdict,
            significance: self.significance,
            confidence: self.confidence,
            watched: None,
            order: None,
            cost: self.cost,
            shared_cost: self.shared_cost.rounded(),
            shared_share: model.share(self.shared_cost),
            together_share: None,
            alike_share: None,
            pmu: self.pmu.as_deref().copied(),
            distributions: self.distributions.clone(),
            samples: self.samples,
            accesses: self.accesses,
            interleaving: 0.0,
            kinds: self.kinds,
            threads: threads(&sites),
            sites,
            uses: Uses::default(),
            weak: false,
            facts: Vec::new(),
        }
    }

    /// What its hand-offs are counted of; see [`looks`].
    pub(super) fn looks(&self) -> u64 {
        looks(self.order.is_some(), self.samples, self.accesses)
    }

    /// What tells which members stay where there are too many: the costliest.
    pub(super) fn rank(&self) -> (Reverse<(Cost, u64)>, LineKey) {
        (Reverse((self.cost, self.accesses)), self.key)
    }

    /// Accesses by each thread, as far as kept.
    pub(super) fn threads(&self) -> impl Iterator<Item = (Tid, u64)> {
        self.sites
            .iter()
            .map(|touch| (touch.site.tid, touch.accesses))
    }
}

fn measured(pmu: PmuCounts) -> Option<Box<PmuCounts>> {
    (pmu.sampled > 0).then(|| Box::new(pmu))
}

/// How often a line was looked at: in samples, or where its order is complete, at all executions.
pub(super) fn looks(in_order: bool, samples: u64, accesses: u64) -> u64 {
    if in_order { accesses } else { samples }
}

/// Samples that waited.
fn stalled(sites: &[SiteCounts]) -> u64 {
    let waited = |site: &SiteCounts| u64::from(site.stalled) + site.pmu.timed;
    sites.iter().map(waited).sum()
}

fn requests(order: Option<&OrderCounts>) -> u64 {
    order.map_or(0, |order| order.requests.total())
}

fn touches(sites: &[SiteCounts]) -> Vec<MemberSite> {
    let touching = sites.iter().filter(|site| site.site.op != Op::Prefetch);
    touching
        .take(MOST_SITES)
        .map(|site| MemberSite {
            site: site.site,
            accesses: match site.accesses() {
                0 => site.trapped,
                accesses => accesses,
            },
            cost: site.cost,
            waits: site.waits,
            basis: site.basis(),
        })
        .collect()
}
