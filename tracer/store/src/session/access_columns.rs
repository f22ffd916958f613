//! Accesses as columns, as they wait to be written.
//!
//! A batch is read block by block, so that its rows come from memory once and not once for each column; and a column
//! that says the same in all rows, as most columns of an emulated program do, takes no memory at all.

use std::num::{NonZeroU32, NonZeroU64};

use super::access_table::{basis_code, op_code};
use crate::{
    access::{Access, Basis},
    data_source::DataSource,
};

/// Rows that stay in the first cache while all their columns are read.
const BLOCK: usize = 256;

/// One column.
#[derive(Debug, Default)]
pub(super) struct Values<V> {
    rows: usize,
    first: V,
    /// Empty as long as all are like the first.
    all: Vec<V>,
}

impl<V: Copy + PartialEq> Values<V> {
    /// The value of all rows, if they have one.
    pub(super) fn same(&self) -> Option<V> {
        (self.all.is_empty() && self.rows > 0).then_some(self.first)
    }

    /// A value for each row, where they are not all the same.
    pub(super) fn all(&self) -> &[V] {
        &self.all
    }

    fn extend<R>(&mut self, rows: &[R], value: impl Fn(&R) -> V) {
        let Some(first) = rows.first() else { return };
        if self.rows == 0 {
            self.first = value(first);
        }
        if self.all.is_empty() && !rows.iter().all(|row| value(row) == self.first) {
            self.all.resize(self.rows, self.first);
            self.all.extend(rows.iter().map(value));
        } else if !self.all.is_empty() {
            self.all.extend(rows.iter().map(value));
        }
        self.rows += rows.len();
    }

    fn clear(&mut self) {
        self.rows = 0;
        self.all.clear();
    }
}

/// A column of each field. Integers are as Parquet has them, of the same bits; where a column may be null, 0 is.
#[derive(Debug, Default)]
pub(super) struct AccessColumns {
    pub batch: Values<i64>,
    pub time_ns: Values<i64>,
    pub cpu: Values<i32>,
    pub pid: Values<i32>,
    pub tid: Values<i32>,
    pub ip: Values<i64>,
    pub addr: Values<i64>,
    pub size: Values<i32>,
    pub op: Values<i32>,
    pub basis: Values<i32>,
    pub locked: Values<bool>,
    pub kernel: Values<bool>,
    pub cost_ns: Values<i32>,
    pub data_source: Values<i64>,
    pub latency: Values<i32>,
    pub phys_addr: Values<i64>,
    pub repeats: Values<i32>,
    pub within: Values<i32>,
    pub wait: Values<i32>,
    pub instead: Values<i32>,
    newest_ns: Option<u64>,
}

impl AccessColumns {
    /// Adds accesses of a batch.
    pub(super) fn extend(&mut self, accesses: &[Access], batch: u64) {
        for rows in accesses.chunks(BLOCK) {
            self.batch.extend(rows, |_| batch as i64);
            self.time_ns.extend(rows, |row| row.time_ns as i64);
            self.cpu.extend(rows, |row| row.cpu.0 as i32);
            self.pid.extend(rows, |row| row.pid.0 as i32);
            self.tid.extend(rows, |row| row.tid.0 as i32);
            self.ip.extend(rows, |row| row.ip as i64);
            self.addr.extend(rows, |row| row.addr as i64);
            self.size.extend(rows, |row| i32::from(row.size));
            self.op.extend(rows, |row| op_code(row.op) as i32);
            self.basis.extend(rows, |row| basis_code(row.basis) as i32);
            self.locked.extend(rows, |row| row.locked);
            self.kernel.extend(rows, |row| row.kernel);
            self.cost_ns.extend(rows, |row| row.cost.0 as i32);
            let source = |row: &Access| row.measured.source.map_or(0, DataSource::raw) as i64;
            self.data_source.extend(rows, source);
            let latency = |row: &Access| row.measured.latency_cycles.map_or(0, NonZeroU32::get);
            self.latency.extend(rows, |row| latency(row) as i32);
            let phys_addr = |row: &Access| row.measured.phys_addr.map_or(0, NonZeroU64::get);
            self.phys_addr.extend(rows, |row| phys_addr(row) as i64);
            self.repeats.extend(rows, |row| row.measured.repeats as i32);
            self.within.extend(rows, |row| i32::from(row.within));
            self.wait.extend(rows, |row| i32::from(row.wait.index()));
            self.instead.extend(rows, |row| i32::from(row.instead));
            let newest = rows.iter().map(|row| row.time_ns).max();
            self.newest_ns = self.newest_ns.max(newest);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.time_ns.rows
    }

    /// Newest time of an access.
    pub(super) fn newest_ns(&self) -> Option<u64> {
        self.newest_ns
    }

    /// Whether all are of an emulated program.
    pub(super) fn all_emulated(&self) -> bool {
        self.len() == 0 || self.basis.same() == Some(basis_code(Basis::Emulated) as i32)
    }

    /// Empties them and keeps their memory.
    pub(super) fn clear(&mut self) {
        self.newest_ns = None;
        let AccessColumns {
            batch,
            time_ns,
            cpu,
            pid,
            tid,
            ip,
            addr,
            size,
            op,
            basis,
            locked,
            kernel,
            cost_ns,
            data_source,
            latency,
            phys_addr,
            repeats,
            within,
            wait,
            instead,
            newest_ns: _,
        } = self;
        for column in [batch, time_ns, ip, addr, data_source, phys_addr] {
            column.clear();
        }
        let small = [cpu, pid, tid, size, op, basis, cost_ns, latency];
        for column in small.into_iter().chain([repeats, within, wait, instead]) {
            column.clear();
        }
        for column in [locked, kernel] {
            column.clear();
        }
    }
}
