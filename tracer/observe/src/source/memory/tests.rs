//! The whole source on live processes, without a PMU: page faults are events with a data address, and their
//! registers are those of the faulting instruction. Needs root and a C compiler.

use cohtrace_skips::skipped_core;
use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use super::{
    super::{MemoryOptions, Progress, Source, Watching},
    *,
};
use crate::{
    access::{Cost, Op},
    data_source::DataSource,
    event::{Batch, ContextKind},
    machine::fixture,
    sys::perf_event::{Attributes, PERF_TYPE_SOFTWARE, flag},
};

/// Touches fresh pages by 4-byte stores at offset 24, then by 1-byte loads at offset 9, for ever.
const PROGRAM: &str = r"
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
int main(void) {
    for (;;) {
        char *page = mmap(0, 2 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        *(volatile int *)(page + 24) = 1;
        *(volatile char *)(page + 4096 + 9);
        munmap(page, 2 * 4096);
        usleep(100);
    }
}
";

/// Page faults on every CPU.
fn page_faults(machine: &Machine) -> PlannedEvent {
    const PAGE_FAULTS: u64 = 2;
    PlannedEvent {
        pmu: "software".to_owned(),
        name: "page-faults".to_owned(),
        cpus: machine.online_cpus().to_vec(),
        attributes: Attributes {
            kind: PERF_TYPE_SOFTWARE,
            config: PAGE_FAULTS,
            sample_period: 1,
            sample_type: plan::SAMPLE_TYPE,
            flags: flag::DISABLED,
            ..Attributes::default()
        },
        leader: None,
        precise: &[0],
        user_only: None,
    }
}

#[test]
fn accesses_of_a_live_process_come_with_sizes_and_directions_of_their_instructions() {
    if fs::read_dir("/proc/1/fd").is_err() {
        return skipped_core("sampling needs root");
    }
    let directory = tempfile::tempdir().unwrap();
    let (source, program) = (directory.path().join("a.c"), directory.path().join("a"));
    fs::write(&source, PROGRAM).unwrap();
    let mut compiler = Command::new("cc");
    compiler.arg("-O1").arg("-o").arg(&program).arg(&source);
    assert!(compiler.status().unwrap().success());
    let mut child = Command::new(&program)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let pid = Pid(child.id());

    let machine = Machine::probe(Path::new("/"));
    let modules = Arc::new(ModuleStore::new("/".into(), true));
    let options = SourceOptions {
        frequency_hz: 1000,
        ring_bytes: 1 << 20,
        slots: 4,
        watch: Watching::Off,
        heap: None,
        memory: MemoryOptions::default(),
        emulator: None,
        tells: false,
    };
    let offsets = KernelOffsets::of_running_kernel().unwrap_or_default();
    let events = vec![page_faults(&machine)];
    let mut memory = Memory::new(&machine, &offsets.memory, &modules, events);
    memory.trusts_ip = true;
    let target = Target::Trees(vec![pid]);
    let mut source =
        Sampling::open(&target, &options, &machine, &offsets, &modules, memory).unwrap();
    let (mut batch, start) = (Batch::default(), Instant::now());
    while batch.accesses.len() < 40 && start.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(20));
        source.take(&mut batch).unwrap();
    }
    source.stop();
    while source.take(&mut batch).unwrap() != Progress::End {}
    child.kill().unwrap();
    child.wait().unwrap();

    let tally = &batch.tally;
    println!("{tally:?} {:?}", source.caveats());
    assert!(batch.accesses.len() >= 40);
    assert_eq!(tally.samples, batch.accesses.len() as u64);
    assert_eq!(tally.produced, tally.samples + tally.lost_total());
    assert_eq!(
        tally.attributed + tally.unresolved.values().sum::<u64>(),
        tally.samples
    );
    assert_eq!(tally.cost, Cost(0), "page faults measure no latency");
    assert!(batch.accesses.is_sorted_by_key(|access| access.time_ns));
    let of = |offset: u64| {
        let at = batch.accesses.iter();
        at.filter(|access| access.addr % 4096 == offset && !access.kernel)
            .collect::<Vec<_>>()
    };
    let (stores, loads) = (of(24), of(9));
    assert!(stores.len() >= 10 && loads.len() >= 10, "{batch:?}");
    for access in &stores {
        assert_eq!((access.op, access.size, access.pid), (Op::Store, 4, pid));
        assert_eq!(access.basis, Basis::Sampled);
    }
    for access in &loads {
        assert_eq!(
            (access.op, access.size, access.locked),
            (Op::Load, 1, false)
        );
        let source = access.measured.source.map(DataSource::raw);
        assert_eq!(
            source,
            offsets.memory.sample.map(|_| DataSource::NOT_AVAILABLE)
        );
        assert_eq!(access.measured.latency_cycles, None);
    }
    let told = |wanted: fn(&ContextKind) -> bool| batch.context.iter().any(|c| wanted(&c.kind));
    assert!(told(|kind| matches!(kind, ContextKind::Thread { .. })));
    assert!(told(|kind| matches!(kind, ContextKind::Mapping { .. })));
}

#[test]
fn an_event_that_does_not_open_says_which_where_and_what_to_do() {
    if fs::read_dir("/proc/1/fd").is_err() {
        return skipped_core("sampling needs root");
    }
    let machine = Machine::probe(Path::new("/"));
    let modules = Arc::new(ModuleStore::new("/".into(), true));
    let mut event = page_faults(&machine);
    event.attributes.kind = u32::MAX;
    let mut memory = Memory::new(&machine, &MemoryOffsets::default(), &modules, vec![event]);
    let offsets = KernelOffsets::default();
    let target = Target::Trees(Vec::new());
    let mut live =
        super::super::live::Live::load(&target, &machine, &offsets, None, false).unwrap();
    let cpu = machine.online_cpus()[0];
    let error = memory.open_on(cpu, &mut live.kernel).unwrap_err();
    let text = error.to_string();
    assert!(
        text.starts_with(&format!(
            "the event page-faults of the PMU `software` on CPU {}: ",
            cpu.0
        )),
        "{text}"
    );
    assert!(text.contains("no such event"), "{text}");
}

fn caveats_of(fixture: &fixture::Fixture, offsets: &MemoryOffsets) -> Vec<String> {
    let machine = Machine::probe(fixture.root());
    let modules = Arc::new(ModuleStore::new("/".into(), false));
    let events = plan::pebs(&machine, 1000, MemoryOptions::default()).unwrap();
    let mut memory = Memory::new(&machine, offsets, &modules, events);
    memory.samples = 10;
    memory.inexact = 3;
    memory.count(30);
    memory.caveats()
}

#[test]
fn what_the_samples_lack_is_said() {
    let caveats = caveats_of(&fixture::intel_hybrid(), &MemoryOffsets::default()).join("\n");
    for words in [
        "neither latency nor data source",
        "30 of 40 samples of the targets were of instructions that touch no memory",
        "3 of 10 samples do not name their instruction exactly",
    ] {
        assert!(caveats.contains(words), "{caveats}");
    }
    assert!(!caveats.contains("have no PMU"), "{caveats}");
    let machine = fixture::intel_hybrid();
    machine.remove("sys/bus/event_source/devices/cpu_atom");
    machine.remove("sys/bus/event_source/devices/cpu_core/events/mem-stores");
    let offsets = MemoryOffsets {
        sample: Some(8),
        data_src: Some(112),
        ..MemoryOffsets::default()
    };
    let caveats = caveats_of(&machine, &offsets).join("\n");
    assert!(caveats.contains("2 of 4 CPUs have no PMU"), "{caveats}");
    assert!(caveats.contains("samples loads only"), "{caveats}");
    assert!(!caveats.contains("neither latency"), "{caveats}");
}

#[test]
fn ibs_needs_the_kernels_types_on_two_releases_only() {
    let fixture = fixture::amd_zen4();
    fixture.remove("sys/kernel/btf");
    fixture.directory("sys/kernel");
    for (release, needed) in [
        ("6.0.9", false),
        ("6.1.0", true),
        ("6.2.16", true),
        ("6.3.0", false),
    ] {
        fixture.write("proc/sys/kernel/osrelease", format!("{release}\n"));
        let machine = Machine::probe(fixture.root());
        assert_eq!(needs_types(&machine).is_err(), needed, "{release}");
    }
    fixture.write("proc/sys/kernel/osrelease", "6.1.0\n");
    fixture.write("sys/kernel/btf/vmlinux", "");
    assert!(needs_types(&Machine::probe(fixture.root())).is_ok());
}
