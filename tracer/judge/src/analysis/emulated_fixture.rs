//! Accesses of an emulator for tests.

use crate::access::{Access, Basis, Cpu, Op, Pid, Tid};

/// Eight bytes, by the thread of process 1 that is the processor of that number.
pub fn emulated(processor: u32, ip: u64, op: Op, addr: u64) -> Access {
    Access {
        time_ns: 1,
        addr,
        ip,
        pid: Pid(1),
        tid: Tid(processor),
        cpu: Cpu(processor),
        size: 8,
        op,
        basis: Basis::Emulated,
        locked: false,
        kernel: false,
        ..Access::BLANK
    }
}
