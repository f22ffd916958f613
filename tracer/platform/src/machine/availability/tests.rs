//! Recorded machines and outcomes, each with the exact reason and fix.

use super::*;
use crate::machine::fixture::{self, Fixture};

const NO_CAPABILITIES: u64 = 0;
const BPF_AND_PERFMON: u64 = 1 << 39 | 1 << 38;
const OUR_FOUR: u64 = BPF_AND_PERFMON | 1 << 19 | 1 << 2;

const DOCKER: &str = "docker run --pid=host --cap-add=BPF --cap-add=PERFMON --cap-add=SYS_PTRACE \
     --cap-add=DAC_READ_SEARCH --cap-add=SYSLOG IMAGE cohtrace doctor";

fn refused(errno: i32, what: &'static str) -> Result<(), Refusal> {
    Err(Refusal { errno, what })
}

/// What the kernel answers a process that may do everything.
fn all_allowed() -> LiveProbe {
    LiveProbe {
        cpu_clock: Some(Ok(())),
        own_thread_clock: Some(Ok(())),
        bpf: Some(Ok(())),
        kernel_reads: Some(Ok(())),
        raw_tracepoint: Some(Ok(())),
        uprobes: Some(Ok(())),
        ..LiveProbe::default()
    }
}

/// What it answers an ordinary user.
fn all_refused() -> LiveProbe {
    LiveProbe {
        cpu_clock: Some(refused(Refusal::EACCES, "perf_event_open")),
        own_thread_clock: Some(Ok(())),
        bpf: Some(refused(Refusal::EPERM, "bpf(BPF_PROG_LOAD)")),
        kernel_reads: Some(refused(Refusal::EPERM, "bpf(BPF_PROG_LOAD)")),
        raw_tracepoint: Some(refused(Refusal::EPERM, "bpf(BPF_PROG_LOAD)")),
        uprobes: Some(refused(Refusal::EPERM, "perf_event_open")),
        ..LiveProbe::default()
    }
}

fn timer(fixture: &Fixture, live: &LiveProbe) -> SourceStatus {
    let machine = Machine::probe(fixture.root());
    let mut sources = availability(&machine, live);
    assert_eq!(sources[1].name, "watch");
    sources.remove(0)
}

/// Reasons and fixes; empty when the source is available.
fn obstacles(fixture: &Fixture, live: &LiveProbe) -> Vec<(String, Vec<String>)> {
    match timer(fixture, live).status {
        Status::Available => Vec::new(),
        Status::Unavailable(obstacles) => {
            assert!(!obstacles.is_empty(), "unavailable for no reason");
            obstacles.into_iter().map(|o| (o.reason, o.fix)).collect()
        }
        Status::NotBuilt { reason } => panic!("not built: {reason}"),
    }
}

fn one(reason: &str, fix: &[&str]) -> Vec<(String, Vec<String>)> {
    vec![(
        reason.into(),
        fix.iter().map(|line| (*line).into()).collect(),
    )]
}

#[test]
fn root_on_any_x86_machine_can_use_the_timer_without_limits() {
    for machine in [
        fixture::kvm_amd(),
        fixture::intel_sapphire_rapids(),
        fixture::intel_hybrid(),
        fixture::amd_zen4(),
    ] {
        for live in [all_allowed(), LiveProbe::default()] {
            let timer = timer(&machine, &live);
            assert_eq!(timer.status, Status::Available);
            assert_eq!(timer.limits, []);
        }
    }
}

#[test]
fn arm_machines_are_told_that_their_instructions_are_not_decoded() {
    assert_eq!(
        timer(&fixture::arm_spe(), &all_allowed()).status,
        Status::NotBuilt {
            reason: "instructions of aarch64 are not decoded yet, only x86_64".into()
        }
    );
}

#[test]
fn an_ordinary_user_is_told_of_sudo_and_setcap() {
    let machine = fixture::kvm_amd();
    machine.process(1000, NO_CAPABILITIES, 0);
    let reason =
        "this process lacks cap_bpf (to load BPF programs) and cap_perfmon (to sample every CPU)";
    assert_eq!(
        obstacles(&machine, &all_refused()),
        one(
            reason,
            &[
                "sudo \"$(command -v cohtrace)\" doctor  # and so for the other commands",
                "sudo setcap cap_bpf,cap_perfmon,cap_dac_read_search,cap_sys_ptrace,cap_syslog,cap_ipc_lock+ep \
                 \"$(command -v cohtrace)\"",
                "# who may run it can then watch every process and read its files: leave it to a group, as \
                 docs/security.md (Rights) shows",
            ]
        )
    );
    machine.link("proc/self/exe", "/opt/bin/cohtrace");
    assert_eq!(
        obstacles(&machine, &all_refused())[0].1[0],
        "sudo /opt/bin/cohtrace doctor  # and so for the other commands"
    );
}

#[test]
fn neither_sudo_nor_setcap_is_advised_where_they_have_no_effect() {
    let machine = fixture::kvm_amd();
    machine.process(0, NO_CAPABILITIES, 0);
    assert!(obstacles(&machine, &all_refused())[0].1[0].starts_with("# root is bounded here"));
    machine.write(
        "proc/self/status",
        "Uid:\t1000\t1000\t1000\t1000\nCapEff:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t0\n",
    );
    let fix = &obstacles(&machine, &all_refused())[0].1;
    assert_eq!(fix.len(), 1);
    assert!(fix[0].starts_with("# no_new_privs is set"), "{fix:?}");
}

#[test]
fn one_missing_capability_is_named_alone_and_sys_admin_stands_for_both() {
    let machine = fixture::kvm_amd();
    machine.process(1000, 1 << 39, 0);
    assert_eq!(
        obstacles(&machine, &LiveProbe::default())[0].0,
        "this process lacks cap_perfmon (to sample every CPU)"
    );
    machine.process(1000, 1 << 21, 0);
    assert_eq!(obstacles(&machine, &LiveProbe::default()), []);
}

#[test]
fn the_two_capabilities_suffice_and_the_others_limit_what_can_be_named() {
    let machine = fixture::kvm_amd();
    machine.process(1000, BPF_AND_PERFMON, 0);
    let limited = timer(&machine, &all_allowed());
    assert_eq!(limited.status, Status::Available);
    let reasons: Vec<&str> = limited
        .limits
        .iter()
        .map(|limit| limit.reason.as_str())
        .collect();
    assert_eq!(
        reasons,
        [
            "names may be missing without cap_sys_ptrace (to look into other users' processes) and \
             cap_dac_read_search (to read their binaries)"
        ]
    );
    machine.process(1000, OUR_FOUR, 0);
    assert_eq!(timer(&machine, &all_allowed()).limits, []);
}

#[test]
fn what_each_part_lacks_is_named_with_the_list_that_gives_it() {
    const HIDDEN: &str = "0000000000000000 T _stext\n";
    const SHOWN: &str = "ffffffff81000000 T _stext\n";
    const SYSLOG: u64 = 1 << 34;

    let machine = fixture::kvm_amd();
    let limits = |capabilities, symbols: &str, live: &LiveProbe| {
        machine.process(1000, capabilities, 0);
        machine.write("proc/kallsyms", symbols);
        let limits = timer(&machine, live).limits;
        let of = |limit: Obstacle| {
            (
                limit.reason,
                limit.fix.into_iter().nth(1).unwrap_or_default(),
            )
        };
        limits.into_iter().map(of).collect::<Vec<_>>()
    };
    let no_probes = LiveProbe {
        uprobes: Some(refused(Refusal::EACCES, "perf_event_open")),
        ..all_allowed()
    };
    assert_eq!(limits(OUR_FOUR, SHOWN, &all_allowed()), []);
    assert_eq!(limits(OUR_FOUR | SYSLOG, HIDDEN, &all_allowed()), []);
    let names = limits(OUR_FOUR, HIDDEN, &all_allowed());
    assert!(
        names[0].0.contains("cap_syslog") && names[0].1.contains("cap_syslog"),
        "{names:?}"
    );
    assert!(!names[0].1.contains("cap_sys_admin"), "{names:?}");
    let heap = limits(OUR_FOUR | SYSLOG, HIDDEN, &no_probes);
    assert_eq!(heap.len(), 1, "{heap:?}");
    assert!(
        heap[0].0.contains("--heap") && heap[0].1.contains(",cap_sys_admin+ep"),
        "{heap:?}"
    );
    machine.write("proc/sys/kernel/kptr_restrict", "2\n");
    let all = limits(OUR_FOUR, HIDDEN, &all_allowed());
    assert!(all[0].0.contains("from everybody"), "{all:?}");
}

#[test]
fn paranoid_levels_above_two_demand_sys_admin() {
    let machine = fixture::kvm_amd();
    machine.process(1000, OUR_FOUR, 0);
    let live = LiveProbe {
        cpu_clock: Some(refused(Refusal::EACCES, "perf_event_open")),
        ..all_allowed()
    };
    for level in ["3", "4"] {
        machine.write("proc/sys/kernel/perf_event_paranoid", level);
        let expected = one(
            &format!(
                "kernel.perf_event_paranoid is {level}: this distribution then demands cap_sys_admin, \
                 cap_perfmon is not enough"
            ),
            &["sudo sysctl kernel.perf_event_paranoid=2"],
        );
        assert_eq!(obstacles(&machine, &live), expected);
        assert_eq!(
            obstacles(&machine, &LiveProbe::default()),
            expected,
            "predicted"
        );
        assert_eq!(
            obstacles(&machine, &all_allowed()),
            [],
            "a kernel that allows it all the same"
        );
    }
    machine.process(0, 0x1ff_ffff_ffff, 0);
    assert_eq!(obstacles(&machine, &all_allowed()), [], "root");
}

#[test]
fn both_the_capabilities_and_the_paranoid_level_are_named_to_an_ordinary_user() {
    let machine = fixture::kvm_amd();
    machine.process(1000, NO_CAPABILITIES, 0);
    machine.write("proc/sys/kernel/perf_event_paranoid", "4");
    let reasons = obstacles(&machine, &all_refused());
    assert_eq!(reasons.len(), 2);
    assert!(reasons[0].0.contains("cap_bpf") && reasons[1].0.contains("perf_event_paranoid is 4"));
}

#[test]
fn lockdown_for_confidentiality_stops_the_timer_and_integrity_does_not() {
    let machine = fixture::kvm_amd();
    let live = LiveProbe {
        kernel_reads: Some(refused(Refusal::EINVAL, "bpf(BPF_PROG_LOAD)")),
        ..all_allowed()
    };
    machine.write(
        "sys/kernel/security/lockdown",
        "none integrity [confidentiality]\n",
    );
    assert_eq!(
        obstacles(&machine, &live),
        one(
            "kernel lockdown is in confidentiality mode, which takes bpf_probe_read_kernel from the programs",
            &[
                "# boot with lockdown=integrity on the kernel command line; the mode cannot be lowered while \
               the kernel runs"
            ],
        )
    );
    machine.write(
        "sys/kernel/security/lockdown",
        "none [integrity] confidentiality\n",
    );
    assert_eq!(obstacles(&machine, &all_allowed()), []);
}

#[test]
fn a_refused_kernel_read_is_reported_when_the_lockdown_mode_cannot_be_read() {
    let machine = fixture::kvm_amd();
    machine.directory("sys/kernel/security");
    let live = LiveProbe {
        kernel_reads: Some(refused(Refusal::EINVAL, "bpf(BPF_PROG_LOAD)")),
        ..all_allowed()
    };
    let found = obstacles(&machine, &live);
    assert_eq!(found.len(), 1);
    assert!(
        found[0]
            .0
            .contains("bpf_probe_read_kernel (bpf(BPF_PROG_LOAD): Invalid argument")
    );
    assert!(found[0].1[0].starts_with("sudo mount -t securityfs"));
}

#[test]
fn old_kernels_are_unsupported_unless_everything_is_seen_to_work() {
    let machine = fixture::kvm_amd();
    machine.write("proc/sys/kernel/osrelease", "5.4.0-150-generic\n");
    let too_old = one(
        "Linux 5.4 is older than 5.8: the programs need bpf_probe_read_kernel (5.5), and cap_bpf and \
         cap_perfmon (5.8) to run with less than all of root's rights",
        &["# boot Linux 5.8 or later"],
    );
    assert_eq!(obstacles(&machine, &LiveProbe::default()), too_old);
    let without_helper = LiveProbe {
        kernel_reads: Some(refused(Refusal::EINVAL, "bpf(BPF_PROG_LOAD)")),
        ..all_allowed()
    };
    assert_eq!(obstacles(&machine, &without_helper), too_old);
    // Enterprise kernels keep old numbers and take new features in.
    assert_eq!(obstacles(&machine, &all_allowed()), []);
    machine.write("proc/sys/kernel/osrelease", "5.8.0\n");
    assert_eq!(obstacles(&machine, &LiveProbe::default()), []);
}

#[test]
fn a_container_in_its_own_pid_namespace_is_told_how_to_be_started() {
    let machine = fixture::kvm_amd();
    machine.link("proc/self/ns/pid", "pid:[4026532201]");
    machine.write(
        "proc/self/mountinfo",
        "613 600 8:1 /var/lib/docker/containers/1f/hosts /etc/hosts rw - ext4 /dev/sda1 rw\n",
    );
    let namespace =
        "in a pid namespace: the kernel reports the host's pids, which /proc does not show here";
    assert_eq!(
        obstacles(&machine, &all_allowed()),
        one(namespace, &[DOCKER])
    );

    machine.process(0, 0xa80425fb, 2);
    let found = obstacles(&machine, &all_refused());
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].0.starts_with("this process lacks cap_bpf"));
    assert_eq!(
        (found[0].1.as_slice(), found[1].1.as_slice()),
        (
            [DOCKER.to_owned()].as_slice(),
            [DOCKER.to_owned()].as_slice()
        )
    );
    assert_eq!(found[1].0, namespace);
}

#[test]
fn capabilities_in_a_user_namespace_do_not_count() {
    let machine = fixture::kvm_amd();
    machine.link("proc/self/ns/user", "user:[4026532500]");
    machine.write("proc/self/cgroup", "0::/libpod-7/container\n");
    assert_eq!(
        obstacles(&machine, &all_refused()),
        one(
            "in a user namespace, where capabilities give no right to BPF or to sampling",
            &[&DOCKER.replace("docker", "sudo podman")],
        )
    );
}

#[test]
fn a_system_call_filter_is_named_when_the_capabilities_are_there() {
    let machine = fixture::kvm_amd();
    machine.process(0, 0x1ff_ffff_ffff, 2);
    machine.write("proc/self/cgroup", "0::/docker/1f\n");
    let live = LiveProbe {
        bpf: Some(refused(Refusal::ENOSYS, "bpf(BPF_PROG_LOAD)")),
        ..all_allowed()
    };
    let found = obstacles(&machine, &live);
    assert_eq!(found.len(), 1);
    assert!(
        found[0]
            .0
            .starts_with("a system call filter (seccomp) stands in the way")
    );
    assert!(found[0].1[0].contains("--security-opt seccomp=unconfined"));

    machine.process(0, 0x1ff_ffff_ffff, 0);
    assert_eq!(
        obstacles(&machine, &live)[0].1,
        ["# boot a kernel with CONFIG_BPF_SYSCALL and CONFIG_BPF_EVENTS"]
    );
}

#[test]
fn locked_memory_counts_only_on_kernels_that_charge_maps_to_it() {
    let machine = fixture::kvm_amd();
    machine.process(1000, OUR_FOUR, 0);
    machine.write(
        "proc/self/limits",
        "Max locked memory         65536                65536                bytes\n",
    );
    assert_eq!(obstacles(&machine, &LiveProbe::default()), []);
    machine.write("proc/sys/kernel/osrelease", "5.10.0-32-amd64\n");
    assert_eq!(
        obstacles(&machine, &LiveProbe::default()),
        one(
            "before Linux 5.11 BPF maps are locked memory: 65536 bytes are allowed, and the map of targets \
             takes 4194304",
            &["sudo prlimit --pid $$ --memlock=unlimited:unlimited"],
        )
    );
}

#[test]
fn what_works_less_well_is_a_limit_and_not_an_obstacle() {
    let machine = fixture::kvm_amd();
    machine.remove("sys/kernel/btf");
    machine.write("proc/sys/net/core/bpf_jit_enable", "0\n");
    machine.write("sys/devices/system/cpu/online", "0\n");
    let timer = timer(&machine, &all_allowed());
    assert_eq!(timer.status, Status::Available);
    let fixes: Vec<Option<&str>> = timer
        .limits
        .iter()
        .map(|limit| limit.fix.first().map(String::as_str))
        .collect();
    assert_eq!(
        fixes,
        [
            None,
            Some("# boot a kernel with CONFIG_DEBUG_INFO_BTF"),
            Some("sudo sysctl net.core.bpf_jit_enable=1"),
        ]
    );
}
