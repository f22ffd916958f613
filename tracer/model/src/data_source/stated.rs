//! The data source word of an access that no PMU sampled, as perf's tools need one.

use super::DataSource;
use crate::access::{Access, Op};

/// `PERF_MEM_OP_*`.
pub const OP_NA: u64 = 1;
/// Reads.
pub const OP_LOAD: u64 = 1 << 1;
/// Writes.
pub const OP_STORE: u64 = 1 << 2;
/// Hints.
pub const OP_PREFETCH: u64 = 1 << 3;

const OP_MASK: u64 = 0x1f;
const LOCK_SHIFT: u32 = 24;
const LOCK_NA: u64 = 1;
const LOCK_LOCKED: u64 = 2;

/// The word that `access` has in perf's files and counts.
///
/// What a PMU recorded stays as it is, but for an operation that it left open and we know: that is put in. An
/// access without such a word says its operation and its lock, and "not available" for all else: level, snoop,
/// TLB. A read-modify-write is a load and a store (`PERF_MEM_OP_LOAD | PERF_MEM_OP_STORE`), which perf's tools
/// count as a load and print as both.
pub fn perf_word(access: &Access) -> u64 {
    let op = match access.op {
        Op::Load => OP_LOAD,
        Op::Store => OP_STORE,
        Op::Rmw => OP_LOAD | OP_STORE,
        Op::Prefetch | Op::PrefetchOwn => OP_PREFETCH,
        Op::Unknown => OP_NA,
    };
    match access.measured.source {
        Some(source) if matches!(source.op_bits(), 0 | OP_NA) && access.op != Op::Unknown => {
            source.raw() & !OP_MASK | op
        }
        Some(source) => source.raw(),
        None => {
            let lock = if access.locked { LOCK_LOCKED } else { 0 };
            let unknown = DataSource::NOT_AVAILABLE & !OP_MASK & !(LOCK_NA << LOCK_SHIFT);
            unknown | op | lock << LOCK_SHIFT
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::{Basis, Cpu, Measured, Pid, Tid};

    fn word(op: Op, locked: bool, source: Option<u64>) -> u64 {
        perf_word(&Access {
            time_ns: 1,
            addr: 0x1000,
            ip: 0x2000,
            pid: Pid(1),
            tid: Tid(1),
            cpu: Cpu(0),
            size: 8,
            op,
            basis: Basis::Sampled,
            locked,
            kernel: false,
            measured: Measured {
                source: source.and_then(DataSource::new),
                ..Measured::default()
            },
            ..Access::BLANK
        })
    }

    #[test]
    fn an_access_without_a_pmu_says_its_operation_and_lock_and_nothing_else() {
        // The bits as include/uapi/linux/perf_event.h places them: op 0, level 5, snoop 19, lock 24, TLB 26,
        // level number 33.
        let nothing = 1 << 5 | 1 << 19 | 1 << 26 | 0xf << 33;
        assert_eq!(word(Op::Load, false, None), nothing | 2);
        assert_eq!(word(Op::Store, false, None), nothing | 4);
        assert_eq!(word(Op::Rmw, true, None), nothing | 6 | 2 << 24);
        assert_eq!(word(Op::Prefetch, false, None), nothing | 8);
        assert_eq!(word(Op::Unknown, false, None), nothing | 1);
    }

    #[test]
    fn what_a_pmu_recorded_stays_but_for_an_operation_it_left_open() {
        assert_eq!(word(Op::Load, false, Some(0x6_2980_0842)), 0x6_2980_0842);
        assert_eq!(word(Op::Store, false, Some(0x6_2980_0842)), 0x6_2980_0842);
        assert_eq!(word(Op::Store, false, Some(0x1e_0508_0021)), 0x1e_0508_0024);
        assert_eq!(
            word(Op::Unknown, false, Some(0x1e_0508_0021)),
            0x1e_0508_0021
        );
    }
}
