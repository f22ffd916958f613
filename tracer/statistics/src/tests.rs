//! Runs with known answers, each with one that must give another; and laws that hold of any stream.

mod emulated;
mod forms;
mod laws;
mod named;
mod sampled;

use crate::{
    Fold, Key, Looked, Options, Per, Slices, Table, Value,
    access::{Access, Basis, Cost, Cpu, LineSize, Op, Pid, Tid},
    event::{Batch, Context, ContextKind, Tally},
    select,
};

const MS: u64 = 1_000_000;
const START: u64 = 5_000 * MS;

/// A run of one second, sampled by the timer.
fn options(names: &str, interval_ms: Option<u64>, per: Per) -> Options {
    let interval_ns = interval_ms.map(|ms| ms * MS);
    Options {
        slices: Slices::new(START, Some(START + 1000 * MS), interval_ns).unwrap(),
        per,
        statistics: select(Some(names)).unwrap(),
        line_size: LineSize::B64,
        looked: Looked {
            timer: true,
            ..Looked::default()
        },
    }
}

fn count(options: Options, batches: &[Batch]) -> Table {
    let mut fold = Fold::new(options).unwrap();
    for batch in batches {
        fold.feed(batch).unwrap();
    }
    fold.finish().unwrap()
}

/// A sample of a millisecond, of a store.
fn sample(at_ms: u64, thread: u32, addr: u64) -> Access {
    Access {
        time_ns: START + at_ms * MS,
        addr,
        ip: 0x40_1000,
        cost: Cost(MS as u32),
        pid: Pid(10),
        tid: Tid(11 + thread),
        cpu: Cpu(thread),
        size: 8,
        op: Op::Store,
        basis: Basis::Stalled,
        ..Access::BLANK
    }
}

fn executed(at_ms: u64, processor: u32, addr: u64, op: Op) -> Access {
    Access {
        cost: Cost(0),
        basis: Basis::Emulated,
        op,
        ..sample(at_ms, processor, addr)
    }
}

fn batch(accesses: Vec<Access>) -> Batch {
    Batch {
        accesses,
        ..Batch::default()
    }
}

fn context(at_ms: u64, kind: ContextKind) -> Context {
    Context {
        time_ns: START + at_ms * MS,
        kind,
    }
}

fn lost(cpu: u32) -> Batch {
    Batch {
        tally: Tally {
            lost: [(Cpu(cpu), 1)].into(),
            ..Tally::default()
        },
        ..Batch::default()
    }
}

/// The values of a key, of the first statistic: the whole run, then slices.
fn amounts(table: &Table, key: Key) -> (Option<u64>, Vec<Option<u64>>) {
    let row = table.rows.iter().find(|row| row.key == key).expect("a row");
    let slices = row.slices[0].iter().map(|value| value.amount);
    (row.total[0].amount, slices.collect())
}

fn total(table: &Table, key: Key, name: &str) -> Value {
    let row = table.rows.iter().find(|row| row.key == key).expect("a row");
    let at = (table.columns.iter()).position(|column| column.statistic.name() == name);
    row.total[at.expect("a column")]
}
