//! The two events of an exported file: `struct perf_event_attr` of include/uapi/linux/perf_event.h.

use crate::perf_format::{attr_flag as flag, bytes::PutBytes as _, sample_type as sample};

/// Bytes of an attribute: `PERF_ATTR_SIZE_VER5`, which perf reads since 4.1.
pub(super) const ATTR_BYTES: u32 = 112;

/// Fields of a sample of both events.
pub(super) const SAMPLE_TYPE: u64 = sample::IP
    | sample::TID
    | sample::TIME
    | sample::ADDR
    | sample::ID
    | sample::CPU
    | sample::PERIOD
    | sample::WEIGHT
    | sample::DATA_SRC
    | sample::PHYS_ADDR;

const FLAGS: u64 = flag::MMAP
    | flag::COMM
    | flag::TASK
    | 2 << flag::PRECISE_SHIFT
    | flag::MMAP_DATA
    | flag::SAMPLE_ID_ALL
    | flag::MMAP2
    | flag::COMM_EXEC;

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
        out.u64(FLAGS | clock.map_or(0, |_| flag::USE_CLOCKID));
        out.resize(start + 92, 0);
        out.u32(clock.unwrap_or(0));
        out.resize(start + ATTR_BYTES as usize, 0);
    }
}
