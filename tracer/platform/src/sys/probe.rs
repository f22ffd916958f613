//! Finds out by trying what the kernel lets this process do. Everything that is opened is closed again;
//! no event counts and no program runs.

#![expect(unsafe_code, reason = "perf_event_open and bpf have no safe wrapper")]

use std::{
    io,
    os::fd::{FromRawFd, OwnedFd},
    sync::atomic::AtomicU64,
};

use crate::{
    access::Cpu,
    machine::{
        AUXILIARY, Attempt, BreakpointSlots, EventCode, LiveProbe, Machine, MemoryAttempt, Pmu,
        Refusal,
    },
};

/// The first 112 bytes of `struct perf_event_attr` (`PERF_ATTR_SIZE_VER5`, Linux 4.8), which every kernel
/// that can run the tool knows.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct EventAttributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    /// The bit field that starts with `disabled`.
    flags: u64,
    wakeup_events: u32,
    breakpoint_type: u32,
    /// `config1`, or the address of a breakpoint.
    config1: u64,
    /// `config2`, or the length of a breakpoint.
    config2: u64,
    branch_sample_type: u64,
    sample_regs_user: u64,
    sample_stack_user: u32,
    clock: i32,
    sample_regs_intr: u64,
    aux_watermark: u32,
    sample_max_stack: u16,
    reserved: u16,
}

const _: () = assert!(size_of::<EventAttributes>() == 112);

// include/uapi/linux/perf_event.h; bit positions of the flags on little-endian machines.
const TYPE_SOFTWARE: u32 = 1;
const TYPE_BREAKPOINT: u32 = 5;
const SOFTWARE_CPU_CLOCK: u64 = 0;
const SAMPLE_IP: u64 = 1;
const SAMPLE_ADDRESS: u64 = 1 << 3;
const SAMPLE_DATA_SOURCE: u64 = 1 << 15;
const DISABLED: u64 = 1;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
const PRECISE_TWO: u64 = 2 << 15;
const CLOSE_ON_EXEC: libc::c_ulong = 8;
/// `HW_BREAKPOINT_RW` (include/uapi/linux/hw_breakpoint.h).
const BREAKPOINT_READ_WRITE: u32 = 3;

/// Whose execution an event covers.
#[derive(Clone, Copy)]
enum Scope {
    /// Every process on one CPU.
    Cpu(Cpu),
    /// This thread wherever it runs.
    OwnThread,
}

/// Tries everything that [`LiveProbe`] has a field for.
pub fn probe(machine: &Machine) -> LiveProbe {
    let first = machine.online_cpus().first().copied().unwrap_or(Cpu(0));
    LiveProbe {
        // Found in `PATH`, not by a call.
        emulator: None,
        cpu_clock: Some(cpu_clock(Scope::Cpu(first), 0)),
        own_thread_clock: Some(cpu_clock(
            Scope::OwnThread,
            EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR,
        )),
        bpf: Some(load(PROGRAM_PERF_EVENT, &RETURN_ZERO)),
        kernel_reads: Some(load(PROGRAM_PERF_EVENT, &READ_KERNEL)),
        raw_tracepoint: Some(load(PROGRAM_RAW_TRACEPOINT, &RETURN_ZERO)),
        uprobes: Some(uprobes()),
        breakpoints: Some(breakpoints(first)),
        memory_events: machine
            .pmus
            .iter()
            .flat_map(|pmu| memory_events(pmu, first))
            .collect(),
    }
}

fn cpu_clock(scope: Scope, exclude: u64) -> Attempt {
    let attributes = EventAttributes {
        kind: TYPE_SOFTWARE,
        config: SOFTWARE_CPU_CLOCK,
        sample_period: 1_000_000,
        sample_type: SAMPLE_IP,
        flags: exclude,
        ..EventAttributes::default()
    };
    open(attributes, scope, None).map(drop)
}

/// A probe on a function of our own that nobody calls meanwhile.
fn uprobes() -> Attempt {
    let refused = |what, errno| Err(Refusal { errno, what });
    let Some(kind) = super::uprobe::pmu_number() else {
        return refused("the uprobe PMU (CONFIG_UPROBE_EVENTS)", libc::ENOENT);
    };
    let Some((path, offset)) = super::heap_cost::own_place() else {
        return refused("/proc/self/exe", libc::ENOENT);
    };
    let attributes = EventAttributes {
        kind,
        config1: path.as_ptr() as u64,
        config2: offset,
        ..EventAttributes::default()
    };
    open(attributes, Scope::OwnThread, None).map(drop)
}

/// Opens an event that stays disabled.
fn open(
    mut attributes: EventAttributes,
    scope: Scope,
    leader: Option<&OwnedFd>,
) -> Result<OwnedFd, Refusal> {
    use std::os::fd::AsRawFd;

    attributes.size = size_of::<EventAttributes>() as u32;
    // A member of a group is held back by its leader and must not be disabled itself to be scheduled;
    // nothing here is ever enabled, so both may be.
    attributes.flags |= DISABLED;
    let (pid, cpu): (libc::pid_t, libc::c_int) = match scope {
        Scope::Cpu(cpu) => (-1, cpu.0 as libc::c_int),
        Scope::OwnThread => (0, -1),
    };
    let group: libc::c_int = leader.map_or(-1, AsRawFd::as_raw_fd);
    // SAFETY: the kernel reads `size` bytes at the pointer, which is the whole of a live, initialised
    // structure without padding, and writes at most its `size` field, which is ours alone.
    let result = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw mut attributes,
            pid,
            cpu,
            group,
            CLOSE_ON_EXEC,
        )
    };
    own(result, "perf_event_open")
}

/// Takes the descriptor that a system call returned.
fn own(result: libc::c_long, what: &'static str) -> Result<OwnedFd, Refusal> {
    let Some(fd) = i32::try_from(result).ok().filter(|fd| *fd >= 0) else {
        let errno = io::Error::last_os_error()
            .raw_os_error()
            .unwrap_or_default();
        return Err(Refusal { errno, what });
    };
    // SAFETY: the call has just made this descriptor for us; nobody else knows or closes it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Where the probe's breakpoints lie; nobody touches it.
static WATCHED: AtomicU64 = AtomicU64::new(0);
/// More than any architecture has.
const MOST_BREAKPOINTS: u32 = 32;

/// A disabled breakpoint takes a register as an enabled one does: slots are reserved when the event is
/// made (`reserve_bp_slot` in kernel/events/hw_breakpoint.c).
fn breakpoints(cpu: Cpu) -> BreakpointSlots {
    let on_cpu = count_breakpoints(Scope::Cpu(cpu));
    match &on_cpu.1 {
        Some(refusal) if on_cpu.0 == 0 && refusal.is_permission() => {
            let (free, end) = count_breakpoints(Scope::OwnThread);
            BreakpointSlots {
                free,
                cpu: None,
                end,
            }
        }
        _ => BreakpointSlots {
            free: on_cpu.0,
            cpu: Some(cpu),
            end: on_cpu.1,
        },
    }
}

/// Opens breakpoints until one is refused.
fn count_breakpoints(scope: Scope) -> (u32, Option<Refusal>) {
    let attributes = EventAttributes {
        kind: TYPE_BREAKPOINT,
        sample_period: 1,
        sample_type: SAMPLE_IP,
        flags: EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR,
        breakpoint_type: BREAKPOINT_READ_WRITE,
        config1: WATCHED.as_ptr() as u64,
        config2: size_of_val(&WATCHED) as u64,
        ..EventAttributes::default()
    };
    let mut held = Vec::new();
    while (held.len() as u32) < MOST_BREAKPOINTS {
        match open(attributes, scope, None) {
            Ok(event) => held.push(event),
            Err(refusal) => return (held.len() as u32, Some(refusal)),
        }
    }
    (MOST_BREAKPOINTS, None)
}

/// Opens what a PMU offers for memory, each in the way its driver demands.
fn memory_events(pmu: &Pmu, first: Cpu) -> Vec<MemoryAttempt> {
    let Some(kind) = pmu.perf_type else {
        return Vec::new();
    };
    let attempt = |event: &str, outcome: Attempt| MemoryAttempt {
        pmu: pmu.name.clone(),
        event: event.to_owned(),
        outcome,
    };
    let cpu = pmu
        .cpus
        .as_ref()
        .and_then(|cpus| cpus.first().copied())
        .unwrap_or(first);
    if pmu.name == "ibs_op" {
        // IBS excludes no mode before 6.14 and refuses periods that are not multiples of 16.
        let attributes = EventAttributes {
            kind,
            sample_period: 0x4_0000,
            sample_type: SAMPLE_IP | SAMPLE_ADDRESS | SAMPLE_DATA_SOURCE,
            ..EventAttributes::default()
        };
        return vec![attempt(
            "ibs_op",
            open(attributes, Scope::Cpu(cpu), None).map(drop),
        )];
    }
    if pmu.name.starts_with("arm_spe_") {
        let attributes = EventAttributes {
            kind,
            sample_period: 0x4_0000,
            sample_type: SAMPLE_IP,
            flags: EXCLUDE_KERNEL,
            ..EventAttributes::default()
        };
        return vec![attempt(
            &pmu.name,
            open(attributes, Scope::Cpu(cpu), None).map(drop),
        )];
    }
    let named = pmu
        .memory_events
        .iter()
        .filter(|(name, _)| *name != AUXILIARY);
    named
        .filter_map(|(name, terms)| {
            let code = pmu.encode(terms)?;
            Some(attempt(name, precise(pmu, kind, code, Scope::Cpu(cpu))))
        })
        .collect()
}

/// A precise memory event with data source, behind the auxiliary event where the PMU has one.
fn precise(pmu: &Pmu, kind: u32, code: EventCode, scope: Scope) -> Attempt {
    let event = |code: EventCode, flags| EventAttributes {
        kind,
        config: code.config,
        config1: code.config1,
        config2: code.config2,
        sample_period: 10_007,
        sample_type: SAMPLE_IP | SAMPLE_ADDRESS | SAMPLE_DATA_SOURCE,
        flags: EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR | flags,
        ..EventAttributes::default()
    };
    let auxiliary = pmu
        .memory_events
        .get(AUXILIARY)
        .and_then(|terms| pmu.encode(terms));
    let leader = match auxiliary {
        Some(code) => Some(open(event(code, 0), scope, None)?),
        None => None,
    };
    open(event(code, PRECISE_TWO), scope, leader.as_ref()).map(drop)
}

/// The part of `union bpf_attr` that `BPF_PROG_LOAD` reads; the rest counts as zero.
#[repr(C)]
struct LoadAttributes {
    program_type: u32,
    instruction_count: u32,
    instructions: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log_buffer: u64,
}

const _: () = assert!(size_of::<LoadAttributes>() == 40);

const BPF_PROG_LOAD: libc::c_int = 5;
const PROGRAM_PERF_EVENT: u32 = 7;
const PROGRAM_RAW_TRACEPOINT: u32 = 17;

/// One BPF instruction in the kernel's layout.
const fn instruction(opcode: u8, registers: u8, offset: i16, immediate: i32) -> u64 {
    opcode as u64
        | (registers as u64) << 8
        | (offset as u16 as u64) << 16
        | (immediate as u32 as u64) << 32
}

/// `r0 = 0; exit`
const RETURN_ZERO: [u64; 2] = [instruction(0xb7, 0x00, 0, 0), instruction(0x95, 0x00, 0, 0)];

/// `bpf_probe_read_kernel(r10 - 8, 8, 0); return 0`. The helper is number 113; that it would read address
/// zero does not matter to the verifier, and the program never runs.
const READ_KERNEL: [u64; 7] = [
    instruction(0xbf, 0xa1, 0, 0),
    instruction(0x07, 0x01, 0, -8),
    instruction(0xb7, 0x02, 0, 8),
    instruction(0xb7, 0x03, 0, 0),
    instruction(0x85, 0x00, 0, 113),
    RETURN_ZERO[0],
    RETURN_ZERO[1],
];

fn load(program_type: u32, instructions: &[u64]) -> Attempt {
    // The licence of our own programs; bpf_probe_read_kernel is for GPL-compatible ones only.
    let license = c"Dual MIT/GPL";
    let attributes = LoadAttributes {
        program_type,
        instruction_count: instructions.len() as u32,
        instructions: instructions.as_ptr() as u64,
        license: license.as_ptr() as u64,
        log_level: 0,
        log_size: 0,
        log_buffer: 0,
    };
    // SAFETY: the kernel reads `size_of` bytes of a live, initialised structure without padding, and through
    // it the instructions (their number is given) and the zero-terminated licence, both alive here.
    let result = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            BPF_PROG_LOAD,
            &raw const attributes,
            size_of::<LoadAttributes>(),
        )
    };
    own(result, "bpf(BPF_PROG_LOAD)").map(drop)
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        path::Path,
        thread,
        time::{Duration, Instant},
    };

    use super::*;
    use crate::{machine::Capability, sys::breakpoint_turn};

    #[test]
    fn a_breakpoint_that_is_held_is_missing_from_the_free_ones() {
        let _turn = breakpoint_turn::take();
        let (free, end) = count_breakpoints(Scope::OwnThread);
        if free == 0 {
            // Not allowed, or a debugger has them all: then the probe must say which.
            assert!(end.is_some());
            return;
        }
        let attributes = EventAttributes {
            kind: TYPE_BREAKPOINT,
            flags: EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR,
            breakpoint_type: BREAKPOINT_READ_WRITE,
            config1: WATCHED.as_ptr() as u64,
            config2: size_of_val(&WATCHED) as u64,
            ..EventAttributes::default()
        };
        let held = open(attributes, Scope::OwnThread, None).unwrap();
        let (remaining, end) = count_breakpoints(Scope::OwnThread);
        assert_eq!(remaining, free - 1);
        assert_eq!(end.unwrap().errno, libc::ENOSPC);
        drop(held);
        assert_eq!(count_breakpoints(Scope::OwnThread).0, free);
    }

    #[test]
    fn attempts_agree_with_the_rights_of_this_process() {
        let _turn = breakpoint_turn::take();
        let machine = Machine::probe(Path::new("/"));
        let live = probe(&machine);
        let rights = &machine.privileges;
        let admin = rights
            .effective
            .is_some_and(|set| set.has(Capability::SYS_ADMIN))
            && rights.initial_user_namespace == Some(true);
        if admin {
            assert_eq!(live.bpf, Some(Ok(())));
            assert_eq!(live.raw_tracepoint, Some(Ok(())));
            assert_eq!(live.cpu_clock, Some(Ok(())));
        } else {
            let refused =
                |attempt: Option<Attempt>| matches!(attempt, Some(Err(r)) if r.errno != 0);
            assert!(refused(live.bpf), "loading a program without capabilities");
        }
        let slots = live.breakpoints.unwrap();
        assert!(slots.free < MOST_BREAKPOINTS, "{slots:?}");
        assert!(slots.end.is_some());
    }

    #[test]
    fn an_unknown_program_type_and_an_unknown_event_are_refusals_with_their_errno() {
        let machine = Machine::probe(Path::new("/"));
        let refusal = load(u32::MAX, &RETURN_ZERO).unwrap_err();
        assert_eq!(refusal.what, "bpf(BPF_PROG_LOAD)");
        assert!(
            refusal.is_permission() || refusal.errno == Refusal::EINVAL,
            "{refusal}"
        );
        let attributes = EventAttributes {
            kind: u32::MAX,
            ..EventAttributes::default()
        };
        let refusal = open(attributes, Scope::OwnThread, None).unwrap_err();
        assert_eq!(refusal.what, "perf_event_open");
        assert_ne!(refusal.errno, 0);
        // A unit that is not there has no event: ENOENT, not a crash.
        let pmu = Pmu {
            name: "ibs_op".into(),
            perf_type: Some(u32::MAX),
            ..Pmu::default()
        };
        let first = machine.online_cpus().first().copied().unwrap_or(Cpu(0));
        assert!(memory_events(&pmu, first)[0].outcome.is_err());
    }

    #[test]
    fn the_probe_leaves_nothing_open() {
        let _turn = breakpoint_turn::take();
        let open_events = || {
            fs::read_dir("/proc/self/fd")
                .unwrap()
                .filter_map(|entry| fs::read_link(entry.unwrap().path()).ok())
                .filter(|target| {
                    let target = target.to_string_lossy();
                    target.contains("perf_event") || target.contains("bpf-prog")
                })
                .count()
        };
        let before = open_events();
        probe(&Machine::probe(Path::new("/")));
        // Other modules' tests open and close events of their own meanwhile.
        let deadline = Instant::now() + Duration::from_secs(10);
        while open_events() > before {
            assert!(Instant::now() < deadline, "descriptors of the probe remain");
            thread::sleep(Duration::from_millis(5));
        }
    }
}
