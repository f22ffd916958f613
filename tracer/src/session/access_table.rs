//! Accesses as columns and back.

use std::num::{NonZeroU32, NonZeroU64};

use parquet::errors::ParquetError;

use super::{error::Damage, part_reader::ColumnSource, part_writer::ColumnSink};
use crate::{
    access::{Access, Basis, Cpu, Measured, Op, Pid, Tid},
    data_source::DataSource,
};

/// Gives all columns. `first` is the number of the first access; `batches` has one batch number per row.
pub(super) fn encode(
    accesses: &[Access],
    first: u64,
    batches: &[u64],
    sink: &mut ColumnSink<'_>,
) -> Result<(), ParquetError> {
    let rows = || accesses.iter();
    sink.u64s("seq", (first..).take(accesses.len()))?;
    sink.u64s("batch", batches.iter().copied())?;
    sink.u64s("time_ns", rows().map(|row| row.time_ns))?;
    sink.u32s("cpu", rows().map(|row| row.cpu.0))?;
    sink.u32s("pid", rows().map(|row| row.pid.0))?;
    sink.u32s("tid", rows().map(|row| row.tid.0))?;
    sink.u64s("ip", rows().map(|row| row.ip))?;
    sink.u64s("addr", rows().map(|row| row.addr))?;
    sink.u32s("size", rows().map(|row| u32::from(row.size)))?;
    sink.u32s("op", rows().map(|row| op_code(row.op)))?;
    sink.u32s("basis", rows().map(|row| basis_code(row.basis)))?;
    sink.bools("locked", rows().map(|row| row.locked))?;
    sink.bools("kernel", rows().map(|row| row.kernel))?;
    sink.u32s("cost_ns", rows().map(|row| row.cost_ns))?;
    let source = |row: &Access| row.measured.source.map(DataSource::raw);
    sink.optional_u64s("data_source", rows().map(source))?;
    let latency = |row: &Access| row.measured.latency_cycles.map(NonZeroU32::get);
    sink.optional_u32s("latency", rows().map(latency))?;
    let phys_addr = |row: &Access| row.measured.phys_addr.map(NonZeroU64::get);
    sink.optional_u64s("phys_addr", rows().map(phys_addr))
}

/// Reads all columns: the number of the first access, the accesses, and the batch number of each.
pub(super) fn decode(
    source: &mut ColumnSource<'_>,
) -> Result<(u64, Vec<Access>, Vec<u64>), Damage> {
    let first = source.first_seq()?;
    let batches = source.u64s("batch")?;
    let mut accesses: Vec<Access> = source
        .u64s("time_ns")?
        .into_iter()
        .map(|time_ns| Access {
            time_ns,
            addr: 0,
            ip: 0,
            cost_ns: 0,
            pid: Pid(0),
            tid: Tid(0),
            cpu: Cpu(0),
            size: 0,
            op: Op::Load,
            basis: Basis::Stalled,
            locked: false,
            kernel: false,
            measured: Measured::default(),
        })
        .collect();
    // Column by column, so that only one decoded column is held beside the rows.
    for (row, value) in accesses.iter_mut().zip(source.u32s("cpu")?) {
        row.cpu = Cpu(value);
    }
    for (row, value) in accesses.iter_mut().zip(source.u32s("pid")?) {
        row.pid = Pid(value);
    }
    for (row, value) in accesses.iter_mut().zip(source.u32s("tid")?) {
        row.tid = Tid(value);
    }
    for (row, value) in accesses.iter_mut().zip(source.u64s("ip")?) {
        row.ip = value;
    }
    for (row, value) in accesses.iter_mut().zip(source.u64s("addr")?) {
        row.addr = value;
    }
    for (n, (row, value)) in accesses.iter_mut().zip(source.u32s("size")?).enumerate() {
        row.size = u16::try_from(value).map_err(|_| Damage::value("size", n, value))?;
    }
    for (n, (row, value)) in accesses.iter_mut().zip(source.u32s("op")?).enumerate() {
        row.op = op_of(value).ok_or_else(|| Damage::value("op", n, value))?;
    }
    for (n, (row, value)) in accesses.iter_mut().zip(source.u32s("basis")?).enumerate() {
        row.basis = basis_of(value).ok_or_else(|| Damage::value("basis", n, value))?;
    }
    for (row, value) in accesses.iter_mut().zip(source.bools("locked")?) {
        row.locked = value;
    }
    for (row, value) in accesses.iter_mut().zip(source.bools("kernel")?) {
        row.kernel = value;
    }
    for (row, value) in accesses.iter_mut().zip(source.u32s("cost_ns")?) {
        row.cost_ns = value;
    }
    // A zero is damage that says no more than null.
    for (row, value) in accesses
        .iter_mut()
        .zip(source.optional_u64s("data_source")?)
    {
        row.measured.source = value.and_then(DataSource::new);
    }
    for (row, value) in accesses.iter_mut().zip(source.optional_u32s("latency")?) {
        row.measured.latency_cycles = value.and_then(NonZeroU32::new);
    }
    for (row, value) in accesses.iter_mut().zip(source.optional_u64s("phys_addr")?) {
        row.measured.phys_addr = value.and_then(NonZeroU64::new);
    }
    Ok((first, accesses, batches))
}

fn op_code(op: Op) -> u32 {
    match op {
        Op::Load => 0,
        Op::Store => 1,
        Op::Rmw => 2,
        Op::Prefetch => 3,
        Op::Unknown => 4,
    }
}

fn op_of(code: u32) -> Option<Op> {
    [Op::Load, Op::Store, Op::Rmw, Op::Prefetch, Op::Unknown]
        .into_iter()
        .find(|op| op_code(*op) == code)
}

fn basis_code(basis: Basis) -> u32 {
    match basis {
        Basis::Stalled => 0,
        Basis::Decoded => 1,
        Basis::Harvested => 2,
        Basis::Trapped => 3,
        Basis::Sampled => 4,
    }
}

fn basis_of(code: u32) -> Option<Basis> {
    [
        Basis::Stalled,
        Basis::Decoded,
        Basis::Harvested,
        Basis::Trapped,
        Basis::Sampled,
    ]
    .into_iter()
    .find(|basis| basis_code(*basis) == code)
}
