//! Which threads have a copy of which line, if caches were infinite: a table that all threads share and that decides
//! whether an access is *silent*, that is, would ask for nothing under the directory protocol.
//!
//! The table is direct-mapped and may forget: a line that was forgotten asks again, so that there are more records
//! than needed and never fewer. An entry is one word, changed by compare-exchange:
//!
//! ```text
//!   63      43 42       27  26     25      24..0
//!  │   tag    │  version  │stored│others│ thread n │
//! ```
//!
//! The version counts how often another thread got a copy of the line or took it away: two accesses of one thread with
//! the same version have no request of another between them. A request that takes nothing away counts too, because
//! what is asked later may be whether it had, had it been for ownership.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Threads that have a bit of their own; all others share one, and are never silent.
pub const OWN_BITS: u32 = 25;
/// Lines the table knows at a time.
pub const SLOTS: usize = 1 << 20;

const OTHERS: u64 = 1 << OWN_BITS;
const SHARERS: u64 = (OTHERS << 1) - 1;
const STORED: u64 = OTHERS << 1;
const VERSION_SHIFT: u32 = OWN_BITS + 2;
const VERSION: u64 = 0xffff << VERSION_SHIFT;
const TAG_SHIFT: u32 = VERSION_SHIFT + 16;
const TAG: u64 = !0 << TAG_SHIFT;
/// Bytes of a line.
pub const LINE: u64 = 64;
/// Addresses of programs end here; what is beyond has no place in a tag.
const USER_END: u64 = 1 << 47;

/// What a thread is to the table.
#[derive(Clone, Copy)]
pub struct Member {
    /// Its bit.
    bit: u64,
    /// The same, or 0 where it shares its bit with others and knows nothing for sure.
    silent: u64,
}

impl Member {
    /// The thread of that number.
    pub fn new(processor: u32) -> Member {
        if processor < OWN_BITS {
            let bit = 1 << processor;
            Member { bit, silent: bit }
        } else {
            Member {
                bit: OTHERS,
                silent: 0,
            }
        }
    }
}

/// An access's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Asks for nothing.
    pub silent: bool,
    /// The line's entry after the access.
    pub entry: Entry,
    /// Where it is in the table; `None` where a repeat would not be silent even if the entry stayed as it is.
    pub slot: Option<u32>,
}

/// What the table says of a line, in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Entry(u64);

impl Entry {
    /// The line's version.
    pub fn version(self) -> u16 {
        (self.0 >> VERSION_SHIFT) as u16
    }
}

/// The table; of zeroes, no line is known.
pub struct Directory(pub [AtomicU64; SLOTS]);

impl Directory {
    /// One access to the line of `address`; `owning` ones, stores and loads after a `prefetchw`, take the line
    /// from all others.
    #[inline(always)]
    pub fn access(&self, member: Member, address: u64, owning: bool) -> Answer {
        if let Some((slot, entry)) = self.silent(member, address, owning) {
            return Answer {
                silent: true,
                entry,
                slot: Some(slot),
            };
        }
        if address >= USER_END {
            return Answer {
                silent: false,
                entry: Entry(0),
                slot: None,
            };
        }
        let (at, tag) = place(address);
        let slot = &self.0[at as usize % SLOTS];
        Answer {
            silent: false,
            entry: Entry(change(slot, tag, member.bit, owning)),
            slot: (member.silent != 0).then_some(at),
        }
    }

    /// Where the line's entry is and what it says, if an access would be silent: then it changes nothing.
    #[inline(always)]
    pub fn silent(&self, member: Member, address: u64, owning: bool) -> Option<(u32, Entry)> {
        let (at, tag) = place(address);
        let entry = self.0[at as usize % SLOTS].load(Relaxed);
        let silent = if owning {
            entry & (TAG | SHARERS | STORED) == tag | STORED | member.silent
        } else {
            entry & TAG == tag && entry & member.silent != 0
        };
        (silent && address < USER_END).then_some((at, Entry(entry)))
    }

    /// Whether an entry is as it was, that is, nobody has made any access to the line that was not silent.
    #[inline(always)]
    pub fn is_still(&self, slot: u32, entry: Entry) -> bool {
        self.0[slot as usize % SLOTS].load(Relaxed) == entry.0
    }
}

/// Slot and tag of an address's line.
#[inline(always)]
fn place(address: u64) -> (u32, u64) {
    let line = address / LINE;
    let tag = (line / SLOTS as u64) << TAG_SHIFT;
    // Lines 64 MiB apart would meet in one slot, and stacks are so: the tag moves them. It is still one-to-one.
    let moved = line ^ (tag >> TAG_SHIFT).wrapping_mul(0x9e3d);
    (moved as u32 % SLOTS as u32, tag)
}

/// Returns the entry after an access that was not silent when it was looked at. It may be by now.
#[cold]
fn change(slot: &AtomicU64, tag: u64, bit: u64, owning: bool) -> u64 {
    let mut entry = slot.load(Relaxed);
    loop {
        let after = next(entry, tag, bit, owning);
        match slot.compare_exchange_weak(entry, after, Relaxed, Relaxed) {
            Ok(_) => return after,
            Err(now) => entry = now,
        }
    }
}

fn next(entry: u64, tag: u64, bit: u64, owning: bool) -> u64 {
    let version = entry & VERSION;
    let newer = version.wrapping_add(1 << VERSION_SHIFT) & VERSION;
    let known = entry & TAG == tag && entry & SHARERS != 0;
    if !known {
        let stored = if owning { STORED } else { 0 };
        return tag | newer | stored | bit;
    }
    let alone = entry & SHARERS == bit;
    if owning {
        tag | if alone { version } else { newer } | STORED | bit
    } else {
        let (version, stored) = if alone {
            (version, entry & STORED)
        } else {
            (newer, 0)
        };
        tag | version | stored | (entry & SHARERS) | bit
    }
}
