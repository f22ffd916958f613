//! The diagnosis for programs: `{schema, machine, sources, attempts, hardware, measured_costs}`, unknown is `null`.
//!
//! The types in `machine` say themselves under which names they are written, and in which order; what is reckoned from
//! them is added here. The documents in `recorded/` hold both to what readers know.

use serde::Serialize;

use super::{Diagnosis, MeasuredCosts};
use crate::{
    access::Cpu,
    machine::{
        Cache, CpuPlace, Hardware, Kernel, LiveProbe, Machine, Pmu, Privileges, Processor,
        SourceStatus, Virtualization,
    },
    printable,
};

/// Version of the layout below.
const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct Document<'a> {
    schema: u32,
    machine: MachineJson<'a>,
    sources: &'a [SourceStatus],
    /// `null` for what was not tried.
    attempts: &'a LiveProbe,
    hardware: &'a Hardware,
    /// `null` when they were not measured since the machine was started.
    measured_costs: Option<&'a MeasuredCosts>,
}

#[derive(Serialize)]
struct MachineJson<'a> {
    kernel: &'a Kernel,
    processor: &'a Processor,
    /// `null` when it cannot be told.
    virtual_machine: Option<bool>,
    hypervisor: Option<&'a str>,
    cpus_online: Option<&'a [Cpu]>,
    cpus_possible: Option<&'a [Cpu]>,
    packages: Option<usize>,
    cores: Option<usize>,
    numa_nodes: Option<usize>,
    topology: Vec<PlaceJson<'a>>,
    caches: &'a [Cache],
    line_bytes: Option<u32>,
    pmus: &'a [Pmu],
    process: &'a Privileges,
}

#[derive(Serialize)]
struct PlaceJson<'a> {
    cpu: Cpu,
    #[serde(flatten)]
    place: &'a CpuPlace,
}

/// The diagnosis as one indented JSON document, schema 1.
pub fn render_json(diagnosis: &Diagnosis) -> String {
    let document = Document {
        schema: SCHEMA,
        machine: machine(&diagnosis.machine),
        sources: &diagnosis.sources,
        attempts: &diagnosis.live,
        hardware: &diagnosis.hardware,
        measured_costs: diagnosis.costs.as_ref(),
    };
    let text = serde_json::to_string_pretty(&document);
    printable::json(&text.expect("maps have string keys and writing is to memory"))
}

fn machine(machine: &Machine) -> MachineJson<'_> {
    let topology = &machine.topology;
    let places = topology.cpus.iter();
    MachineJson {
        kernel: &machine.kernel,
        processor: &machine.processor,
        virtual_machine: machine
            .virtualization
            .as_ref()
            .map(|v| *v != Virtualization::BareMetal),
        hypervisor: match machine.virtualization {
            Some(Virtualization::Guest { hypervisor }) => hypervisor,
            Some(Virtualization::SoftwareEmulation { emulator }) => Some(emulator),
            _ => None,
        },
        cpus_online: machine.online.as_deref(),
        cpus_possible: machine.possible.as_deref(),
        packages: topology.packages(),
        cores: topology.cores(),
        numa_nodes: topology.nodes(),
        topology: places
            .map(|(&cpu, place)| PlaceJson { cpu, place })
            .collect(),
        caches: &machine.caches,
        line_bytes: machine.line_bytes,
        pmus: &machine.pmus,
        process: &machine.privileges,
    }
}
