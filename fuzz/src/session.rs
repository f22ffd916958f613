//! Sessions of one segment as one input, so that a fuzzer changes what is in the files and not where they are.
//!
//! An input is a table of 16-bit lengths, one for each of [`FILES`], and then the contents end to end. Parts are sealed
//! after the fuzzer, or no change would get past the checksum.

use std::{collections::BTreeMap, fs, io, path::Path, sync::Arc};

use cohtrace::{
    access::{Cost, Access, Basis, Cpu, Measured, Op, Pid, Tid},
    event::{
        Allocation, AllocationKind, Batch, Breadth, Context, ContextKind, Growth, HoldEnd, LocalBlock, Mapping, Pace,
        Tally, WatchedWord, Window, WindowEnd,
    },
    session::{Meta, SessionWriter, WriterOptions},
};

/// The files of a session of one segment.
pub const FILES: [&str; 8] = [
    "meta.json",
    "mappings/part-00000.parquet",
    "tasks/part-00000.parquet",
    "local_storage/part-00000.parquet",
    "memory/part-00000.parquet",
    "windows/part-00000.parquet",
    "allocations/part-00000.parquet",
    "accesses/part-00000.parquet",
];

/// What stands before the eight digits of a part's seal.
const SEAL: &[u8] = b"crc32 of this file with these digits zero: ";

/// Makes a session of the input in an empty directory. A part without a byte is not there.
pub fn write(directory: &Path, input: &[u8]) -> io::Result<()> {
    let (lengths, mut rest) = input.split_at(input.len().min(2 * FILES.len()));
    for (file, length) in FILES.iter().zip(lengths.chunks_exact(2)) {
        let length = usize::from(u16::from_le_bytes([length[0], length[1]]));
        let (this, others) = rest.split_at(length.min(rest.len()));
        rest = others;
        if let Some((folder, _)) = file.split_once('/') {
            fs::create_dir(directory.join(folder))?;
        }
        if !this.is_empty() {
            let mut part = this.to_vec();
            reseal(&mut part);
            fs::write(directory.join(file), part)?;
        }
    }
    Ok(())
}

/// Fills in the checksum if there is a place for it: a CRC-32 (IEEE) of the file with its digits zero.
fn reseal(part: &mut [u8]) {
    let found = part.windows(SEAL.len()).rposition(|window| window == SEAL);
    let Some(at) = found
        .map(|at| at + SEAL.len())
        .filter(|at| at + 8 <= part.len())
    else {
        return;
    };
    part[at..at + 8].fill(b'0');
    let digits = format!("{:08x}", crc32fast::hash(part));
    part[at..at + 8].copy_from_slice(digits.as_bytes());
}

/// The input of a session.
fn read(session: &Path) -> Vec<u8> {
    let files = FILES.map(|file| fs::read(session.join(file)).unwrap_or_default());
    let mut input = Vec::new();
    for file in &files {
        let length = u16::try_from(file.len()).expect("a small file");
        input.extend(length.to_le_bytes());
    }
    input.extend(files.concat());
    input
}

/// Sessions with a row of everything, with accesses only, and without any.
pub fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let everything = batch();
    let accesses = Batch {
        accesses: everything.accesses.clone(),
        ..Batch::default()
    };
    let seeds = [
        ("everything", everything),
        ("accesses", accesses),
        ("empty", Batch::default()),
    ];
    let input = |(name, batch): (&'static str, Batch)| {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("seed.coh");
        let meta = Meta {
            host: Some("host".to_owned()),
            frequency_hz: Some(1000),
            ..Meta::new()
        };
        let mut writer = SessionWriter::create(&path, meta.clone(), &WriterOptions::default())
            .expect("a new session");
        writer.append(&batch).expect("room for a batch");
        writer.finish(meta).expect("room for the rest");
        (name, read(&path))
    };
    seeds.into_iter().map(input).collect()
}

/// One batch with a row in every table.
fn batch() -> Batch {
    let (pid, tid) = (Pid(7), Tid(8));
    let access = |n: u64| Access {
        time_ns: 1000 + n,
        addr: 0x7000_0000 + n % 3 * 8,
        ip: 0x40_0000 + n % 2 * 4,
        cost: Cost(1_000_000 * u32::from(n % 5 == 0)),
        pid,
        tid: Tid(8 + (n % 2) as u32),
        cpu: Cpu((n % 2) as u32),
        size: 8,
        op: [Op::Load, Op::Store, Op::Rmw, Op::PrefetchOwn][(n % 4) as usize],
        basis: [
            Basis::Stalled,
            Basis::Decoded,
            Basis::Harvested,
            Basis::Trapped,
            Basis::Emulated,
        ][(n % 5) as usize],
        locked: false,
        kernel: n == 30,
        measured: Measured {
            repeats: (n % 7) as u32,
            ..Measured::default()
        },
        ..Access::BLANK
    };
    let context = |kind| Context { time_ns: 900, kind };
    let mapping = Mapping {
        start: 0x7000_0000,
        len: 0x1000,
        file_offset: 0,
        dev: 8 << 32,
        inode: 9,
        shared: true,
        executable: false,
        writable: true,
        name: "/dev/shm/a".to_owned(),
        build_id: None,
        stamp: None,
    };
    let block = LocalBlock {
        start: 0x7000_0040,
        len: 64,
        dev: 8 << 32,
        inode: 9,
    };
    let allocation = |time_ns, kind| Allocation {
        time_ns,
        pid,
        tid,
        kind,
    };
    let allocated = AllocationKind::Allocated {
        addr: 0x7000_0000,
        size: 64,
        stack: Arc::from([0x40_1000, 0x40_2000]),
    };
    Batch {
        accesses: (0..40).map(access).collect(),
        context: vec![
            context(ContextKind::Mapping {
                pid,
                mapping: Arc::new(mapping),
            }),
            context(ContextKind::Comm {
                pid,
                tid,
                comm: "worker".to_owned(),
                exec: false,
            }),
            context(ContextKind::Fork {
                pid: Pid(9),
                tid: Tid(9),
                parent_pid: pid,
            }),
            context(ContextKind::Thread {
                pid,
                tid,
                sp: 0x7fff_0000,
                tp: Some(0x7000_0080),
            }),
            context(ContextKind::LocalStorage { pid, tid, block }),
            context(ContextKind::Memory {
                pid: None,
                start: 1 << 63,
                bytes: [0x90, 0xc3].into(),
            }),
            context(ContextKind::Pace(Pace {
                pid,
                tid,
                addr: 0x7f00_0000_1008,
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
            context(ContextKind::Exit {
                pid: Pid(9),
                tid: Tid(9),
            }),
        ],
        windows: vec![Window {
            number: 0,
            open_ns: 1000,
            end_ns: 1030,
            words: vec![WatchedWord {
                pid,
                addr: 0x7000_0008,
                len: 8,
            }],
            everyone: true,
            hits: 8,
            lost: 0,
            unresolved: BTreeMap::new(),
            inferred: 0,
            cost_ns: 100,
            breadth: Breadth::Cpus,
            end: WindowEnd::Time,
        }],
        allocations: vec![
            allocation(950, allocated),
            allocation(1035, AllocationKind::Freed { addr: 0x7000_0000 }),
        ],
        tally: Tally {
            produced: 40,
            samples: 40,
            attributed: 8,
            cost: Cost(40_000_000),
            ..Tally::default()
        },
    }
}
