//! The kernel half on the running kernel. Where the machine or the user cannot, each test says so and
//! returns; where they can, a failure is a failure.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use tracer_ebpf::{SAMPLE_KERNEL, SampleRecord, Stats};
use zerocopy::FromBytes as _;

use super::{
    bpf::{KernelHalf, Options},
    perf_event::{self, PerfEvent, Scope},
    ring::Ring,
};
use crate::access::{Cpu, Pid, Tid};

const RAW_OFFSET: usize = 12;

/// Whether this user may use BPF here; prints why not.
fn can_run(test: &str) -> bool {
    // SAFETY: the call has no precondition.
    let root = unsafe { libc::geteuid() } == 0;
    if !root {
        println!("NOT RUN: {test} needs root");
    }
    root
}

fn online_cpus() -> Vec<Cpu> {
    let text = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap();
    text.trim()
        .split(',')
        .flat_map(|range| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            first.parse::<u32>().unwrap()..=last.parse().unwrap()
        })
        .map(Cpu)
        .collect()
}

fn options() -> Options {
    Options {
        pid_max: std::fs::read_to_string("/proc/sys/kernel/pid_max")
            .unwrap()
            .trim()
            .parse()
            .unwrap(),
        ..Options::default()
    }
}

/// The kernel half, sampling all CPUs.
struct Sampler {
    half: KernelHalf,
    clocks: Vec<PerfEvent>,
    rings: Vec<Ring>,
}

impl Sampler {
    fn start(options: &Options, period_ns: u64, ring_bytes: usize) -> Sampler {
        let mut half = KernelHalf::load(options).unwrap();
        half.attach_fork().unwrap();
        let (mut clocks, mut rings) = (Vec::new(), Vec::new());
        for cpu in online_cpus() {
            let output =
                perf_event::open(&perf_event::bpf_output(u32::MAX), Scope::Cpu(cpu)).unwrap();
            let ring = Ring::map(output, ring_bytes).unwrap();
            half.set_ring(cpu, ring.event()).unwrap();
            rings.push(ring);
            let clock =
                perf_event::open(&perf_event::cpu_clock(period_ns), Scope::Cpu(cpu)).unwrap();
            half.attach_sample(&clock).unwrap();
            clocks.push(clock);
        }
        assert!(half.set_target(Pid(std::process::id()), true));
        for clock in &clocks {
            clock.enable().unwrap();
        }
        Sampler {
            half,
            clocks,
            rings,
        }
    }

    fn stop(&self) {
        for clock in &self.clocks {
            clock.disable().unwrap();
        }
    }

    fn drain(&mut self) -> Vec<SampleRecord> {
        let mut samples = Vec::new();
        for ring in &mut self.rings {
            let drained = ring.drain(|record| {
                const PERF_RECORD_SAMPLE: u8 = 9;
                if record[0] == PERF_RECORD_SAMPLE {
                    samples.push(
                        SampleRecord::read_from_prefix(&record[RAW_OFFSET..])
                            .unwrap()
                            .0,
                    );
                }
            });
            assert_eq!(drained.corrupt_bytes, 0);
        }
        samples
    }

    fn total(&self) -> Stats {
        let mut total = Stats::default();
        for (_, stats) in self.half.stats().unwrap() {
            assert_eq!(stats.produced, stats.emitted + stats.dropped);
            total.produced += stats.produced;
            total.emitted += stats.emitted;
            total.dropped += stats.dropped;
            total.filtered += stats.filtered;
            total.no_fs_base += stats.no_fs_base;
        }
        total
    }
}

/// A thread that does nothing but spin, and what it is.
struct Spinner {
    tid: Tid,
    stop: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Spinner {
    fn start() -> Spinner {
        let stop = Arc::new(AtomicBool::new(false));
        let (send, receive) = std::sync::mpsc::channel();
        let seen = stop.clone();
        let thread = thread::spawn(move || {
            // SAFETY: the call has no precondition.
            send.send(unsafe { libc::gettid() }).unwrap();
            while !seen.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        });
        Spinner {
            tid: Tid(receive.recv().unwrap() as u32),
            stop,
            thread: Some(thread),
        }
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
}

#[test]
fn a_spinning_thread_is_sampled_with_its_ids_and_every_sample_is_counted_once() {
    if !can_run("sampling a spinning thread") {
        return;
    }
    let before = Instant::now();
    let mut sampler = Sampler::start(&options(), 1_000_000, 1 << 20);
    println!("loading and attaching took {:?}", before.elapsed());
    let spinner = Spinner::start();
    thread::sleep(Duration::from_millis(200));
    sampler.stop();
    let samples = sampler.drain();
    let total = sampler.total();
    println!("{} samples, {total:?}", samples.len());
    assert_eq!(samples.len() as u64, total.emitted);
    assert_eq!(total.dropped, 0);
    let own = std::process::id();
    assert!(samples.iter().all(|sample| sample.pid == own));
    let cpus = online_cpus();
    assert!(samples.iter().all(|sample| cpus.contains(&Cpu(sample.cpu))));
    let of_spinner: Vec<_> = samples
        .iter()
        .filter(|sample| sample.tid == spinner.tid.0 && sample.flags & SAMPLE_KERNEL == 0)
        .collect();
    // 200 are due; the machine may be busy.
    assert!(of_spinner.len() > 20, "{} samples", of_spinner.len());
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let executable = |ip: u64| {
        maps.lines()
            .filter(|line| line.contains(" r-xp "))
            .any(|line| {
                let (start, rest) = line.split_once('-').unwrap();
                let end = rest.split(' ').next().unwrap();
                (u64::from_str_radix(start, 16).unwrap()..u64::from_str_radix(end, 16).unwrap())
                    .contains(&ip)
            })
    };
    assert!(of_spinner.iter().all(|sample| executable(sample.ip)));
}
