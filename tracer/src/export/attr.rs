//! The two events of an exported file: `struct perf_event_attr` of include/uapi/linux/perf_event.h.

use super::bytes::PutBytes;

/// Bytes of an attribute: `PERF_ATTR_SIZE_VER5`, which perf reads since 4.1.
pub(super) const ATTR_BYTES: u32 = 112;

/// `PERF_SAMPLE_*` of both events: IP, TID, TIME, ADDR, ID, CPU, PERIOD, WEIGHT, DATA_SRC, PHYS_ADDR.
const SAMPLE_TYPE: u64 =
    1 | 1 << 1 | 1 << 2 | 1 << 3 | 1 << 6 | 1 << 7 | 1 << 8 | 1 << 14 | 1 << 15 | 1 << 19;

/// mmap, comm, task, precise_ip 2, mmap_data, sample_id_all, mmap2, comm_exec.
const FLAGS: u64 = 1 << 8 | 1 << 9 | 1 << 13 | 2 << 15 | 1 << 17 | 1 << 18 | 1 << 23 | 1 << 24;
const USE_CLOCKID: u64 = 1 << 25;

/// `PERF_TYPE_RAW`: perf shows all that such events have.
const TYPE_RAW: u32 = 4;

/// An event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    Loads,
    Stores,
}

impl Event {
    pub(super) const ALL: [Event; 2] = [Event::Loads, Event::Stores];

    /// What its samples carry as ID.
    pub(super) fn id(self) -> u64 {
        match self {
            Event::Loads => 1,
            Event::Stores => 2,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Event::Loads => "mem-loads",
            Event::Stores => "mem-stores",
        }
    }

    /// What Intel's PMU has as these events since Haswell; perf's tools go by the name.
    fn config(self) -> u64 {
        match self {
            Event::Loads => 0x1cd,
            Event::Stores => 0x82d0,
        }
    }

    /// Its attribute, [`ATTR_BYTES`] long; times are of this clock, or of perf's own.
    pub(super) fn put_attr(self, out: &mut Vec<u8>, clock: Option<u32>) {
        let start = out.len();
        out.u32(TYPE_RAW);
        out.u32(ATTR_BYTES);
        out.u64(self.config());
        out.u64(1); // sample_period
        out.u64(SAMPLE_TYPE);
        out.u64(0); // read_format
        out.u64(FLAGS | clock.map_or(0, |_| USE_CLOCKID));
        out.resize(start + 92, 0);
        out.u32(clock.unwrap_or(0));
        out.resize(start + ATTR_BYTES as usize, 0);
    }
}
