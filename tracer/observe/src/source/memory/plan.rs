//! Which events a PMU's source opens, where, and how: from what sysfs lists to attributes; pure.

use crate::{
    access::Cpu,
    machine::{AUXILIARY, EventCode, Hardware, LiveProbe, Machine, MemoryUnitKind, Pmu},
    source::MemoryOptions,
    sys::perf_event::{Attributes, flag, sample},
};

/// What `perf mem` and `perf c2c` take too: loads that miss the first level take longer, most hits do not.
pub const DEFAULT_LDLAT: u16 = 30;
/// Thresholds that the load latency facility counts (Intel SDM, volume 3, `MSR_PEBS_LD_LAT`): a threshold below 3
/// is 3.
const INTEL_LDLAT: std::ops::RangeInclusive<u16> = 3..=u16::MAX;
/// Thresholds that arch/x86/events/amd/ibs.c takes.
const AMD_LDLAT: std::ops::RangeInclusive<u16> = 128..=2048;

/// Micro-operations that a busy CPU dispatches in a second, about: IBS counts these.
const OPS_PER_SECOND: u64 = 4_000_000_000;
/// Shorter periods than this can keep a CPU in interrupts (an IBS race that Linux fixed in 2026).
const LEAST_IBS_PERIOD: u64 = 1 << 14;
/// IBS counts in steps of 16, and refuses periods that are no multiples.
const IBS_STEP: u64 = 16;

/// What every event is asked for. Only what is read: before a program runs the kernel fills in whatever was
/// asked for. `WEIGHT` and not `WEIGHT_STRUCT`: both have the latency in the low 32 bits, and the former is known
/// to every kernel.
pub const SAMPLE_TYPE: u64 = sample::IP
    | sample::ADDR
    | sample::PERIOD
    | sample::WEIGHT
    | sample::DATA_SRC
    | sample::PHYS_ADDR;

/// One event on some CPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedEvent {
    /// PMU name in sysfs.
    pub pmu: String,
    /// Event name in sysfs; the PMU's where the PMU is the event.
    pub name: String,
    /// Where to open it.
    pub cpus: Vec<Cpu>,
    /// How, but for the precision.
    pub attributes: Attributes,
    /// An event that must lead its group; it takes no samples.
    pub leader: Option<Attributes>,
    /// `precise_ip`, to be tried in this order.
    pub precise: &'static [u64],
    /// The same with kernel mode left out, where the PMU can do that.
    pub user_only: Option<Attributes>,
}

/// Why there is nothing to open.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoPlan {
    /// The machine has no such unit.
    #[error("{unit}: {why}; sample by `--source {instead}`")]
    NoUnit {
        /// What is missing.
        unit: &'static str,
        /// As far as known.
        why: String,
        /// What works.
        instead: &'static str,
    },
    /// A unit without events for memory.
    #[error(
        "the PMU `{pmu}` lists no memory event that can be written down (its `type`, `events` and `format` in \
         /sys/bus/event_source/devices/{pmu} tell none): sample by `--source timer`"
    )]
    NoEvent {
        /// Name of the PMU in sysfs.
        pmu: String,
    },
    /// The threshold is none.
    #[error("--ldlat {given}: this PMU takes {least} to {most} cycles")]
    Latency {
        /// What was asked for.
        given: u16,
        /// Least.
        least: u16,
        /// Most.
        most: u16,
    },
    /// An option that the hardware or its driver lacks.
    #[error("--{option} is not offered here: {needs}")]
    NotOffered {
        /// Option of the command line that cannot be kept.
        option: &'static str,
        /// Where it is.
        needs: &'static str,
    },
}

/// Events of Intel's PEBS: loads and stores, on each kind of core.
pub fn pebs(
    machine: &Machine,
    frequency_hz: u64,
    options: MemoryOptions,
) -> Result<Vec<PlannedEvent>, NoPlan> {
    if options.l3_misses_only {
        return Err(NoPlan::NotOffered {
            option: "l3-misses-only",
            needs: "it is AMD's, from Zen 4 on",
        });
    }
    let ldlat = options.ldlat.unwrap_or(DEFAULT_LDLAT);
    in_range(ldlat, &INTEL_LDLAT)?;
    let pmus = units(machine, MemoryUnitKind::IntelPebs)?;
    // The kernel refuses more than its limit.
    let most = machine.kernel.perf_event_max_sample_rate;
    let frequency_hz = frequency_hz.min(most.unwrap_or(u64::MAX)).max(1);
    let mut planned = Vec::new();
    for pmu in &pmus {
        for name in ["mem-loads", "mem-stores"] {
            planned.extend(pebs_event(machine, pmu, name, ldlat, frequency_hz));
        }
    }
    some(planned, &pmus)
}

fn pebs_event(
    machine: &Machine,
    pmu: &Pmu,
    name: &str,
    ldlat: u16,
    frequency_hz: u64,
) -> Option<PlannedEvent> {
    let event = |terms: &str, period| {
        let code = pmu.encode(terms)?;
        Some(Attributes {
            kind: pmu.perf_type?,
            config: code.config,
            config1: code.config1,
            config2: code.config2,
            sample_period: period,
            // A virtual machine's accesses mean nothing to us, and where the hypervisor lends the PMU to its
            // guests, an event that wants theirs is refused.
            flags: flag::DISABLED | flag::EXCLUDE_GUEST,
            ..Attributes::default()
        })
    };
    let terms = with_latency(pmu.memory_events.get(name)?, ldlat);
    let mut attributes = event(&terms, frequency_hz)?;
    attributes.flags |= flag::FREQUENCY;
    attributes.sample_type = SAMPLE_TYPE;
    // Without a watermark, a wake-up for each record keeps the hardware from handing over many at once, late
    // (`intel_pmu_hw_config`): ours must find the thread still running.
    attributes.wakeup_watermark = 1;
    let leader = match pmu.memory_events.get(AUXILIARY) {
        // The count of the leader is of no interest, it must only run.
        Some(terms) if name == "mem-loads" => Some(event(terms, 0)?),
        _ => None,
    };
    Some(PlannedEvent {
        pmu: pmu.name.clone(),
        name: name.to_owned(),
        cpus: cpus_of(machine, pmu),
        attributes,
        leader,
        precise: &[3, 2, 1],
        user_only: Some(Attributes {
            flags: attributes.flags | flag::EXCLUDE_KERNEL,
            ..attributes
        }),
    })
}

/// The terms with another threshold, if they have one.
fn with_latency(terms: &str, ldlat: u16) -> String {
    let terms: Vec<String> = terms
        .split(',')
        .map(|term| match term.split_once('=') {
            Some(("ldlat", _)) => format!("ldlat={ldlat}"),
            _ => term.to_owned(),
        })
        .collect();
    terms.join(",")
}

/// The event of AMD's IBS: micro-operations, of which the kernel half keeps those that touch memory.
pub fn ibs(
    machine: &Machine,
    frequency_hz: u64,
    options: MemoryOptions,
) -> Result<Vec<PlannedEvent>, NoPlan> {
    let pmus = units(machine, MemoryUnitKind::AmdIbs)?;
    let mut planned = Vec::new();
    for pmu in &pmus {
        planned.extend(ibs_event(machine, pmu, frequency_hz, options)?);
    }
    some(planned, &pmus)
}

fn ibs_event(
    machine: &Machine,
    pmu: &Pmu,
    frequency_hz: u64,
    options: MemoryOptions,
) -> Result<Option<PlannedEvent>, NoPlan> {
    let has = |format: &str| pmu.formats.contains_key(format);
    let mut terms = Vec::new();
    if has("cnt_ctl") {
        // Micro-operations dispatched, not cycles: long ones are then not favoured.
        terms.push("cnt_ctl=1".to_owned());
    }
    if options.l3_misses_only {
        if !has("l3missonly") {
            return Err(NoPlan::NotOffered {
                option: "l3-misses-only",
                needs: "it takes Zen 4 and Linux 5.19",
            });
        }
        terms.push("l3missonly=1".to_owned());
    }
    if let Some(ldlat) = options.ldlat {
        if !has("ldlat") {
            return Err(NoPlan::NotOffered {
                option: "ldlat",
                needs: "of AMD's, it takes Zen 5 and Linux 6.15",
            });
        }
        in_range(ldlat, &AMD_LDLAT)?;
        terms.push(format!("ldlat={ldlat}"));
    }
    let code = if terms.is_empty() {
        Some(EventCode::default())
    } else {
        pmu.encode(&terms.join(","))
    };
    let (Some(code), Some(kind)) = (code, pmu.perf_type) else {
        return Ok(None);
    };
    let period = (OPS_PER_SECOND / frequency_hz.max(1)).max(LEAST_IBS_PERIOD);
    let attributes = Attributes {
        kind,
        config: code.config,
        config1: code.config1,
        config2: code.config2,
        sample_period: period / IBS_STEP * IBS_STEP,
        sample_type: SAMPLE_TYPE,
        // No exclusion of any kind: without swfilt each is refused.
        flags: flag::DISABLED,
        wakeup_watermark: 1,
        ..Attributes::default()
    };
    let filter = pmu.encode("swfilt=1");
    Ok(Some(PlannedEvent {
        pmu: pmu.name.clone(),
        name: pmu.name.clone(),
        cpus: cpus_of(machine, pmu),
        attributes,
        leader: None,
        // The tag brings the instruction's own address in any case.
        precise: &[0],
        user_only: filter.map(|code| Attributes {
            flags: attributes.flags | flag::EXCLUDE_KERNEL,
            config2: attributes.config2 | code.config2,
            ..attributes
        }),
    }))
}

fn in_range(given: u16, range: &std::ops::RangeInclusive<u16>) -> Result<(), NoPlan> {
    if range.contains(&given) {
        return Ok(());
    }
    Err(NoPlan::Latency {
        given,
        least: *range.start(),
        most: *range.end(),
    })
}

/// The PMU's CPUs that run.
fn cpus_of(machine: &Machine, pmu: &Pmu) -> Vec<Cpu> {
    let online = machine.online_cpus().iter().copied();
    match &pmu.cpus {
        Some(cpus) => online.filter(|cpu| cpus.contains(cpu)).collect(),
        None => online.collect(),
    }
}

/// PMUs of a kind, or why there are none.
fn units(machine: &Machine, kind: MemoryUnitKind) -> Result<Vec<Pmu>, NoPlan> {
    let hardware = Hardware::of(machine, &LiveProbe::default());
    let is_kind = |pmu: &&Pmu| {
        let units = hardware.memory_units.iter();
        units
            .filter(|unit| unit.kind == kind)
            .any(|unit| unit.pmu == pmu.name)
    };
    let found: Vec<Pmu> = machine.pmus.iter().filter(is_kind).cloned().collect();
    if !found.is_empty() {
        return Ok(found);
    }
    let (unit, vendor, other, other_name) = match kind {
        MemoryUnitKind::AmdIbs => (
            "no AMD IBS",
            machine.processor.is_amd(),
            MemoryUnitKind::IntelPebs,
            "pebs",
        ),
        _ => (
            "no Intel PEBS for memory",
            machine.processor.is_intel(),
            MemoryUnitKind::AmdIbs,
            "ibs",
        ),
    };
    let has_other = hardware.memory_units.iter().any(|unit| unit.kind == other);
    let why = match hardware.no_memory_units {
        Some(why) => why,
        None if vendor => "the kernel lists none for this CPU".to_owned(),
        None => "this CPU is of another maker".to_owned(),
    };
    let instead = if has_other { other_name } else { "timer" };
    Err(NoPlan::NoUnit { unit, why, instead })
}

fn some(planned: Vec<PlannedEvent>, pmus: &[Pmu]) -> Result<Vec<PlannedEvent>, NoPlan> {
    if planned.is_empty() {
        return Err(NoPlan::NoEvent {
            pmu: pmus
                .first()
                .map_or_else(String::new, |pmu| pmu.name.clone()),
        });
    }
    Ok(planned)
}

#[cfg(test)]
mod tests;
