//! A made-up stream with the shape of an emulated program's: every access, most of them to memory that one thread has
//! to itself, some to a lock, its data and counters that threads take turns on, some to tables that all read.

use std::sync::Arc;

use cohtrace::{
    access::{Access, Basis, Cpu, Measured, Op, Pid, Tid},
    event::{Batch, Context, ContextKind, Mapping, Tally},
};

use crate::stream::Random;

const THREADS: u64 = 4;
const BATCH_ROWS: u64 = 8192;
const CODE: u64 = 0x5555_5555_0000;
/// Lines that several threads store to, then a table that all read.
const SHARED: u64 = 0x5555_5560_0000;
const SHARED_LINES: u64 = 64;
const TABLE: u64 = SHARED + SHARED_LINES * 64;
const TABLE_BYTES: u64 = 256 << 10;
/// Each thread's own memory.
const OWN: u64 = 0x7f00_0000_0000;
const OWN_BYTES: u64 = 8 << 20;

/// Batches with at least that many rows in all; the first brings the mappings.
pub(crate) fn batches(rows: u64) -> Vec<Batch> {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let batches = rows.div_ceil(BATCH_ROWS);
    let mut batches: Vec<Batch> = (0..batches).map(|n| batch(n, &mut random)).collect();
    if let Some(first) = batches.first_mut() {
        let mapping = |start, len| Context {
            time_ns: 0,
            kind: ContextKind::Mapping {
                pid: Pid(1),
                mapping: Arc::new(Mapping {
                    start,
                    len,
                    file_offset: 0,
                    dev: 0,
                    inode: 0,
                    shared: false,
                    executable: false,
                    writable: true,
                    name: String::new(),
                    build_id: None,
                    stamp: None,
                }),
            },
        };
        first.context = vec![
            mapping(SHARED, SHARED_LINES * 64 + TABLE_BYTES),
            mapping(OWN, THREADS * OWN_BYTES),
        ];
    }
    batches
}

fn batch(number: u64, random: &mut Random) -> Batch {
    let rows = (0..BATCH_ROWS).map(|row| access(number * BATCH_ROWS + row, random));
    let accesses: Vec<Access> = rows.collect();
    let executions = (accesses.iter()).map(cohtrace::access::Access::executions);
    let executions = executions.sum();
    Batch {
        tally: Tally {
            produced: executions,
            executions,
            attributed: executions,
            ..Tally::default()
        },
        accesses,
        ..Batch::default()
    }
}

fn access(turn: u64, random: &mut Random) -> Access {
    let thread = random.below(THREADS);
    let (addr, op) = match random.below(20) {
        // A hot line for each pair of threads: its own word.
        0 => (SHARED + thread * 8, Op::Rmw),
        1 => (SHARED + 64 + random.below(SHARED_LINES - 1) * 64, Op::Load),
        2 => (SHARED + 64 + random.below(SHARED_LINES - 1) * 64, Op::Store),
        3..6 => (TABLE + random.skewed(TABLE_BYTES / 8) * 8, Op::Load),
        n => {
            let own = OWN + thread * OWN_BYTES + random.skewed(OWN_BYTES / 8) * 8;
            (own, if n < 15 { Op::Load } else { Op::Store })
        }
    };
    // An instruction is about few lines, as in programs.
    let code = addr / 64 % 512 * 2 + u64::from(op.stores());
    Access {
        time_ns: turn * 20,
        addr,
        ip: CODE + code * 16,
        pid: Pid(1),
        tid: Tid(10 + thread as u32),
        cpu: Cpu(thread as u32),
        size: 8,
        op,
        basis: Basis::Emulated,
        locked: op == Op::Rmw,
        kernel: false,
        measured: Measured {
            repeats: random.skewed(64) as u32,
            ..Measured::default()
        },
        ..Access::BLANK
    }
}
