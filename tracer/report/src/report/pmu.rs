//! What a PMU measured, as data and in sentences.

use super::{caveat::Caveat, model::Coherence, run_facts::RunFacts};
use crate::number::{count, grouped, percent};
use crate::{
    access::Op,
    analysis::{PmuCounts, SiteCounts},
    finding::Judgement,
};

/// The outcomes of sampled accesses as the report has them; `None` where no PMU sampled any.
pub(super) fn coherence(pmu: &PmuCounts) -> Option<Coherence> {
    (pmu.sampled > 0).then_some(Coherence {
        sampled: pmu.sampled,
        local_hitm: pmu.local_hitm,
        remote_hitm: pmu.remote_hitm,
        peer: pmu.peer,
        not_available: pmu.not_available,
    })
}

/// What was measured of the loads at these sites.
pub(super) fn loads(sites: &[SiteCounts]) -> PmuCounts {
    let mut sum = PmuCounts::default();
    for site in sites.iter().filter(|site| site.site.op != Op::Store) {
        sum.add(&site.pmu);
    }
    sum
}

/// What the PMU saw of a line.
pub(super) fn seen(judgement: &Judgement) -> Option<String> {
    let pmu = judgement.pmu?;
    let loads = loads(&judgement.sites);
    let mut text = format!(
        "{} touch this line, by {}",
        count(pmu.sampled, "sample", "samples"),
        count(judgement.threads.len() as u64, "thread", "threads")
    );
    if pmu.hitm() > 0 {
        text.push_str(&format!(
            ". {} found it modified in another CPU's cache: {} on the own node, {} on another",
            count(pmu.hitm(), "load", "loads"),
            grouped(pmu.local_hitm),
            grouped(pmu.remote_hitm)
        ));
    }
    if pmu.peer > 0 {
        text.push_str(&format!(
            ". {} it from another CPU's cache, which may have had it modified or not: the PMU does not say",
            count(pmu.peer, "load got", "loads got")
        ));
    }
    if let Some(mean) = loads.mean_latency() {
        text.push_str(&format!(
            ". A sampled load took {} cycles on average",
            grouped(mean.round() as u64)
        ));
    }
    if pmu.not_available > 0 {
        text.push_str(&format!(
            ". Of {} it is not known where they were served",
            grouped(pmu.not_available)
        ));
    }
    text.push('.');
    Some(text)
}

/// What the PMU could not tell in the whole run.
pub(super) fn caveats(run: &RunFacts) -> Vec<Caveat> {
    let (loads, stores) = (&run.totals.pmu_loads, &run.totals.pmu_stores);
    let mut out = Vec::new();
    if loads.sampled + stores.sampled == 0 {
        return out;
    }
    let part = |n: u64, whole: u64| percent(n as f64 / whole.max(1) as f64);
    out.push(Caveat::detail(
        "The PMU samples a few of all loads and stores: each hand-off shown was seen, but most were not, and a thread \
         or a store that is not listed may only not have been sampled.",
    ));
    if loads.not_available > 0 {
        out.push(Caveat::detail(format!(
            "The data source of {} of {} ({}) is not available: whether another CPU had these lines is not known.",
            grouped(loads.not_available),
            count(loads.sampled, "sampled load", "sampled loads"),
            part(loads.not_available, loads.sampled)
        )));
    }
    if stores.not_available > 0 {
        out.push(Caveat::detail(format!(
            "{} of {} ({}) do not tell where they were served.",
            grouped(stores.not_available),
            count(stores.sampled, "sampled store", "sampled stores"),
            part(stores.not_available, stores.sampled)
        )));
    }
    if run.totals.untimed_stores() > 0 {
        out.push(Caveat::detail(format!(
            "{} of {} have no latency, so what they waited is in no cost; lines that are mostly stored to are judged by \
             their share of these stores.",
            grouped(run.totals.untimed_stores()),
            count(stores.sampled, "sampled store", "sampled stores")
        )));
    }
    if stores.sampled == 0 {
        out.push(Caveat::reading(
            "No store was sampled at all, so the writers of lines are not known: sample stores too, or watch the lines \
             while the program runs (`attach --watch`).",
        ));
    }
    if loads.hitm() == 0 && loads.peer > 0 {
        out.push(Caveat::reading(
            "No load tells that another CPU had its line modified, as on machines that do not record it (Arm SPE): \
             lines from other CPUs' caches stand for it, which readers alone may cause too.",
        ));
    }
    out
}
