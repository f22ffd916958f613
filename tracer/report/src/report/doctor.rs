//! `cohtrace doctor`: what this machine offers, which sources can run, and what to do about those that
//! cannot. Sources and fixes come first, then the hardware, then the facts behind them.

mod json;
mod page;
pub mod told;

use self::page::{Page, Tone};
pub use self::{json::render_json, page::Paint};
use crate::{
    access::Cpu,
    machine::{
        Attempt, Breakpoints, Capabilities, Engine, Hardware, Limit, LiveProbe, Lockdown, Machine,
        MemoryUnit, MemoryUnitKind, Obstacle, Seccomp, SourceStatus, Status, Virtualization,
        availability,
    },
};

/// A machine, what was tried on it, and the judgement of both.
#[derive(Clone, Debug)]
pub struct Diagnosis {
    /// Read from files.
    pub machine: Machine,
    /// Found by trying.
    pub live: LiveProbe,
    /// Each source of the tool.
    pub sources: Vec<SourceStatus>,
    /// What the hardware offers beyond.
    pub hardware: Hardware,
    /// What `measure` found since the machine was started; `None` where that was not run.
    pub costs: Option<MeasuredCosts>,
}

/// What lines cost here, as far as it was measured.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct MeasuredCosts {
    /// Seconds since it was begun.
    pub age_s: u64,
    /// By class of pairs, nearest first: a load of a line that another CPU has modified, nanoseconds.
    pub class_ns: Vec<f64>,
    /// What speaks against some of it: so many reasons.
    pub doubts: usize,
}

impl Diagnosis {
    /// Judges `machine` and `live`.
    pub fn new(machine: Machine, live: LiveProbe) -> Self {
        Diagnosis {
            sources: availability(&machine, &live),
            hardware: Hardware::of(&machine, &live),
            costs: None,
            machine,
            live,
        }
    }

    /// Whether at least one source can run.
    pub fn can_run(&self) -> bool {
        self.sources
            .iter()
            .any(|source| source.status == Status::Available)
    }
}

/// The diagnosis for people, at most 100 columns wide.
pub fn render_text(diagnosis: &Diagnosis, paint: Paint) -> String {
    let machine = &diagnosis.machine;
    let mut page = Page::new(paint);
    page.title(&title(machine));
    page.section("Sources");
    for status in &diagnosis.sources {
        source(&mut page, status);
    }
    page.section("Tried");
    attempts(&mut page, &diagnosis.live);
    page.section("Hardware");
    hardware(&mut page, &diagnosis.hardware);
    page.row(1, "line costs", &costs(diagnosis.costs.as_ref()));
    page.section("Machine");
    processor(&mut page, machine);
    page.section("Kernel");
    kernel(&mut page, machine);
    page.section("This process");
    process(&mut page, machine);
    page.finish()
}

fn costs(costs: Option<&MeasuredCosts>) -> String {
    let Some(costs) = costs else {
        return "not measured since the machine was started: cohtrace measure".to_owned();
    };
    let ns: Vec<String> = costs
        .class_ns
        .iter()
        .map(|ns| format!("{ns:.0} ns"))
        .collect();
    let doubts = match costs.doubts {
        0 => String::new(),
        _ => ", with doubts: cohtrace measure says which".to_owned(),
    };
    format!(
        "a line that another CPU has modified: {} ({} of pairs, measured {} min ago{doubts})",
        ns.join(", "),
        count(ns.len(), "kind"),
        costs.age_s / 60
    )
}

fn title(machine: &Machine) -> String {
    let mut words =
        vec!["cohtrace doctor: Linux ".to_owned() + known(machine.kernel.release.as_ref())];
    words.extend(machine.processor.architecture.clone());
    words.extend(virtualization(machine.virtualization.as_ref()));
    if let Some(online) = &machine.online {
        words.push(count(online.len(), "CPU"));
    }
    words.join(", ")
}

fn source(page: &mut Page, source: &SourceStatus) {
    let about = format!(": {}", source.about);
    match &source.status {
        Status::Available => page.verdict(source.name, Tone::Good, "ok", &about),
        Status::Unavailable(obstacles) => {
            page.verdict(source.name, Tone::Bad, "no", &about);
            for obstacle in obstacles {
                reason(page, "why", obstacle);
            }
        }
        Status::NotBuilt { reason } => {
            page.verdict(source.name, Tone::Bad, "not built", &about);
            page.row(2, "why", reason);
        }
    }
    page.row(2, "shows", source.evidence);
    for limit in &source.limits {
        reason(page, "limit", limit);
    }
}

fn reason(page: &mut Page, label: &str, obstacle: &Obstacle) {
    page.row(2, label, &obstacle.reason);
    page.commands(3, "fix", &obstacle.fix);
}

fn attempts(page: &mut Page, live: &LiveProbe) {
    let mut attempt = |label: &str, attempt: &Option<Attempt>| match attempt {
        Some(Ok(())) => page.verdict(label, Tone::Good, "ok", ""),
        Some(Err(refusal)) => page.verdict(label, Tone::Bad, "no", &format!(": {refusal}")),
        None => page.verdict(label, Tone::Doubtful, "not tried", ""),
    };
    attempt("cpu-clock, all tasks", &live.cpu_clock);
    attempt("cpu-clock, own thread", &live.own_thread_clock);
    attempt("BPF on perf events", &live.bpf);
    attempt("BPF kernel reads", &live.kernel_reads);
    attempt("BPF raw tracepoint", &live.raw_tracepoint);
    attempt("uprobes (--heap)", &live.uprobes);
}

fn hardware(page: &mut Page, hardware: &Hardware) {
    if let Some(why) = &hardware.no_memory_units {
        page.row(1, "memory-sampling PMU", &format!("none: {why}"));
    }
    for unit in &hardware.memory_units {
        page.row(1, "memory-sampling PMU", &memory_unit(unit));
        for attempt in &unit.attempts {
            let outcome = match &attempt.outcome {
                Ok(()) => "opens".to_owned(),
                Err(refusal) => format!("does not open: {refusal}"),
            };
            page.row(2, &attempt.event, &outcome);
        }
    }
    page.row(1, "data breakpoints", &breakpoints(&hardware.breakpoints));
}

fn memory_unit(unit: &MemoryUnit) -> String {
    let kind = match unit.kind {
        MemoryUnitKind::IntelPebs => "Intel PEBS",
        MemoryUnitKind::AmdIbs => "AMD IBS",
        MemoryUnitKind::ArmSpe => "Arm SPE",
        MemoryUnitKind::Other => "memory events",
    };
    let mut parts = vec![format!("{kind} ({})", unit.pmu)];
    if let Some(cpus) = &unit.cpus {
        parts.push(format!("CPUs {}", ranges(cpus)));
    }
    if !unit.events.is_empty() {
        parts.push(unit.events.join(" "));
    }
    parts.extend(unit.features.iter().map(|feature| (*feature).to_owned()));
    parts.join("; ")
}

fn breakpoints(breakpoints: &Breakpoints) -> String {
    let place = match breakpoints.cpu {
        Some(cpu) => format!("on CPU {}", cpu.0),
        None => "on this thread".to_owned(),
    };
    match (breakpoints.free, breakpoints.total) {
        (Some(free), Some(total)) => format!("{free} free of {total} {place}"),
        (Some(free), None) => format!("{free} free {place}"),
        (None, Some(total)) => format!("{total}; how many are free was not tried"),
        (None, None) => "unknown".to_owned(),
    }
}

fn processor(page: &mut Page, machine: &Machine) {
    let cpu = &machine.processor;
    let model = [
        cpu.vendor.clone(),
        cpu.family.map(|family| format!("family {family}")),
        cpu.model.map(|model| format!("model {model}")),
    ];
    let model: Vec<String> = model.into_iter().flatten().collect();
    let name = known(cpu.name.as_ref());
    page.row(1, "processor", &format!("{name} ({})", model.join(", ")));
    let place = virtualization(machine.virtualization.as_ref());
    page.row(1, "real or virtual", known(place.as_ref()));
    page.row(1, "CPUs", &topology(machine));
    let level = |name: &str, level| format!("{name} {}", size(machine.cache_bytes(level)));
    let caches = [level("L1d", 1), level("L2", 2), level("L3", 3)].join(", ");
    page.row(1, "caches", &caches);
    let line = machine.line_bytes.map(|bytes| format!("{bytes} bytes"));
    page.row(1, "cache line", known(line.as_ref()));
    let pmus: Vec<&str> = machine.pmus.iter().map(|pmu| pmu.name.as_str()).collect();
    page.row(1, "PMU devices", &or_none(&pmus));
}

fn topology(machine: &Machine) -> String {
    let (Some(online), topology) = (&machine.online, &machine.topology) else {
        return "unknown".to_owned();
    };
    let counted = [
        topology.packages().map(|n| count(n, "package")),
        topology.cores().map(|n| count(n, "core")),
        Some(count(online.len(), "thread")),
        topology.nodes().map(|n| count(n, "NUMA node")),
    ];
    let counted: Vec<String> = counted.into_iter().flatten().collect();
    let possible = match &machine.possible {
        Some(possible) => format!(" of {} possible", possible.len()),
        None => String::new(),
    };
    format!(
        "{} online{possible}: {}",
        ranges(online),
        counted.join(", ")
    )
}

fn kernel(page: &mut Page, machine: &Machine) {
    let kernel = &machine.kernel;
    page.row(1, "release", known(kernel.release.as_ref()));
    page.row(1, "build", known(kernel.build.as_ref()));
    page.row(1, "types (BTF)", yes_or_no(kernel.btf));
    page.row(1, "symbol addresses", yes_or_no(kernel.kernel_symbols));
    page.row(1, "/proc/kcore", yes_or_no(kernel.kcore));
    page.row(1, "tracefs", yes_or_no(kernel.tracefs));
    let lockdown = match kernel.lockdown {
        Some(Lockdown::None) => "none",
        Some(Lockdown::Integrity) => "integrity",
        Some(Lockdown::Confidentiality) => "confidentiality",
        None => "unknown: securityfs is not mounted",
    };
    page.row(1, "lockdown", lockdown);
    let signed = kernel.perf_event_paranoid.map(|level| level.to_string());
    page.row(1, "perf_event_paranoid", known(signed.as_ref()));
    let mut setting = |label: &str, value: Option<u64>, unit: &str| {
        let value = value.map_or_else(|| "unknown".to_owned(), |value| format!("{value}{unit}"));
        page.row(1, label, &value);
    };
    setting(
        "max_sample_rate",
        kernel.perf_event_max_sample_rate,
        " per second and CPU",
    );
    setting(
        "perf_event_mlock_kb",
        kernel.perf_event_mlock_kb,
        " KiB per CPU",
    );
    setting(
        "cpu_time_max_percent",
        kernel.perf_cpu_time_max_percent,
        " %",
    );
    setting("kptr_restrict", kernel.kptr_restrict, "");
    setting(
        "unprivileged_bpf",
        kernel.unprivileged_bpf_disabled,
        " (1, 2: disabled)",
    );
    setting("bpf_jit_enable", kernel.bpf_jit_enable, "");
    setting("pid_max", kernel.pid_max, "");
}

fn process(page: &mut Page, machine: &Machine) {
    let us = &machine.privileges;
    let user = us.effective_uid.map(|uid| uid.to_string());
    page.row(1, "effective user", known(user.as_ref()));
    let capabilities = us.effective.map(capabilities);
    page.row(1, "capabilities", known(capabilities.as_ref()));
    page.row(1, "no_new_privs", yes_or_no(us.no_new_privileges));
    let seccomp = match us.seccomp {
        Some(Seccomp::Disabled) => "none",
        Some(Seccomp::Strict) => "strict",
        Some(Seccomp::Filter) => "filter",
        None => "unknown",
    };
    page.row(1, "system call filter", seccomp);
    let namespace = |initial| match initial {
        Some(true) => "initial",
        Some(false) => "its own",
        None => "unknown",
    };
    page.row(1, "pid namespace", namespace(us.initial_pid_namespace));
    page.row(1, "user namespace", namespace(us.initial_user_namespace));
    let container = us.container.map_or("no sign of one", engine);
    page.row(1, "container", container);
    let locked = match us.locked_memory {
        Some(Limit::Unlimited) => "unlimited".to_owned(),
        Some(Limit::Bytes(bytes)) => size(Some(bytes)),
        None => "unknown".to_owned(),
    };
    page.row(1, "locked memory", &locked);
}

/// The engine's name, in lower case.
fn engine(engine: Engine) -> &'static str {
    match engine {
        Engine::Docker => "docker",
        Engine::Podman => "podman",
        Engine::Kubernetes => "kubernetes",
        Engine::Lxc => "lxc",
    }
}

/// Few are named, many by what is missing.
fn capabilities(set: Capabilities) -> String {
    let all = Capabilities(u64::MAX);
    let held: Vec<&str> = set.names().collect();
    let missing: Vec<&str> = all.names().filter(|name| !held.contains(name)).collect();
    match (held.len(), missing.len()) {
        (0, _) => "none".to_owned(),
        (_, 0) => "all".to_owned(),
        (_, 1..=8) => format!("all but {}", missing.join(" ")),
        _ => held.join(" "),
    }
}

fn virtualization(virtualization: Option<&Virtualization>) -> Option<String> {
    Some(match virtualization? {
        Virtualization::BareMetal => "bare metal".to_owned(),
        Virtualization::SoftwareEmulation { emulator } => {
            format!("software emulation ({emulator})")
        }
        Virtualization::Guest {
            hypervisor: Some(name),
        } => format!("{name} guest"),
        Virtualization::Guest { hypervisor: None } => "guest of an unknown hypervisor".to_owned(),
    })
}

fn known(text: Option<&String>) -> &str {
    text.map_or("unknown", String::as_str)
}

fn yes_or_no(fact: Option<bool>) -> &'static str {
    match fact {
        Some(true) => "yes",
        Some(false) => "no",
        None => "unknown",
    }
}

fn or_none(words: &[&str]) -> String {
    if words.is_empty() {
        "none".to_owned()
    } else {
        words.join(" ")
    }
}

fn count(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

fn size(bytes: Option<u64>) -> String {
    match bytes {
        None => "unknown".to_owned(),
        Some(bytes) if bytes >= 1 << 20 && bytes % (1 << 20) == 0 => format!("{} MiB", bytes >> 20),
        Some(bytes) if bytes >= 1 << 10 && bytes % (1 << 10) == 0 => format!("{} KiB", bytes >> 10),
        Some(bytes) => format!("{bytes} bytes"),
    }
}

/// The kernel's list format, `0-3,8`.
fn ranges(cpus: &[Cpu]) -> String {
    let numbers: Vec<u32> = cpus.iter().map(|cpu| cpu.0).collect();
    crate::number::ranges(&numbers)
}

#[cfg(test)]
mod tests;
