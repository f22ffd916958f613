//! Writes the stream for other tools: `perf.data`, as `perf record` of memory events leaves it.
//!
//! The format is that of tools/perf/Documentation/perf.data-file-format.txt and `union perf_event` of
//! tools/lib/perf/include/perf/event.h, little-endian. What becomes what:
//!
//! | here | there |
//! |---|---|
//! | access | `PERF_RECORD_SAMPLE` with IP, TID, TIME, ADDR, ID, CPU, PERIOD, WEIGHT, DATA_SRC, PHYS_ADDR |
//! | operation, lock, what served it | DATA_SRC: see [`perf_word`](crate::data_source::stated::perf_word) |
//! | stands for sampled time | PERIOD in nanoseconds; 1 for accesses that stand for none |
//! | latency | WEIGHT in cycles; 0 is none |
//! | physical address | PHYS_ADDR; 0 is none |
//! | mapping | `PERF_RECORD_MMAP2` with device and inode |
//! | thread's name, birth, end | `PERF_RECORD_COMM`, `_FORK`, `_EXIT` |
//!
//! Loads and read-modify-writes belong to the event `SOURCE/mem-loads/`, stores to `SOURCE/mem-stores/`, for the
//! name of the source; what is neither is with the loads.
//! The format has no place for an access's size and basis, for the executions that an emulated access stands for (its
//! PERIOD is 1), for watch windows, allocations, stacks and
//! thread-local storage: they are not exported. Records are in the order of time, and after each batch a
//! `PERF_RECORD_FINISHED_ROUND` lets readers give out what they hold.

mod attr;
mod build_ids;
mod description;
mod features;
mod record;
mod writer;

#[cfg(test)]
mod tests;

pub use build_ids::BuildIds;
pub use description::{Description, KernelText, MemoryNode};
pub use writer::{Exported, PerfDataWriter};
