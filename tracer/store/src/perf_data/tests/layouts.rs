//! Every layout of samples and trailers, in both byte orders.

use super::*;
use crate::perf_format::fields::ByteOrder;
use crate::{
    access::{Access, Basis, Cost, Cpu, Op, Pid, Tid},
    event::Unresolved,
    perf_format::sample_type as field,
};

/// What `perf mem record` asks for.
pub(super) const COMMON: u64 = field::IP
    | field::TID
    | field::TIME
    | field::ADDR
    | field::CPU
    | field::PERIOD
    | field::WEIGHT
    | field::DATA_SRC
    | field::PHYS_ADDR;

/// Checks every field of the access that is the n-th load.
fn is_load(access: &Access, n: u64) {
    assert_eq!(access.time_ns, 1_000_000 + n);
    assert_eq!(
        (access.ip, access.addr),
        (0x40_1000 + n, 0x7f00_0000_0000 + n * 8)
    );
    assert_eq!(
        (access.pid, access.tid),
        (Pid(100), Tid(100 + n as u32 % 4))
    );
    assert_eq!(access.cpu, Cpu(n as u32 % 3));
    assert_eq!((access.op, access.basis), (Op::Load, Basis::Sampled));
    assert!(!access.locked && !access.kernel);
    assert_eq!((access.size, access.cost), (0, Cost(n as u32 + 1)));
    let measured = access.measured;
    assert_eq!(measured.source.unwrap().raw(), 0x6810_0142);
    assert_eq!(measured.latency_cycles.unwrap().get(), n as u32 + 1);
    assert_eq!(measured.phys_addr.unwrap().get(), 0x1_0000 + n);
}

fn ten_loads(recording: &mut Recording) {
    for n in 0..10 {
        recording.sample(0, &TestSample::load(n));
    }
}

#[test]
fn every_field_that_may_lie_between_is_passed_over() {
    let between = [
        field::READ,
        field::CALLCHAIN,
        field::RAW,
        field::BRANCH_STACK,
        field::REGS_USER,
        field::STACK_USER,
        field::TRANSACTION,
        field::REGS_INTR,
        field::CGROUP,
        field::DATA_PAGE_SIZE,
        field::CODE_PAGE_SIZE,
        field::AUX,
        field::ID,
        field::STREAM_ID,
        field::IDENTIFIER,
    ];
    let mut sets: Vec<u64> = between.to_vec();
    sets.push(0);
    sets.push(between.iter().sum());
    for order in [ByteOrder::Little, ByteOrder::Big] {
        for set in &sets {
            for (read_format, branches) in [(0, 0), (31, 1 << 17 | 1 << 19), (12, 1 << 17), (7, 0)]
            {
                let event = TestEvent {
                    read_format,
                    branches,
                    user_registers: 0xff0fff,
                    interrupt_registers: 0b101,
                    ..TestEvent::new(COMMON | set)
                };
                let mut recording = Recording::new(order, vec![event]);
                ten_loads(&mut recording);
                for bytes in [recording.file(), recording.pipe()] {
                    let read = read(&bytes).unwrap();
                    assert_eq!(read.all.accesses.len(), 10, "{set:#x} {read_format}");
                    for (n, access) in read.all.accesses.iter().enumerate() {
                        is_load(access, n as u64);
                    }
                    assert_eq!(read.all.tally.cost, Cost((1..=10).sum::<u64>()));
                    assert!(read.description.cut_short.is_none());
                }
            }
        }
    }
}

#[test]
fn latency_is_the_low_half_of_either_kind_of_weight() {
    for kind in [field::WEIGHT, field::WEIGHT_STRUCT] {
        let event = TestEvent::new(COMMON & !field::WEIGHT | kind);
        let mut recording = Recording::new(ByteOrder::Little, vec![event]);
        ten_loads(&mut recording);
        let read = read(&recording.file()).unwrap();
        is_load(&read.all.accesses[9], 9);
        assert!(read.description.evidence.names().contains(&"cost"));
    }
}

#[test]
fn fields_that_are_not_recorded_are_not_known() {
    let event = TestEvent::new(field::IP | field::TID | field::TIME | field::ADDR | field::CPU);
    let mut recording = Recording::new(ByteOrder::Little, vec![event]);
    ten_loads(&mut recording);
    let read = read(&recording.file()).unwrap();
    let access = read.all.accesses[3];
    assert_eq!(
        (access.op, access.cost, access.locked),
        (Op::Unknown, Cost(0), false)
    );
    assert_eq!(access.measured, crate::access::Measured::default());
    assert_eq!(read.description.evidence.names(), ["data_addr", "exact_ip"]);
}

#[test]
fn two_events_of_different_layouts_are_told_apart_by_their_ids() {
    let loads = COMMON | field::IDENTIFIER;
    let stores = field::IDENTIFIER | field::TIME | field::ADDR | field::DATA_SRC | field::CALLCHAIN;
    let with_ids = |loads, stores| {
        let events = vec![TestEvent::new(loads).id(11), TestEvent::new(stores).id(22)];
        let mut recording = Recording::new(ByteOrder::Little, events);
        for n in 0..4 {
            let id = if n % 2 == 0 { 11 } else { 22 };
            let data_src = if n % 2 == 0 {
                0x6810_0142
            } else {
                0x2_2908_0144
            };
            let sample = TestSample {
                id,
                data_src,
                ..TestSample::load(n)
            };
            recording.sample(n as usize % 2, &sample);
        }
        recording
    };
    let by_id = with_ids(
        COMMON | field::ID,
        COMMON | field::ID | field::CALLCHAIN | field::REGS_INTR,
    );
    for recording in [with_ids(loads, stores), by_id] {
        for bytes in [recording.file(), recording.pipe()] {
            let read = read(&bytes).unwrap();
            let ops: Vec<Op> = read.all.accesses.iter().map(|access| access.op).collect();
            assert_eq!(ops, [Op::Load, Op::Store, Op::Load, Op::Store]);
            assert_eq!(read.all.accesses[1].addr, 0x7f00_0000_0008);
            assert_eq!(read.description.events.len(), 2);
        }
    }
    // Without ids nobody can tell them apart.
    let blind = with_ids(COMMON, field::TIME | field::ADDR);
    assert!(matches!(read(&blind.file()), Err(PerfDataError::NoIds)));
    // Equal layouts need none.
    let alike = with_ids(COMMON, COMMON);
    assert_eq!(read(&alike.file()).unwrap().all.accesses.len(), 4);
}

#[test]
fn a_sample_of_an_unknown_event_is_counted_and_not_guessed() {
    let events = vec![
        TestEvent::new(COMMON | field::IDENTIFIER).id(11),
        TestEvent::new(field::IDENTIFIER | field::ADDR).id(22),
    ];
    let mut recording = Recording::new(ByteOrder::Little, events);
    for id in [11, 33] {
        let sample = TestSample {
            id,
            ..TestSample::load(id)
        };
        recording.sample(0, &sample);
    }
    let read = read(&recording.file()).unwrap();
    assert_eq!(read.all.accesses.len(), 1);
    assert!(says(
        &read,
        "1 samples are of an event that the file does not describe"
    ));
}

#[test]
fn what_a_sample_did_is_what_its_data_source_says() {
    let cases = [
        (0x6_2980_0842, Op::Load, false),
        (0x2_2908_0144, Op::Store, false),
        (0x1e_0508_0021, Op::Unknown, false),
        (0x6a10_0142, Op::Load, true),
        (0x6, Op::Rmw, false),
        (0x8, Op::Prefetch, false),
        (0x10, Op::Unknown, false),
        (0, Op::Unknown, false),
    ];
    let mut recording = Recording::new(ByteOrder::Little, vec![TestEvent::new(COMMON)]);
    for (n, (data_src, ..)) in cases.iter().enumerate() {
        let sample = TestSample {
            data_src: *data_src,
            ..TestSample::load(n as u64)
        };
        recording.sample(0, &sample);
    }
    let read = read(&recording.file()).unwrap();
    for (access, (data_src, op, locked)) in read.all.accesses.iter().zip(cases) {
        assert_eq!((access.op, access.locked), (op, locked), "{data_src:#x}");
        let source = access
            .measured
            .source
            .map_or(0, crate::data_source::DataSource::raw);
        assert_eq!(source, data_src);
    }
    assert!(read.description.evidence.names().contains(&"stores"));
}

#[test]
fn no_line_is_invented_from_an_address_that_is_none() {
    let mut recording = Recording::new(ByteOrder::Little, vec![TestEvent::new(COMMON)]);
    for (n, addr) in [0, u64::MAX, 0x1000].into_iter().enumerate() {
        let sample = TestSample {
            addr,
            ..TestSample::load(n as u64)
        };
        recording.sample(0, &sample);
    }
    let read = read(&recording.file()).unwrap();
    assert_eq!(read.all.accesses.len(), 1);
    assert_eq!(read.all.tally.unresolved[&Unresolved::NoDataAddress], 2);
    // The latency of all samples is the whole that lines have shares of.
    assert_eq!(read.all.tally.cost, Cost(1 + 2 + 3));
}

#[test]
fn without_a_time_the_order_is_that_of_the_file() {
    let event = TestEvent::new(COMMON & !field::TIME);
    let mut recording = Recording::new(ByteOrder::Little, vec![event]);
    for n in [5, 3, 4] {
        recording.sample(0, &TestSample::load(n));
    }
    let read = read(&recording.file()).unwrap();
    let ips: Vec<u64> = read
        .all
        .accesses
        .iter()
        .map(|access| access.ip & 0xf)
        .collect();
    assert_eq!(ips, [5, 3, 4]);
    assert!(read.all.accesses.is_sorted_by(|a, b| a.time_ns < b.time_ns));
    assert!(says(&read, "Samples have no time"));
}

#[test]
fn threads_stand_for_cpus_where_those_are_not_recorded() {
    let event = TestEvent::new(COMMON & !field::CPU);
    let mut recording = Recording::new(ByteOrder::Little, vec![event]);
    ten_loads(&mut recording);
    let without = read(&recording.file()).unwrap();
    let cpus: Vec<u32> = without
        .all
        .accesses
        .iter()
        .map(|access| access.cpu.0)
        .collect();
    assert_eq!(cpus[..5], [100, 101, 102, 103, 100]);
    assert!(says(&without, "Samples have no CPU"));
    let event = TestEvent::new(COMMON & !field::TID);
    let mut recording = Recording::new(ByteOrder::Little, vec![event]);
    ten_loads(&mut recording);
    let without = read(&recording.file()).unwrap();
    assert!(
        without
            .all
            .accesses
            .iter()
            .all(|access| access.tid == Tid(0))
    );
    assert!(says(&without, "no process and thread"));
}

#[test]
fn a_task_that_is_gone_and_the_idle_task_keep_their_numbers() {
    let mut recording = Recording::new(ByteOrder::Little, vec![TestEvent::new(COMMON)]);
    for (n, id) in [0, u32::MAX].into_iter().enumerate() {
        let sample = TestSample {
            pid: id,
            tid: id,
            misc: 1,
            ..TestSample::load(n as u64)
        };
        recording.sample(0, &sample);
    }
    let read = read(&recording.file()).unwrap();
    let tids: Vec<u32> = read
        .all
        .accesses
        .iter()
        .map(|access| access.tid.0)
        .collect();
    assert_eq!(tids, [0, u32::MAX]);
    assert!(read.all.accesses.iter().all(|access| access.kernel));
    assert_eq!(read.all.tally.kernel_samples, 2);
    assert!(says(
        &read,
        "2 of 2 accesses are not marked as having the exact address"
    ));
}

#[test]
fn addresses_of_guests_are_not_those_of_the_process_that_runs_them() {
    let mut recording = Recording::new(ByteOrder::Little, vec![TestEvent::new(COMMON)]);
    for (n, mode) in [4, 5, 2].into_iter().enumerate() {
        let sample = TestSample {
            misc: mode,
            ..TestSample::load(n as u64)
        };
        recording.sample(0, &sample);
    }
    let read = read(&recording.file()).unwrap();
    assert_eq!(read.all.accesses.len(), 1);
    assert!(says(&read, "2 samples are of virtual machines' guests"));
}
