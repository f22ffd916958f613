//! The source on live processes; needs root.

use cohtrace_skips::skipped_core;
use std::{
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use super::{
    super::{MemoryOptions, Progress, Watching},
    *,
};
use crate::event::Batch;

/// Samples of processes other than `root`, taken with the given knowledge of the kernel.
fn samples_of_children(offsets: &KernelOffsets) -> usize {
    // The shell gives us time to attach, then works in children of its own.
    let script = "sleep 0.3; for i in 1 2 3; do (end=$(($(date +%s)+1)); while [ $(date +%s) -lt $end ]; do :; done); done";
    let mut root = Command::new("sh")
        .args(["-c", script])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let pid = Pid(root.id());
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
    let modules = Arc::new(ModuleStore::new("/".into(), true));
    let machine = Machine::probe(Path::new("/"));
    let target = Target::Trees(vec![pid]);
    let mut timer = open(&target, &options, &machine, offsets, &modules).unwrap();
    let (mut batch, start) = (Batch::default(), Instant::now());
    while start.elapsed() < Duration::from_secs(2) {
        std::thread::sleep(Duration::from_millis(20));
        timer.take(&mut batch).unwrap();
    }
    timer.stop();
    while timer.take(&mut batch).unwrap() != Progress::End {}
    root.kill().unwrap();
    root.wait().unwrap();
    batch
        .accesses
        .iter()
        .filter(|access| access.pid != pid)
        .count()
}

#[test]
fn children_are_sampled_with_and_without_type_information_of_the_kernel() {
    if std::fs::read_dir("/proc/1/fd").is_err() {
        return skipped_core("sampling needs root");
    }
    assert!(samples_of_children(&KernelOffsets::of_running_kernel().unwrap_or_default()) > 0);
    assert!(samples_of_children(&KernelOffsets::default()) > 0);
}

#[test]
fn the_parts_of_a_cost_are_all_of_it() {
    for parts in 1..20 {
        let shares: Vec<u32> = shares(1_000_003, parts).collect();
        assert_eq!(shares.len(), parts);
        assert_eq!(shares.iter().sum::<u32>(), 1_000_003);
        assert!(shares[0] - shares[parts - 1] <= 1);
    }
    assert_eq!(shares(7, 0).count(), 0);
}
