//! Sharing that is not there yet, by samples and watch windows: where threads would meet, and no cost.

use super::{
    LatentBasis, LatentCost, LatentSharing, Told, described,
    thing::{Thing, things},
};
use crate::{
    analysis::{SampledRun, Way},
    names::Names,
    report::run_facts::RunFacts,
};

/// Memory of which samples show that threads use neighbouring lines at the same time, by place, and the ways in which bytes of
/// two of them would be on one line.
pub fn sampled_latent(
    runs: &[SampledRun],
    names: &dyn Names,
    facts: &RunFacts,
) -> Vec<LatentSharing> {
    let mut found: Vec<(Thing<'_>, Vec<(Way, bool)>)> = Vec::new();
    for run in runs {
        for thing in things(std::slice::from_ref(&run.run), names) {
            let is_same = |known: &&mut (Thing<'_>, Vec<(Way, bool)>)| {
                !thing.names.is_empty()
                    && known.0.names == thing.names
                    && known.0.alignment == thing.alignment
            };
            match found.iter_mut().find(is_same) {
                Some((known, ways)) => {
                    known.add(thing);
                    for (known, more) in ways.iter_mut().zip(&run.ways) {
                        known.1 |= more.1;
                    }
                }
                None => found.push((thing, run.ways.clone())),
            }
        }
    }
    let sharing = found.iter().filter_map(|(thing, ways)| {
        let told = told(thing, ways);
        let any = told.ways.iter().any(|way| way.fights);
        any.then(|| described(thing, told, names, facts))
    });
    let numbered = sharing.zip(1..);
    numbered
        .map(|(sharing, n)| LatentSharing {
            id: format!("L{n}"),
            ..sharing
        })
        .collect()
}

fn told(thing: &Thing<'_>, ways: &[(Way, bool)]) -> Told {
    let cost = |way: Way, meet: bool| {
        let keeps_alignment = thing.alignment.map(|bytes| way.keeps(bytes));
        LatentCost {
            fights: meet && keeps_alignment != Some(false),
            ..LatentCost::at(thing, way, keeps_alignment)
        }
    };
    let others = ways.iter().filter(|(way, _)| *way != Way::TODAY);
    Told {
        basis: LatentBasis::Samples,
        today: cost(Way::TODAY, false),
        ways: others.map(|(way, meet)| cost(*way, *meet)).collect(),
        one_more_thread: None,
        one_moves: Vec::new(),
    }
}
