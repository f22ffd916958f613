//! A machine of all distances.

use cohtrace_model::access::Cpu;
use cohtrace_platform::machine::{CpuPlace, Topology};

use super::doubt::found_classes;
use crate::costs::{MachineCosts, Passage, SCHEMA};

/// Two packages, each of a node with two caches, each of two cores with two threads.
pub(super) fn large() -> Topology {
    let place = |cpu: u32| CpuPlace {
        node: Some(cpu / 8),
        package: Some(cpu / 8),
        core: Some(Cpu(cpu / 2 * 2)),
        last_cache: Some(Cpu(cpu / 4 * 4)),
    };
    Topology {
        cpus: (0..16).map(|cpu| (Cpu(cpu), place(cpu))).collect(),
    }
}

/// What was found where pairs were only looked at.
pub(super) fn measured(map: Vec<Passage>, topology: &Topology) -> MachineCosts {
    MachineCosts {
        schema: SCHEMA,
        boot_id: "this".to_owned(),
        begun_unix_s: 0,
        took_s: 0.0,
        complete: true,
        classes: found_classes(&map, topology),
        map,
        pairs: Vec::new(),
        contention: Vec::new(),
        doubts: Vec::new(),
    }
}
