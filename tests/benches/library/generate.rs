//! A made-up session of any length, as a PMU would have recorded it: one access a sample, with data source, latency and
//! physical address; a few lines that threads fight over, a long tail of lines that they do not.
//!
//! The same bytes on every machine for the same numbers. Memory is that of one batch, whatever the length.

use std::{
    num::{NonZeroU32, NonZeroU64},
    path::Path,
    sync::Arc,
    time::Instant,
};

use anyhow::{Context as _, ensure};
use cohtrace::{
    access::{Access, Basis, Cost, CostUnit, Cpu, Measured, Op, Pid, Tid},
    data_source::DataSource,
    event::{Batch, Context, ContextKind, Mapping, Tally},
    session::{MachineRecord, Meta, SessionWriter, SourceRecord, TargetsRecord, WriterOptions},
};

use crate::{recorder, stream::Random};

/// What to make.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub samples: u64,
    pub lines: u64,
    pub threads: u32,
    pub seed: u64,
}

impl Default for Shape {
    fn default() -> Shape {
        Shape {
            samples: 1_000_000,
            lines: 100_000,
            threads: 16,
            seed: 1,
        }
    }
}

const PID: Pid = Pid(4000);
const CPUS: u32 = 16;
/// Time between two samples of the whole machine: about 30,000 a second.
const STEP_NS: u64 = 33_000;
const BATCH_SAMPLES: u64 = 4096;
/// One line in so many is used by all threads.
const SHARED_ONE_IN: u64 = 16;
/// One sample in so many falls on one of these.
const SHARED_SAMPLES_ONE_IN: u64 = 3;
/// Instructions that access memory.
const INSTRUCTIONS: u64 = 3000;
const LINE: u64 = 64;

/// A file without debug info that every machine has: perf asks addr2line for each source line, and would start one
/// anew for each line of a file that is not there.
const PROGRAM: &str = "/usr/bin/env";
const CODE: u64 = 0x5555_5555_0000;
const HEAP: u64 = 0x5555_6000_0000;
const MEMORY: u64 = 0x1_0000_0000;

// `union perf_mem_data_src` of include/uapi/linux/perf_event.h: operation, level, snoop, lock, level number, as the
// kernel fills them for Intel's load latency and store events.
const LOAD_L1: u64 = 0x2 | (0x2 | 0x8) << 5 | 0x2 << 19 | 0x1 << 24 | 0x1 << 33;
const LOAD_L3: u64 = 0x2 | (0x2 | 0x40) << 5 | 0x2 << 19 | 0x1 << 24 | 0x3 << 33;
const LOAD_HITM: u64 = 0x2 | (0x2 | 0x40) << 5 | 0x10 << 19 | 0x1 << 24 | 0x3 << 33;
const STORE_L1: u64 = 0x4 | (0x2 | 0x8) << 5 | 0x1 << 19 | 0x1 << 24 | 0x1 << 33;

/// Writes the session and prints how fast.
pub(crate) fn run(shape: Shape, path: &Path) -> anyhow::Result<()> {
    ensure!(
        shape.lines > SHARED_ONE_IN && shape.threads > 0,
        "too few lines or threads"
    );
    let options = WriterOptions {
        force: true,
        ..WriterOptions::default()
    };
    let mut writer = SessionWriter::create(path, meta(&shape), &options)?;
    let mut random = Random(shape.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut batch = Batch::default();
    let mut written = std::time::Duration::ZERO;
    let mut number = 0;
    batch.context = context(&shape);
    while number < shape.samples {
        let end = shape.samples.min(number + BATCH_SAMPLES);
        batch
            .accesses
            .extend((number..end).map(|n| access(n, &shape, &mut random)));
        let cost = batch.accesses.iter().map(|access| Cost::from(access.cost));
        batch.tally = Tally {
            produced: end - number,
            samples: end - number,
            cost: cost.sum(),
            attributed: end - number,
            ..Tally::default()
        };
        number = end;
        let start = Instant::now();
        writer.append(&batch)?;
        written += start.elapsed();
        batch.clear();
    }
    let start = Instant::now();
    writer.finish(meta(&shape))?;
    written += start.elapsed();
    let bytes = recorder::size(path)? as f64;
    println!(
        "{} samples written at {:.2} M/s by one thread, {:.2} bytes per access",
        shape.samples,
        shape.samples as f64 / written.as_secs_f64() / 1e6,
        bytes / shape.samples as f64
    );
    let resident = peak_bytes().context("no VmHWM in /proc/self/status")?;
    println!("peak resident memory of writing: {} MiB", resident >> 20);
    Ok(())
}

fn meta(shape: &Shape) -> Meta {
    Meta {
        start_ns: Some(0),
        end_ns: Some(shape.samples * STEP_NS),
        machine: MachineRecord {
            arch: Some("x86_64".to_owned()),
            online_cpus: Some(CPUS),
            line_size_bytes: Some(LINE),
            ..MachineRecord::default()
        },
        sources: vec![SourceRecord {
            name: "pebs".to_owned(),
            ..SourceRecord::default()
        }],
        targets: TargetsRecord {
            pids: vec![PID.0],
            ..TargetsRecord::default()
        },
        cost_unit: CostUnit::LatencyCycles,
        ..Meta::new()
    }
}

fn context(shape: &Shape) -> Vec<Context> {
    let mapping = |start, len, executable, name: &str| ContextKind::Mapping {
        pid: PID,
        mapping: Arc::new(Mapping {
            start,
            len,
            inode: if name.starts_with('/') { 77 } else { 0 },
            dev: if name.starts_with('/') {
                8 << 32 | 1
            } else {
                0
            },
            file_offset: 0,
            shared: false,
            executable,
            writable: !executable,
            name: name.to_owned(),
            build_id: None,
            stamp: None,
        }),
    };
    let threads = (0..shape.threads).map(|thread| ContextKind::Comm {
        pid: PID,
        tid: Tid(PID.0 + thread),
        comm: "made-up".to_owned(),
        exec: false,
    });
    let mappings = [
        mapping(CODE, 0x10_0000, true, PROGRAM),
        mapping(
            HEAP,
            (shape.lines * LINE).next_multiple_of(4096),
            false,
            "[heap]",
        ),
    ];
    let all = mappings.into_iter().chain(threads);
    all.map(|kind| Context { time_ns: 0, kind }).collect()
}

fn access(number: u64, shape: &Shape, random: &mut Random) -> Access {
    let threads = u64::from(shape.threads);
    let thread = random.below(threads);
    let shared_lines = shape.lines / SHARED_ONE_IN;
    let is_shared = random.below(SHARED_SAMPLES_ONE_IN) == 0;
    // Ranks are by frequency; neighbours in rank are far apart in memory.
    let (line, offset) = if is_shared {
        let rank = random.skewed(shared_lines);
        let own = if rank.is_multiple_of(2) {
            thread % 8
        } else {
            0
        };
        (rank * SHARED_ONE_IN, own * 8)
    } else {
        let private = (shape.lines - shared_lines) / threads;
        let rank = random.skewed(private.max(2)) * threads + thread;
        let before = rank / (SHARED_ONE_IN - 1);
        (
            (rank + before + 1).min(shape.lines - 1),
            random.below(8) * 8,
        )
    };
    let stores = random.below(3) == 0;
    let taken = is_shared && !stores && random.below(2) == 0;
    let (source, latency) = match (stores, taken) {
        (true, _) => (STORE_L1, 0),
        (false, true) => (LOAD_HITM, 90 + random.below(200)),
        (false, false) if random.below(8) == 0 => (LOAD_L3, 40 + random.below(30)),
        (false, false) => (LOAD_L1, 5 + random.below(8)),
    };
    let code = line.wrapping_mul(0x9e37_79b9) % (INSTRUCTIONS / 2) * 2 + u64::from(stores);
    let at = line * LINE + offset;
    Access {
        time_ns: number * STEP_NS + random.below(STEP_NS),
        addr: HEAP + at,
        ip: CODE + code * 16,
        cost: Cost(latency as u32),
        pid: PID,
        tid: Tid(PID.0 + thread as u32),
        cpu: Cpu(thread as u32 % CPUS),
        size: 8,
        op: if stores { Op::Store } else { Op::Load },
        basis: Basis::Sampled,
        locked: false,
        kernel: false,
        measured: Measured {
            source: DataSource::new(source),
            latency_cycles: NonZeroU32::new(latency as u32),
            phys_addr: NonZeroU64::new(MEMORY + at),
            repeats: 0,
        },
        ..Access::BLANK
    }
}

/// Peak resident set of this process, proc_pid_status(5).
fn peak_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib * 1024)
}
