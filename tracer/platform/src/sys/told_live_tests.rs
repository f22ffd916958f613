//! The debug object on the running kernel. See `live_tests` for when they run.

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

use tracer_ebpf::{programs, told::Reason};

use super::{
    bpf::{KernelHalf, Options, Told},
    clock,
    live_tests::{can_run, options},
    perf_event::{self, Scope},
};
use crate::access::{Pid, Tid};

fn telling() -> Options {
    Options {
        tells: true,
        heap_least: Some(1),
        ..options()
    }
}

/// What is told of our own thread while it spins below a clock whose samples have no ring.
fn told_of_spinning(options: &Options, is_target: bool) -> Vec<Told> {
    let mut half = KernelHalf::load(options).unwrap();
    let own = Pid(std::process::id());
    assert!(half.set_target(own, is_target));
    let clock = perf_event::cpu_clock(1_000_000);
    let clock = perf_event::open(
        &clock,
        Scope::Thread(Tid(rustix::thread::gettid().as_raw_pid() as u32)),
    );
    let clock = clock.unwrap();
    half.attach_sample(&clock).unwrap();
    clock.enable().unwrap();
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(100) {
        black_box(start);
    }
    clock.disable().unwrap();
    half.take_told()
}

#[test]
fn the_kernel_takes_every_program_of_the_debug_object() {
    if !can_run("loading the debug object") {
        return;
    }
    let mut half = KernelHalf::load(&telling()).unwrap();
    half.attach_fork().unwrap();
    half.memory().unwrap();
    half.watch().unwrap();
    let heap = half.heap().unwrap();
    for name in programs::HEAP_ENTRIES {
        assert!(heap.programs.get(name).is_some(), "{name}");
    }
}

#[test]
fn each_reason_is_told_once_and_by_the_ordinary_object_never() {
    if !can_run("being told") {
        return;
    }
    let before = clock::monotonic_ns();
    for (is_target, reason) in [(false, Reason::NoTarget), (true, Reason::NoRoom)] {
        // Some hundred times the same.
        let told = told_of_spinning(&telling(), is_target);
        let [one] = told[..] else {
            panic!("{told:?}");
        };
        assert_eq!((one.program, one.reason), (programs::SAMPLE, reason));
        assert_eq!(one.pid, Pid(std::process::id()));
        assert!(one.time_ns > before && one.addr.is_some(), "{one:?}");
        assert_eq!(told_of_spinning(&options(), is_target), []);
    }
}
