//! What the hardware offers beyond the timer. A statement of what is there, not of what the tool uses.

use serde::Serialize;

use super::{BreakpointSlots, LiveProbe, Machine, MemoryAttempt, Pmu, Virtualization};
use crate::access::Cpu;

/// Breakpoint registers of every x86 (`HBP_NUM` in arch/x86/include/asm/hw_breakpoint.h).
const X86_BREAKPOINTS: u32 = 4;

/// Units that sample or trap memory accesses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Hardware {
    /// Units that sample memory accesses with their addresses; none on most guests.
    #[serde(rename = "memory_sampling")]
    pub memory_units: Vec<MemoryUnit>,
    /// Why there are none.
    #[serde(rename = "no_memory_sampling")]
    pub no_memory_units: Option<String>,
    /// Data breakpoints.
    pub breakpoints: Breakpoints,
}

/// How a unit samples memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MemoryUnitKind {
    /// Intel: precise event-based sampling of load and store events.
    IntelPebs,
    /// AMD: instruction-based sampling of micro-operations.
    AmdIbs,
    /// Arm: statistical profiling extension.
    ArmSpe,
    /// Another architecture's `mem-loads` and `mem-stores`.
    Other,
}

/// One memory-sampling unit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MemoryUnit {
    /// How it samples.
    pub kind: MemoryUnitKind,
    /// PMU name in sysfs.
    pub pmu: String,
    /// `perf_event_attr.type`.
    #[serde(rename = "type")]
    pub perf_type: Option<u32>,
    /// CPUs that have it, when it says so.
    pub cpus: Option<Vec<Cpu>>,
    /// Its memory events.
    pub events: Vec<String>,
    /// What distinguishes it, in words.
    pub features: Vec<&'static str>,
    /// Attempts to open its events.
    pub attempts: Vec<MemoryAttempt>,
}

/// Data breakpoint registers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Breakpoints {
    /// Number that the architecture has; `None` where it varies and is not published.
    pub total: Option<u32>,
    /// Number that could be opened.
    pub free: Option<u32>,
    /// The CPU they were opened on; `None` when on our own thread or not tried.
    pub cpu: Option<Cpu>,
}

impl Hardware {
    /// Reads off what `machine` lists and `live` tried.
    pub fn of(machine: &Machine, live: &LiveProbe) -> Hardware {
        let memory_units: Vec<MemoryUnit> = machine
            .pmus
            .iter()
            .filter_map(|pmu| unit(machine, pmu, live))
            .collect();
        let slots: Option<&BreakpointSlots> = live.breakpoints.as_ref();
        let is_x86 = machine.processor.architecture.as_deref() == Some("x86_64");
        Hardware {
            no_memory_units: memory_units
                .is_empty()
                .then(|| why_none(machine).to_owned()),
            memory_units,
            breakpoints: Breakpoints {
                total: is_x86.then_some(X86_BREAKPOINTS),
                free: slots.map(|slots| slots.free),
                cpu: slots.and_then(|slots| slots.cpu),
            },
        }
    }
}

fn unit(machine: &Machine, pmu: &Pmu, live: &LiveProbe) -> Option<MemoryUnit> {
    let has_events = !pmu.memory_events.is_empty();
    let (kind, features) = if pmu.name == "ibs_op" {
        (MemoryUnitKind::AmdIbs, ibs_features(pmu))
    } else if pmu.name.starts_with("arm_spe_") {
        // drivers/perf/arm_spe_pmu.c never raises an overflow, which is where a program would run.
        let features = vec!["records come by the AUX area only, BPF programs do not see them"];
        (MemoryUnitKind::ArmSpe, features)
    } else if has_events && machine.processor.is_intel() {
        (MemoryUnitKind::IntelPebs, pebs_features(pmu))
    } else if has_events {
        (MemoryUnitKind::Other, Vec::new())
    } else {
        return None;
    };
    let ours = live
        .memory_events
        .iter()
        .filter(|attempt| attempt.pmu == pmu.name);
    Some(MemoryUnit {
        kind,
        pmu: pmu.name.clone(),
        perf_type: pmu.perf_type,
        cpus: pmu.cpus.clone(),
        events: pmu.memory_events.keys().cloned().collect(),
        features,
        attempts: ours.cloned().collect(),
    })
}

fn pebs_features(pmu: &Pmu) -> Vec<&'static str> {
    let mut features = Vec::new();
    if pmu.needs_auxiliary() {
        features.push("mem-loads only in a group led by mem-loads-aux");
    }
    if pmu.formats.contains_key("ldlat") {
        features.push("load latency threshold (ldlat)");
    }
    if !pmu.memory_events.contains_key("mem-stores") {
        features.push("loads only");
    }
    features
}

fn ibs_features(pmu: &Pmu) -> Vec<&'static str> {
    let has = |name: &str| pmu.formats.contains_key(name);
    let mut features = Vec::new();
    if has("l3missonly") || pmu.capabilities.contains_key("zen4_ibs_extensions") {
        features.push("samples of last-level misses only (l3missonly)");
    }
    if has("ldlat") {
        features.push("load latency threshold (ldlat)");
    }
    features.push(if has("swfilt") {
        "user or kernel mode alone (swfilt)"
    } else {
        "user and kernel mode together only"
    });
    features
}

fn why_none(machine: &Machine) -> &'static str {
    match machine.virtualization {
        Some(Virtualization::SoftwareEmulation { .. }) => "a processor in software has none",
        Some(Virtualization::Guest { .. }) => "the hypervisor passes none on to this guest",
        Some(Virtualization::BareMetal) if machine.processor.is_amd() => {
            "no ibs_op: the CPU or the kernel lacks IBS, or the firmware setup switches it off"
        }
        Some(Virtualization::BareMetal) => "the kernel lists none for this CPU",
        None => "the kernel lists none",
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{super::fixture, *};

    fn hardware(fixture: &fixture::Fixture) -> Hardware {
        Hardware::of(&Machine::probe(fixture.root()), &LiveProbe::default())
    }

    /// Kind, name, type and features of each unit.
    fn units(fixture: &fixture::Fixture) -> Vec<(MemoryUnitKind, String, Option<u32>, usize)> {
        hardware(fixture)
            .memory_units
            .into_iter()
            .map(|unit| (unit.kind, unit.pmu, unit.perf_type, unit.features.len()))
            .collect()
    }

    #[test]
    fn a_guest_without_a_pmu_has_no_memory_unit_and_four_breakpoint_registers() {
        let hardware = hardware(&fixture::kvm_amd());
        assert_eq!(hardware.memory_units, []);
        assert_eq!(
            hardware.no_memory_units.as_deref(),
            Some("the hypervisor passes none on to this guest")
        );
        assert_eq!(hardware.breakpoints.total, Some(4));
        assert_eq!(hardware.breakpoints.free, None, "not tried");
    }

    #[test]
    fn each_vendors_unit_is_recognised() {
        assert_eq!(
            units(&fixture::intel_sapphire_rapids()),
            [(MemoryUnitKind::IntelPebs, "cpu".into(), Some(4), 2)]
        );
        assert_eq!(
            units(&fixture::intel_hybrid()),
            [
                (MemoryUnitKind::IntelPebs, "cpu_atom".into(), Some(10), 1),
                (MemoryUnitKind::IntelPebs, "cpu_core".into(), Some(4), 2),
            ]
        );
        assert_eq!(
            units(&fixture::amd_zen4()),
            [(MemoryUnitKind::AmdIbs, "ibs_op".into(), Some(11), 2)]
        );
        assert_eq!(
            units(&fixture::arm_spe()),
            [(MemoryUnitKind::ArmSpe, "arm_spe_0".into(), Some(9), 1)]
        );
    }

    #[test]
    fn bare_metal_amd_without_ibs_points_to_the_firmware() {
        let machine = fixture::amd_zen4();
        machine.remove("sys/bus/event_source/devices/ibs_op");
        let hardware = hardware(&machine);
        assert_eq!(hardware.memory_units, []);
        assert!(hardware.no_memory_units.unwrap().contains("firmware"));
    }

    #[test]
    fn software_filtering_of_ibs_is_told_from_its_absence() {
        let mut pmu = Pmu {
            name: "ibs_op".into(),
            formats: BTreeMap::new(),
            ..Pmu::default()
        };
        assert_eq!(ibs_features(&pmu), ["user and kernel mode together only"]);
        pmu.formats.insert("swfilt".into(), "config2:0".into());
        assert_eq!(ibs_features(&pmu), ["user or kernel mode alone (swfilt)"]);
    }

    #[test]
    fn an_attempt_is_filed_under_its_unit() {
        let attempt = |pmu: &str| MemoryAttempt {
            pmu: pmu.into(),
            event: "mem-loads".into(),
            outcome: Ok(()),
        };
        let live = LiveProbe {
            memory_events: vec![attempt("cpu_core"), attempt("cpu_atom")],
            ..LiveProbe::default()
        };
        let machine = Machine::probe(fixture::intel_hybrid().root());
        for unit in Hardware::of(&machine, &live).memory_units {
            assert_eq!(unit.attempts, [attempt(&unit.pmu)]);
        }
    }
}
