//! What one thread writes: the open chunk of its lane, and what it repeats in it.
//!
//! A silent access that the thread has made before, in the open chunk, by the same instruction on the same bytes and
//! without anybody else asking for the line between, increments that record's `repeats`. So does one of the bytes right
//! behind the record's on its line, which are the record's from then on: a loop over an array makes a record for a line and
//! not for an element. Every other access is a new record. So a record is the first execution of a visit with the repeats
//! before another thread asked for the line; the order of what asks for something is kept, the counts of each instruction on
//! each line are exact, and so is which bytes it accessed.
//!
//! An access goes the cheapest of three ways that will do: [`Writer::repeats`] finds it in a small table and compares
//! two words; [`Writer::silent`] asks the directory, and writes a record; [`Writer::access`] changes the directory,
//! reads the clock and opens chunks. All three together are what the last alone would be.

use std::sync::atomic::{
    AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
};

use crate::{
    directory::{Directory, Entry, Intent, LINE, Member, SLOTS},
    layout::{self, ACCESSES_PER_CHUNK, ACTIVE, ALL_RECORDS, CHUNKS, Chunk, Lane, QUIET, RECORDS},
};

/// Sets of two recent records that are found again, by instruction and line: a line of the first-level cache each, 32 KiB.
/// With one record in a set, two that meet there would drive each other out in every turn of a loop.
const RECENT: usize = 512;
/// No chunk is open: equals the number of none.
const NONE_OPEN: u64 = u64::MAX;

/// An instruction as it is registered with QEMU: its id, and whether its loads take the line for themselves, because
/// a `prefetchw` stands before it.
#[derive(Clone, Copy)]
pub(crate) struct Tagged(pub u32);

impl Tagged {
    const OWNING: u32 = 1 << 31;

    pub(crate) fn new(id: u32, owning: bool) -> Tagged {
        Tagged(if owning { id | Tagged::OWNING } else { id })
    }

    fn id(self) -> u32 {
        self.0 & !Tagged::OWNING
    }

    fn owning(self) -> bool {
        self.0 & Tagged::OWNING != 0
    }
}

/// How an access is.
#[derive(Clone, Copy)]
pub(crate) struct Kind {
    pub size_log2: u32,
    pub store: bool,
}

impl Kind {
    #[inline(always)]
    fn bytes(self) -> u64 {
        1 << self.size_log2
    }

    /// Address of the last byte.
    #[inline(always)]
    fn last(self, address: u64) -> u64 {
        address.wrapping_add(self.bytes() - 1)
    }

    /// Whether it touches two lines.
    #[inline(always)]
    fn crosses(self, address: u64) -> bool {
        (address ^ self.last(address)) >= LINE
    }
}

/// What a thread needs from outside.
pub(crate) trait World {
    /// What QEMU's word for an access means.
    fn kind(&self, word: u32) -> Kind;
    /// A time stamp that grows in all threads alike.
    fn stamp(&self) -> u64;
    /// The same, after everything that the thread wrote before.
    fn stamp_after(&self) -> u64;
    /// Waits a little for the tool to take a chunk, the `turn`th time; false when it never will.
    fn wait(&self, turn: u32) -> bool;
    /// Whether memory is, or may be, that of other processes as well, whose accesses the directory does not know: there
    /// each access is a record.
    fn is_shared(&self, address: u64) -> bool;
    /// The tool wants no more.
    fn is_over(&self) -> bool;
    /// A chunk was sealed; `waiting` are in the ring.
    fn sealed(&self, waiting: u64);
}

/// A thread that writes. Its shared lane is given to each call, the same to all.
pub(crate) struct Writer {
    /// [`mark`] of the open chunk.
    open: u64,
    /// Accesses until the chunk is sealed.
    left: u32,
    /// Where the next record goes, among those of all chunks, and where there is no more room.
    next: u32,
    end: u32,
    member: Member,
    /// Time of the last record.
    stamp: u64,
    pub processor: u32,
    pub tid: u32,
    recent: [Set; RECENT],
}

/// A silent access's record. Doing the same again repeats it as long as the directory's entry stays, which is found
/// out without looking at what the access is.
#[derive(Clone, Copy, Default)]
struct Recent {
    /// Of the record's first byte.
    address: u64,
    /// Instruction and QEMU's word for the access.
    how: u64,
    /// The line's, after the last time.
    entry: Entry,
    /// The chunk's [`mark`], how far behind the first access the last one began, the entry's slot, and the record.
    at: u64,
}

/// Where of the two ways is a record of the same instruction on the same bytes: at most one of them.
#[derive(Clone, Copy, Default)]
#[repr(C, align(64))]
struct Set([Recent; 2]);

const SLOT_SHIFT: u32 = ALL_RECORDS.trailing_zeros();
const SPAN_SHIFT: u32 = SLOT_SHIFT + SLOTS.trailing_zeros();
const MARK_SHIFT: u32 = SPAN_SHIFT + LINE.trailing_zeros();
/// Chunks that have different marks.
const MARKS: u64 = 1 << (u64::BITS - MARK_SHIFT);

/// What tells a chunk from those before it; never 0.
fn mark(number: u64) -> u64 {
    number % (MARKS - 1) + 1
}

impl Recent {
    #[inline(always)]
    fn record(&self) -> u32 {
        self.at as u32 % ALL_RECORDS as u32
    }

    #[inline(always)]
    fn slot(&self) -> u32 {
        (self.at >> SLOT_SHIFT) as u32 % SLOTS as u32
    }

    #[inline(always)]
    fn span(&self) -> u64 {
        (self.at >> SPAN_SHIFT) % LINE
    }

    #[inline(always)]
    fn open(&self) -> u64 {
        self.at >> MARK_SHIFT
    }

    /// Whether it is of such an access to bytes of the record, in whatever chunk.
    #[inline(always)]
    fn does(&self, address: u64, how: u64) -> bool {
        address.wrapping_sub(self.address) <= self.span() && self.how == how
    }

    /// Whether it is of such an access that ends where this one of so many bytes begins, on the same line.
    #[inline(always)]
    fn precedes(&self, address: u64, bytes: u64, how: u64) -> bool {
        self.address + self.span() + bytes == address
            && self.how == how
            && !address.is_multiple_of(LINE)
    }
}

/// What of an access goes into a record.
#[derive(Clone, Copy)]
struct What {
    place: u64,
    id: u32,
}

/// Instruction and QEMU's word for the access.
#[inline(always)]
fn how(instruction: Tagged, word: u32) -> u64 {
    u64::from(word) << 32 | u64::from(instruction.0)
}

/// Where a record of the access is, if it is among the recent ones.
#[inline(always)]
fn set(address: u64, instruction: Tagged) -> usize {
    let line = address / LINE;
    let mixed = (line ^ u64::from(instruction.0) << 20).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> (u64::BITS - RECENT.trailing_zeros())) as usize
}

/// [`Recent::at`].
#[inline(always)]
fn at(open: u64, span: u64, slot: u32, record: u32) -> u64 {
    open << MARK_SHIFT | span << SPAN_SHIFT | u64::from(slot) << SLOT_SHIFT | u64::from(record)
}

/// Which of a set makes room for a record: each as often as the other.
#[inline(always)]
fn way(record: u32) -> usize {
    record as usize % 2
}

/// The tool is gone or has enough.
pub(crate) struct Detached;

impl Writer {
    /// The thread of that number among those of the process, and among all.
    #[expect(
        clippy::large_stack_arrays,
        reason = "once a thread, on stacks of megabytes"
    )]
    pub(crate) fn new(number: u32, processor: u32) -> Writer {
        Writer {
            open: NONE_OPEN,
            left: ACCESSES_PER_CHUNK,
            next: 0,
            end: 0,
            member: Member::new(number),
            stamp: 0,
            processor,
            tid: 0,
            recent: [Set::default(); RECENT],
        }
    }

    /// One access, if it repeats a recent one on which the directory's entry has not changed. False when it is to be
    /// given to [`Writer::access`].
    #[inline(always)]
    pub(crate) fn repeats<'a, W: World + 'a>(
        &mut self,
        directory: &Directory,
        lane: &Lane,
        world: impl FnOnce() -> &'a W,
        address: u64,
        word: u32,
        instruction: Tagged,
    ) -> bool {
        let how = how(instruction, word);
        let Set(set) = &self.recent[set(address, instruction)];
        // Without a branch: which of both it is cannot be foreseen.
        let recent = &set[usize::from(set[1].does(address, how))];
        // An entry that is the same word has the same version, and leaves the access silent.
        let same = recent.does(address, how)
            && recent.open() == self.open
            && directory.is_still(recent.slot(), recent.entry);
        if same {
            add(&lane.record(recent.record()).repeats, 1);
            self.left -= 1;
            if self.left == 0 {
                self.seal(lane, world());
            }
        }
        same
    }

    /// One access, if it is silent and of one line, as nearly all are. False when it is to be given to
    /// [`Writer::access`], which does all of them.
    #[inline(always)]
    pub(crate) fn silent(
        &mut self,
        directory: &Directory,
        lane: &Lane,
        world: &impl World,
        address: u64,
        word: u32,
        instruction: Tagged,
    ) -> bool {
        let kind = world.kind(word);
        let intent = Intent::of(kind.store, instruction.owning());
        if self.open == NONE_OPEN || kind.crosses(address) || world.is_shared(address) {
            return false;
        }
        let Some((slot, entry)) = directory.silent(self.member, address, intent) else {
            return false;
        };
        let bytes = kind.bytes();
        let how = how(instruction, word);
        let n = set(address, instruction);
        let Set(set) = &self.recent[n];
        // Of the entry only what does not matter to this access has changed, or all is as it was but the chunk or the bytes.
        let same = |one: &Recent| one.open() == self.open && one.entry.version() == entry.version();
        let known = |one: &Recent| one.does(address, how) || one.precedes(address, bytes, how);
        let found = set.iter().position(known);
        let recent = match found {
            Some(way) if same(&set[way]) => {
                let Recent { address: first, .. } = set[way];
                let span = set[way].span().max(address - first);
                let record = lane.record(set[way].record());
                let place = layout::place(first, span + bytes, kind.store);
                record.place.store(place, Relaxed);
                add(&record.repeats, 1);
                Recent {
                    address: first,
                    how,
                    entry,
                    at: at(self.open, span, slot, set[way].record()),
                }
            }
            _ => {
                let what = What {
                    place: layout::place(address, bytes, kind.store),
                    id: instruction.id(),
                };
                let record = self.write_after(lane, world, what, entry);
                Recent {
                    address,
                    how,
                    entry,
                    at: at(self.open, 0, slot, record),
                }
            }
        };
        let way = found.unwrap_or(way(recent.record()));
        self.recent[n].0[way] = recent;
        self.count(lane, world);
        true
    }

    /// One access.
    #[inline(always)]
    pub(crate) fn access(
        &mut self,
        directory: &Directory,
        lane: &Lane,
        world: &impl World,
        address: u64,
        word: u32,
        instruction: Tagged,
    ) -> Result<(), Detached> {
        // Before the directory is asked: what it says is true now, and may not be after a wait.
        if self.open == NONE_OPEN {
            self.open(lane, world)?;
        }
        let kind = world.kind(word);
        let what = What {
            place: layout::place(address, kind.bytes(), kind.store),
            id: instruction.id(),
        };
        let intent = Intent::of(kind.store, instruction.owning());
        if world.is_shared(address) {
            self.stamp = world.stamp();
            self.write(lane, what);
            self.count(lane, world);
            return Ok(());
        }
        let answer = directory.access(self.member, address, intent);
        let mut silent = answer.silent;
        let crosses = kind.crosses(address);
        if crosses {
            // Never a repeat, so the versions are nobody's concern.
            silent &= directory
                .access(self.member, kind.last(address), intent)
                .silent;
        } else if silent && self.silent(directory, lane, world, address, word, instruction) {
            return Ok(());
        }
        if !silent || crosses || !answer.entry.is_of(self.member) {
            self.stamp = world.stamp();
        }
        let record = self.write(lane, what);
        if let Some(slot) = answer.slot
            && !crosses
        {
            let how = how(instruction, word);
            let n = set(address, instruction);
            let known = |one: &Recent| one.does(address, how);
            let found = self.recent[n].0.iter().position(known);
            self.recent[n].0[found.unwrap_or(way(record))] = Recent {
                address,
                how,
                entry: answer.entry,
                at: at(self.open, 0, slot, record),
            };
        }
        self.count(lane, world);
        Ok(())
    }

    /// A new record of what asks for nothing. It needs no time of its own where no other thread has asked for the line
    /// since this one got its copy: it may stand anywhere between what gave that and what will take it, and the last stamp
    /// is there. Reading the counter would be half of its cost.
    #[inline(always)]
    fn write_after(&mut self, lane: &Lane, world: &impl World, what: What, entry: Entry) -> u32 {
        if !entry.is_of(self.member) {
            self.stamp = world.stamp();
        }
        self.write(lane, what)
    }

    /// A new record, at the time of the last stamp.
    #[inline(always)]
    fn write(&mut self, lane: &Lane, what: What) -> u32 {
        let at = self.next;
        let record = lane.record(at);
        record.tsc.store(self.stamp, Relaxed);
        record.place.store(what.place, Relaxed);
        record.instruction.store(what.id, Relaxed);
        record.repeats.store(0, Relaxed);
        self.next += 1;
        let chunk = &lane.chunks[at as usize / RECORDS % CHUNKS];
        // Whatever ends the process, the tool finds what was written until then.
        chunk.count.store(at % RECORDS as u32 + 1, Release);
        at
    }

    /// After an access that may have made a record.
    #[inline(always)]
    fn count(&mut self, lane: &Lane, world: &impl World) {
        self.left -= 1;
        if self.left == 0 || self.next == self.end {
            self.seal(lane, world);
        }
    }

    #[cold]
    fn open(&mut self, lane: &Lane, world: &impl World) -> Result<(), Detached> {
        let number = lane.head.load(Relaxed);
        let mut turn = 0;
        while number - lane.tail.0.load(Acquire) >= CHUNKS as u64 {
            if !world.wait(turn) {
                return Err(Detached);
            }
            turn += 1;
        }
        if world.is_over() {
            return Err(Detached);
        }
        let chunk: &Chunk = &lane.chunks[number as usize % CHUNKS];
        chunk.count.store(0, Relaxed);
        chunk.tid.store(self.tid, Relaxed);
        chunk.processor.store(self.processor, Relaxed);
        chunk.number.store(number + 1, Release);
        lane.state.store(ACTIVE, Relaxed);
        // A tool that takes its own stamp, fences and reads QUIET did so before this: our stamps are younger.
        self.stamp = world.stamp_after();
        lane.opened.store(self.stamp, Release);
        self.open = mark(number);
        if self.open == 1 {
            // The marks begin again: what has an old one is forgotten.
            self.recent.fill(Set::default());
        }
        self.next = (number as usize % CHUNKS * RECORDS) as u32;
        self.end = self.next + RECORDS as u32;
        self.left = ACCESSES_PER_CHUNK;
        Ok(())
    }

    /// Hands the open chunk over, if there is one.
    #[cold]
    pub(crate) fn seal(&mut self, lane: &Lane, world: &impl World) {
        if self.open == NONE_OPEN {
            return;
        }
        let sealed = lane.head.load(Relaxed) + 1;
        lane.head.store(sealed, Release);
        lane.state.store(QUIET, Release);
        let waiting = sealed - lane.tail.0.load(Relaxed);
        self.open = NONE_OPEN;
        self.left = ACCESSES_PER_CHUNK;
        world.sealed(waiting);
    }
}

/// Of a number that only this thread changes: no locked instruction.
#[inline(always)]
fn add(number: &AtomicU32, more: u32) {
    number.store(number.load(Relaxed).wrapping_add(more), Relaxed);
}
