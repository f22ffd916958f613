//! Classes of pairs by what was measured, and what speaks against it.

use std::collections::BTreeMap;

use cohtrace_model::access::Cpu;
use cohtrace_platform::{
    machine::{Distance, Topology},
    sys::line_loops::Operation,
};

use crate::{
    costs::{Doubt, MachineCosts, PairClass, Passage},
    pair_classes::classes,
    same_core::ONE_CORE,
    state::State,
};

/// Loads of lines of another CPU that take less than this, as multiples of own ones, are no loads of another's.
const DIFFERENCE: f64 = 1.3;

/// The classes of the pairs that were looked at.
pub(super) fn found_classes(map: &[Passage], topology: &Topology) -> Vec<PairClass> {
    let ns: Vec<f64> = map.iter().map(|passage| passage.ns).collect();
    let class = |numbers: Vec<usize>| {
        let pairs: Vec<(u32, u32)> = (numbers.iter())
            .map(|n| (map[*n].own, map[*n].other))
            .collect();
        let distances =
            (pairs.iter()).filter_map(|(own, other)| topology.distance(Cpu(*own), Cpu(*other)));
        let mut distances: Vec<Distance> = distances.collect();
        distances.sort_unstable();
        distances.dedup();
        PairClass {
            // They are in the order of their latencies.
            ns: ns[numbers[numbers.len() / 2]],
            pairs,
            distances: distances
                .iter()
                .map(|distance| distance.name().to_owned())
                .collect(),
        }
    };
    classes(&ns).into_iter().map(class).collect()
}

/// Notes what speaks against what was measured.
pub(super) fn doubt(costs: &mut MachineCosts, topology: &Topology) {
    let mut by_distance: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for class in &costs.classes {
        for distance in &class.distances {
            by_distance.entry(distance).or_default().push(class.ns);
        }
    }
    let unlike = by_distance.into_iter().filter(|(_, ns)| ns.len() > 1);
    let mut doubts: Vec<Doubt> = unlike
        .map(|(distance, ns)| Doubt::Unlike {
            distance: distance.to_owned(),
            ns,
        })
        .collect();
    for pair in &costs.pairs {
        let (own, other) = (pair.own, pair.other);
        if let Some(ratio) = pair.same_core_ratio
            && let Some(distance) = topology.distance(Cpu(own), Cpu(other))
            && (distance == Distance::Core) != (ratio >= ONE_CORE)
        {
            doubts.push(Doubt::Cores {
                own,
                other,
                kernel_says_one: distance == Distance::Core,
                ratio,
            });
        }
        let median = |state| pair.median_ns(state, Operation::ChainedLoad);
        let both = median(State::OwnL1).zip(median(State::OtherModified));
        if both.is_some_and(|(own, other)| other < DIFFERENCE * own) {
            doubts.push(Doubt::NoDifference { own, other });
        }
    }
    costs.doubts.extend(doubts);
}

#[cfg(test)]
mod tests {
    use super::{
        super::{
            fixture::{large, measured},
            pairs::Pairs,
        },
        *,
    };

    /// A map that agrees with the kernel, but for the pairs of a CPU that is in truth in the other package.
    fn map(topology: &Topology, lies: Option<u32>) -> Vec<Passage> {
        let pairs = Pairs::All.of(topology).into_iter();
        pairs
            .map(|(own, other)| {
                let lied = lies.is_some_and(|cpu| (own.0 == cpu) != (other.0 == cpu));
                let ns = match topology.distance(own, other) {
                    _ if lied => 200.0,
                    Some(Distance::Core) => 5.0,
                    Some(Distance::Cache) => 20.0,
                    Some(Distance::Node) => 70.0,
                    _ => 200.0,
                };
                Passage {
                    own: own.0,
                    other: other.0,
                    ns,
                }
            })
            .collect()
    }

    #[test]
    fn what_contradicts_the_kernel_is_said_and_what_agrees_is_not() {
        let topology = large();
        let mut honest = measured(map(&topology, None), &topology);
        assert_eq!(honest.classes.len(), 4);
        doubt(&mut honest, &topology);
        assert_eq!(honest.doubts, []);
        let mut lied = measured(map(&topology, Some(3)), &topology);
        doubt(&mut lied, &topology);
        let unlike = |doubt: &Doubt| match doubt {
            Doubt::Unlike { distance, ns } => Some((distance.clone(), ns.clone())),
            _ => None,
        };
        let unlike: Vec<_> = lied.doubts.iter().filter_map(unlike).collect();
        let expected = [
            ("one-cache", vec![20.0, 200.0]),
            ("one-core", vec![5.0, 200.0]),
            ("one-node", vec![70.0, 200.0]),
        ];
        assert_eq!(unlike, expected.map(|(name, ns)| (name.to_owned(), ns)));
    }
}
