//! From what the kernel half wrote of a PMU's sample to words; pure.

use std::num::{NonZeroU32, NonZeroU64};

use tracer_ebpf::{MEMORY_ADDR, MEMORY_DATA_SRC, MEMORY_PHYS_ADDR, MEMORY_WEIGHT, MemoryRecord};

use crate::{
    access::{Measured, Op},
    data_source::DataSource,
};

// include/uapi/linux/perf_event.h, `PERF_MEM_OP_*` and `PERF_MEM_LOCK_LOCKED`.
const OP_LOAD: u64 = 0x2;
const OP_STORE: u64 = 0x4;
const OP_PREFETCH: u64 = 0x8;
const LOCK_LOCKED: u64 = 0x2;

/// The data address; `None` where there is none, or 0 in its place.
pub(super) fn address(record: &MemoryRecord) -> Option<u64> {
    (record.fields & MEMORY_ADDR != 0 && record.addr != 0).then_some(record.addr)
}

/// What the PMU measured.
pub(super) fn measured(record: &MemoryRecord) -> Measured {
    let has = |bit| record.fields & bit != 0;
    Measured {
        source: DataSource::new(record.data_src).filter(|_| has(MEMORY_DATA_SRC)),
        // The upper half has other things where the weight has three parts, and noise on some Intel parts.
        latency_cycles: NonZeroU32::new(record.weight as u32).filter(|_| has(MEMORY_WEIGHT)),
        phys_addr: NonZeroU64::new(record.phys_addr).filter(|_| has(MEMORY_PHYS_ADDR)),
        repeats: 0,
    }
}

/// Direction as the data source has it.
pub(super) fn op(source: Option<DataSource>) -> Op {
    let bits = source.map_or(0, DataSource::op_bits);
    match (bits & OP_LOAD != 0, bits & OP_STORE != 0) {
        (true, true) => Op::Rmw,
        (true, false) => Op::Load,
        (false, true) => Op::Store,
        (false, false) if bits & OP_PREFETCH != 0 => Op::Prefetch,
        (false, false) => Op::Unknown,
    }
}

/// Whether the data source says that the access was locked.
pub(super) fn locked(source: Option<DataSource>) -> bool {
    source.is_some_and(|source| source.lock_bits() & LOCK_LOCKED != 0)
}

#[cfg(test)]
mod tests {
    use zerocopy::FromZeros as _;

    use super::*;

    /// A record all of whose fields are valid.
    fn record(data_src: u64) -> MemoryRecord {
        MemoryRecord {
            addr: 0x7f00_0040,
            data_src,
            weight: 0x0003_0007_0000_00c8,
            phys_addr: 0x1_2345_6040,
            fields: u32::MAX,
            ..MemoryRecord::new_zeroed()
        }
    }

    #[test]
    fn directions_and_locks_of_words_seen_in_the_field() {
        for (word, expected) in [
            (0x6_2980_0842, (Op::Load, false)),
            (0x2_2908_0144, (Op::Store, false)),
            (0x1a_4908_1042, (Op::Load, false)),
            (0x6a10_0142, (Op::Load, true)),
            (0x2_8880_0142, (Op::Load, false)),
            (0x1e_0508_0021, (Op::Unknown, false)),
            (0, (Op::Unknown, false)),
            (0x6, (Op::Rmw, false)),
            (0x8, (Op::Prefetch, false)),
        ] {
            let source = DataSource::new(word);
            assert_eq!((op(source), locked(source)), expected, "{word:#x}");
        }
    }

    #[test]
    fn the_latency_is_the_low_half_of_the_weight() {
        let measured = measured(&record(0x6_2980_0842));
        assert_eq!(measured.latency_cycles, NonZeroU32::new(200));
        assert_eq!(measured.phys_addr, NonZeroU64::new(0x1_2345_6040));
        assert_eq!(measured.source.map(DataSource::raw), Some(0x6_2980_0842));
    }

    #[test]
    fn a_field_that_is_not_valid_is_not_looked_at() {
        let record = MemoryRecord {
            fields: 0,
            ..record(0x6_2980_0842)
        };
        assert_eq!(measured(&record), Measured::default());
        assert_eq!(address(&record), None);
    }

    #[test]
    fn an_address_of_0_is_none() {
        let record = MemoryRecord {
            addr: 0,
            ..record(0x2)
        };
        assert_eq!(address(&record), None);
    }
}
