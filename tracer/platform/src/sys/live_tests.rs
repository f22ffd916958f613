//! The kernel half on the running kernel. Where the machine or the user cannot, each test says so and
//! returns; where they can, a failure is a failure.

use cohtrace_skips::{skipped, skipped_core};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use tracer_ebpf::{SAMPLE_FS_BASE, SAMPLE_KERNEL, SampleRecord, Stats};
use zerocopy::FromBytes as _;

use super::{
    bpf::{BpfError, KernelHalf, Options},
    perf_event::{self, OpenError, PerfEvent, Scope},
    ring::Ring,
};
use crate::{
    access::{Cpu, Pid, Tid},
    machine::btf::KernelOffsets,
    perf_format::ring_record::{self, RecordKind},
};

/// Whether this user may use BPF here; prints why not.
pub(super) fn can_run(test: &str) -> bool {
    // SAFETY: the call has no precondition.
    let root = unsafe { libc::geteuid() } == 0;
    if !root {
        skipped_core(format_args!("{test} needs root"));
    }
    root
}

pub(super) fn online_cpus() -> Vec<Cpu> {
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

pub(super) fn options() -> Options {
    let offsets = KernelOffsets::of_running_kernel().unwrap_or_default();
    Options {
        tgid_offset: offsets.task.tgid,
        thread_pointer_offset: offsets.task.thread_pointer,
        memory_offsets: offsets.memory,
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

    /// Samples, and the losses that the rings themselves report.
    fn drain(&mut self) -> (Vec<SampleRecord>, u64) {
        let (mut samples, mut lost) = (Vec::new(), 0);
        for ring in &mut self.rings {
            let drained = ring.drain(|record| match ring_record::parse(record).unwrap().kind {
                RecordKind::Raw(raw) => {
                    samples.push(SampleRecord::read_from_prefix(raw).unwrap().0);
                }
                RecordKind::Lost(count) => lost += count,
                other => panic!("{other:?}"),
            });
            assert_eq!(drained.corrupt_bytes, 0);
        }
        (samples, lost)
    }

    /// Samples until there is enough, then stops. However busy the machine is, a thread that spins
    /// gets its turn within seconds.
    fn run_until(&mut self, enough: impl Fn(&[SampleRecord]) -> bool) -> Vec<SampleRecord> {
        let start = Instant::now();
        let mut samples = Vec::new();
        while !enough(&samples) && start.elapsed() < Duration::from_secs(20) {
            thread::sleep(Duration::from_millis(20));
            samples.extend(self.drain().0);
        }
        self.stop();
        samples.extend(self.drain().0);
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

fn count(samples: &[SampleRecord], of: impl Fn(&SampleRecord) -> bool) -> usize {
    samples.iter().filter(|sample| of(sample)).count()
}

/// A thread that does nothing but spin, and what it is.
struct Spinner {
    tid: Tid,
    /// glibc's `pthread_self` is the thread pointer.
    thread_pointer: u64,
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
            let tid = unsafe { libc::gettid() };
            // SAFETY: the call has no precondition.
            let thread_pointer = unsafe { libc::pthread_self() };
            send.send((tid, thread_pointer)).unwrap();
            while !seen.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        });
        let (tid, thread_pointer) = receive.recv().unwrap();
        Spinner {
            tid: Tid(tid as u32),
            thread_pointer,
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
    let of_spinner = |sample: &SampleRecord| sample.tid == spinner.tid.0;
    let samples = sampler.run_until(|samples| count(samples, of_spinner) >= 100);
    let total = sampler.total();
    println!("{} samples, {total:?}", samples.len());
    assert_eq!(samples.len() as u64, total.emitted);
    assert_eq!(total.dropped, 0);
    let cpus = online_cpus();
    assert!(samples.iter().all(|sample| cpus.contains(&Cpu(sample.cpu))));
    let of_spinner: Vec<_> = samples.into_iter().filter(of_spinner).collect();
    assert!(of_spinner.len() >= 100, "{} samples", of_spinner.len());
    let clock_ns: u64 = sampler
        .clocks
        .iter()
        .map(|clock| clock.count().unwrap())
        .sum();
    assert!(clock_ns >= 100 * 1_000_000, "{clock_ns}");
    let own = std::process::id();
    assert!(of_spinner.iter().all(|sample| sample.pid == own));
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
    let mut user = of_spinner
        .iter()
        .filter(|sample| sample.flags & SAMPLE_KERNEL == 0);
    assert!(user.all(|sample| executable(sample.ip)));
}

#[test]
fn the_thread_pointer_of_a_sample_is_that_of_the_thread() {
    if !can_run("reading thread pointers") {
        return;
    }
    let options = options();
    if options.thread_pointer_offset.is_none() {
        return skipped("reading thread pointers needs the kernel's BTF");
    }
    let mut sampler = Sampler::start(&options, 1_000_000, 1 << 20);
    let spinners = [Spinner::start(), Spinner::start()];
    assert_ne!(spinners[0].thread_pointer, spinners[1].thread_pointer);
    let samples = sampler.run_until(|samples| {
        let enough = |spinner: &Spinner| count(samples, |sample| sample.tid == spinner.tid.0) >= 20;
        spinners.iter().all(enough)
    });
    for spinner in &spinners {
        let own: Vec<_> = samples
            .iter()
            .filter(|sample| sample.tid == spinner.tid.0)
            .collect();
        assert!(own.len() >= 20, "{} samples", own.len());
        assert!(own.iter().all(|sample| {
            sample.flags & SAMPLE_FS_BASE != 0 && sample.fs_base == spinner.thread_pointer
        }));
    }
    assert_eq!(sampler.total().no_fs_base, 0);
}

#[test]
fn what_a_full_ring_drops_is_counted_to_the_sample() {
    if !can_run("overrunning a ring") {
        return;
    }
    // One page holds 22 samples; 10,000 Hz fill it in 2 ms.
    let mut sampler = Sampler::start(&options(), 100_000, 1);
    let spinners = [Spinner::start(), Spinner::start()];
    let dropped = |half: &KernelHalf| half.stats().unwrap().iter().any(|(_, s)| s.dropped > 0);
    let start = Instant::now();
    while !dropped(&sampler.half) && start.elapsed() < Duration::from_secs(20) {
        thread::sleep(Duration::from_millis(20));
    }
    // A ring reports a loss with the next record that fits.
    let (mut samples, mut lost) = (Vec::new(), 0);
    while lost == 0 && start.elapsed() < Duration::from_secs(20) {
        let (more, more_lost) = sampler.drain();
        samples.extend(more);
        lost += more_lost;
    }
    sampler.stop();
    let (more, more_lost) = sampler.drain();
    samples.extend(more);
    lost += more_lost;
    drop(spinners);
    let total = sampler.total();
    println!(
        "{} samples, the rings report {lost} lost, {total:?}",
        samples.len()
    );
    assert!(total.dropped > 0);
    assert_eq!(total.emitted, samples.len() as u64);
    assert_eq!(total.produced, total.emitted + total.dropped);
    assert!(lost > 0 && lost <= total.dropped);
}

/// A process that does nothing but spin.
fn spinning_child() -> std::process::Child {
    let script = "while :; do :; done";
    std::process::Command::new("sh")
        .args(["-c", script])
        .spawn()
        .unwrap()
}

#[test]
fn a_targets_child_is_sampled_and_anothers_is_not_even_under_a_reused_pid() {
    if !can_run("following forks") {
        return;
    }
    let options = options();
    if options.tgid_offset.is_none() {
        return skipped("following forks needs the kernel's BTF");
    }
    let mut sampler = Sampler::start(&options, 1_000_000, 1 << 20);
    let mut target = spinning_child();
    // From here on we are none, but every pid that is free was one in its former life.
    assert!(sampler.half.set_target(Pid(std::process::id()), false));
    for pid in (2..=options.pid_max).filter(|pid| !std::fs::exists(format!("/proc/{pid}")).unwrap())
    {
        assert!(sampler.half.set_target(Pid(pid), true));
    }
    let mut stranger = spinning_child();
    // As much processor time as the stranger would need to be seen.
    let ran_ns = || {
        let status = format!("/proc/{}/schedstat", stranger.id());
        let status = std::fs::read_to_string(status).unwrap();
        status.split(' ').next().unwrap().parse::<u64>().unwrap()
    };
    let of = |samples: &[_], pid| count(samples, |sample| sample.pid == pid);
    let target_pid = target.id();
    let samples =
        sampler.run_until(|samples| of(samples, target_pid) >= 20 && ran_ns() > 50_000_000);
    let (of_target, of_stranger) = (of(&samples, target_pid), of(&samples, stranger.id()));
    for child in [&mut target, &mut stranger] {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    println!("{of_target} samples of the target's child, {of_stranger} of the stranger");
    assert!(of_target >= 20);
    assert_eq!(of_stranger, 0);
    assert!(sampler.half.is_target(Pid(target.id())));
    assert!(!sampler.half.is_target(Pid(stranger.id())));
}

#[test]
fn all_processes_are_sampled_but_our_own() {
    if !can_run("sampling all processes") {
        return;
    }
    let options = Options {
        all_processes: true,
        ..options()
    };
    let mut sampler = Sampler::start(&options, 1_000_000, 1 << 20);
    let _spinner = Spinner::start();
    let mut other = spinning_child();
    let of = |samples: &[_], pid| count(samples, |sample| sample.pid == pid);
    let samples = sampler.run_until(|samples| of(samples, other.id()) >= 20);
    other.kill().unwrap();
    other.wait().unwrap();
    assert!(of(&samples, other.id()) >= 20);
    assert_eq!(of(&samples, std::process::id()), 0);
    assert_eq!(of(&samples, 0), 0);
}

#[test]
fn a_pid_beyond_the_table_is_said_to_be_no_target() {
    if !can_run("the table of targets") {
        return;
    }
    let options = Options {
        pid_max: 1000,
        ..Options::default()
    };
    let half = KernelHalf::load(&options).unwrap();
    assert!(half.set_target(Pid(1000), true));
    assert!(half.is_target(Pid(1000)));
    assert!(!half.set_target(Pid(1 << 20), true));
    assert!(!half.is_target(Pid(1 << 20)));
}

/// The address of a kernel function, where the kernel tells.
fn kernel_function(name: &str) -> Option<u64> {
    let symbols = std::fs::read_to_string("/proc/kallsyms").ok()?;
    symbols.lines().find_map(|line| {
        let mut fields = line.split_whitespace();
        let address = u64::from_str_radix(fields.next()?, 16).ok()?;
        let kind = fields.next()?;
        (kind.eq_ignore_ascii_case("t") && fields.next() == Some(name) && address != 0)
            .then_some(address)
    })
}

#[test]
fn kernel_text_reads_as_code_and_an_empty_address_as_an_error() {
    if !can_run("reading kernel text") {
        return;
    }
    let mut half = KernelHalf::load(&options()).unwrap();
    let Some(address) = kernel_function("schedule") else {
        return skipped("/proc/kallsyms does not show addresses");
    };
    let text = half.read_kernel(address, 256).unwrap();
    assert_eq!(text.len(), 256);
    assert_eq!(half.read_kernel(address, 256).unwrap(), text);
    assert_eq!(half.read_kernel(address + 16, 16).unwrap(), text[16..32]);
    #[cfg(target_arch = "x86_64")]
    {
        use iced_x86::{Decoder, FlowControl};
        let returns = Decoder::with_ip(64, &text, address, 0)
            .iter()
            .take_while(|instruction| !instruction.is_invalid())
            .any(|instruction| {
                matches!(
                    instruction.flow_control(),
                    FlowControl::Return | FlowControl::UnconditionalBranch
                )
            });
        assert!(returns, "{text:02x?}");
    }
    // The null page, no address at all, and the unused top of the kernel's half.
    for nothing in [0, 0xdead_0000_0000_0000, 0xffff_ffff_fffe_0000] {
        match half.read_kernel(nothing, 16) {
            Err(BpfError::Call { source, .. }) => assert!(
                matches!(source.raw_os_error(), Some(libc::EFAULT | libc::ERANGE)),
                "{source}"
            ),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn without_privilege_the_message_says_what_to_grant() {
    if !can_run("dropping privileges") {
        return;
    }
    // The raw call changes this thread only, and with its user its capabilities.
    let errors = thread::spawn(|| {
        const NOBODY: libc::c_long = 65534;
        // SAFETY: the call takes plain numbers; no other thread shares these credentials.
        let status = unsafe { libc::syscall(libc::SYS_setresuid, NOBODY, NOBODY, NOBODY) };
        assert_eq!(status, 0);
        let load = KernelHalf::load(&options()).unwrap_err();
        let clock = perf_event::cpu_clock(1_000_000);
        (load, perf_event::open(&clock, Scope::Cpu(Cpu(0))))
    });
    let (load, open) = errors.join().unwrap();
    assert!(matches!(load, BpfError::NotPermitted { .. }), "{load}");
    assert!(load.to_string().contains("setcap cap_bpf"), "{load}");
    let Err(open @ OpenError::NotPermitted { .. }) = open else {
        panic!("{open:?}");
    };
    assert!(
        open.to_string().contains("perf_event_paranoid is"),
        "{open}"
    );
}

#[test]
fn a_process_of_a_few_milliseconds_leaves_its_fork_exec_mappings_and_exit() {
    if !can_run("reading side-band records") {
        return;
    }
    let open = |cpu| {
        let event = perf_event::open(&perf_event::sideband(1 << 16), Scope::Cpu(cpu)).unwrap();
        Ring::map(event, 1 << 20).unwrap()
    };
    let mut rings: Vec<Ring> = online_cpus().into_iter().map(open).collect();
    for ring in &rings {
        ring.event().enable().unwrap();
    }
    let mut child = std::process::Command::new("true").spawn().unwrap();
    let pid = Pid(child.id());
    assert!(child.wait().unwrap().success());
    let mut records = Vec::new();
    for ring in &mut rings {
        ring.event().disable().unwrap();
        ring.drain(|record| {
            let record = ring_record::parse(record).unwrap();
            records.push((
                record.id.unwrap().time_ns,
                format!("{:?}", record.kind),
                record.kind.pid(),
            ));
        });
    }
    records.retain(|(_, _, of)| *of == Some(pid));
    records.sort();
    let position = |what: &str| {
        let found = records.iter().position(|(_, text, _)| text.contains(what));
        found.unwrap_or_else(|| panic!("{what} in {records:#?}"))
    };
    let own = std::process::id();
    let fork = position(&format!("parent_pid: Pid({own})"));
    let exec = position("comm: \"true\", exec: true");
    let text = position("bin/true\"");
    let exit = position("Exit");
    assert!(fork < exec && exec < text && text < exit, "{records:#?}");
    let (time_ns, ..) = records[exit];
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the struct is live, and the call fills it.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    let now_ns = now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64;
    assert!((time_ns..time_ns + 60_000_000_000).contains(&now_ns));
}

#[test]
fn records_of_one_cpu_can_share_a_ring_and_those_of_two_cannot() {
    if !can_run("sharing a ring") {
        return;
    }
    let cpus = online_cpus();
    let open = |cpu| perf_event::open(&perf_event::sideband(1 << 12), Scope::Cpu(cpu)).unwrap();
    let ring = Ring::map(open(cpus[0]), 1 << 12).unwrap();
    open(cpus[0]).set_output(ring.event()).unwrap();
    let Some(other) = cpus.get(1) else {
        return skipped("the second half needs two CPUs");
    };
    let error = open(*other).set_output(ring.event()).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
}

#[test]
fn the_clock_of_a_thread_counts_its_time_alone() {
    if !can_run("a thread's clock") {
        return;
    }
    let spinner = Spinner::start();
    let clock = perf_event::open(
        &perf_event::cpu_clock(1_000_000),
        Scope::Thread(spinner.tid),
    );
    let clock = clock.unwrap();
    assert_eq!(clock.count().unwrap(), 0);
    // Before the clock is enabled: this thread may be preempted between the two, the spinner not.
    let start = Instant::now();
    clock.enable().unwrap();
    while clock.count().unwrap() == 0 && start.elapsed() < Duration::from_secs(20) {
        thread::sleep(Duration::from_millis(10));
    }
    clock.disable().unwrap();
    let count = clock.count().unwrap();
    assert!(count > 0 && u128::from(count) <= start.elapsed().as_nanos());
    assert_eq!(clock.count().unwrap(), count);
}
