//! Accesses as columns and back.

use std::num::{NonZeroU32, NonZeroU64};

use parquet::errors::ParquetError;

use super::{
    access_columns::AccessColumns, error::Damage, part_reader::ColumnSource,
    part_writer::ColumnSink,
};
use crate::{
    access::{Access, Basis, Cost, Cpu, Op, Pid, Tid, Wait},
    data_source::DataSource,
};

/// Gives all columns. `first` is the number of the first access.
pub(super) fn encode(
    accesses: &AccessColumns,
    first: u64,
    sink: &mut ColumnSink<'_>,
) -> Result<(), ParquetError> {
    sink.u64s("seq", (first..).take(accesses.len()))?;
    sink.values("batch", &accesses.batch)?;
    sink.values("time_ns", &accesses.time_ns)?;
    sink.values("cpu", &accesses.cpu)?;
    sink.values("pid", &accesses.pid)?;
    sink.values("tid", &accesses.tid)?;
    sink.values("ip", &accesses.ip)?;
    sink.values("addr", &accesses.addr)?;
    sink.values("size", &accesses.size)?;
    sink.values("op", &accesses.op)?;
    sink.values("basis", &accesses.basis)?;
    sink.values("locked", &accesses.locked)?;
    sink.values("kernel", &accesses.kernel)?;
    sink.values("cost_ns", &accesses.cost_ns)?;
    sink.positive("data_source", &accesses.data_source)?;
    sink.positive("latency", &accesses.latency)?;
    sink.positive("phys_addr", &accesses.phys_addr)?;
    sink.positive("repeats", &accesses.repeats)?;
    sink.positive("within", &accesses.within)?;
    sink.positive("wait", &accesses.wait)?;
    sink.positive("instead", &accesses.instead)
}

/// Reads all columns: the number of the first access, the accesses, and the batch number of each.
pub(super) fn decode(
    source: &mut ColumnSource<'_>,
) -> Result<(u64, Vec<Access>, Vec<u64>), Damage> {
    let first = source.first_seq()?;
    let batches = source.u64s("batch")?;
    // A few columns at a time: one by one, every pass over the rows would come from memory, and all together would
    // take as much memory again.
    let times = source.u64s("time_ns")?.into_iter();
    let threads = source.u32s("pid")?.into_iter().zip(source.u32s("tid")?);
    let addresses = source.u64s("ip")?.into_iter().zip(source.u64s("addr")?);
    let mut accesses: Vec<Access> = (times.zip(source.u32s("cpu")?))
        .zip(threads)
        .zip(addresses)
        .map(|(((time_ns, cpu), (pid, tid)), (ip, addr))| Access {
            time_ns,
            addr,
            ip,
            pid: Pid(pid),
            tid: Tid(tid),
            cpu: Cpu(cpu),
            size: 0,
            op: Op::Load,
            basis: Basis::Stalled,
            locked: false,
            kernel: false,
            ..Access::BLANK
        })
        .collect();
    let kinds = source.u32s("op")?.into_iter().zip(source.u32s("basis")?);
    let flags = source.bools("locked")?.into_iter();
    let flags = flags.zip(source.bools("kernel")?);
    let sizes = source.u32s("size")?.into_iter();
    let columns = sizes.zip(source.u32s("cost_ns")?).zip(kinds).zip(flags);
    for (n, (row, columns)) in accesses.iter_mut().zip(columns).enumerate() {
        let (((size, cost), (op, basis)), (locked, kernel)) = columns;
        row.size = u16::try_from(size).map_err(|_| Damage::value("size", n, size))?;
        row.op = op_of(op).ok_or_else(|| Damage::value("op", n, op))?;
        row.basis = basis_of(basis).ok_or_else(|| Damage::value("basis", n, basis))?;
        row.cost = Cost(cost);
        row.locked = locked;
        row.kernel = kernel;
    }
    // Most sources leave most of these empty; parts of older versions lack some. A zero is damage that says no more than null.
    for (row, value) in (accesses.iter_mut()).zip(source.present::<i64>("data_source")?) {
        row.measured.source = value.and_then(DataSource::new);
    }
    for (row, value) in accesses.iter_mut().zip(source.present::<i32>("latency")?) {
        row.measured.latency_cycles = value.and_then(NonZeroU32::new);
    }
    for (row, value) in (accesses.iter_mut()).zip(source.present::<i64>("phys_addr")?) {
        row.measured.phys_addr = value.and_then(NonZeroU64::new);
    }
    for (row, value) in accesses.iter_mut().zip(source.present::<i32>("repeats")?) {
        row.measured.repeats = value.unwrap_or(0);
    }
    let byte = |name, n, value: Option<u32>| {
        let value = value.unwrap_or(0);
        u8::try_from(value).map_err(|_| Damage::value(name, n, value))
    };
    let present = source.present::<i32>("within")?;
    for (n, (row, value)) in accesses.iter_mut().zip(present).enumerate() {
        row.within = byte("within", n, value)?;
    }
    let present = source.present::<i32>("instead")?;
    for (n, (row, value)) in accesses.iter_mut().zip(present).enumerate() {
        row.instead = byte("instead", n, value)?;
    }
    let present = source.present::<i32>("wait")?;
    for (n, (row, value)) in accesses.iter_mut().zip(present).enumerate() {
        let wait = byte("wait", n, value)?;
        let known = Wait::ALL.get(usize::from(wait));
        row.wait = *known.ok_or_else(|| Damage::value("wait", n, u32::from(wait)))?;
    }
    Ok((first, accesses, batches))
}

pub(super) fn op_code(op: Op) -> u32 {
    match op {
        Op::Load => 0,
        Op::Store => 1,
        Op::Rmw => 2,
        Op::Prefetch => 3,
        Op::Unknown => 4,
        Op::PrefetchOwn => 5,
    }
}

fn op_of(code: u32) -> Option<Op> {
    Op::ALL.into_iter().find(|op| op_code(*op) == code)
}

pub(super) fn basis_code(basis: Basis) -> u32 {
    match basis {
        Basis::Stalled => 0,
        Basis::Decoded => 1,
        Basis::Harvested => 2,
        Basis::Trapped => 3,
        Basis::Sampled => 4,
        Basis::Emulated => 5,
    }
}

fn basis_of(code: u32) -> Option<Basis> {
    Basis::ALL
        .into_iter()
        .find(|basis| basis_code(*basis) == code)
}
