//! What served a sampled access: `union perf_mem_data_src` of include/uapi/linux/perf_event.h.
//!
//! Here the word, field by field; `meaning.rs` says what the fields mean together, `words.rs` says it as perf does.

use std::num::NonZeroU64;

mod meaning;
pub mod stated;
mod words;

pub use meaning::{Coherence, Distance, Level};

/// A data source word as the kernel encodes it; bits that no kernel known here sets are kept and not read.
///
/// All of its fields have a code for "not available", so a word of 0, which says nothing at all, is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DataSource(NonZeroU64);

impl DataSource {
    /// `PERF_MEM_NA`: what the kernel writes where the PMU's driver gave nothing.
    pub const NOT_AVAILABLE: u64 = 0x1e_0508_0021;

    /// The word, unless it is 0.
    pub fn new(raw: u64) -> Option<DataSource> {
        NonZeroU64::new(raw).map(DataSource)
    }

    /// The word.
    pub fn raw(self) -> u64 {
        self.0.get()
    }

    fn field(self, shift: u32, bits: u32) -> u64 {
        self.raw() >> shift & ((1 << bits) - 1)
    }

    /// `mem_op`, a set of `PERF_MEM_OP_*`.
    pub fn op_bits(self) -> u64 {
        self.field(0, 5)
    }

    /// `mem_lvl`, a set of `PERF_MEM_LVL_*`; superseded by the level number and `remote`.
    pub fn level_bits(self) -> u64 {
        self.field(5, 14)
    }

    /// `mem_snoop`, a set of `PERF_MEM_SNOOP_*`.
    pub fn snoop_bits(self) -> u64 {
        self.field(19, 5)
    }

    /// `mem_lock`, a set of `PERF_MEM_LOCK_*`.
    pub fn lock_bits(self) -> u64 {
        self.field(24, 2)
    }

    /// `mem_dtlb`, a set of `PERF_MEM_TLB_*`.
    pub fn tlb_bits(self) -> u64 {
        self.field(26, 7)
    }

    /// `mem_lvl_num`, one of `PERF_MEM_LVLNUM_*`.
    pub fn level_number(self) -> u64 {
        self.field(33, 4)
    }

    /// `mem_remote`: the level is another node's.
    pub fn remote(self) -> bool {
        self.field(37, 1) == 1
    }

    /// `mem_snoopx`, a set of `PERF_MEM_SNOOPX_*`.
    pub fn snoop_extended_bits(self) -> u64 {
        self.field(38, 2)
    }

    /// `mem_blk`, a set of `PERF_MEM_BLK_*`.
    pub fn blocked_bits(self) -> u64 {
        self.field(40, 3)
    }

    /// `mem_hops`, one of `PERF_MEM_HOPS_*`.
    pub fn hops(self) -> u64 {
        self.field(43, 3)
    }
}
