//! What is written is what is read.

use std::num::{NonZeroU32, NonZeroU64};

use proptest::{collection::vec, prelude::*};

use super::*;
use crate::{
    access::{Cost, Measured},
    data_source::DataSource,
};

fn any_access() -> impl Strategy<Value = Access> {
    let op = prop::sample::select(vec![
        Op::Load,
        Op::Store,
        Op::Rmw,
        Op::Prefetch,
        Op::Unknown,
        Op::PrefetchOwn,
    ]);
    let basis = prop::sample::select(vec![
        Basis::Stalled,
        Basis::Decoded,
        Basis::Harvested,
        Basis::Trapped,
        Basis::Sampled,
        Basis::Emulated,
    ]);
    let measured = || prop_oneof![Just(0), any::<u64>()];
    let address = prop_oneof![Just(0), Just(u64::MAX), any::<u64>(), 0..4096u64];
    (
        (any::<u64>(), address.clone(), address, any::<u32>()),
        (any::<u32>(), any::<u32>(), any::<u32>(), any::<u16>()),
        (op, basis, any::<bool>(), any::<bool>()),
        (
            measured(),
            prop_oneof![Just(0), any::<u32>()],
            measured(),
            prop_oneof![Just(0), Just(u32::MAX), any::<u32>()],
        ),
        (
            prop_oneof![Just(0), any::<u8>()],
            0..Wait::ALL.len(),
            prop_oneof![Just(0), any::<u8>()],
        ),
    )
        .prop_map(
            |(
                (time_ns, addr, ip, cost),
                (pid, tid, cpu, size),
                (op, basis, locked, kernel),
                (source, latency, phys_addr, repeats),
                (within, wait, instead),
            )| {
                Access {
                    time_ns,
                    addr,
                    ip,
                    cost: Cost(cost),
                    pid: Pid(pid),
                    tid: Tid(tid),
                    cpu: Cpu(cpu),
                    size,
                    op,
                    basis,
                    locked,
                    kernel,
                    measured: Measured {
                        source: DataSource::new(source),
                        latency_cycles: NonZeroU32::new(latency),
                        phys_addr: NonZeroU64::new(phys_addr),
                        repeats,
                    },
                    within,
                    wait: Wait::ALL[wait],
                    instead,
                }
            },
        )
}

fn any_name() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        Just("[heap]".to_owned()),
        Just("/tmp/größe\u{0}\n.so".to_owned()),
        "\\PC{0,40}",
    ]
}

fn any_mapping() -> impl Strategy<Value = Mapping> {
    (
        (any::<u64>(), any::<u64>(), any::<u64>(), any::<u64>()),
        (any::<u64>(), any::<[bool; 3]>(), any_name()),
        proptest::option::of("[0-9a-f]{0,40}"),
    )
        .prop_map(
            |(
                (start, len, file_offset, dev),
                (inode, [shared, executable, writable], name),
                build_id,
            )| {
                Mapping {
                    start,
                    len,
                    file_offset,
                    dev,
                    inode,
                    shared,
                    executable,
                    writable,
                    name,
                    build_id,
                    stamp: None,
                }
            },
        )
}

fn any_context() -> impl Strategy<Value = Context> {
    let pid = || any::<u32>().prop_map(Pid);
    let tid = || any::<u32>().prop_map(Tid);
    let kind = prop_oneof![
        (pid(), any_mapping()).prop_map(|(pid, mapping)| ContextKind::Mapping {
            pid,
            mapping: Arc::new(mapping)
        }),
        (pid(), tid(), any_name(), any::<bool>()).prop_map(|(pid, tid, comm, exec)| {
            ContextKind::Comm {
                pid,
                tid,
                comm,
                exec,
            }
        }),
        (pid(), tid(), pid()).prop_map(|(pid, tid, parent_pid)| ContextKind::Fork {
            pid,
            tid,
            parent_pid
        }),
        (pid(), tid()).prop_map(|(pid, tid)| ContextKind::Exit { pid, tid }),
        (pid(), tid(), any::<u64>(), any::<Option<u64>>())
            .prop_map(|(pid, tid, sp, tp)| ContextKind::Thread { pid, tid, sp, tp }),
        (pid(), tid(), any::<[u64; 4]>()).prop_map(|(pid, tid, [start, len, dev, inode])| {
            let block = LocalBlock {
                start,
                len,
                dev,
                inode,
            };
            ContextKind::LocalStorage { pid, tid, block }
        }),
        (
            any::<Option<u32>>(),
            any::<u64>(),
            prop::collection::vec(any::<u8>(), 0..40)
        )
            .prop_map(|(pid, start, bytes)| ContextKind::Memory {
                pid: pid.map(Pid),
                start,
                bytes: bytes.into(),
            }),
        any_pace().prop_map(ContextKind::Pace),
    ];
    (any::<u64>(), kind).prop_map(|(time_ns, kind)| Context { time_ns, kind })
}

fn any_pace() -> impl Strategy<Value = Pace> {
    let growth = || any::<[u64; 2]>().prop_map(|[added, run_ns]| Growth { added, run_ns });
    let end = prop::sample::select(HoldEnd::ALL.to_vec());
    let len = prop_oneof![Just(4), Just(8)];
    let times = (any::<[u64; 5]>(), any::<[u16; 3]>());
    (any::<[u32; 2]>(), len, growth(), growth(), times, end).prop_map(
        |([pid, tid], len, beside, alone, (numbers, threads), end)| {
            let [addr, line_addr, others_run_ns, beside_ns, held_ns] = numbers;
            let [held, in_system_call, others] = threads;
            Pace {
                pid: Pid(pid),
                tid: Tid(tid),
                addr,
                len,
                line_addr,
                beside,
                others_run_ns,
                beside_ns,
                alone,
                held_ns,
                held,
                in_system_call,
                others,
                end,
            }
        },
    )
}

/// Counts small enough that sums do not overflow.
fn any_tally() -> impl Strategy<Value = Tally> {
    let count = || prop_oneof![Just(0u64), 0..u64::from(u32::MAX)];
    let reason = prop::sample::select(Unresolved::ALL.to_vec());
    (
        (count(), count(), count(), count(), count()),
        (count(), count(), count()),
        prop::collection::btree_map(any::<u32>().prop_map(Cpu), count(), 0..3),
        prop::collection::btree_map(any::<u32>().prop_map(Cpu), count(), 0..3),
        prop::collection::btree_map(reason, count(), 0..5),
    )
        .prop_map(
            |(
                (produced, samples, kernel_samples, filtered, lost_context),
                (cost, attributed, operands_unknown),
                lost,
                blind_ns,
                unresolved,
            )| Tally {
                produced,
                samples,
                kernel_samples,
                filtered,
                lost,
                blind_ns,
                lost_context,
                cost: Cost(cost),
                attributed,
                unresolved,
                operands_unknown,
                // The session of these is in a unit of samples.
                executions: 0,
                messages: 0,
                heap: HeapTally {
                    allocations: produced,
                    frees: samples,
                    lost: filtered,
                    off_ns: cost,
                    cost_ns: attributed,
                },
            },
        )
}

fn any_allocation() -> impl Strategy<Value = Allocation> {
    let size = prop_oneof![Just(1), Just(u64::MAX), 1..10_000u64];
    let stack = || vec(any::<u64>(), 0..6);
    let parts = [HeapPart::All, HeapPart::Allocations, HeapPart::Mappings];
    let part = || prop::sample::select(parts.to_vec());
    let kind = prop_oneof![
        4 => (any::<u64>(), size.clone(), stack()).prop_map(|(addr, size, stack)| {
            AllocationKind::Allocated { addr, size, stack: stack.into() }
        }),
        3 => any::<u64>().prop_map(|addr| AllocationKind::Freed { addr }),
        2 => (any::<u64>(), size.clone(), stack()).prop_map(|(addr, size, stack)| {
            AllocationKind::Mapped { addr, size, stack: stack.into() }
        }),
        2 => (any::<u64>(), size).prop_map(|(addr, size)| AllocationKind::Unmapped { addr, size }),
        1 => part().prop_map(AllocationKind::Unseen),
        1 => part().prop_map(AllocationKind::Seen),
    ];
    (any::<u64>(), any::<u32>(), any::<u32>(), kind).prop_map(|(time_ns, pid, tid, kind)| {
        Allocation {
            time_ns,
            pid: Pid(pid),
            tid: Tid(tid),
            kind,
        }
    })
}

fn any_word() -> impl Strategy<Value = WatchedWord> {
    let address = prop_oneof![Just(0), Just(u64::MAX), any::<u64>()];
    let len = prop::sample::select(vec![1u8, 2, 4, 8]);
    (any::<u32>(), address, len).prop_map(|(pid, addr, len)| WatchedWord {
        pid: Pid(pid),
        addr: addr - addr % u64::from(len),
        len,
    })
}

/// Counts small enough that sums do not overflow; 0 by a reason is not the same as no count of it.
fn any_window() -> impl Strategy<Value = Window> {
    let count = || prop_oneof![Just(0u64), 0..u64::from(u32::MAX)];
    let end = prop::sample::select(vec![
        WindowEnd::Hits,
        WindowEnd::Time,
        WindowEnd::Asked,
        WindowEnd::Gone,
    ]);
    let reason = prop::sample::select(Unresolved::ALL.to_vec());
    (
        (any::<u64>(), any::<u64>(), count()),
        (count(), count(), count(), count()),
        (vec(any_word(), 0..=4), any::<bool>(), end),
        prop::collection::btree_map(reason, count(), 0..5),
    )
        .prop_map(
            |(
                (number, open_ns, time_ns),
                (hits, lost, inferred, cost_ns),
                (words, cpus, end),
                unresolved,
            )| Window {
                number,
                open_ns,
                end_ns: open_ns.saturating_add(time_ns),
                words,
                hits,
                lost,
                unresolved,
                inferred,
                cost_ns,
                everyone: number.is_multiple_of(3),
                breadth: if cpus {
                    Breadth::Cpus
                } else {
                    Breadth::Threads
                },
                end,
            },
        )
}

/// A batch in the order that a source promises.
fn any_batch() -> impl Strategy<Value = Batch> {
    (
        vec(any_access(), 0..40),
        vec(any_context(), 0..20),
        prop_oneof![Just(Vec::new()), vec(any_window(), 0..6)],
        prop_oneof![Just(Vec::new()), vec(any_allocation(), 0..20)],
        prop_oneof![Just(Tally::default()), any_tally()],
    )
        .prop_map(
            |(mut accesses, mut context, mut windows, mut allocations, tally)| {
                allocations.sort_by_key(|event| event.time_ns);
                accesses.sort_by_key(|access| access.time_ns);
                context.sort_by_key(|context| context.time_ns);
                windows.sort_by_key(|window| window.end_ns);
                Batch {
                    accesses,
                    context,
                    windows,
                    allocations,
                    tally,
                }
            },
        )
}

/// Everything in the order in which a reader of the stream applies it: context first at equal times within a
/// batch, then allocations, then accesses, windows last, batch after batch.
fn applied(batches: &[Batch]) -> Vec<String> {
    let mut order = Vec::new();
    for batch in batches {
        let mut context = batch.context.iter().peekable();
        let mut allocations = batch.allocations.iter().peekable();
        for access in &batch.accesses {
            while let Some(event) = allocations.next_if(|event| event.time_ns <= access.time_ns) {
                while let Some(event) = context.next_if(|before| before.time_ns <= event.time_ns) {
                    order.push(format!("{event:?}"));
                }
                order.push(format!("{event:?}"));
            }
            while let Some(event) = context.next_if(|event| event.time_ns <= access.time_ns) {
                order.push(format!("{event:?}"));
            }
            order.push(format!("{access:?}"));
        }
        for event in allocations {
            while let Some(event) = context.next_if(|before| before.time_ns <= event.time_ns) {
                order.push(format!("{event:?}"));
            }
            order.push(format!("{event:?}"));
        }
        order.extend(context.map(|event| format!("{event:?}")));
        order.extend(batch.windows.iter().map(|window| format!("{window:?}")));
    }
    order
}

fn read_batches(path: &Path) -> Vec<Batch> {
    let mut reader = SessionReader::open(path).expect("a session");
    let mut batches = Vec::new();
    let mut batch = Batch::default();
    while reader.next_batch(&mut batch).expect("an undamaged session") {
        batches.push(batch.clone());
    }
    assert!(batch.is_empty(), "the end leaves nothing in the batch");
    assert_eq!(reader.caveats(), []);
    batches
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// With segments of any size: cut within a batch, after each batch, or one for all.
    #[test]
    fn a_session_gives_back_the_stream_it_was_given(
        batches in vec(any_batch(), 0..8),
        segment_rows in prop_oneof![1..30usize, Just(1 << 18)],
    ) {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("s.coh");
        let options = WriterOptions { segment_rows, ..WriterOptions::default() };
        write(&path, &batches, &options).expect("written");
        let back = read_batches(&path);
        prop_assert_eq!(joined(&back), joined(&batches));
        prop_assert_eq!(applied(&back), applied(&batches));
        let tally = SessionReader::open(&path).expect("a session").meta().tally.clone();
        prop_assert_eq!(Tally::try_from(&tally).expect("known reasons"), joined(&batches).tally);
    }

    /// All columns are differences then: of stretches that are alike, of any length in blocks, and of any jump between.
    #[test]
    fn rows_of_an_emulated_program_come_back(
        runs in vec((any_access(), prop_oneof![Just(1), 1..600usize]), 1..40),
        segment_rows in prop_oneof![Just(700), Just(1 << 18)],
    ) {
        let runs = runs.into_iter().flat_map(|(access, n)| {
            std::iter::repeat_n(Access { basis: Basis::Emulated, ..access }, n)
        });
        let batches = [Batch { accesses: runs.collect(), ..Batch::default() }];
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("s.coh");
        let options = WriterOptions { segment_rows, ..WriterOptions::default() };
        write(&path, &batches, &options).expect("written");
        prop_assert!(joined(&read_batches(&path)) == joined(&batches));
    }

    /// Unless a batch is larger than a segment, not even its boundaries move; only tallies are summed.
    #[test]
    fn batches_that_fit_a_segment_come_back_one_by_one(batches in vec(any_batch(), 0..8)) {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("s.coh");
        let options = WriterOptions { segment_rows: 100, ..WriterOptions::default() };
        write(&path, &batches, &options).expect("written");
        let rows = |batches: &[Batch]| -> Vec<Batch> {
            let with_rows = batches.iter().map(|batch| Batch { tally: Tally::default(), ..batch.clone() });
            with_rows.filter(|batch| !batch.is_empty()).collect()
        };
        prop_assert_eq!(rows(&read_batches(&path)), rows(&batches));
    }
}

#[test]
fn a_segment_of_counts_alone_does_not_shift_the_batches_after_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("s.coh");
    let idle = Batch {
        tally: batch(0).tally,
        ..Batch::default()
    };
    let batches = [idle.clone(), batch(0), idle, batch(1)];
    let options = WriterOptions {
        segment_time: std::time::Duration::ZERO,
        ..WriterOptions::default()
    };
    write(&path, &batches, &options).expect("written");
    assert_eq!(read(&path).expect("reads").0, joined(&batches));
}

#[test]
fn meta_comes_back_as_it_was_finished() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("s.coh");
    let writer = SessionWriter::create(&path, Meta::new(), &WriterOptions::default());
    let mut meta = Meta::new();
    meta.host = Some("box".to_owned());
    meta.start_ns = Some(5);
    meta.end_ns = Some(1_000_000_005);
    meta.machine.line_size_bytes = Some(64);
    meta.targets.pids = vec![7, 8];
    meta.caveats = vec!["kernel code is not named".to_owned()];
    writer
        .and_then(|writer| writer.finish(meta.clone()))
        .expect("written");
    let reader = SessionReader::open(&path).expect("a session");
    meta.complete = true;
    meta.segment_ms = 2000;
    assert_eq!(reader.meta(), &meta);
    assert_eq!(reader.meta().duration_ns(), Some(1_000_000_000));
    assert_eq!(reader.meta().boot_id, None);
    let caveats: Vec<String> = reader.caveats().iter().map(ToString::to_string).collect();
    assert_eq!(caveats, ["kernel code is not named"]);
}

#[test]
fn a_batch_larger_than_any_segment_is_cut_and_comes_back() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("s.coh");
    let mut large = batch(1);
    large.accesses = std::iter::repeat_n(large.accesses[0], (1 << 20) + 5).collect();
    let options = WriterOptions {
        segment_rows: usize::MAX,
        ..WriterOptions::default()
    };
    write(&path, std::slice::from_ref(&large), &options).expect("written");
    let back = read_batches(&path);
    assert_eq!(back.len(), 2);
    assert!(joined(&back) == large);
}

#[test]
fn names_of_more_than_a_segment_can_hold_are_cut_into_several() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("s.coh");
    let mut large = batch(1);
    let name = "n".repeat(1 << 20);
    large.context = std::iter::repeat_n(large.context[1].clone(), 40)
        .map(|mut event| {
            if let ContextKind::Comm { comm, .. } = &mut event.kind {
                comm.clone_from(&name);
            }
            event
        })
        .collect();
    write(
        &path,
        std::slice::from_ref(&large),
        &WriterOptions::default(),
    )
    .expect("written");
    let back = read_batches(&path);
    assert!(back.len() > 1);
    assert!(joined(&back) == large);
}
