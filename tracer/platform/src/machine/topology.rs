//! Which CPUs share a core, a package and a memory node.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::tree::Tree;
use crate::access::Cpu;

/// Where one CPU sits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CpuPlace {
    /// NUMA node.
    pub node: Option<u32>,
    /// Physical package (socket); guests and some Arm firmware do not say.
    pub package: Option<u32>,
    /// The core, named by its lowest-numbered hardware thread: the kernel's own `core_id` repeats
    /// across packages and dies.
    pub core: Option<Cpu>,
}

/// The place of each online CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Topology {
    /// Online CPUs in order; what is unknown of one is `None` in its place.
    pub cpus: BTreeMap<Cpu, CpuPlace>,
}

impl Topology {
    pub(super) fn probe(tree: &Tree<'_>, online: &[Cpu]) -> Self {
        let nodes = nodes(tree);
        let place = |cpu: Cpu| {
            let file = |leaf: &str| format!("sys/devices/system/cpu/cpu{}/topology/{leaf}", cpu.0);
            // `thread_siblings_list` is the older name of `core_cpus_list` (5.3).
            let threads = tree
                .cpus(&file("core_cpus_list"))
                .or_else(|| tree.cpus(&file("thread_siblings_list")));
            CpuPlace {
                node: nodes.get(&cpu).copied(),
                // -1 where the firmware does not tell: fails to parse, hence unknown.
                package: tree.number(&file("physical_package_id")),
                core: threads.and_then(|threads| threads.into_iter().min()),
            }
        };
        Topology {
            cpus: online.iter().map(|cpu| (*cpu, place(*cpu))).collect(),
        }
    }

    /// Number of packages; `None` when a CPU's is unknown.
    pub fn packages(&self) -> Option<usize> {
        self.distinct(|place| place.package)
    }

    /// Number of cores; `None` when a CPU's is unknown.
    pub fn cores(&self) -> Option<usize> {
        self.distinct(|place| place.core)
    }

    /// Number of NUMA nodes with CPUs; `None` when a CPU's is unknown.
    pub fn nodes(&self) -> Option<usize> {
        self.distinct(|place| place.node)
    }

    fn distinct<T: Ord>(&self, of: impl Fn(&CpuPlace) -> Option<T>) -> Option<usize> {
        let values: Option<BTreeSet<T>> = self.cpus.values().map(of).collect();
        values.map(|set| set.len()).filter(|count| *count != 0)
    }
}

fn nodes(tree: &Tree<'_>) -> BTreeMap<Cpu, u32> {
    let directory = "sys/devices/system/node";
    let mut nodes = BTreeMap::new();
    for name in tree.names(directory) {
        let Some(node) = name.strip_prefix("node").and_then(|n| n.parse().ok()) else {
            continue;
        };
        // A node of memory only has an empty list.
        for cpu in tree
            .cpus(&format!("{directory}/{name}/cpulist"))
            .unwrap_or_default()
        {
            nodes.insert(cpu, node);
        }
    }
    nodes
}

#[cfg(test)]
mod tests {
    use super::{super::fixture, *};

    fn topology(fixture: &fixture::Fixture) -> Topology {
        let tree = Tree::new(fixture.root());
        let online = tree.cpus("sys/devices/system/cpu/online").unwrap();
        Topology::probe(&tree, &online)
    }

    #[test]
    fn hardware_threads_are_one_core_and_sockets_are_told_apart() {
        let topology = topology(&fixture::intel_sapphire_rapids());
        // Two packages of two cores of two threads, the second threads numbered last.
        assert_eq!(topology.packages(), Some(2));
        assert_eq!(topology.cores(), Some(4));
        assert_eq!(topology.nodes(), Some(2));
        assert_eq!(
            topology.cpus[&Cpu(7)],
            CpuPlace {
                node: Some(1),
                package: Some(1),
                core: Some(Cpu(3)),
            }
        );
    }

    #[test]
    fn one_cpu_of_unknown_package_leaves_the_number_of_packages_unknown() {
        let machine = fixture::kvm_amd();
        assert_eq!(topology(&machine).packages(), Some(1));
        machine.write(
            "sys/devices/system/cpu/cpu1/topology/physical_package_id",
            "-1\n",
        );
        assert_eq!(topology(&machine).packages(), None);
        assert_eq!(topology(&machine).cores(), Some(2));
    }
}
