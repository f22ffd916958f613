//! A session without chance: three seconds of processes that share, fork, exec and map over, with watch windows.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use cohtrace::{
    access::{Access, Basis, Cost, Cpu, Op, Pid, Tid},
    event::{Batch, Breadth, Context, ContextKind, Mapping, Tally, WatchedWord, Window, WindowEnd},
    session::{Meta, SessionWriter, WriterOptions},
};

pub(super) const HOST: &str = "crafted-1";
pub(super) const BOOT_ID: &str = "6c1f6b86-0d5b-4a35-9c1b-6f2d0c9b8a11";

const MS: u64 = 1_000_000;
const START: u64 = 5_000 * MS;
/// When in its slice a mapping and an access to it come together, milliseconds.
const SAME_TIME: u64 = 54;

/// Shared memory as process 10 and its child have it.
const SHARED_10: u64 = 0x7000_0000;
/// The same bytes in process 20.
const SHARED_20: u64 = 0x9000_1000;
const SHARED_10_LINE: u64 = SHARED_10 + 0x1000;
const HEAP: u64 = 0x5000_0000;
const HEAP_2: u64 = HEAP + 0x100;
const HEAP_END: u64 = HEAP + 0x1000;
const KERNEL: u64 = 0xffff_8880_0010_0000;

/// Numbers without pattern, always the same (Marsaglia's xorshift, 64 bits).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % below
    }
}

/// One access of the thread, whose process is its number down to a multiple of ten, on the CPU of its last digit. Each line
/// has code of its own: a report puts lines together that nothing but their code tells of, and a query does not.
fn access(time_ns: u64, tid: u32, addr: u64, size: u16, op: Op, basis: Basis) -> Access {
    let code = match addr / 64 * 64 {
        SHARED_10_LINE | SHARED_20 => 0,
        HEAP..HEAP_2 => 0x400,
        HEAP_2..HEAP_END => 0x800,
        _ => 0xc00,
    };
    Access {
        time_ns,
        addr,
        ip: 0x40_0000 + code + u64::from(size) * 0x40 + addr % 64 * 4 + op as u64,
        cost: Cost(if basis == Basis::Stalled {
            1_000_000
        } else {
            0
        }),
        pid: Pid(tid / 10 * 10),
        tid: Tid(tid),
        cpu: Cpu(tid % 10),
        size,
        op,
        basis,
        locked: op == Op::Rmw,
        kernel: addr >= KERNEL,
        ..Access::BLANK
    }
}

fn map(time_ns: u64, pid: u32, start: u64, len: u64, shared_inode: Option<u64>) -> Context {
    let mapping = Mapping {
        start,
        len,
        // Process 20 maps from the second page on.
        file_offset: if start == SHARED_20 { 0x1000 } else { 0 },
        dev: shared_inode.map_or(0, |_| 8 << 32 | 1),
        inode: shared_inode.unwrap_or(0),
        shared: shared_inode.is_some(),
        executable: false,
        writable: true,
        name: shared_inode.map_or("[heap]".to_owned(), |inode| format!("/dev/shm/{inode}")),
        build_id: None,
        stamp: None,
    };
    Context {
        time_ns,
        kind: ContextKind::Mapping {
            pid: Pid(pid),
            mapping: Arc::new(mapping),
        },
    }
}

fn fork(time_ns: u64, parent_pid: u32, pid: u32) -> Context {
    Context {
        time_ns,
        kind: ContextKind::Fork {
            pid: Pid(pid),
            tid: Tid(pid),
            parent_pid: Pid(parent_pid),
        },
    }
}

fn exec(time_ns: u64, pid: u32) -> Context {
    Context {
        time_ns,
        kind: ContextKind::Comm {
            pid: Pid(pid),
            tid: Tid(pid),
            comm: "next".to_owned(),
            exec: true,
        },
    }
}

/// What happens besides accesses in the slice of that number. `inode` is that of the shared memory, if it is shared.
fn context(slice: u64, inode: Option<u64>) -> Vec<Context> {
    let at = START + slice * 100 * MS;
    match slice {
        0 => vec![
            map(at, 10, HEAP, 0x2000, None),
            map(at, 10, SHARED_10, 0x4000, inode),
            map(at, 20, SHARED_20, 0x1000, inode),
            map(at, 20, HEAP, 0x2000, None),
        ],
        5 => vec![fork(at + 3, 10, 30)],
        // The grandchild has what its parent had of its own parent.
        8 => vec![
            fork(at, 30, 40),
            map(at, 10, SHARED_10 + 0x2000, 0x1000, Some(99)),
        ],
        12 => vec![exec(at, 30)],
        // From here on, this page of process 10 is nobody else's.
        20 => vec![map(at + SAME_TIME * MS, 10, SHARED_10_LINE, 0x1000, None)],
        25 => vec![fork(at, 20, 40)],
        _ => Vec::new(),
    }
}

/// Samples of a slice, one or two accesses each.
fn samples(slice: u64, numbers: &mut Numbers) -> Vec<Access> {
    let mut accesses = Vec::new();
    for n in 0..60 {
        // One comes in the very nanosecond in which context of its time can come.
        let late = if n == SAME_TIME {
            0
        } else {
            numbers.next(MS / 2)
        };
        let time_ns = START + slice * 100 * MS + n * MS + late;
        let mut add = |tid, addr, size, op, basis| {
            accesses.push(access(time_ns, tid, addr, size, op, basis));
        };
        let word = numbers.next(2) * 8;
        match n % 6 {
            // The same line of the file, through two addresses: each stores its own word.
            0 => add(11, SHARED_10_LINE, 8, Op::Rmw, Basis::Stalled),
            1 => add(21, SHARED_20 + 8, 8, Op::Rmw, Basis::Stalled),
            // A counter of two threads, beside a word of one.
            2 => {
                add(12, HEAP + 0x40, 8, Op::Store, Basis::Stalled);
                add(12, HEAP + 0x50, 4, Op::Load, Basis::Harvested);
            }
            3 => {
                add(13, HEAP + 0x40, 8, Op::Load, Basis::Decoded);
                add(13, HEAP + 0x48, 8, Op::Store, Basis::Stalled);
            }
            // Phases: one thread after the other.
            4 if slice < 15 => add(14, HEAP + 0x100 + word, 8, Op::Store, Basis::Stalled),
            4 => add(15, HEAP + 0x100 + word, 8, Op::Store, Basis::Stalled),
            _ => match numbers.next(8) {
                // Across lines, of unknown size, of unknown direction, a hint, kernel memory, the end of memory.
                0 => add(11, HEAP + 0x3c, 8, Op::Load, Basis::Decoded),
                1 => add(12, HEAP + 0x80, 0, Op::Load, Basis::Decoded),
                2 => add(13, HEAP + 0x84, 300, Op::Unknown, Basis::Sampled),
                3 => add(14, HEAP + 0x80, 64, Op::Prefetch, Basis::Harvested),
                4 => add(11, KERNEL + word, 8, Op::Store, Basis::Stalled),
                5 => add(22, KERNEL + 8, 8, Op::Rmw, Basis::Stalled),
                6 => add(22, u64::MAX - 3, 16, Op::Load, Basis::Decoded),
                // The child, its child, and a process never heard of.
                _ => {
                    let tid = [30, 41, 50][(numbers.next(3)) as usize];
                    add(tid, SHARED_10 + 0x1010, 8, Op::Store, Basis::Stalled);
                    add(tid, SHARED_10 + 0x2000 + word, 8, Op::Load, Basis::Decoded);
                }
            },
        }
    }
    accesses
}

/// Five windows in the last 40 ms of a slice, with accesses before, between and after them.
fn windows(slice: u64, numbers: &mut Numbers) -> (Vec<Access>, Vec<Window>) {
    let mut accesses = Vec::new();
    let mut windows = Vec::new();
    let mut time_ns = START + slice * 100 * MS + 61 * MS;
    for n in 0..5 {
        let number = slice * 5 + n;
        let shared = number.is_multiple_of(3);
        let word = |pid, addr| WatchedWord {
            pid: Pid(pid),
            addr,
            len: 8,
        };
        let (words, everyone) = if shared {
            let words = vec![word(10, SHARED_10_LINE), word(20, SHARED_20 + 8)];
            (words, number.is_multiple_of(2))
        } else {
            (vec![word(10, HEAP + 0x40), word(10, HEAP + 0x48)], false)
        };
        let mut trap = |numbers: &mut Numbers| {
            time_ns += 1 + numbers.next(40_000);
            // Now and then one that is neither a load nor a store.
            let kind = numbers.next(24);
            let op = match kind {
                0 => Op::Unknown,
                1 => Op::Prefetch,
                2..12 => Op::Load,
                12..20 => Op::Store,
                _ => Op::Rmw,
            };
            let (tid, addr) = match numbers.next(if shared { 6 } else { 7 }) {
                0..3 if shared => (11, SHARED_10_LINE),
                3..5 if shared => (21, SHARED_20 + 8),
                // Its memory is another one at times: no access to the watched line.
                5 if shared => (30, SHARED_10_LINE),
                0 => (13, HEAP + 0x40 + numbers.next(2) * 8),
                1 => (14, HEAP + 0x44),
                // A stray, and one that reaches into the line from before.
                2 => (12, HEAP + 0x200),
                3 => (13, HEAP + 0x3c),
                _ => (12, HEAP + 0x40 + numbers.next(2) * 8),
            };
            let size = if addr.is_multiple_of(8) { 8 } else { 12 };
            let mut trapped = access(time_ns, tid, addr, size, op, Basis::Trapped);
            // Some overwrote their own address.
            if addr % 8 == 0 && numbers.next(6) == 0 {
                (trapped.size, trapped.within) = (4, 8);
            }
            // A thread that moves takes its line along or not: the protocol is of CPUs.
            trapped.cpu = Cpu((tid + u32::from(numbers.next(5) == 0)) % 10);
            trapped
        };
        accesses.push(trap(numbers));
        let open_ns = accesses[accesses.len() - 1].time_ns + 1;
        // Every seventh window sees nothing.
        let hits = if number % 7 == 6 { 0 } else { 30 };
        accesses.extend((0..hits).map(|_| trap(numbers)));
        let end_ns = accesses[accesses.len() - 1].time_ns.max(open_ns);
        accesses.push(trap(numbers));
        windows.push(Window {
            number,
            open_ns,
            end_ns,
            words,
            everyone,
            hits,
            lost: 0,
            unresolved: BTreeMap::new(),
            inferred: 0,
            cost_ns: hits * 1000,
            breadth: Breadth::Cpus,
            end: WindowEnd::Hits,
        });
    }
    (accesses, windows)
}

fn meta() -> Meta {
    Meta {
        host: Some(HOST.to_owned()),
        boot_id: Some(BOOT_ID.to_owned()),
        started_unix_ns: Some(1_700_000_000_000_000_000),
        start_ns: Some(START),
        end_ns: Some(START + 3000 * MS),
        frequency_hz: Some(1000),
        ..Meta::new()
    }
}

/// What to leave out, so that something must differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Everything.
    Whole,
    /// The same addresses, but the memory is not shared between processes.
    Unshared,
    /// No windows, no trapped accesses, no event of a thread.
    SamplesOnly,
    /// The same accesses, as an emulator has them: all that there are, each standing for some executions.
    Emulated,
}

/// Writes the session, in several segments.
pub(super) fn write(path: &Path, kind: Kind) {
    let options = WriterOptions {
        segment_rows: 700,
        ..WriterOptions::default()
    };
    let mut writer = SessionWriter::create(path, meta(), &options).expect("a new session");
    let mut numbers = Numbers(0x2545_f491_4f6c_dd1d);
    let inode = (kind != Kind::Unshared).then_some(77);
    for slice in 0..30 {
        let mut context = context(slice, inode);
        let mut accesses = samples(slice, &mut numbers);
        let (trapped, windows) = windows(slice, &mut numbers);
        let windowless = matches!(kind, Kind::SamplesOnly | Kind::Emulated);
        if windowless {
            context.retain(|event| matches!(event.kind, ContextKind::Mapping { .. }));
        } else {
            accesses.extend(trapped);
        }
        if kind == Kind::Emulated {
            for access in &mut accesses {
                access.basis = Basis::Emulated;
                access.cost = Cost(0);
                access.measured.repeats = numbers.next(5) as u32;
            }
        }
        let stalled = accesses
            .iter()
            .filter(|access| access.cost > Cost(0))
            .count() as u64;
        let batch = Batch {
            accesses,
            context,
            windows: if windowless { Vec::new() } else { windows },
            tally: Tally {
                produced: 60,
                samples: 60,
                attributed: stalled,
                cost: Cost(60 * MS),
                ..Tally::default()
            },
            ..Batch::default()
        };
        writer.append(&batch).expect("room for a batch");
    }
    writer.finish(meta()).expect("room for the rest");
}
