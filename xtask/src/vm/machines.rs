//! What kernels run on: machines that QEMU emulates.

/// A machine without a PMU, whose instructions QEMU translates.
#[derive(Debug)]
pub(super) struct Machine {
    pub name: &'static str,
    pub about: &'static str,
    pub cpus: usize,
    /// NUMA nodes, among which the CPUs and the memory are divided evenly.
    pub nodes: usize,
}

pub(super) static TWO_CPUS: Machine = Machine {
    name: "2-cpus",
    about: "two CPUs, one node",
    cpus: 2,
    nodes: 1,
};

pub(super) static MACHINES: [Machine; 4] = [
    Machine {
        name: "1-cpu",
        about: "one CPU: threads take turns on it, and nothing is shared",
        cpus: 1,
        nodes: 1,
    },
    Machine { ..TWO_CPUS },
    Machine {
        name: "8-cpus",
        about: "eight CPUs, more than most machines have that run this",
        cpus: 8,
        nodes: 1,
    },
    Machine {
        name: "2-nodes",
        about: "two NUMA nodes of two CPUs each",
        cpus: 4,
        nodes: 2,
    },
];

/// Memory of a machine, MiB.
const MEMORY: usize = 2048;

impl Machine {
    /// Arguments by which QEMU makes it.
    pub(super) fn arguments(&self) -> Vec<String> {
        // With cmpxchg16b, QEMU 7.2 makes kernel 6.12 take a fault in its slab allocator.
        let mut arguments: Vec<String> = ["-accel", "tcg", "-cpu", "max,-cx16", "-smp"]
            .map(str::to_owned)
            .into();
        // Kernels warn of CPUs of one package that are on several nodes.
        arguments.push(format!(
            "{},sockets={},cores={},threads=1",
            self.cpus,
            self.nodes,
            self.cpus / self.nodes
        ));
        arguments.extend(["-m".to_owned(), MEMORY.to_string()]);
        if self.nodes == 1 {
            return arguments;
        }
        let (cpus, memory) = (self.cpus / self.nodes, MEMORY / self.nodes);
        for node in 0..self.nodes {
            let (first, last) = (node * cpus, (node + 1) * cpus - 1);
            arguments.extend([
                "-object".to_owned(),
                format!("memory-backend-ram,id=memory{node},size={memory}M"),
                "-numa".to_owned(),
                format!("node,nodeid={node},cpus={first}-{last},memdev=memory{node}"),
            ]);
        }
        arguments
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_divide_cpus_and_memory_without_rest() {
        let machine = MACHINES.iter().find(|machine| machine.nodes == 2).unwrap();
        let arguments = machine.arguments().join(" ");
        assert!(
            arguments.ends_with(
                "-smp 4,sockets=2,cores=2,threads=1 -m 2048 \
                 -object memory-backend-ram,id=memory0,size=1024M -numa node,nodeid=0,cpus=0-1,memdev=memory0 \
                 -object memory-backend-ram,id=memory1,size=1024M -numa node,nodeid=1,cpus=2-3,memdev=memory1"
            ),
            "{arguments}"
        );
    }

    #[test]
    fn a_machine_of_one_node_says_nothing_of_nodes() {
        assert!(!TWO_CPUS.arguments().contains(&"-numa".to_owned()));
        assert!(MACHINES.iter().all(|m| m.cpus % m.nodes == 0));
    }
}
