//! The file as its readers see it: what was exported comes back when it is imported.

use std::{
    io::Cursor,
    num::{NonZeroU32, NonZeroU64},
    sync::Arc,
};

use proptest::prelude::*;

use super::{BuildIds, Description, PerfDataWriter};
use crate::{
    access::{Access, Basis, Cost, CostUnit, Cpu, Measured, Op, Pid, Tid},
    data_source::{DataSource, stated::perf_word},
    event::{Batch, Context, ContextKind, Mapping},
    perf_data::PerfData,
    space::KERNEL_START,
};

/// Longer than any time between two events of a run here; the importer distrusts leaps of an hour.
const MOST_STEP_NS: u64 = 1_000_000;

/// An operation, and a data source word that says the same or none.
fn measured() -> impl Strategy<Value = (Op, bool, Option<u64>)> {
    let known = (0usize..4, any::<bool>(), any::<bool>(), any::<u64>());
    known.prop_map(|(n, locked, recorded, bits)| {
        let (op, op_bits) = [
            (Op::Load, 2),
            (Op::Store, 4),
            (Op::Rmw, 6),
            (Op::Prefetch, 8),
        ][n];
        let lock = if locked { 2 << 24 } else { 0 };
        let word = bits & !0x1f & !(3 << 24) | op_bits | lock;
        (op, locked, recorded.then_some(word))
    })
}

fn access() -> impl Strategy<Value = (u64, Access)> {
    let place = (0..MOST_STEP_NS, 1..KERNEL_START, any::<u64>());
    let who = (1u32..1 << 22, 1u32..1 << 22, 0u32..512, any::<bool>());
    let figures = (any::<u32>(), any::<u64>());
    (place, who, measured(), figures).prop_map(
        |((step, addr, ip), (pid, tid, cpu, kernel), (op, locked, word), (latency, phys))| {
            let access = Access {
                time_ns: 0,
                addr,
                ip,
                cost: Cost(latency),
                pid: Pid(pid),
                tid: Tid(tid),
                cpu: Cpu(cpu),
                size: 0,
                op,
                basis: Basis::Sampled,
                locked,
                kernel,
                measured: Measured {
                    source: word.and_then(DataSource::new),
                    latency_cycles: NonZeroU32::new(latency),
                    phys_addr: NonZeroU64::new(phys),
                    repeats: 0,
                },
                ..Access::BLANK
            };
            (step, access)
        },
    )
}

fn mapping() -> impl Strategy<Value = ContextKind> {
    let range = (0u64..1 << 47, 1u64..1 << 30, any::<u32>());
    let flags = (any::<bool>(), any::<bool>(), any::<bool>());
    let file = (any::<u32>(), 1..u64::MAX, "[ -~]{0,200}");
    (1u32..1 << 22, range, flags, file).prop_map(
        |(pid, (start, len, offset), (shared, executable, writable), (dev, inode, name))| {
            ContextKind::Mapping {
                pid: Pid(pid),
                mapping: Arc::new(Mapping {
                    start,
                    len,
                    file_offset: u64::from(offset) << 12,
                    dev: u64::from(dev) << 32 | u64::from(dev >> 7),
                    inode,
                    shared,
                    executable,
                    writable,
                    name: format!("/{name}"),
                    build_id: None,
                    stamp: None,
                }),
            }
        },
    )
}

fn context() -> impl Strategy<Value = ContextKind> {
    let ids = (1u32..1 << 22, 1u32..1 << 22, 1u32..1 << 22);
    let task = (ids, "[ -~]{0,15}", any::<bool>(), 0..3);
    let task = task.prop_map(|((pid, tid, parent), comm, exec, kind)| {
        let (pid, tid) = (Pid(pid), Tid(tid));
        match kind {
            0 => ContextKind::Comm {
                pid,
                tid,
                comm,
                exec,
            },
            1 => ContextKind::Fork {
                pid,
                tid,
                parent_pid: Pid(parent),
            },
            _ => ContextKind::Exit { pid, tid },
        }
    });
    prop_oneof![task, mapping()]
}

/// Batches in order, each at least a nanosecond after the one before.
fn batches() -> impl Strategy<Value = Vec<Batch>> {
    let batch = (
        prop::collection::vec(access(), 0..40),
        prop::collection::vec((0..MOST_STEP_NS, context()), 0..10),
    );
    prop::collection::vec(batch, 1..6).prop_map(|all| {
        let mut now = 1_000_000_000;
        let mut batches = Vec::new();
        for (accesses, context) in all {
            let start = now + 1;
            let mut batch = Batch::default();
            let mut at = start;
            for (step, access) in accesses {
                at += step;
                batch.accesses.push(Access {
                    time_ns: at,
                    ..access
                });
            }
            now = now.max(at);
            at = start;
            for (step, kind) in context {
                at += step;
                batch.context.push(Context { time_ns: at, kind });
            }
            now = now.max(at);
            batches.push(batch);
        }
        batches
    })
}

fn exported(batches: &[Batch]) -> Vec<u8> {
    let description = Description {
        clock: Some(1),
        ..Description::default()
    };
    let out = Cursor::new(Vec::new());
    let mut writer = PerfDataWriter::new(out, description, CostUnit::LatencyCycles).unwrap();
    for batch in batches {
        writer.append(batch).unwrap();
    }
    writer.finish(&BuildIds::default()).unwrap().0.into_inner()
}

fn imported(file: Vec<u8>) -> Batch {
    let mut reader = PerfData::open(Cursor::new(file)).unwrap();
    let (mut batch, mut all) = (Batch::default(), Batch::default());
    while reader.next_batch(&mut batch).unwrap() {
        all.accesses.append(&mut batch.accesses);
        all.context.append(&mut batch.context);
        batch.clear();
    }
    all
}

/// As the file has it: an access that no PMU measured has a word that says so.
fn stated(access: &Access) -> Access {
    let mut stated = *access;
    stated.measured.source = DataSource::new(perf_word(access));
    stated
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_exported_comes_back_when_imported(batches in batches()) {
        let back = imported(exported(&batches));
        let accesses: Vec<Access> =
            batches.iter().flat_map(|batch| batch.accesses.iter().map(stated)).collect();
        let context: Vec<Context> =
            batches.iter().flat_map(|batch| batch.context.clone()).collect();
        prop_assert_eq!(back.accesses, accesses);
        prop_assert_eq!(back.context, context);
    }
}

#[test]
fn the_file_says_where_its_parts_are() {
    let file = exported(&[Batch::default()]);
    let word = |at: usize| u64::from_le_bytes(file[at..at + 8].try_into().unwrap());
    assert_eq!(&file[..8], b"PERFILE2");
    // struct perf_file_header of tools/perf/util/header.h: its size, that of an attribute with its ids' section,
    // the sections of attributes and data.
    assert_eq!([word(8), word(16)], [104, 128]);
    assert_eq!([word(24), word(32)], [120, 256]);
    let (data, bytes) = (word(40), word(48));
    assert_eq!(data, 376);
    // The kernel's mapping and the end of the round: 8 + 32 + 40 + 32 bytes, and 8.
    assert_eq!(bytes, 8 + 32 + 24 + 32 + 8);
    // Every feature's section is in the file.
    let features = word(72).count_ones() as usize;
    assert!(features > 5);
    let table = (data + bytes) as usize;
    for n in 0..features {
        let (at, len) = (word(table + 16 * n), word(table + 16 * n + 8));
        assert!(at + len <= file.len() as u64);
    }
}
