//! What this machine is and allows: hardware, kernel, rights, and which sources can therefore run.
//!
//! [`Machine::probe`] reads files, never fails and never guesses: unknown is `None`. What only a system
//! call can tell is a [`LiveProbe`]. [`availability()`] judges both; [`Hardware::of`] says what else is there.

mod availability;
pub mod btf;
#[cfg(any(test, feature = "fixtures"))]
pub mod fixture;
mod hardware;
pub mod kallsyms;
mod kernel;
mod live;
pub mod memory;
mod pmu;
mod privileges;
mod processor;
mod remedy;
mod rights;
mod topology;
mod tree;

use std::path::Path;

use self::tree::Tree;
pub use self::{
    availability::{OLDEST_KERNEL, Obstacle, SourceStatus, Status, availability},
    hardware::{Breakpoints, Hardware, MemoryUnit, MemoryUnitKind},
    kernel::{Kernel, KernelVersion, Lockdown},
    live::{Attempt, BreakpointSlots, LiveProbe, MemoryAttempt, Refusal},
    pmu::{AUXILIARY, EventCode, Pmu},
    privileges::{Capabilities, Capability, Engine, Limit, Privileges, Seccomp},
    processor::{Cache, CacheKind, Processor, Virtualization},
    rights::Rights,
    topology::{CpuPlace, Distance, Topology},
};
use crate::{access::Cpu, sys::cpuid};

/// One machine as its `/proc` and `/sys` show it to this process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    /// The running kernel.
    pub kernel: Kernel,
    /// The processor.
    pub processor: Processor,
    /// Real or a guest.
    pub virtualization: Option<Virtualization>,
    /// CPUs that run.
    pub online: Option<Vec<Cpu>>,
    /// CPUs that could ever run: per-CPU BPF maps have this many values.
    pub possible: Option<Vec<Cpu>>,
    /// Cores, packages and nodes of the online CPUs.
    pub topology: Topology,
    /// Caches of the first online CPU, nearest first. Other kinds of core in a hybrid may differ.
    pub caches: Vec<Cache>,
    /// Coherence granule in bytes.
    pub line_bytes: Option<u32>,
    /// Performance monitoring units.
    pub pmus: Vec<Pmu>,
    /// This process.
    pub privileges: Privileges,
}

impl Machine {
    /// Reads `/proc` and `/sys` below `root`, and of the running machine (`/`) what its processor says of a hypervisor.
    pub fn probe(root: &Path) -> Machine {
        let tree = Tree::new(root);
        let running = root == Path::new("/");
        let signature = running.then(cpuid::hypervisor_signature).flatten();
        let processor = Processor::probe(&tree);
        let online = tree.cpus("sys/devices/system/cpu/online");
        let first = online.as_deref().and_then(<[Cpu]>::first);
        let caches = first.map_or_else(Vec::new, |cpu| Cache::probe(&tree, cpu.0));
        Machine {
            kernel: Kernel::probe(&tree),
            virtualization: Virtualization::probe(&tree, &processor, signature),
            possible: tree.cpus("sys/devices/system/cpu/possible"),
            topology: Topology::probe(&tree, online.as_deref().unwrap_or_default()),
            line_bytes: line_bytes(&caches, &processor),
            pmus: Pmu::probe(&tree),
            privileges: Privileges::probe(&tree),
            online,
            processor,
            caches,
        }
    }

    /// The CPUs that are online now; `None` when unknown.
    pub fn online_now(root: &Path) -> Option<Vec<Cpu>> {
        Tree::new(root).cpus("sys/devices/system/cpu/online")
    }

    /// The program that the processors are, where they are one: `QEMU TCG`.
    pub fn software_emulation(&self) -> Option<String> {
        let emulator = self.virtualization.as_ref()?.emulator()?;
        Some(emulator.to_owned())
    }

    /// CPUs that ran when it was probed; empty when unknown.
    pub fn online_cpus(&self) -> &[Cpu] {
        self.online.as_deref().unwrap_or_default()
    }

    /// Capacity of a data or unified cache level, bytes.
    pub fn cache_bytes(&self, level: u32) -> Option<u64> {
        let cache = self
            .caches
            .iter()
            .find(|cache| cache.level == level && cache.kind != CacheKind::Instruction)?;
        cache.size_bytes
    }
}

/// The first-level data cache's line. Guests are often shown no caches; x86 kernels then take the
/// `clflush` size for the line size themselves (`x86_clflush_size` in arch/x86/kernel/cpu/common.c).
fn line_bytes(caches: &[Cache], processor: &Processor) -> Option<u32> {
    caches
        .iter()
        .filter(|cache| cache.kind != CacheKind::Instruction)
        .find_map(|cache| cache.line_bytes)
        .or(processor.clflush_bytes)
        .filter(|bytes| *bytes != 0)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use proptest::prelude::*;

    use super::{fixture::Fixture, *};

    fn output(program: &str, argument: &str) -> String {
        let output = Command::new(program).arg(argument).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    #[test]
    fn the_probe_of_this_machine_agrees_with_uname_and_nproc() {
        let machine = Machine::probe(Path::new("/"));
        assert_eq!(machine.kernel.release, Some(output("uname", "-r")));
        assert_eq!(machine.kernel.build, Some(output("uname", "-v")));
        assert_eq!(machine.processor.architecture, Some(output("uname", "-m")));
        let online = machine.online_cpus().len();
        assert_eq!(online.to_string(), output("getconf", "_NPROCESSORS_ONLN"));
        assert_eq!(machine.topology.cpus.len(), online);
        assert_eq!(
            machine.privileges.effective_uid.map(|uid| uid.to_string()),
            Some(output("id", "-u"))
        );
    }

    #[test]
    fn an_empty_tree_is_a_machine_of_which_nothing_is_known() {
        let empty = tempfile::tempdir().unwrap();
        assert_eq!(Machine::probe(empty.path()), Machine::default());
    }

    #[test]
    fn a_guest_is_probed_in_full() {
        let machine = Machine::probe(fixture::kvm_amd().root());
        assert_eq!(machine.online_cpus(), [Cpu(0), Cpu(1)]);
        assert_eq!(machine.possible, Some(vec![Cpu(0), Cpu(1)]));
        assert_eq!(machine.line_bytes, Some(64));
        assert_eq!(
            [1, 2, 3, 4].map(|level| machine.cache_bytes(level)),
            [Some(48 << 10), Some(1 << 20), Some(32 << 20), None]
        );
        assert_eq!(machine.kernel.perf_event_paranoid, Some(2));
        assert_eq!(machine.kernel.pid_max, Some(4194304));
        assert_eq!(machine.kernel.btf, Some(true));
        assert_eq!(machine.kernel.tracefs, Some(false));
        assert_eq!(machine.kernel.kcore, Some(false));
        let pmus: Vec<&str> = machine.pmus.iter().map(|pmu| pmu.name.as_str()).collect();
        assert_eq!(pmus, ["breakpoint", "software"]);
    }

    #[test]
    fn without_cache_directories_the_flush_size_is_the_line_size() {
        let fixture = fixture::kvm_amd();
        fixture.remove("sys/devices/system/cpu/cpu0/cache");
        let machine = Machine::probe(fixture.root());
        assert_eq!((machine.caches.len(), machine.line_bytes), (0, Some(64)));
    }

    /// Overwrites every file of the tree.
    fn damage(fixture: &Fixture, garbage: &[u8]) {
        let mut pending = vec![fixture.root().to_owned()];
        while let Some(directory) = pending.pop() {
            for entry in std::fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    pending.push(path);
                } else if path.is_file() {
                    std::fs::write(path, garbage).unwrap();
                }
            }
        }
        fixture.link("proc/self/ns/pid", "pid:");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]
        #[test]
        fn garbage_in_every_file_is_survived_and_judged(
            garbage in prop_oneof![
                prop::collection::vec(any::<u8>(), 0..64),
                "[-0-9,:\\[\\]=x. \n]{0,64}".prop_map(String::into_bytes),
            ],
        ) {
            let fixture = fixture::intel_hybrid();
            damage(&fixture, &garbage);
            let machine = Machine::probe(fixture.root());
            let live = LiveProbe::default();
            for pmu in &machine.pmus {
                for terms in pmu.memory_events.values() {
                    let _ = pmu.encode(terms);
                }
            }
            prop_assert_eq!(availability(&machine, &live).len(), 2);
            prop_assert_eq!(Hardware::of(&machine, &live).breakpoints.free, None);
        }
    }
}
