//! The two renderings against recorded machines.

use expect_test::{expect, expect_file};
use serde_json::{Value, json};

use super::*;
use crate::machine::{
    BreakpointSlots, MemoryAttempt, Refusal,
    fixture::{self, Fixture},
};

fn diagnosis(fixture: &Fixture, live: LiveProbe) -> Diagnosis {
    Diagnosis::new(Machine::probe(fixture.root()), live)
}

fn parsed(diagnosis: &Diagnosis) -> Value {
    serde_json::from_str(&render_json(diagnosis)).unwrap()
}

/// What the kernel of a guest without a PMU answers root.
fn root_on_a_guest() -> LiveProbe {
    LiveProbe {
        emulator: None,
        cpu_clock: Some(Ok(())),
        own_thread_clock: Some(Ok(())),
        bpf: Some(Ok(())),
        kernel_reads: Some(Ok(())),
        raw_tracepoint: Some(Ok(())),
        uprobes: Some(Ok(())),
        breakpoints: Some(BreakpointSlots {
            free: 4,
            cpu: Some(Cpu(0)),
            end: None,
        }),
        memory_events: Vec::new(),
    }
}

#[test]
fn a_guest_reads_from_the_verdict_down_to_the_facts() {
    let diagnosis = diagnosis(&fixture::kvm_amd(), root_on_a_guest());
    assert!(diagnosis.can_run());
    expect![[r"
        cohtrace doctor: Linux 6.18.44, x86_64, KVM guest, 2 CPUs

        Sources
          timer                 ok: cpu-clock samples decoded to memory accesses; needs no PMU
            shows               address (decoded), load or store; not latency, cache level or order
          watch                 ok: data breakpoints on suspicious lines, a BPF program on each hit; needs
                                no PMU
            shows               every access to up to four words of a line, in order, with its instruction
          ibs                   no: the PMU's own samples of memory accesses; preferred to the timer where
                                it is there
            why                 no PMU for memory accesses: the hypervisor passes none on to this guest
            shows               address, load or store, latency, what served it; the instruction itself

        Tried
          cpu-clock, all tasks  ok
          cpu-clock, own thread ok
          BPF on perf events    ok
          BPF kernel reads      ok
          BPF raw tracepoint    ok
          uprobes (--heap)      ok

        Hardware
          memory-sampling PMU   none: the hypervisor passes none on to this guest
          data breakpoints      4 free of 4 on CPU 0
          line costs            not measured since the machine was started: cohtrace measure

        Machine
          processor             AMD EPYC (AuthenticAMD, family 26, model 2)
          real or virtual       KVM guest
          CPUs                  0-1 online of 2 possible: 1 package, 2 cores, 2 threads, 1 NUMA node
          caches                L1d 48 KiB, L2 1 MiB, L3 32 MiB
          cache line            64 bytes
          PMU devices           breakpoint software

        Kernel
          release               6.18.44
          build                 #1 SMP PREEMPT_DYNAMIC
          types (BTF)           yes
          symbol addresses      unknown
          /proc/kcore           no
          tracefs               no
          lockdown              none
          perf_event_paranoid   2
          max_sample_rate       100000 per second and CPU
          perf_event_mlock_kb   516 KiB per CPU
          cpu_time_max_percent  25 %
          kptr_restrict         0
          unprivileged_bpf      2 (1, 2: disabled)
          bpf_jit_enable        1
          pid_max               4194304

        This process
          effective user        0
          capabilities          all
          no_new_privs          no
          system call filter    none
          pid namespace         initial
          user namespace        initial
          container             no sign of one
          locked memory         8 MiB
    "]]
    .assert_eq(&render_text(&diagnosis, Paint::Plain));
}

#[test]
fn an_ordinary_user_reads_why_and_the_commands_to_paste() {
    let machine = fixture::kvm_amd();
    machine.process(1000, 0, 0);
    let refused = Some(Err(Refusal {
        errno: Refusal::EPERM,
        what: "bpf(BPF_PROG_LOAD)",
    }));
    let live = LiveProbe {
        bpf: refused,
        ..LiveProbe::default()
    };
    let diagnosis = diagnosis(&machine, live);
    assert!(!diagnosis.can_run());
    let text = render_text(&diagnosis, Paint::Plain);
    let until_hardware = text.split("\nHardware").next().unwrap();
    expect![[r#"
        cohtrace doctor: Linux 6.18.44, x86_64, KVM guest, 2 CPUs

        Sources
          timer                 no: cpu-clock samples decoded to memory accesses; needs no PMU
            why                 this process lacks cap_bpf (to load BPF programs) and cap_perfmon (to sample
                                every CPU)
              fix               sudo "$(command -v cohtrace)" doctor  # and so for the other commands
                                sudo setcap \
                                cap_bpf,cap_perfmon,cap_dac_read_search,cap_sys_ptrace,cap_syslog,cap_ipc_lock+ep \
                                "$(command -v cohtrace)"
                                # who may run it can then watch every process and read its files: leave it
                                # to a group, as docs/security.md (Rights) shows
            shows               address (decoded), load or store; not latency, cache level or order
          watch                 no: data breakpoints on suspicious lines, a BPF program on each hit; needs
                                no PMU
            why                 it confirms what the timer source finds, which cannot run
            shows               every access to up to four words of a line, in order, with its instruction
          ibs                   no: the PMU's own samples of memory accesses; preferred to the timer where
                                it is there
            why                 it needs what the timer source needs, which cannot run
            shows               address, load or store, latency, what served it; the instruction itself

        Tried
          cpu-clock, all tasks  not tried
          cpu-clock, own thread not tried
          BPF on perf events    no: bpf(BPF_PROG_LOAD): Operation not permitted (os error 1)
          BPF kernel reads      not tried
          BPF raw tracepoint    not tried
          uprobes (--heap)      not tried
    "#]].assert_eq(until_hardware);
}

#[test]
fn memory_units_are_shown_with_what_opening_them_gave() {
    let live = LiveProbe {
        memory_events: vec![MemoryAttempt {
            pmu: "cpu_core".into(),
            event: "mem-loads".into(),
            outcome: Err(Refusal {
                errno: Refusal::EACCES,
                what: "perf_event_open",
            }),
        }],
        ..LiveProbe::default()
    };
    let text = render_text(&diagnosis(&fixture::intel_hybrid(), live), Paint::Plain);
    let hardware = &text[text.find("Hardware").unwrap()..];
    expect![[r"
        Hardware
          memory-sampling PMU   Intel PEBS (cpu_atom); CPUs 2-3; mem-loads mem-stores; load latency
                                threshold (ldlat)
          memory-sampling PMU   Intel PEBS (cpu_core); CPUs 0-1; mem-loads mem-loads-aux mem-stores;
                                mem-loads only in a group led by mem-loads-aux; load latency threshold
                                (ldlat)
            mem-loads           does not open: perf_event_open: Permission denied (os error 13)
          data breakpoints      4; how many are free was not tried
          line costs            not measured since the machine was started: cohtrace measure
    "]].assert_eq(hardware.split("\nMachine").next().unwrap());
}

#[test]
fn no_line_is_wider_than_a_hundred_columns_on_any_machine() {
    let machines = [
        fixture::kvm_amd(),
        fixture::intel_sapphire_rapids(),
        fixture::intel_hybrid(),
        fixture::amd_zen4(),
        fixture::arm_spe(),
    ];
    for machine in machines {
        machine.process(1000, 0x55_5555_5555, 2);
        machine.write("proc/sys/kernel/perf_event_paranoid", "4");
        machine.write("proc/sys/kernel/version", "x ".repeat(200));
        machine.write("proc/self/cgroup", "0::/docker/1f\n");
        let text = render_text(&diagnosis(&machine, LiveProbe::default()), Paint::Plain);
        for line in text.lines() {
            assert!(line.chars().count() <= 100, "{line}");
            assert_eq!(line, line.trim_end(), "trailing space");
        }
    }
}

/// A machine of every kind of fact, to compare the whole document with.
fn told_of_everything() -> Diagnosis {
    let machine = fixture::intel_hybrid();
    machine.process(1000, 1 << 38 | 1 << 39, 2);
    machine.write("proc/self/cgroup", "0::/docker/1f\n");
    machine.write(
        "proc/self/limits",
        "Max locked memory         8388608              8388608              bytes\n",
    );
    machine.write(
        "sys/kernel/security/lockdown",
        "none [integrity] confidentiality\n",
    );
    let refused = |errno, what| Some(Err(Refusal { errno, what }));
    let attempts = [
        ("mem-loads", Ok(())),
        (
            "mem-stores",
            Err(Refusal {
                errno: Refusal::EACCES,
                what: "perf_event_open",
            }),
        ),
    ];
    let live = LiveProbe {
        emulator: Some(true),
        cpu_clock: Some(Ok(())),
        own_thread_clock: None,
        bpf: refused(Refusal::EPERM, "bpf(BPF_PROG_LOAD)"),
        breakpoints: Some(BreakpointSlots {
            free: 3,
            cpu: None,
            end: None,
        }),
        memory_events: attempts
            .into_iter()
            .map(|(event, outcome)| MemoryAttempt {
                pmu: "cpu_core".into(),
                event: event.into(),
                outcome,
            })
            .collect(),
        ..root_on_a_guest()
    };
    diagnosis(&machine, live)
}

#[test]
fn the_json_is_to_the_letter_what_it_was() {
    let of_nothing = Diagnosis::new(Machine::default(), LiveProbe::default());
    expect_file!["recorded/nothing.json"].assert_eq(&render_json(&of_nothing));
    let guest = diagnosis(&fixture::kvm_amd(), root_on_a_guest());
    expect_file!["recorded/guest.json"].assert_eq(&render_json(&guest));
    expect_file!["recorded/hybrid.json"].assert_eq(&render_json(&told_of_everything()));
    let arm = diagnosis(&fixture::arm_spe(), LiveProbe::default());
    expect_file!["recorded/arm.json"].assert_eq(&render_json(&arm));
}

#[test]
fn what_lines_cost_is_said_with_its_age_or_how_to_find_out() {
    let mut diagnosis = Diagnosis::new(Machine::default(), LiveProbe::default());
    let text = render_text(&diagnosis, Paint::Plain);
    assert!(text.contains("cohtrace measure"), "{text}");
    diagnosis.costs = Some(MeasuredCosts {
        age_s: 150,
        class_ns: vec![12.4, 73.0],
        doubts: 0,
    });
    let text = render_text(&diagnosis, Paint::Plain);
    let text: Vec<&str> = text.split_whitespace().collect();
    let text = text.join(" ");
    assert!(
        text.contains("12 ns, 73 ns (2 kinds of pairs, measured 2 min ago)"),
        "{text}"
    );
    assert_eq!(parsed(&diagnosis)["measured_costs"]["class_ns"][1], 73.0);
}

#[test]
fn the_json_says_unknown_by_null_and_never_by_a_value() {
    let empty = Diagnosis::new(Machine::default(), LiveProbe::default());
    let json = parsed(&empty);
    assert_eq!(json["schema"], 1);
    for path in [
        "/machine/kernel/release",
        "/machine/kernel/perf_event_paranoid",
        "/machine/kernel/lockdown",
        "/machine/virtual_machine",
        "/machine/cpus_online",
        "/machine/packages",
        "/machine/line_bytes",
        "/machine/process/capabilities",
        "/attempts/cpu_clock",
        "/hardware/breakpoints/free",
        "/hardware/breakpoints/total",
    ] {
        assert_eq!(json.pointer(path), Some(&Value::Null), "{path}");
    }
}

#[test]
fn the_json_carries_verdict_reason_and_fix() {
    let json = parsed(&diagnosis(&fixture::kvm_amd(), root_on_a_guest()));
    assert_eq!(json["sources"][0]["name"], "timer");
    assert_eq!(json["sources"][0]["status"], "available");
    assert_eq!(json["sources"][0]["obstacles"], json!([]));
    assert_eq!(
        json["hardware"]["breakpoints"],
        json!({"total": 4, "free": 4, "cpu": 0})
    );
    assert_eq!(json["machine"]["hypervisor"], "KVM");
    assert_eq!(json["machine"]["cpus_online"], json!([0, 1]));
    assert_eq!(
        json["attempts"]["bpf"],
        json!({"ok": true, "errno": null, "call": null})
    );

    let machine = fixture::kvm_amd();
    machine.write(
        "sys/kernel/security/lockdown",
        "none integrity [confidentiality]\n",
    );
    let json = parsed(&diagnosis(&machine, LiveProbe::default()));
    assert_eq!(json["sources"][0]["status"], "unavailable");
    let obstacle = &json["sources"][0]["obstacles"][0];
    assert!(obstacle["reason"].as_str().unwrap().contains("lockdown"));
    assert!(
        obstacle["fix"][0]
            .as_str()
            .unwrap()
            .contains("lockdown=integrity")
    );

    let json = parsed(&diagnosis(&fixture::arm_spe(), LiveProbe::default()));
    assert_eq!(json["sources"][0]["status"], "not-built");
    assert_eq!(json["hardware"]["memory_sampling"][0]["kind"], "arm-spe");
}

#[test]
fn cpu_lists_are_written_as_the_kernel_writes_them() {
    let list = |cpus: &[u32]| ranges(&cpus.iter().copied().map(Cpu).collect::<Vec<_>>());
    assert_eq!(list(&[0, 1, 2, 8, 10, 11]), "0-2,8,10-11");
    assert_eq!(list(&[5]), "5");
    assert_eq!(list(&[]), "");
    assert_eq!(list(&[u32::MAX, 0]), "4294967295,0");
}

#[test]
fn many_capabilities_are_told_by_those_that_are_missing() {
    assert_eq!(capabilities(Capabilities(0)), "none");
    assert_eq!(capabilities(Capabilities(u64::MAX)), "all");
    assert_eq!(
        capabilities(Capabilities(!(1 << 24))),
        "all but cap_sys_resource"
    );
    assert_eq!(
        capabilities(Capabilities(1 << 39 | 1 << 38)),
        "cap_perfmon cap_bpf"
    );
}
