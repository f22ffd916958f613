//! The session as its users see it: written, killed, damaged, read.

mod allocations;
mod counts;
mod damage;
mod directory;
mod disk_full;
mod hostile;
mod identity;
mod origin;
mod unfinished;
mod windows;

use std::{path::Path, sync::Arc};

use super::{
    Meta, SessionError, SessionReader, SessionWriter, WriterOptions, schema::SCHEMA_VERSION,
};
use crate::{
    access::{Access, Basis, Cost, Cpu, Op, Pid, Tid, Wait},
    event::{
        Allocation, AllocationKind, Batch, Breadth, Context, ContextKind, Growth, HeapPart,
        HeapTally, HoldEnd, LocalBlock, Mapping, Pace, Tally, Unresolved, WatchedWord, Window,
        WindowEnd,
    },
};

/// Batch `n` of a small stream with every table and a tally.
fn batch(n: u64) -> Batch {
    let time_ns = n * 1000;
    let access = |k: u64| Access {
        time_ns: time_ns + k,
        addr: 0x7f00_0000_0000 + 8 * k,
        ip: 0x40_0000 + 4 * k,
        cost: if k == 0 { Cost(1_000_000) } else { Cost(0) },
        pid: Pid(100),
        tid: Tid(100 + (k % 3) as u32),
        cpu: Cpu((k % 2) as u32),
        size: 8,
        op: [Op::Load, Op::Store, Op::Rmw, Op::Prefetch][(k % 4) as usize],
        basis: [
            Basis::Stalled,
            Basis::Decoded,
            Basis::Harvested,
            Basis::Trapped,
        ][(k % 4) as usize],
        locked: k % 4 == 2,
        kernel: false,
        ..Access::BLANK
    };
    let mapping = Mapping {
        start: 0x40_0000,
        len: 0x1000,
        file_offset: 0,
        dev: 8 << 32 | 1,
        inode: 77,
        shared: false,
        executable: true,
        writable: false,
        name: format!("/usr/bin/program-{n}"),
        build_id: None,
        stamp: None,
    };
    let context = |kind| Context { time_ns, kind };
    let (pid, tid) = (Pid(100), Tid(101));
    Batch {
        accesses: (0..19).map(access).collect(),
        context: vec![
            context(ContextKind::Mapping {
                pid,
                mapping: Arc::new(mapping),
            }),
            context(ContextKind::Comm {
                pid,
                tid,
                comm: format!("worker-{n}"),
                exec: n == 0,
            }),
            context(ContextKind::Pace(Pace {
                pid,
                tid,
                addr: 0x7f00_0000_1008 + n,
                len: 8,
                line_addr: 0x7f00_0000_1000,
                beside: Growth {
                    added: 900,
                    run_ns: 20_000_000,
                },
                others_run_ns: 19_000_000,
                beside_ns: 20_100_000,
                alone: Growth {
                    added: 200,
                    run_ns: 1_900_000,
                },
                held_ns: 2_000_000,
                held: 1,
                in_system_call: 0,
                others: 2,
                end: HoldEnd::Held,
            })),
            context(ContextKind::Memory {
                pid: n.is_multiple_of(2).then_some(Pid(7)),
                start: u64::MAX - n,
                bytes: [0, n as u8, 0xff].into(),
            }),
            context(ContextKind::LocalStorage {
                pid,
                tid,
                block: LocalBlock {
                    start: 0x7f00_0000_1000 + n,
                    len: 0x40,
                    dev: 0xfe_0000_0001,
                    inode: 1042,
                },
            }),
        ],
        windows: vec![window(n)],
        allocations: heap_events(n),
        tally: Tally {
            produced: 11,
            samples: 10,
            attributed: 9,
            unresolved: [(Unresolved::NoFunction, 1)].into(),
            lost: [(Cpu(1), 1)].into(),
            heap: HeapTally {
                allocations: 1,
                frees: 1,
                lost: 2,
                off_ns: 300,
                cost_ns: 4000,
            },
            ..Tally::default()
        },
    }
}

/// The heap's events of batch `n`.
fn heap_events(n: u64) -> Vec<Allocation> {
    let event = |time_ns, kind| Allocation {
        time_ns: n * 1000 + time_ns,
        pid: Pid(100),
        tid: Tid(101),
        kind,
    };
    let addr = 0x7f00_0000_0000 + 64 * n;
    let stack = Arc::from([0x7f11_0000, 0x40_0123, 0x40_0010 + n]);
    let size = 64;
    vec![
        event(1, AllocationKind::Allocated { addr, size, stack }),
        event(5, AllocationKind::Freed { addr }),
        event(
            9,
            [
                AllocationKind::Unseen(HeapPart::All),
                AllocationKind::Seen(HeapPart::All),
            ][(n % 2) as usize]
                .clone(),
        ),
    ]
}

/// The window of batch `n`.
fn window(n: u64) -> Window {
    let word = |at: u64| WatchedWord {
        pid: Pid(100),
        addr: 0x7f00_0000_0000 + 8 * at,
        len: 8,
    };
    Window {
        number: n,
        open_ns: n * 1000,
        end_ns: n * 1000 + 19,
        words: (0..n % 5).map(word).collect(),
        hits: 7,
        lost: 1,
        unresolved: [(Unresolved::NoCoveringAccess, 2), (Unresolved::NoModule, 0)].into(),
        inferred: 3,
        cost_ns: 70_000,
        everyone: n.is_multiple_of(3),
        breadth: [Breadth::Cpus, Breadth::Threads][(n % 2) as usize],
        end: [
            WindowEnd::Hits,
            WindowEnd::Time,
            WindowEnd::Asked,
            WindowEnd::Gone,
        ][(n % 4) as usize],
    }
}

/// A segment per [`batch`].
fn segment_per_batch() -> WriterOptions {
    WriterOptions {
        segment_rows: 28,
        ..WriterOptions::default()
    }
}

/// A session of the batches, finished.
fn write(path: &Path, batches: &[Batch], options: &WriterOptions) -> Result<(), SessionError> {
    let mut writer = SessionWriter::create(path, Meta::new(), options)?;
    for batch in batches {
        writer.append(batch)?;
    }
    writer.finish(Meta::new())
}

/// A session of the batches, left as a recorder leaves it that is killed after them.
fn write_and_die(path: &Path, batches: &[Batch]) {
    let mut writer =
        SessionWriter::create(path, Meta::new(), &segment_per_batch()).expect("a new session");
    for batch in batches {
        writer.append(batch).expect("room for a batch");
    }
}

/// All that a session gives, as one batch, and the caveats as text.
fn read(path: &Path) -> Result<(Batch, Vec<String>), SessionError> {
    let mut reader = SessionReader::open(path)?;
    let mut whole = Batch::default();
    let mut batch = Batch::default();
    while reader.next_batch(&mut batch)? {
        join(&mut whole, &batch);
    }
    let caveats = reader.caveats().iter().map(ToString::to_string).collect();
    Ok((whole, caveats))
}

fn join(whole: &mut Batch, batch: &Batch) {
    whole.accesses.extend_from_slice(&batch.accesses);
    whole.context.extend_from_slice(&batch.context);
    whole.windows.extend_from_slice(&batch.windows);
    whole.allocations.extend_from_slice(&batch.allocations);
    whole.tally.add(&batch.tally);
}

fn joined(batches: &[Batch]) -> Batch {
    let mut whole = Batch::default();
    for batch in batches {
        join(&mut whole, batch);
    }
    whole
}
