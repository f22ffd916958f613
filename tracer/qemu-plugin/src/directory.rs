//! Which threads have a copy of which line, if caches were infinite: a table that all threads share and that decides
//! whether an access is *silent*, that is, would ask for nothing under the directory protocol, neither with lines of
//! 64 bytes nor with lines of 128, in any variant of the protocol. Lines of 64 bytes may begin anywhere, lines of 128 at
//! any multiple of 64, so that a recording tells also what its objects would cost at other addresses.
//!
//! The table is direct-mapped and may forget: a line that was forgotten asks again, so that there are more records
//! than needed and never fewer. An entry is one word for each 64 bytes, changed by compare-exchange. Whatever such a line
//! is, it has bytes of an entry's 64 and of one of its two neighbours' at most:
//!
//! ```text
//!   63      43 42       27  26     25      24..0
//!  │   tag    │  version  │stored│others│ thread n │
//! ```
//!
//! A thread's bit says that it has touched these 64 bytes, and that no other thread has taken them or either neighbour from
//! it since: it has a copy of all lines that its accesses here have had. *Stored* says that the one thread with a bit is the
//! only one with a copy of any of the three, and has stored here: it owns them. Whoever changes an entry therefore tells
//! both neighbours: stores take the bits of other threads away there, too, and loads leave *others* there, which is no
//! thread's own bit. An access changes its own entry first: of two threads that change neighbours at once, one sees what the
//! other did.
//!
//! That a bit is for lines which the thread has had, of all that have some of the 64 bytes, is enough: its first access to
//! other bytes is a record, silent or not, and only what it does to bytes of a record is a repeat.
//!
//! The version counts how often another thread got a copy of the line or took it away, of either size: two accesses of
//! one thread with the same version have no request of another between them. A request that takes nothing away counts
//! too, because what is asked later may be whether it had, had it been for ownership.

use std::sync::atomic::{
    AtomicU64,
    Ordering::{Relaxed, SeqCst},
};

/// Threads that have a bit of their own; all others share one with what loads of a neighbour leave, and are never
/// silent.
pub(crate) const OWN_BITS: u32 = 25;
/// Lines the table knows at a time.
pub(crate) const SLOTS: usize = 1 << 20;

const OTHERS: u64 = 1 << OWN_BITS;
const SHARERS: u64 = (OTHERS << 1) - 1;
const STORED: u64 = OTHERS << 1;
const VERSION_SHIFT: u32 = OWN_BITS + 2;
const VERSION: u64 = 0xffff << VERSION_SHIFT;
const TAG_SHIFT: u32 = VERSION_SHIFT + 16;
const TAG: u64 = !0 << TAG_SHIFT;
/// Bytes of an entry, and of the smaller line; the larger one is a pair of them.
pub(crate) const LINE: u64 = 64;
/// Addresses of programs end here; what is beyond has no place in a tag.
const USER_END: u64 = 1 << 47;

/// What a thread is to the table.
#[derive(Clone, Copy)]
pub(crate) struct Member {
    /// Its bit.
    bit: u64,
    /// The same, or 0 where it shares its bit with others and knows nothing for sure.
    silent: u64,
}

impl Member {
    /// The thread of that number.
    pub(crate) fn new(processor: u32) -> Member {
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

/// What an access wants of its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Intent {
    /// To read.
    Load,
    /// To read, behind a `prefetchw`: takes the line from all others if it has to be fetched.
    OwningLoad,
    /// To write.
    Store,
}

impl Intent {
    #[inline(always)]
    pub(crate) fn of(store: bool, owning: bool) -> Intent {
        match (store, owning) {
            (true, _) => Intent::Store,
            (false, true) => Intent::OwningLoad,
            (false, false) => Intent::Load,
        }
    }
}

/// An access's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    /// Asks for nothing.
    pub silent: bool,
    /// The line's entry after the access.
    pub entry: Entry,
    /// Where it is in the table; `None` where a repeat would not be silent even if the entry stayed as it is.
    pub slot: Option<u32>,
}

/// What the table says of a line, in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Entry(u64);

impl Entry {
    /// The line's version.
    pub(crate) fn version(self) -> u16 {
        (self.0 >> VERSION_SHIFT) as u16
    }

    /// Whether no other thread has touched the line since the thread got its copy: nobody's request can be younger than
    /// the thread's own.
    #[inline(always)]
    pub(crate) fn is_of(self, member: Member) -> bool {
        member.silent != 0 && self.0 & SHARERS == member.silent
    }
}

/// The table; of zeroes, no line is known.
pub(crate) struct Directory(pub [AtomicU64; SLOTS]);

impl Directory {
    /// One access to the line of `address`.
    #[inline(always)]
    pub(crate) fn access(&self, member: Member, address: u64, intent: Intent) -> Answer {
        if let Some((slot, entry)) = self.silent(member, address, intent) {
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
        let neighbours = [address.wrapping_sub(LINE), address + LINE].map(|address| {
            let (at, tag) = place(address);
            (self.entry(at), tag)
        });
        let near = neighbours.iter().any(|(other, tag)| {
            let known = other.load(Relaxed);
            known & TAG == *tag && known & SHARERS & !member.bit != 0
        });
        let own = self.entry(at);
        let entry = change(own, |entry| next(entry, tag, member.bit, intent, near));
        for (other, tag) in neighbours {
            if near || other.load(Relaxed) & TAG == tag {
                change(other, |entry| beside(entry, tag, member.bit, intent));
            }
        }
        Answer {
            silent: false,
            entry: Entry(entry),
            slot: (member.silent != 0).then_some(at),
        }
    }

    #[inline(always)]
    fn entry(&self, at: u32) -> &AtomicU64 {
        &self.0[at as usize % SLOTS]
    }

    /// Where the line's entry is and what it says, if an access would be silent: then it changes nothing.
    #[inline(always)]
    pub(crate) fn silent(
        &self,
        member: Member,
        address: u64,
        intent: Intent,
    ) -> Option<(u32, Entry)> {
        let (at, tag) = place(address);
        let entry = self.0[at as usize % SLOTS].load(Relaxed);
        let silent = match intent {
            Intent::Store => entry & (TAG | SHARERS | STORED) == tag | STORED | member.silent,
            // Where others have read what this thread stored, its copy may have moved to one of them.
            Intent::OwningLoad => entry & TAG == tag && Entry(entry).is_of(member),
            Intent::Load => entry & TAG == tag && entry & member.silent != 0,
        };
        (silent && address < USER_END).then_some((at, Entry(entry)))
    }

    /// Knows nothing of any line from here on: a forked process has other memory at the same addresses, and memory that
    /// several processes have is not decided upon here.
    pub(crate) fn forget(&self) {
        for slot in &self.0 {
            if slot.load(Relaxed) != 0 {
                slot.store(0, Relaxed);
            }
        }
    }

    /// The same for some memory.
    pub(crate) fn forget_lines(&self, start: u64, bytes: u64) {
        if bytes / LINE >= SLOTS as u64 {
            return self.forget();
        }
        for line in start / LINE..=start.saturating_add(bytes) / LINE {
            self.0[place(line * LINE).0 as usize % SLOTS].store(0, Relaxed);
        }
    }

    /// Whether an entry is as it was, that is, nobody has made any access to the line that was not silent.
    #[inline(always)]
    pub(crate) fn is_still(&self, slot: u32, entry: Entry) -> bool {
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

/// Replaces an entry by what comes after it, and returns that.
#[cold]
fn change(slot: &AtomicU64, after: impl Fn(u64) -> u64) -> u64 {
    let mut entry = slot.load(Relaxed);
    loop {
        let after = after(entry);
        if after == entry {
            return after;
        }
        // In one order for all: each thread changes its own entry, then looks at the neighbours.
        match slot.compare_exchange_weak(entry, after, SeqCst, Relaxed) {
            Ok(_) => return after,
            Err(now) => entry = now,
        }
    }
}

fn newer(entry: u64) -> u64 {
    (entry & VERSION).wrapping_add(1 << VERSION_SHIFT) & VERSION
}

/// An entry after an access to it that was not silent when it was looked at (it may be by now). `near`: another thread
/// is known to a neighbour.
fn next(entry: u64, tag: u64, bit: u64, intent: Intent, near: bool) -> u64 {
    let known = entry & TAG == tag && entry & SHARERS != 0;
    let alone = known && entry & SHARERS == bit;
    let version = if alone { entry & VERSION } else { newer(entry) };
    let rest = match intent {
        Intent::Store => STORED,
        Intent::OwningLoad => 0,
        Intent::Load => {
            let stored = if alone && !near { entry & STORED } else { 0 };
            let sharers = if known { entry & SHARERS } else { 0 };
            stored | sharers | if near { OTHERS } else { 0 }
        }
    };
    tag | version | rest | bit
}

/// The entry of a neighbour after that access.
fn beside(entry: u64, tag: u64, bit: u64, intent: Intent) -> u64 {
    let sharers = entry & SHARERS;
    if entry & TAG != tag || sharers & !bit == 0 {
        entry
    } else if intent != Intent::Load {
        // Without the thread's own bit: its copy of these bytes alone may have moved to who was here.
        tag | newer(entry)
    } else if sharers & bit == 0 || bit == OTHERS {
        tag | newer(entry) | sharers | OTHERS
    } else {
        // The thread had a copy of both.
        entry
    }
}
