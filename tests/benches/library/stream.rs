//! A made-up stream with the shape of the timer source's: several accesses a sample, a few hot lines, a long tail.
//!
//! The constants say the proportions; the tail is long enough that the table of lines reaches its bounds and evicts,
//! which a short recording does not. The same on every run and every machine, unlike a recording.

use std::sync::Arc;

use cohtrace::{
    access::{Access, Basis, Cost, Cpu, Op, Pid, Tid},
    event::{Batch, Context, ContextKind, Mapping, Tally},
};

/// Time between two samples of one CPU.
const PERIOD_NS: u64 = 1_000_000;
const CPUS: u32 = 8;
/// Samples of all CPUs in a batch: what 50 ms bring.
const BATCH_SAMPLES: u64 = CPUS as u64 * 50;
const PROCESSES: u32 = 4;
/// Every fourth sample is in one of two loops that fight over a line.
const HOT_ONE_IN: u64 = 4;
/// Code addresses outside these loops.
const COLD_CODE: u64 = 3_000;
/// Bytes of heap that the long tail of accesses falls on.
const HEAP_BYTES: u64 = 64 << 20;
/// Accesses of a sample: one with the cost, the others without.
const ACCESSES_A_SAMPLE: u64 = 6;

const CODE: u64 = 0x5555_5555_0000;
const DATA: u64 = 0x5555_5560_0000;
const HEAP: u64 = 0x5555_5600_0000;
const STACKS: u64 = 0x7f00_0000_0000;
const STACK_BYTES: u64 = 1 << 20;

/// Batches with at least that many accesses in all; the first brings the processes' mappings.
pub(crate) fn batches(accesses: u64) -> Vec<Batch> {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let batches = accesses.div_ceil(BATCH_SAMPLES * ACCESSES_A_SAMPLE);
    let mut batches: Vec<Batch> = (0..batches).map(|n| batch(n, &mut random)).collect();
    if let Some(first) = batches.first_mut() {
        first.context = (0..PROCESSES).flat_map(mappings).collect();
    }
    batches
}

fn batch(number: u64, random: &mut Random) -> Batch {
    let mut batch = Batch::default();
    for sample in 0..BATCH_SAMPLES {
        let turn = number * BATCH_SAMPLES + sample;
        let cpu = (turn % u64::from(CPUS)) as u32;
        let time_ns = turn / u64::from(CPUS) * PERIOD_NS + u64::from(cpu) * 997;
        take_sample(time_ns, cpu, random, &mut batch.accesses);
    }
    batch.tally = Tally {
        produced: BATCH_SAMPLES,
        samples: BATCH_SAMPLES,
        cost: Cost(BATCH_SAMPLES * PERIOD_NS),
        attributed: BATCH_SAMPLES,
        ..Tally::default()
    };
    batch
}

fn take_sample(time_ns: u64, cpu: u32, random: &mut Random, accesses: &mut Vec<Access>) {
    let hot = random.below(HOT_ONE_IN) == 0;
    // The loops stay on their CPUs; everything else moves.
    let process = if hot {
        0
    } else {
        random.below(u64::from(PROCESSES)) as u32
    };
    let thread = if hot { cpu % 2 } else { cpu };
    let code = if hot {
        u64::from(thread)
    } else {
        16 + random.skewed(COLD_CODE)
    };
    let stack = STACKS + u64::from(process * CPUS + thread) * STACK_BYTES;
    for nth in 0..ACCESSES_A_SAMPLE {
        let (addr, op) = match nth {
            0 | 1 if hot => (DATA + u64::from(thread) * 8, Op::Rmw),
            0 | 3 => (HEAP + random.skewed(HEAP_BYTES / 8) * 8, Op::Load),
            1 => (DATA + 64 + random.below(4096) * 8, Op::Load),
            2 => (stack + random.below(64) * 8, Op::Store),
            _ => (stack + random.below(64) * 8, Op::Load),
        };
        accesses.push(Access {
            time_ns,
            addr,
            ip: CODE + code * 64 + nth * 4,
            cost: Cost(if nth == 0 { PERIOD_NS as u32 } else { 0 }),
            pid: Pid(1000 + process),
            tid: Tid(2000 + process * CPUS + thread),
            cpu: Cpu(cpu),
            size: 8,
            op,
            basis: match nth {
                0 => Basis::Stalled,
                1..4 => Basis::Decoded,
                _ => Basis::Harvested,
            },
            locked: false,
            kernel: false,
            ..Access::BLANK
        });
    }
}

/// The mappings of one process, fewer than real ones have but of each kind that matters.
fn mappings(process: u32) -> Vec<Context> {
    let mapping = |start, len, inode, executable, name: &str| Mapping {
        start,
        len,
        file_offset: 0,
        dev: if inode == 0 { 0 } else { 8 << 32 | 1 },
        inode,
        shared: false,
        executable,
        writable: !executable,
        name: name.to_owned(),
        build_id: None,
        stamp: None,
    };
    let stacks = STACK_BYTES * u64::from(CPUS);
    let stack = STACKS + u64::from(process) * stacks;
    let all = [
        mapping(CODE, 0x10_0000, 77, true, "/usr/bin/program"),
        mapping(DATA, 0x10_0000, 77, false, "/usr/bin/program"),
        mapping(HEAP, HEAP_BYTES, 0, false, "[heap]"),
        mapping(stack, stacks, 0, false, ""),
    ];
    let context = |mapping| Context {
        time_ns: 0,
        kind: ContextKind::Mapping {
            pid: Pid(1000 + process),
            mapping: Arc::new(mapping),
        },
    };
    all.map(context).into()
}

/// Marsaglia's xorshift64 with the shifts 13, 7, 17 (Journal of Statistical Software 8(14), 2003).
pub(crate) struct Random(pub u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Evenly below the limit.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    /// Below the limit, the small ones more often: each halving of the range is as likely as the next.
    pub(crate) fn skewed(&mut self, limit: u64) -> u64 {
        let range = (limit >> self.below(u64::from(limit.ilog2()))).max(1);
        self.below(range)
    }
}
