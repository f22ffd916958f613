//! Whether each source can run here, and if not, why and what helps.
//!
//! Files predict, attempts prove: when every call that a source makes has been seen to work, no setting
//! is held against it; when one was refused and no setting explains it, the refusal itself is reported.

mod emulator;
mod pmu;
mod watch;

use serde::{Serialize, Serializer, ser::SerializeStruct as _};

use super::{
    Capability, KernelVersion, Limit, LiveProbe, Lockdown, Machine, Refusal, Rights, Seccomp,
    remedy,
};

/// The oldest kernel that is supported. The programs themselves need raw tracepoints (4.17), global data
/// (5.2) and `bpf_probe_read_kernel` (5.5), the task records comm_exec and mmap2 (3.16); 5.8 splits
/// CAP_BPF and CAP_PERFMON off CAP_SYS_ADMIN, so that it is the oldest where root is not required.
pub const OLDEST_KERNEL: KernelVersion = KernelVersion::new(5, 8);
/// From here on BPF maps are charged to the memory cgroup and no longer to `RLIMIT_MEMLOCK`.
const MAPS_WITHOUT_MEMLOCK: KernelVersion = KernelVersion::new(5, 11);

/// One reason against a source, or against its full use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Obstacle {
    /// What is in the way.
    pub reason: String,
    /// Lines to paste into a shell, the best first; those that start with `#` are advice.
    pub fix: Vec<String>,
}

/// Whether a source can run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// It can.
    Available,
    /// It cannot, for all of these reasons.
    Unavailable(Vec<Obstacle>),
    /// This build of the tool has no such source for this machine.
    NotBuilt {
        /// What is missing.
        reason: String,
    },
}

/// `status` and `obstacles`, among the fields of the source.
impl Serialize for Status {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let not_built: [Obstacle; 1];
        let (status, obstacles): (&str, &[Obstacle]) = match self {
            Status::Available => ("available", &[]),
            Status::Unavailable(obstacles) => ("unavailable", obstacles),
            Status::NotBuilt { reason } => {
                let (reason, fix) = (reason.clone(), Vec::new());
                not_built = [Obstacle { reason, fix }];
                ("not-built", &not_built)
            }
        };
        let mut fields = serializer.serialize_struct("Status", 2)?;
        fields.serialize_field("status", status)?;
        fields.serialize_field("obstacles", obstacles)?;
        fields.end()
    }
}

/// One source on this machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SourceStatus {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it is, in one line.
    pub about: &'static str,
    /// What its records can prove.
    pub evidence: &'static str,
    /// Whether it can run.
    #[serde(flatten)]
    pub status: Status,
    /// What it will do less well here; empty unless it is available.
    pub limits: Vec<Obstacle>,
}

/// Judges every source that the tool has.
pub fn availability(machine: &Machine, live: &LiveProbe) -> Vec<SourceStatus> {
    let status = timer_status(machine, live);
    let limits = match status {
        Status::Available => timer_limits(machine, live),
        _ => Vec::new(),
    };
    let watch = watch::status(&status, live);
    let pmu = pmu::status(&status, machine, live);
    let timer = SourceStatus {
        name: "timer",
        about: "cpu-clock samples decoded to memory accesses; needs no PMU",
        evidence: "address (decoded), load or store; not latency, cache level or order",
        status,
        limits,
    };
    let emulate = emulator::status(machine, live);
    [timer, watch]
        .into_iter()
        .chain(pmu)
        .chain(emulate)
        .collect()
}

fn timer_status(machine: &Machine, live: &LiveProbe) -> Status {
    if let Some(architecture) = machine.processor.architecture.as_deref()
        && architecture != "x86_64"
    {
        let reason = format!("instructions of {architecture} are not decoded yet, only x86_64");
        return Status::NotBuilt { reason };
    }
    let attempts = [
        &live.cpu_clock,
        &live.bpf,
        &live.kernel_reads,
        &live.raw_tracepoint,
    ];
    let proven = attempts
        .iter()
        .all(|attempt| matches!(attempt, Some(Ok(()))));

    let mut obstacles = Vec::new();
    if !proven {
        if let Some(too_old) = too_old(machine) {
            // Nothing else that is wrong here is worth fixing.
            return Status::Unavailable(vec![too_old]);
        }
        obstacles.extend(missing_rights(machine));
        obstacles.extend(paranoid(machine, live));
        obstacles.extend(lockdown(machine, live));
        obstacles.extend(locked_memory(machine));
    }
    if obstacles.is_empty() {
        obstacles.extend(first_refusal(machine, live));
    }
    obstacles.extend(pid_namespace(machine));
    if obstacles.is_empty() {
        Status::Available
    } else {
        Status::Unavailable(obstacles)
    }
}

fn too_old(machine: &Machine) -> Option<Obstacle> {
    let version = machine
        .kernel
        .version
        .filter(|version| *version < OLDEST_KERNEL)?;
    Some(Obstacle {
        reason: format!(
            "Linux {version} is older than {OLDEST_KERNEL}: the programs need bpf_probe_read_kernel (5.5), \
             and cap_bpf and cap_perfmon (5.8) to run with less than all of root's rights"
        ),
        fix: vec![format!("# boot Linux {OLDEST_KERNEL} or later")],
    })
}

/// Whether a capability is held for sure; CAP_SYS_ADMIN includes BPF and PERFMON.
fn has(machine: &Machine, capability: Capability) -> Option<bool> {
    let set = machine.privileges.effective?;
    let by_admin = matches!(capability, Capability::BPF | Capability::PERFMON)
        && set.has(Capability::SYS_ADMIN);
    Some(by_admin || set.has(capability))
}

fn missing_rights(machine: &Machine) -> Option<Obstacle> {
    if machine.privileges.initial_user_namespace == Some(false) {
        return Some(Obstacle {
            reason: "in a user namespace, where capabilities give no right to BPF or to sampling"
                .into(),
            fix: remedy::initial_namespaces(machine),
        });
    }
    let missing: Vec<&str> = [
        (Capability::BPF, "cap_bpf (to load BPF programs)"),
        (Capability::PERFMON, "cap_perfmon (to sample every CPU)"),
    ]
    .into_iter()
    .filter(|(capability, _)| has(machine, *capability) == Some(false))
    .map(|(_, text)| text)
    .collect();
    (!missing.is_empty()).then(|| Obstacle {
        reason: format!("this process lacks {}", missing.join(" and ")),
        fix: remedy::more_rights(machine, Rights::Events),
    })
}

/// Distributions (Debian, Ubuntu) patch levels above 2 in, which only CAP_SYS_ADMIN passes.
fn paranoid(machine: &Machine, live: &LiveProbe) -> Option<Obstacle> {
    let level = machine
        .kernel
        .perf_event_paranoid
        .filter(|level| *level > 2)?;
    if has(machine, Capability::SYS_ADMIN) == Some(true) || matches!(live.cpu_clock, Some(Ok(()))) {
        return None;
    }
    Some(Obstacle {
        reason: format!(
            "kernel.perf_event_paranoid is {level}: this distribution then demands cap_sys_admin, \
             cap_perfmon is not enough"
        ),
        fix: vec![remedy::sysctl(machine, "kernel.perf_event_paranoid=2")],
    })
}

fn lockdown(machine: &Machine, live: &LiveProbe) -> Option<Obstacle> {
    let locked = machine.kernel.lockdown == Some(Lockdown::Confidentiality);
    if !locked || matches!(live.kernel_reads, Some(Ok(()))) {
        return None;
    }
    Some(Obstacle {
        reason: "kernel lockdown is in confidentiality mode, which takes bpf_probe_read_kernel from the \
                 programs"
            .into(),
        fix: vec![
            "# boot with lockdown=integrity on the kernel command line; the mode cannot be lowered while \
             the kernel runs"
                .into(),
        ],
    })
}

/// The map of targets alone takes one byte for each possible pid.
fn locked_memory(machine: &Machine) -> Option<Obstacle> {
    let kernel = &machine.kernel;
    let needed = kernel.pid_max?;
    let Limit::Bytes(limit) = machine.privileges.locked_memory? else {
        return None;
    };
    let counts = kernel.version? < MAPS_WITHOUT_MEMLOCK;
    if !counts || limit >= needed || has(machine, Capability::SYS_RESOURCE) == Some(true) {
        return None;
    }
    Some(Obstacle {
        reason: format!(
            "before Linux {MAPS_WITHOUT_MEMLOCK} BPF maps are locked memory: {limit} bytes are allowed, \
             and the map of targets takes {needed}"
        ),
        fix: vec!["sudo prlimit --pid $$ --memlock=unlimited:unlimited".into()],
    })
}

/// Samples name processes by their pids in the initial namespace.
fn pid_namespace(machine: &Machine) -> Option<Obstacle> {
    (machine.privileges.initial_pid_namespace == Some(false)).then(|| Obstacle {
        reason:
            "in a pid namespace: the kernel reports the host's pids, which /proc does not show here"
                .into(),
        fix: remedy::initial_namespaces(machine),
    })
}

/// The first call that was refused, when no setting explains it.
fn first_refusal(machine: &Machine, live: &LiveProbe) -> Option<Obstacle> {
    let refused = |attempt: &Option<super::Attempt>| attempt.clone().and_then(Result::err);
    if let Some(refusal) = refused(&live.bpf) {
        return Some(explain(
            machine,
            &refusal,
            "CONFIG_BPF_SYSCALL and CONFIG_BPF_EVENTS",
        ));
    }
    if let Some(refusal) = refused(&live.cpu_clock) {
        return Some(explain(machine, &refusal, "CONFIG_PERF_EVENTS"));
    }
    if let Some(refusal) = refused(&live.kernel_reads) {
        return Some(Obstacle {
            reason: format!(
                "the kernel takes no program that calls bpf_probe_read_kernel ({refusal}), as under \
                 lockdown's confidentiality mode"
            ),
            fix: vec![
                "sudo mount -t securityfs securityfs /sys/kernel/security; \
                 cat /sys/kernel/security/lockdown"
                    .into(),
            ],
        });
    }
    let refusal = refused(&live.raw_tracepoint)?;
    Some(explain(machine, &refusal, "CONFIG_BPF_EVENTS"))
}

fn explain(machine: &Machine, refusal: &Refusal, options: &str) -> Obstacle {
    let filtered = matches!(
        machine.privileges.seccomp,
        Some(Seccomp::Filter | Seccomp::Strict)
    );
    if filtered && (refusal.is_permission() || refusal.errno == Refusal::ENOSYS) {
        return Obstacle {
            reason: format!("a system call filter (seccomp) stands in the way ({refusal})"),
            fix: remedy::no_filter(machine),
        };
    }
    if refusal.is_permission() {
        if machine.privileges.effective.is_none() {
            return Obstacle {
                reason: format!("the kernel refused ({refusal})"),
                fix: remedy::more_rights(machine, Rights::Events),
            };
        }
        return Obstacle {
            reason: format!(
                "the kernel refused ({refusal}) though the capabilities are there: a security module, \
                 perhaps"
            ),
            fix: vec!["sudo dmesg | grep -i -e avc -e apparmor -e lockdown".into()],
        };
    }
    if matches!(refusal.errno, Refusal::ENOSYS | Refusal::EINVAL) {
        return Obstacle {
            reason: format!(
                "the kernel does not know the call ({refusal}): it is built without {options}"
            ),
            fix: vec![format!("# boot a kernel with {options}")],
        };
    }
    Obstacle {
        reason: format!("the kernel refused ({refusal})"),
        fix: Vec::new(),
    }
}

fn timer_limits(machine: &Machine, live: &LiveProbe) -> Vec<Obstacle> {
    let mut limits = Vec::new();
    let mut limit = |applies: bool, reason: &str, fix: Vec<String>| {
        if applies {
            let reason = reason.to_owned();
            limits.push(Obstacle { reason, fix });
        }
    };
    limit(
        machine.online_cpus().len() == 1,
        "one CPU is online: no line can move between CPUs, so nothing is to be found",
        Vec::new(),
    );
    limit(
        machine
            .line_bytes
            .is_some_and(|bytes| bytes != 64 && bytes != 128),
        "the line size is neither 64 nor 128 bytes: lines are cut at 64",
        Vec::new(),
    );
    limit(
        machine.kernel.btf == Some(false),
        "the kernel does not describe its types (/sys/kernel/btf/vmlinux): accesses through the thread \
         pointer have no address",
        vec!["# boot a kernel with CONFIG_DEBUG_INFO_BTF".into()],
    );
    limit(
        machine.kernel.bpf_jit_enable == Some(0),
        "BPF programs are interpreted: each sample costs more",
        vec![remedy::sysctl(machine, "net.core.bpf_jit_enable=1")],
    );
    let unread: Vec<&str> = [
        (
            Capability::SYS_PTRACE,
            "cap_sys_ptrace (to look into other users' processes)",
        ),
        (
            Capability::DAC_READ_SEARCH,
            "cap_dac_read_search (to read their binaries)",
        ),
    ]
    .into_iter()
    .filter(|(capability, _)| has(machine, *capability) == Some(false))
    .map(|(_, text)| text)
    .collect();
    limit(
        !unread.is_empty(),
        &format!("names may be missing without {}", unread.join(" and ")),
        remedy::more_rights(machine, Rights::Events),
    );
    let hidden = machine.kernel.kernel_symbols == Some(false);
    let from_all = machine.kernel.kptr_restrict.is_some_and(|level| level > 1);
    limit(
        hidden && from_all,
        "kernel.kptr_restrict hides the kernel's addresses from everybody: its functions and variables have no names",
        vec![remedy::sysctl(machine, "kernel.kptr_restrict=1")],
    );
    limit(
        hidden && !from_all && has(machine, Capability::SYSLOG) == Some(false),
        "the kernel's functions and variables have no names without cap_syslog (to see its addresses)",
        remedy::more_rights(machine, Rights::Events),
    );
    let no_probes = matches!(&live.uprobes, Some(Err(refusal)) if refusal.is_permission());
    limit(
        no_probes && has(machine, Capability::SYS_ADMIN) == Some(false),
        "allocations cannot be followed (--heap) without cap_sys_admin, which this kernel wants for probes on \
         functions, and which is nearly all of root's rights",
        remedy::more_rights(machine, Rights::Probes),
    );
    limits
}

#[cfg(test)]
mod tests;
