//! The vocabulary: what one memory access is, and what makes two addresses the same line.

mod cost;
mod cost_unit;

use std::{
    fmt,
    num::{NonZeroU32, NonZeroU64},
};

use rustc_hash::FxHashSet;

use crate::data_source::DataSource;

pub use cost::{Cost, CostIn};
pub use cost_unit::{CostUnit, UnknownUnit};

/// Process id (thread group) in the initial pid namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Pid(pub u32);

/// Thread id in the initial pid namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Tid(pub u32);

/// Logical CPU number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, serde::Serialize)]
pub struct Cpu(pub u32);

/// What an access does to its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Op {
    /// Reads.
    Load,
    /// Writes.
    Store,
    /// Reads and writes in one instruction (`add $1,(mem)`, `lock xadd`).
    Rmw,
    /// Hints only; never a touch for a verdict.
    Prefetch,
    /// Reads or writes, the source does not say which: a touch, never taken for a store.
    Unknown,
    /// Asks for the line and for its ownership (`prefetchw`, `prfm pstl1keep`); never a touch for a verdict.
    PrefetchOwn,
}

impl Op {
    /// All, in the order of their [`index`](Op::index).
    pub const ALL: [Op; 6] = [
        Op::Load,
        Op::Store,
        Op::Rmw,
        Op::Prefetch,
        Op::Unknown,
        Op::PrefetchOwn,
    ];

    /// Its place in [`Op::ALL`]: three bits, for packed forms in memory.
    pub fn index(self) -> u8 {
        self as u8
    }

    /// Whether the access is known to change the bytes.
    pub fn stores(self) -> bool {
        matches!(self, Op::Store | Op::Rmw)
    }

    /// Whether the access reads or changes the bytes.
    pub fn touches(self) -> bool {
        !matches!(self, Op::Prefetch | Op::PrefetchOwn)
    }
}

/// How an access became known; stronger first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// A data breakpoint hit it: one of all accesses to the watched words of a
    /// [`Window`](crate::event::Window), in order. No sample, so it stands for no time and carries no cost.
    Trapped,
    /// Decoded from a timer sample: the instruction the CPU was waiting for. Carries the sample's cost.
    Stalled,
    /// Decoded from a timer sample: in the sampled basic block, with exactly known registers.
    Decoded,
    /// A PMU sampled it: its own instruction and data address. Carries its latency as cost.
    Sampled,
    /// Decoded from a timer sample: runs on each iteration of the sampled loop, with registers that
    /// the loop does not change. Weaker.
    Harvested,
    /// An emulator executed it: one of all accesses of the program, in order. No sample, so it stands for no time.
    Emulated,
}

impl Basis {
    /// All, in the order of their [`index`](Basis::index).
    pub const ALL: [Basis; 6] = [
        Basis::Trapped,
        Basis::Stalled,
        Basis::Decoded,
        Basis::Sampled,
        Basis::Harvested,
        Basis::Emulated,
    ];

    /// The strongest of which there are any; of none, that nobody but a window saw it.
    pub fn strongest(
        stalled: u64,
        decoded: u64,
        sampled: u64,
        harvested: u64,
        emulated: u64,
    ) -> Basis {
        match (stalled, decoded, sampled, harvested) {
            (0, 0, 0, 0) if emulated > 0 => Basis::Emulated,
            (0, 0, 0, 0) => Basis::Trapped,
            (0, 0, 0, _) => Basis::Harvested,
            (0, 0, _, _) => Basis::Sampled,
            (0, _, _, _) => Basis::Decoded,
            _ => Basis::Stalled,
        }
    }

    /// Its place in [`Basis::ALL`]: three bits, for packed forms in memory.
    pub fn index(self) -> u8 {
        self as u8
    }
}

/// One access to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// CLOCK_MONOTONIC, nanoseconds.
    pub time_ns: u64,
    /// Virtual address of the first byte.
    pub addr: u64,
    /// Virtual address of the accessing instruction itself (not the next one).
    pub ip: u64,
    /// What this access stands for, in the run's [`CostUnit`]. Nanoseconds of sampled time: the sample's period
    /// on the stalled access, zero on all others. Cycles: the latency of a sampled load.
    pub cost: Cost<u32>,
    /// Process.
    pub pid: Pid,
    /// Thread.
    pub tid: Tid,
    /// CPU.
    pub cpu: Cpu,
    /// Bytes touched.
    pub size: u16,
    /// Direction.
    pub op: Op,
    /// How it became known.
    pub basis: Basis,
    /// A bus-locked or implicitly locked instruction.
    pub locked: bool,
    /// Executed in kernel mode.
    pub kernel: bool,
    /// Bytes from `addr` on in which the access lies, somewhere, where its own address could not be told; 0 where
    /// `addr` is its first byte. Such an access may be of any of these bytes, so it proves nothing about one of them.
    pub within: u8,
    /// Of a stalled access: what the CPU did while it waited.
    pub wait: Wait,
    /// Of a stalled access: the access of the same sample, counted from 1 in their order, that the CPU waited for
    /// if nobody ever stores to this one's line; 0 where there is none.
    pub instead: u8,
    /// What the hardware recorded besides; nothing for sources without a PMU.
    pub measured: Measured,
}

impl Access {
    /// A load of nothing by nobody, for literals that say only what differs from it: `..Access::BLANK`.
    pub const BLANK: Access = Access {
        time_ns: 0,
        addr: 0,
        ip: 0,
        cost: Cost(0),
        pid: Pid(0),
        tid: Tid(0),
        cpu: Cpu(0),
        size: 0,
        op: Op::Load,
        basis: Basis::Stalled,
        locked: false,
        kernel: false,
        within: 0,
        wait: Wait::AtInstruction,
        instead: 0,
        measured: Measured::NOTHING,
    };

    /// Executions that it stands for: of an emulated access also its repeats, of any other itself.
    pub fn executions(&self) -> u64 {
        match self.basis {
            Basis::Emulated => 1 + u64::from(self.measured.repeats),
            _ => 1,
        }
    }
}

/// Where the CPU stood while it waited for an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Wait {
    /// At the accessing instruction itself.
    #[default]
    AtInstruction,
    /// At a full barrier after it (`mfence`, a locked instruction on another line), until its store was visible to
    /// all.
    AtBarrier,
    /// In a loop that reads it again and again until another thread stores to it.
    InSpinLoop,
}

impl Wait {
    /// All, in the order of their [`index`](Wait::index).
    pub const ALL: [Wait; 3] = [Wait::AtInstruction, Wait::AtBarrier, Wait::InSpinLoop];

    /// Its place in [`Wait::ALL`]: two bits, for packed forms in memory.
    pub fn index(self) -> u8 {
        self as u8
    }
}

/// What a source records of an access besides where it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Measured {
    /// What served it, and how it met other caches.
    pub source: Option<DataSource>,
    /// Core cycles from issue to completion. Sources that measure none for an access record 0.
    pub latency_cycles: Option<NonZeroU32>,
    /// Physical address of the first byte.
    pub phys_addr: Option<NonZeroU64>,
    /// Further executions that this one stands for: of the same instruction on bytes among these by the same thread,
    /// before any other processor asked for the line. The directory protocol asks for nothing in any of them.
    pub repeats: u32,
}

impl Measured {
    /// Nothing was recorded.
    pub const NOTHING: Measured = Measured {
        source: None,
        latency_cycles: None,
        phys_addr: None,
        repeats: 0,
    };
}

/// An address space: one per process image, so that an `exec` or a reused pid starts a new one.
/// Numbered in order of appearance, hence equal when the same events are replayed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpaceId(pub u32);

/// The memory an address stands for, before it is cut into lines. Equal places are equal bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// Shared mapping of a file or of shared memory: the same wherever it is mapped.
    Shared {
        /// Device, `major << 32 | minor`.
        dev: u64,
        /// Inode.
        inode: u64,
        /// Byte offset in the file.
        offset: u64,
    },
    /// Private memory of one address space.
    Private {
        /// Address space that the address is in.
        space: SpaceId,
        /// Virtual address.
        addr: u64,
    },
    /// Kernel memory, one address space for all.
    Kernel {
        /// Virtual address.
        addr: u64,
    },
    /// Memory that only a PMU's record places: no mapping of the process is known there, but the physical address.
    Physical {
        /// Physical address.
        addr: u64,
    },
}

/// Smallest page of the architectures known here: memory beyond may be anywhere.
const PAGE: u64 = 4096;

impl Place {
    /// Byte position within the place's own numbering: file offset or virtual address.
    pub fn position(self) -> u64 {
        match self {
            Place::Shared { offset, .. } => offset,
            Place::Private { addr, .. } | Place::Kernel { addr } | Place::Physical { addr } => addr,
        }
    }

    /// Whether it is private memory of one of the spaces.
    pub fn is_of(self, spaces: &FxHashSet<SpaceId>) -> bool {
        matches!(self, Place::Private { space, .. } if spaces.contains(&space))
    }

    /// The same memory object at another position.
    #[must_use]
    pub fn at(self, position: u64) -> Place {
        match self {
            Place::Shared { dev, inode, .. } => Place::Shared {
                dev,
                inode,
                offset: position,
            },
            Place::Private { space, .. } => Place::Private {
                space,
                addr: position,
            },
            Place::Kernel { .. } => Place::Kernel { addr: position },
            Place::Physical { .. } => Place::Physical { addr: position },
        }
    }

    /// Whether bytes that follow one another in an address space do so in this numbering, from this place up to
    /// `position`: physical addresses tell nothing beyond their page.
    pub fn reaches(self, position: u64) -> bool {
        match self {
            Place::Physical { addr } => addr / PAGE == position / PAGE,
            Place::Shared { .. } | Place::Private { .. } | Place::Kernel { .. } => true,
        }
    }

    /// The line that holds this byte. Mappings are page-aligned, so file offsets cut lines where
    /// addresses do.
    pub fn line(self, size: LineSize) -> LineKey {
        LineKey(self.at(self.position() & !(size.bytes() - 1)))
    }

    /// Offset of this byte in its line.
    pub fn offset_in_line(self, size: LineSize) -> u8 {
        (self.position() & (size.bytes() - 1)) as u8
    }
}

/// A line: the [`Place`] of its first byte. Two virtual addresses are the same line when their keys
/// are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LineKey(pub Place);

impl fmt::Display for LineKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Place::Shared { dev, inode, offset } => {
                write!(
                    f,
                    "shared:{}:{}:{inode}:{offset:#x}",
                    dev >> 32,
                    dev & 0xffff_ffff
                )
            }
            Place::Private { space, addr } => write!(f, "private:{}:{addr:#x}", space.0),
            Place::Kernel { addr } => write!(f, "kernel:{addr:#x}"),
            Place::Physical { addr } => write!(f, "physical:{addr:#x}"),
        }
    }
}

impl serde::Serialize for LineKey {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

/// Coherence granule: 64 bytes, or 128 where adjacent lines travel in pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineSize(u8);

impl LineSize {
    /// One line of every x86-64 and nearly every aarch64 server part.
    pub const B64: LineSize = LineSize(64);
    /// Lines 2n and 2n+1 together.
    pub const B128: LineSize = LineSize(128);
    /// All that can be asked for.
    pub const ALL: [LineSize; 2] = [LineSize::B64, LineSize::B128];

    /// 64 or 128; anything else is `None`.
    pub fn new(bytes: u64) -> Option<LineSize> {
        LineSize::ALL.into_iter().find(|size| size.bytes() == bytes)
    }

    /// Bytes in a line.
    pub fn bytes(self) -> u64 {
        u64::from(self.0)
    }
}

/// A set of bytes of one line, bit n for byte n.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ByteSet(pub u128);

impl ByteSet {
    /// Bytes `offset .. offset + size`, cut at the line's end.
    pub fn range(offset: u8, size: u16, line: LineSize) -> ByteSet {
        let end = (u64::from(offset) + u64::from(size)).min(line.bytes());
        let upto = |n: u64| {
            if n >= 128 {
                u128::MAX
            } else {
                (1u128 << n) - 1
            }
        };
        ByteSet(upto(end) & !upto(u64::from(offset)))
    }

    /// Whether the two sets share a byte.
    pub fn overlaps(self, other: ByteSet) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether no byte is in the set.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_is_the_place_in_the_list_of_all() {
        let ops = Op::ALL.map(|op| usize::from(op.index()));
        let bases = Basis::ALL.map(|basis| usize::from(basis.index()));
        assert_eq!((ops, bases), ([0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4, 5]));
        assert_eq!(Wait::ALL.map(Wait::index), [0, 1, 2]);
    }

    #[test]
    fn a_byte_range_is_cut_at_the_end_of_its_line() {
        assert_eq!(ByteSet::range(60, 8, LineSize::B64).0, 0xf << 60);
        assert_eq!(ByteSet::range(0, 8, LineSize::B64).0, 0xff);
        assert_eq!(ByteSet::range(120, 16, LineSize::B128).0, 0xff << 120);
        assert!(!ByteSet::range(0, 8, LineSize::B64).overlaps(ByteSet::range(8, 8, LineSize::B64)));
    }

    #[test]
    fn equal_file_offsets_are_one_line_whatever_the_address() {
        let place = |offset| Place::Shared {
            dev: 1,
            inode: 7,
            offset,
        };
        assert_eq!(
            place(0x1008).line(LineSize::B64),
            place(0x1030).line(LineSize::B64)
        );
        assert_ne!(
            place(0x1008).line(LineSize::B64),
            place(0x1040).line(LineSize::B64)
        );
        assert_eq!(
            place(0x1008).line(LineSize::B128),
            place(0x1040).line(LineSize::B128)
        );
    }
}
