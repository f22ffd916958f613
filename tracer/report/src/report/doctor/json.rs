//! The diagnosis for programs: `{schema, machine, sources, attempts, hardware}`, unknown is `null`.
//!
//! Mirrors of the types in `machine`, so that those can change without changing the schema.

use std::collections::BTreeMap;

use serde::Serialize;

use super::Diagnosis;
use crate::{
    access::Cpu,
    machine::{
        Attempt, CacheKind, Engine, Hardware, Limit, LiveProbe, Lockdown, Machine, MemoryUnitKind,
        Obstacle, Seccomp, SourceStatus, Status, Virtualization,
    },
    printable,
};

/// Version of the layout below.
const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct Document<'a> {
    schema: u32,
    machine: MachineJson<'a>,
    sources: Vec<SourceJson<'a>>,
    attempts: AttemptsJson<'a>,
    hardware: HardwareJson<'a>,
}

#[derive(Serialize)]
struct MachineJson<'a> {
    kernel: KernelJson<'a>,
    processor: ProcessorJson<'a>,
    /// `null` when it cannot be told.
    virtual_machine: Option<bool>,
    hypervisor: Option<&'a str>,
    cpus_online: Option<Vec<u32>>,
    cpus_possible: Option<Vec<u32>>,
    packages: Option<usize>,
    cores: Option<usize>,
    numa_nodes: Option<usize>,
    topology: Vec<PlaceJson>,
    caches: Vec<CacheJson>,
    line_bytes: Option<u32>,
    pmus: Vec<PmuJson<'a>>,
    process: ProcessJson<'a>,
}

#[derive(Serialize)]
struct KernelJson<'a> {
    release: Option<&'a str>,
    build: Option<&'a str>,
    version: Option<[u32; 3]>,
    btf: Option<bool>,
    tracefs: Option<bool>,
    kcore: Option<bool>,
    symbol_addresses: Option<bool>,
    lockdown: Option<&'a str>,
    pid_max: Option<u64>,
    perf_event_paranoid: Option<i64>,
    perf_event_max_sample_rate: Option<u64>,
    perf_event_mlock_kb: Option<u64>,
    perf_cpu_time_max_percent: Option<u64>,
    kptr_restrict: Option<u64>,
    unprivileged_bpf_disabled: Option<u64>,
    bpf_jit_enable: Option<u64>,
}

#[derive(Serialize)]
struct ProcessorJson<'a> {
    architecture: Option<&'a str>,
    vendor: Option<&'a str>,
    name: Option<&'a str>,
    family: Option<u32>,
    model: Option<u32>,
}

#[derive(Serialize)]
struct PlaceJson {
    cpu: u32,
    node: Option<u32>,
    package: Option<u32>,
    core: Option<u32>,
}

#[derive(Serialize)]
struct CacheJson {
    level: u32,
    kind: &'static str,
    size_bytes: Option<u64>,
}

#[derive(Serialize)]
struct PmuJson<'a> {
    name: &'a str,
    r#type: Option<u32>,
    cpus: Option<Vec<u32>>,
    formats: &'a BTreeMap<String, String>,
    memory_events: &'a BTreeMap<String, String>,
    capabilities: &'a BTreeMap<String, String>,
}

#[derive(Serialize)]
struct ProcessJson<'a> {
    effective_uid: Option<u32>,
    capabilities: Option<Vec<&'a str>>,
    no_new_privs: Option<bool>,
    seccomp: Option<&'a str>,
    initial_pid_namespace: Option<bool>,
    initial_user_namespace: Option<bool>,
    container: Option<&'a str>,
    locked_memory: Option<LimitJson>,
}

#[derive(Serialize)]
struct LimitJson {
    unlimited: bool,
    bytes: Option<u64>,
}

#[derive(Serialize)]
struct SourceJson<'a> {
    name: &'a str,
    about: &'a str,
    evidence: &'a str,
    /// `available`, `unavailable` or `not-built`.
    status: &'static str,
    obstacles: Vec<ObstacleJson<'a>>,
    limits: Vec<ObstacleJson<'a>>,
}

#[derive(Serialize)]
struct ObstacleJson<'a> {
    reason: &'a str,
    fix: &'a [String],
}

/// `null` for what was not tried.
#[derive(Serialize)]
struct AttemptsJson<'a> {
    cpu_clock: Option<AttemptJson<'a>>,
    own_thread_clock: Option<AttemptJson<'a>>,
    bpf: Option<AttemptJson<'a>>,
    kernel_reads: Option<AttemptJson<'a>>,
    raw_tracepoint: Option<AttemptJson<'a>>,
    uprobes: Option<AttemptJson<'a>>,
}

#[derive(Serialize)]
struct AttemptJson<'a> {
    ok: bool,
    errno: Option<i32>,
    call: Option<&'a str>,
}

#[derive(Serialize)]
struct HardwareJson<'a> {
    memory_sampling: Vec<MemoryUnitJson<'a>>,
    no_memory_sampling: Option<&'a str>,
    breakpoints: BreakpointsJson,
}

#[derive(Serialize)]
struct MemoryUnitJson<'a> {
    /// `intel-pebs`, `amd-ibs`, `arm-spe` or `other`.
    kind: &'static str,
    pmu: &'a str,
    r#type: Option<u32>,
    cpus: Option<Vec<u32>>,
    events: &'a [String],
    features: &'a [&'static str],
    attempts: Vec<EventAttemptJson<'a>>,
}

#[derive(Serialize)]
struct EventAttemptJson<'a> {
    event: &'a str,
    outcome: AttemptJson<'a>,
}

#[derive(Serialize)]
struct BreakpointsJson {
    total: Option<u32>,
    free: Option<u32>,
    cpu: Option<u32>,
}

/// The diagnosis as one indented JSON document, schema 1.
pub fn render_json(diagnosis: &Diagnosis) -> String {
    let document = Document {
        schema: SCHEMA,
        machine: machine(&diagnosis.machine),
        sources: diagnosis.sources.iter().map(source).collect(),
        attempts: attempts(&diagnosis.live),
        hardware: hardware(&diagnosis.hardware),
    };
    let text = serde_json::to_string_pretty(&document);
    printable::json(&text.expect("maps have string keys and writing is to memory"))
}

fn machine(machine: &Machine) -> MachineJson<'_> {
    let processor = &machine.processor;
    let topology = &machine.topology;
    MachineJson {
        kernel: kernel(machine),
        processor: ProcessorJson {
            architecture: processor.architecture.as_deref(),
            vendor: processor.vendor.as_deref(),
            name: processor.name.as_deref(),
            family: processor.family,
            model: processor.model,
        },
        virtual_machine: machine
            .virtualization
            .as_ref()
            .map(|v| *v != Virtualization::BareMetal),
        hypervisor: match machine.virtualization {
            Some(Virtualization::Guest { hypervisor }) => hypervisor,
            Some(Virtualization::SoftwareEmulation { emulator }) => Some(emulator),
            _ => None,
        },
        cpus_online: machine.online.as_deref().map(numbers),
        cpus_possible: machine.possible.as_deref().map(numbers),
        packages: topology.packages(),
        cores: topology.cores(),
        numa_nodes: topology.nodes(),
        topology: topology
            .cpus
            .iter()
            .map(|(cpu, place)| PlaceJson {
                cpu: cpu.0,
                node: place.node,
                package: place.package,
                core: place.core.map(|core| core.0),
            })
            .collect(),
        caches: machine
            .caches
            .iter()
            .map(|cache| CacheJson {
                level: cache.level,
                kind: match cache.kind {
                    CacheKind::Data => "data",
                    CacheKind::Instruction => "instruction",
                    CacheKind::Unified => "unified",
                },
                size_bytes: cache.size_bytes,
            })
            .collect(),
        line_bytes: machine.line_bytes,
        pmus: machine
            .pmus
            .iter()
            .map(|pmu| PmuJson {
                name: &pmu.name,
                r#type: pmu.perf_type,
                cpus: pmu.cpus.as_deref().map(numbers),
                formats: &pmu.formats,
                memory_events: &pmu.memory_events,
                capabilities: &pmu.capabilities,
            })
            .collect(),
        process: process(machine),
    }
}

fn kernel(machine: &Machine) -> KernelJson<'_> {
    let kernel = &machine.kernel;
    KernelJson {
        release: kernel.release.as_deref(),
        build: kernel.build.as_deref(),
        version: kernel.version.map(|v| [v.major, v.minor, v.patch]),
        btf: kernel.btf,
        tracefs: kernel.tracefs,
        kcore: kernel.kcore,
        symbol_addresses: kernel.kernel_symbols,
        lockdown: kernel.lockdown.map(|lockdown| match lockdown {
            Lockdown::None => "none",
            Lockdown::Integrity => "integrity",
            Lockdown::Confidentiality => "confidentiality",
        }),
        pid_max: kernel.pid_max,
        perf_event_paranoid: kernel.perf_event_paranoid,
        perf_event_max_sample_rate: kernel.perf_event_max_sample_rate,
        perf_event_mlock_kb: kernel.perf_event_mlock_kb,
        perf_cpu_time_max_percent: kernel.perf_cpu_time_max_percent,
        kptr_restrict: kernel.kptr_restrict,
        unprivileged_bpf_disabled: kernel.unprivileged_bpf_disabled,
        bpf_jit_enable: kernel.bpf_jit_enable,
    }
}

fn process(machine: &Machine) -> ProcessJson<'_> {
    let us = &machine.privileges;
    ProcessJson {
        effective_uid: us.effective_uid,
        capabilities: us.effective.map(|set| set.names().collect()),
        no_new_privs: us.no_new_privileges,
        seccomp: us.seccomp.map(|seccomp| match seccomp {
            Seccomp::Disabled => "disabled",
            Seccomp::Strict => "strict",
            Seccomp::Filter => "filter",
        }),
        initial_pid_namespace: us.initial_pid_namespace,
        initial_user_namespace: us.initial_user_namespace,
        container: us.container.map(engine),
        locked_memory: us.locked_memory.map(|limit| match limit {
            Limit::Unlimited => LimitJson {
                unlimited: true,
                bytes: None,
            },
            Limit::Bytes(bytes) => LimitJson {
                unlimited: false,
                bytes: Some(bytes),
            },
        }),
    }
}

/// The engine's name, in lower case.
pub(super) fn engine(engine: Engine) -> &'static str {
    match engine {
        Engine::Docker => "docker",
        Engine::Podman => "podman",
        Engine::Kubernetes => "kubernetes",
        Engine::Lxc => "lxc",
    }
}

fn source(source: &SourceStatus) -> SourceJson<'_> {
    let (status, obstacles) = match &source.status {
        Status::Available => ("available", Vec::new()),
        Status::Unavailable(obstacles) => ("unavailable", obstacles.iter().map(obstacle).collect()),
        Status::NotBuilt { reason } => ("not-built", vec![ObstacleJson { reason, fix: &[] }]),
    };
    SourceJson {
        name: source.name,
        about: source.about,
        evidence: source.evidence,
        status,
        obstacles,
        limits: source.limits.iter().map(obstacle).collect(),
    }
}

fn obstacle(obstacle: &Obstacle) -> ObstacleJson<'_> {
    ObstacleJson {
        reason: &obstacle.reason,
        fix: &obstacle.fix,
    }
}

fn attempts(live: &LiveProbe) -> AttemptsJson<'_> {
    AttemptsJson {
        cpu_clock: live.cpu_clock.as_ref().map(attempt),
        own_thread_clock: live.own_thread_clock.as_ref().map(attempt),
        bpf: live.bpf.as_ref().map(attempt),
        kernel_reads: live.kernel_reads.as_ref().map(attempt),
        raw_tracepoint: live.raw_tracepoint.as_ref().map(attempt),
        uprobes: live.uprobes.as_ref().map(attempt),
    }
}

fn attempt(attempt: &Attempt) -> AttemptJson<'_> {
    let refusal = attempt.as_ref().err();
    AttemptJson {
        ok: refusal.is_none(),
        errno: refusal.map(|refusal| refusal.errno),
        call: refusal.map(|refusal| refusal.what),
    }
}

fn hardware(hardware: &Hardware) -> HardwareJson<'_> {
    HardwareJson {
        memory_sampling: hardware
            .memory_units
            .iter()
            .map(|unit| MemoryUnitJson {
                kind: match unit.kind {
                    MemoryUnitKind::IntelPebs => "intel-pebs",
                    MemoryUnitKind::AmdIbs => "amd-ibs",
                    MemoryUnitKind::ArmSpe => "arm-spe",
                    MemoryUnitKind::Other => "other",
                },
                pmu: &unit.pmu,
                r#type: unit.perf_type,
                cpus: unit.cpus.as_deref().map(numbers),
                events: &unit.events,
                features: &unit.features,
                attempts: unit
                    .attempts
                    .iter()
                    .map(|tried| EventAttemptJson {
                        event: &tried.event,
                        outcome: attempt(&tried.outcome),
                    })
                    .collect(),
            })
            .collect(),
        no_memory_sampling: hardware.no_memory_units.as_deref(),
        breakpoints: BreakpointsJson {
            total: hardware.breakpoints.total,
            free: hardware.breakpoints.free,
            cpu: hardware.breakpoints.cpu.map(|cpu| cpu.0),
        },
    }
}

fn numbers(cpus: &[Cpu]) -> Vec<u32> {
    cpus.iter().map(|cpu| cpu.0).collect()
}
