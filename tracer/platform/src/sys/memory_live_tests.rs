//! The program for memory events on the running kernel, without a PMU: breakpoints and page faults are events
//! with a data address too, and the kernel fills in "not available" for what no driver gave.

use cohtrace_skips::skipped;
use std::{arch::asm, ptr, sync::atomic::AtomicU64};

use tracer_ebpf::{
    MEMORY_ADDR, MEMORY_DATA_SRC, MEMORY_PERIOD, MEMORY_PHYS_ADDR, MEMORY_WEIGHT, MemoryRecord,
    SAMPLE_KERNEL, Stats,
};
use zerocopy::FromBytes as _;

use super::{
    bpf::{KernelHalf, Options},
    breakpoint_turn,
    live_tests::{can_run, online_cpus, options},
    perf_event::{self, Attributes, PERF_TYPE_SOFTWARE, Scope, flag, sample},
    ring::Ring,
};
use cohtrace_model::data_source::DataSource;

use crate::{
    access::{Pid, Tid},
    machine::btf::MemoryOffsets,
    perf_format::ring_record::{self, RecordKind},
};

const ALL: u64 = sample::IP
    | sample::ADDR
    | sample::PERIOD
    | sample::WEIGHT
    | sample::DATA_SRC
    | sample::PHYS_ADDR;

fn own_tid() -> Tid {
    // SAFETY: the call has no precondition.
    Tid(unsafe { libc::gettid() } as u32)
}

/// Records and counts of what `act` does on this thread, by an event of it.
fn records(
    options: &Options,
    attributes: Attributes,
    act: impl FnOnce(),
) -> (Vec<MemoryRecord>, Stats) {
    let mut half = KernelHalf::load(options).unwrap();
    let program = half.memory().unwrap();
    let mut rings: Vec<Ring> = online_cpus()
        .into_iter()
        .map(|cpu| {
            let output =
                perf_event::open(&perf_event::bpf_output(u32::MAX), Scope::Cpu(cpu)).unwrap();
            half.set_ring(cpu, &output).unwrap();
            Ring::map(output, 1 << 18).unwrap()
        })
        .collect();
    assert!(half.set_target(Pid(std::process::id()), true));
    let event = perf_event::open(&attributes, Scope::Thread(own_tid())).unwrap();
    program.attach(&event).unwrap();
    event.enable().unwrap();
    act();
    event.disable().unwrap();
    let mut records = Vec::new();
    for ring in &mut rings {
        ring.drain(|record| {
            if let RecordKind::Raw(raw) = ring_record::parse(record).unwrap().kind {
                records.push(MemoryRecord::read_from_prefix(raw).unwrap().0);
            }
        });
    }
    records.sort_by_key(|record| record.time_ns);
    let mut total = Stats::default();
    for (_, stats) in half.stats().unwrap() {
        total.produced += stats.produced;
        total.emitted += stats.emitted;
        total.dropped += stats.dropped;
        total.filtered += stats.filtered;
        total.not_memory += stats.not_memory;
    }
    (records, total)
}

/// Stores a word; returns the addresses of the storing instruction and of the next.
#[cfg(target_arch = "x86_64")]
#[inline(never)]
fn store(to: *mut u64, value: u64) -> (u64, u64) {
    let (at, next): (u64, u64);
    // SAFETY: the caller's pointer is to a word of its own that may be written.
    unsafe {
        asm!(
            "lea {at}, [rip + 2f]",
            "lea {next}, [rip + 3f]",
            "2: mov qword ptr [{to}], {value}",
            "3:",
            at = out(reg) at,
            next = out(reg) next,
            to = in(reg) to,
            value = in(reg) value,
        );
    }
    (at, next)
}

fn with_offsets(test: &str) -> Option<Options> {
    if !can_run(test) {
        return None;
    }
    let options = options();
    if options.memory_offsets.sample.is_none() {
        skipped(format_args!("{test} needs the kernel's BTF"));
        return None;
    }
    Some(options)
}

#[test]
#[cfg(target_arch = "x86_64")]
fn a_breakpoints_address_arrives_with_the_ip_and_the_kernels_words_for_not_available() {
    static WORD: AtomicU64 = AtomicU64::new(0);
    let Some(options) = with_offsets("sampling a breakpoint") else {
        return;
    };
    let _turn = breakpoint_turn::take();
    let attributes = Attributes {
        sample_type: ALL,
        ..perf_event::data_breakpoint(WORD.as_ptr() as u64, 8)
    };
    let mut places = Vec::new();
    let (records, total) = records(&options, attributes, || {
        for value in 0..3 {
            places.push(store(WORD.as_ptr(), value));
        }
    });
    println!("{records:x?} {total:?}");
    assert_eq!(records.len(), 3);
    for (record, (_, next)) in records.iter().zip(places) {
        assert_eq!(record.ip, next, "the trap comes after the store");
        assert_eq!(record.addr, WORD.as_ptr() as u64);
        assert_eq!((record.tid, record.flags & SAMPLE_KERNEL), (own_tid().0, 0));
        let valid = MEMORY_ADDR | MEMORY_DATA_SRC | MEMORY_WEIGHT | MEMORY_PERIOD;
        assert_eq!(record.fields & valid, valid);
        assert_eq!(record.data_src, DataSource::NOT_AVAILABLE);
        assert_eq!((record.weight, record.period), (0, 1));
        if record.fields & MEMORY_PHYS_ADDR != 0 && record.phys_addr != 0 {
            // A page is as large in one as in the other.
            assert_eq!(record.phys_addr % 4096, record.addr % 4096);
        }
    }
    assert_eq!((total.produced, total.emitted, total.dropped), (3, 3, 0));
    assert_eq!(total.not_memory, 0);
}

#[test]
#[cfg(target_arch = "x86_64")]
fn what_was_not_asked_for_is_not_valid_and_not_read() {
    static WORD: AtomicU64 = AtomicU64::new(0);
    let Some(options) = with_offsets("sampling less") else {
        return;
    };
    let _turn = breakpoint_turn::take();
    let attributes = Attributes {
        sample_type: sample::IP | sample::ADDR,
        ..perf_event::data_breakpoint(WORD.as_ptr() as u64, 8)
    };
    let (records, _) = records(&options, attributes, || {
        store(WORD.as_ptr(), 1);
    });
    assert_eq!(records.len(), 1);
    let record = records[0];
    assert_eq!(record.fields & MEMORY_ADDR, MEMORY_ADDR);
    assert_eq!(
        record.fields & (MEMORY_DATA_SRC | MEMORY_WEIGHT | MEMORY_PHYS_ADDR),
        0
    );
    assert_eq!(
        (record.data_src, record.weight, record.phys_addr),
        (0, 0, 0)
    );
}

#[test]
#[cfg(target_arch = "x86_64")]
fn without_the_kernels_types_address_and_period_still_arrive() {
    static WORD: AtomicU64 = AtomicU64::new(0);
    let Some(options) = with_offsets("sampling without types") else {
        return;
    };
    let _turn = breakpoint_turn::take();
    let options = Options {
        memory_offsets: MemoryOffsets::default(),
        ..options
    };
    let attributes = Attributes {
        sample_type: ALL,
        ..perf_event::data_breakpoint(WORD.as_ptr() as u64, 8)
    };
    let (records, _) = records(&options, attributes, || {
        store(WORD.as_ptr(), 1);
    });
    assert_eq!(records.len(), 1);
    assert_eq!(records[0].addr, WORD.as_ptr() as u64);
    assert_eq!(records[0].fields, MEMORY_ADDR | MEMORY_PERIOD);
    assert_eq!((records[0].period, records[0].data_src), (1, 0));
}

/// A page that no one has touched.
fn fresh_page() -> *mut u64 {
    // SAFETY: a new mapping at an address of the kernel's choice touches no memory of ours.
    let page = unsafe {
        libc::mmap(
            ptr::null_mut(),
            4096,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    assert_ne!(page, libc::MAP_FAILED);
    page.cast()
}

#[test]
#[cfg(target_arch = "x86_64")]
fn a_page_faults_address_and_instruction_arrive() {
    const PAGE_FAULTS: u64 = 2;
    let Some(options) = with_offsets("sampling page faults") else {
        return;
    };
    let attributes = Attributes {
        kind: PERF_TYPE_SOFTWARE,
        config: PAGE_FAULTS,
        sample_period: 1,
        sample_type: ALL,
        flags: flag::DISABLED,
        ..Attributes::default()
    };
    // SAFETY: 40 bytes into a page of ours.
    let word = unsafe { fresh_page().add(5) };
    let mut place = (0, 0);
    let (records, total) = records(&options, attributes, || place = store(word, 1));
    let ours: Vec<_> = (records.iter())
        .filter(|record| record.addr == word as u64)
        .collect();
    println!("{ours:x?} {total:?}");
    assert_eq!(ours.len(), 1);
    assert_eq!(ours[0].ip, place.0, "a fault is before the store");
    assert_eq!(ours[0].data_src, DataSource::NOT_AVAILABLE);
    assert_eq!(total.produced, records.len() as u64);
}

#[test]
fn samples_without_an_address_and_a_data_source_are_counted_and_go_no_further() {
    let Some(options) = with_offsets("filtering what touches no memory") else {
        return;
    };
    let attributes = Attributes {
        sample_type: ALL,
        ..perf_event::cpu_clock(100_000)
    };
    let (records, total) = records(&options, attributes, || {
        let start = std::time::Instant::now();
        while start.elapsed() < std::time::Duration::from_millis(50) {
            std::hint::spin_loop();
        }
    });
    assert!(records.is_empty(), "{records:x?}");
    assert!(total.not_memory > 0, "{total:?}");
    assert_eq!((total.produced, total.emitted), (0, 0));
}

#[test]
fn whom_nobody_asked_about_is_filtered_before_anything_is_read() {
    let Some(options) = with_offsets("filtering others") else {
        return;
    };
    let mut half = KernelHalf::load(&options).unwrap();
    let program = half.memory().unwrap();
    let attributes = Attributes {
        sample_type: ALL,
        ..perf_event::cpu_clock(100_000)
    };
    let event = perf_event::open(&attributes, Scope::Thread(own_tid())).unwrap();
    program.attach(&event).unwrap();
    event.enable().unwrap();
    let start = std::time::Instant::now();
    while start.elapsed() < std::time::Duration::from_millis(50) {
        std::hint::spin_loop();
    }
    event.disable().unwrap();
    let stats = half.stats().unwrap();
    assert!(stats.iter().any(|(_, stats)| stats.filtered > 0));
    assert!(stats.iter().all(|(_, s)| s.not_memory + s.produced == 0));
}
