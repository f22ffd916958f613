//! What a session says of its watcher, and back.

use std::collections::BTreeMap;

use crate::{
    event::Breadth,
    report::WatchFacts,
    session::{Meta, SourceRecord},
    source::watch,
};

const BUDGET: &str = "overhead_percent";
const HIT_COST: &str = "hit_cost_ns";
const SLOTS: &str = "slots";
const BREADTH: &str = "breadth";

/// The watch source's entry in `meta.json`.
pub(super) fn record(facts: &WatchFacts) -> SourceRecord {
    let options: BTreeMap<String, String> = [
        (BUDGET, (facts.budget_share * 100.0).to_string()),
        (HIT_COST, facts.hit_cost_ns.to_string()),
        (SLOTS, facts.slots.to_string()),
        (BREADTH, facts.breadth.name().to_owned()),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect();
    let evidence = watch::evidence().names();
    SourceRecord {
        name: watch::NAME.to_owned(),
        options,
        evidence: evidence.into_iter().map(str::to_owned).collect(),
    }
}

/// What that entry says; `None` where nothing was watched.
pub(super) fn facts(meta: &Meta) -> Option<WatchFacts> {
    let source = meta
        .sources
        .iter()
        .find(|source| source.name == watch::NAME)?;
    let option = |name: &str| source.options.get(name);
    Some(WatchFacts {
        budget_share: option(BUDGET)?.parse::<f64>().ok()? / 100.0,
        hit_cost_ns: option(HIT_COST)?.parse().ok()?,
        slots: option(SLOTS)?.parse().ok()?,
        breadth: Breadth::from_name(option(BREADTH)?)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_session_says_of_the_watcher_is_what_it_was() {
        for share in [0.02, 0.001, 0.5, 0.07] {
            let facts = WatchFacts {
                budget_share: share,
                hit_cost_ns: 9731,
                slots: 3,
                breadth: Breadth::Threads,
            };
            let mut meta = Meta::new();
            assert_eq!(super::facts(&meta), None);
            meta.sources.push(record(&facts));
            let read = super::facts(&meta).expect("the entry was just made");
            assert!((read.budget_share - share).abs() < 1e-12);
            assert_eq!(
                WatchFacts {
                    budget_share: share,
                    ..read
                },
                facts
            );
        }
    }
}
