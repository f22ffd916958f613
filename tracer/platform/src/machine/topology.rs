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
    /// The last level of cache, named by the lowest-numbered CPU that shares it.
    pub last_cache: Option<Cpu>,
}

/// How far two CPUs are from each other by what the kernel says, nearest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Distance {
    /// Threads of one core.
    Core,
    /// Cores that share the last level of cache.
    Cache,
    /// Caches of one memory node.
    Node,
    /// Nodes of one package.
    Package,
    /// Two packages.
    Packages,
}

impl Distance {
    /// Stable name.
    pub fn name(self) -> &'static str {
        match self {
            Distance::Core => "one-core",
            Distance::Cache => "one-cache",
            Distance::Node => "one-node",
            Distance::Package => "one-package",
            Distance::Packages => "two-packages",
        }
    }

    /// For people.
    pub fn words(self) -> &'static str {
        match self {
            Distance::Core => "threads of one core",
            Distance::Cache => "cores of one last-level cache",
            Distance::Node => "caches of one memory node",
            Distance::Package => "memory nodes of one package",
            Distance::Packages => "two packages",
        }
    }
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
                last_cache: last_cache(tree, cpu),
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

    /// How far two CPUs are from each other; `None` where the kernel does not say enough to tell.
    pub fn distance(&self, a: Cpu, b: Cpu) -> Option<Distance> {
        let (a, b) = (self.cpus.get(&a)?, self.cpus.get(&b)?);
        if a.core? == b.core? {
            return Some(Distance::Core);
        }
        if a.last_cache.is_some() && a.last_cache == b.last_cache {
            return Some(Distance::Cache);
        }
        let packages = (a.package, b.package);
        if let (Some(a), Some(b)) = packages
            && a != b
        {
            return Some(Distance::Packages);
        }
        Some(if a.node? == b.node? {
            Distance::Node
        } else {
            packages.0.and(packages.1)?;
            Distance::Package
        })
    }

    fn distinct<T: Ord>(&self, of: impl Fn(&CpuPlace) -> Option<T>) -> Option<usize> {
        let values: Option<BTreeSet<T>> = self.cpus.values().map(of).collect();
        values.map(|set| set.len()).filter(|count| *count != 0)
    }
}

fn last_cache(tree: &Tree<'_>, cpu: Cpu) -> Option<Cpu> {
    let directory = format!("sys/devices/system/cpu/cpu{}/cache", cpu.0);
    let level = |name: &str| tree.number::<u32>(&format!("{directory}/{name}/level"));
    let caches = tree.names(&directory).into_iter();
    let last = caches
        .filter(|name| name.starts_with("index"))
        .max_by_key(|name| level(name))?;
    let cpus = tree.cpus(&format!("{directory}/{last}/shared_cpu_list"))?;
    cpus.into_iter().min()
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
                last_cache: topology.cpus[&Cpu(3)].last_cache,
            }
        );
    }

    #[test]
    fn two_cpus_are_as_far_apart_as_the_kernel_says_and_no_nearer_than_it_knows() {
        let machine = fixture::intel_sapphire_rapids();
        let distance = |a, b| topology(&machine).distance(Cpu(a), Cpu(b));
        assert_eq!(distance(3, 7), Some(Distance::Core));
        assert_eq!(distance(0, 3), Some(Distance::Packages));
        assert_eq!(distance(0, 99), None);
        for cpu in 0..8 {
            let own = if cpu % 4 < 2 { "0-1,4-5" } else { "2-3,6-7" };
            let cache = format!("sys/devices/system/cpu/cpu{cpu}/cache/index3");
            machine.write(&format!("{cache}/level"), "3\n");
            machine.write(&format!("{cache}/shared_cpu_list"), format!("{own}\n"));
        }
        assert_eq!(distance(0, 5), Some(Distance::Cache));
        assert_eq!(distance(0, 3), Some(Distance::Packages));
        machine.write(
            "sys/devices/system/cpu/cpu0/topology/core_cpus_list",
            "what?\n",
        );
        machine.write(
            "sys/devices/system/cpu/cpu0/topology/thread_siblings_list",
            "what?\n",
        );
        assert_eq!(distance(0, 5), None);
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
