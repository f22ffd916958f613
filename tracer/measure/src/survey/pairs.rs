//! Which pairs of CPUs are looked at, and which CPU is the third of two.

use std::collections::{BTreeMap, btree_map::Entry};

use cohtrace_model::access::Cpu;
use cohtrace_platform::machine::{Distance, Topology};

/// Pairs besides one of each distance, to find out whether the kernel's words are true.
const MORE_PAIRS: usize = 3;

/// Which pairs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pairs {
    /// One of each distance that the kernel tells, and three more.
    Classes,
    /// All.
    All,
    /// These.
    These(Vec<(Cpu, Cpu)>),
}

impl Pairs {
    /// The pairs that are looked at, in an order that comes everywhere early.
    pub(super) fn of(&self, topology: &Topology) -> Vec<(Cpu, Cpu)> {
        let cpus: Vec<Cpu> = topology.cpus.keys().copied().collect();
        let pairs = (cpus.iter().enumerate())
            .flat_map(|(n, own)| cpus[n + 1..].iter().map(|other| (*own, *other)));
        let all = match self {
            Pairs::These(pairs) => return pairs.clone(),
            Pairs::All | Pairs::Classes => spread_out(&pairs.collect::<Vec<_>>()),
        };
        if *self == Pairs::All {
            return all;
        }
        let mut first: BTreeMap<Option<Distance>, (Cpu, Cpu)> = BTreeMap::new();
        let mut more = Vec::new();
        for (own, other) in all {
            let distance = topology.distance(own, other);
            match first.entry(distance) {
                Entry::Occupied(_) => more.push((own, other)),
                Entry::Vacant(place) => {
                    place.insert((own, other));
                }
            }
        }
        more.truncate(MORE_PAIRS);
        first.into_values().chain(more).collect()
    }
}

/// A CPU on a core of its own, as near to both as there is.
pub(super) fn third(topology: &Topology, own: Cpu, other: Cpu) -> Option<Cpu> {
    let cpus = topology.cpus.keys().copied();
    let far = |cpu: &Cpu| {
        let of = |from| topology.distance(from, *cpu);
        of(own).max(of(other))
    };
    let apart = |cpu: &Cpu| {
        let one_core = |from| topology.distance(from, *cpu) == Some(Distance::Core);
        *cpu != own && *cpu != other && !one_core(own) && !one_core(other)
    };
    cpus.filter(apart).min_by_key(far)
}

/// All of them, neighbours in the list far apart in the new one, so that the first ones are of all kinds.
fn spread_out<T: Copy>(all: &[T]) -> Vec<T> {
    // The golden section leaves no rhythm; a step without a common divisor comes everywhere.
    let golden = (all.len() as f64 * 0.618) as usize;
    let mut steps = golden.max(1)..=all.len();
    let step = steps.find(|step| common_divisor(*step, all.len()) <= 1);
    let step = step.unwrap_or(1);
    (0..all.len()).map(|n| all[n * step % all.len()]).collect()
}

fn common_divisor(a: usize, b: usize) -> usize {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::{super::fixture::large, *};

    #[test]
    fn classes_are_one_pair_of_each_distance_and_three_more_and_all_are_all() {
        let topology = large();
        let pairs = Pairs::Classes.of(&topology);
        assert_eq!(pairs.len(), 4 + MORE_PAIRS);
        let distances = pairs.iter().map(|(a, b)| topology.distance(*a, *b));
        let mut distances: Vec<_> = distances.take(4).collect();
        distances.dedup();
        assert_eq!(distances.len(), 4);
        let mut all = Pairs::All.of(&topology);
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 16 * 15 / 2);
        // Whoever looks at a tenth of them has seen all kinds.
        let mut early: Vec<_> = Pairs::All.of(&topology)[..24]
            .iter()
            .map(|(a, b)| topology.distance(*a, *b))
            .collect();
        early.sort_unstable();
        early.dedup();
        assert_eq!(early.len(), 4);
    }

    #[test]
    fn a_third_cpu_is_on_a_core_of_its_own_and_near() {
        let topology = large();
        assert_eq!(third(&topology, Cpu(0), Cpu(2)), Some(Cpu(4)));
        assert_eq!(third(&topology, Cpu(0), Cpu(1)), Some(Cpu(2)));
        let two = Topology {
            cpus: large().cpus.into_iter().take(2).collect(),
        };
        assert_eq!(third(&two, Cpu(0), Cpu(1)), None);
    }
}
