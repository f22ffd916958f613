//! What one thread writes: the open chunk of its lane, and what it repeats in it.
//!
//! A silent access that the thread has made before, in the open chunk, by the same instruction on the same bytes and
//! without anybody taking the line between, increments that record's `repeats`. Every other access is a new record.
//! So a record is the first execution of a visit with the repeats before anyone took the line away; the order of
//! what asks for something is kept, and the counts are exact.

use std::sync::atomic::{
    AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
};

use crate::{
    directory::{Directory, LINE, Member},
    layout::{self, ACCESSES_PER_CHUNK, ACTIVE, CHUNKS, Chunk, Lane, QUIET, RECORDS},
};

/// Sets of two recent records that are found again: 8 KiB of the first-level cache. With one record in a set, two
/// that meet there would drive each other out in every turn of a loop.
const RECENT: usize = 512;
/// An entry: chunk number, record, version.
const RECORD_SHIFT: u32 = 16;
const NUMBER_SHIFT: u32 = RECORD_SHIFT + RECORDS.trailing_zeros();
/// No chunk is open: equals the number of none.
const NONE_OPEN: u64 = u64::MAX >> NUMBER_SHIFT;

/// An instruction as it is registered with QEMU: its id, and whether its loads take the line for themselves, because
/// a `prefetchw` stands before it.
#[derive(Clone, Copy)]
pub struct Tagged(pub u32);

impl Tagged {
    const OWNING: u32 = 1 << 31;

    pub fn new(id: u32, owning: bool) -> Tagged {
        Tagged(if owning { id | Tagged::OWNING } else { id })
    }

    fn id(self) -> u32 {
        self.0 & !Tagged::OWNING
    }

    fn owning(self) -> bool {
        self.0 & Tagged::OWNING != 0
    }
}

/// How an access is, by QEMU's word for it.
#[derive(Clone, Copy)]
pub struct Kind {
    pub size_log2: u32,
    pub store: bool,
}

/// What a chunk's opening needs from outside.
pub trait World {
    /// A time stamp that grows in all threads alike.
    fn stamp(&self) -> u64;
    /// The same, after everything that the thread wrote before.
    fn stamp_after(&self) -> u64;
    /// Waits a little for the tool to take a chunk, the `turn`th time; false when it never will.
    fn wait(&self, turn: u32) -> bool;
    /// The tool wants no more.
    fn is_over(&self) -> bool;
    /// A chunk was sealed; `waiting` are in the ring.
    fn sealed(&self, waiting: u64);
}

/// A thread that writes. Its shared lane is given to each call.
pub struct Writer {
    open: u64,
    /// Time of the last record.
    stamp: u64,
    used: u32,
    /// Accesses until the chunk is sealed.
    left: u32,
    member: Member,
    pub processor: u32,
    pub tid: u32,
    recent: [[u64; 2]; RECENT],
}

/// An access that repeats none.
#[derive(Clone, Copy)]
struct New {
    place: u64,
    instruction: Tagged,
    /// Its set among the recent ones.
    at: usize,
    version: u16,
}

/// The tool is gone or has enough.
pub struct Detached;

impl Writer {
    /// The thread of that number in order of appearance.
    pub fn new(processor: u32) -> Writer {
        Writer {
            open: NONE_OPEN,
            stamp: 0,
            used: 0,
            left: ACCESSES_PER_CHUNK,
            member: Member::new(processor),
            processor,
            tid: 0,
            // Of chunk 0, version 0, which is never: an entry has its chunk's number plus one.
            recent: [[0; 2]; RECENT],
        }
    }

    /// One access.
    #[inline(always)]
    pub fn access(
        &mut self,
        directory: &Directory,
        lane: &Lane,
        world: &impl World,
        address: u64,
        kind: Kind,
        instruction: Tagged,
    ) -> Result<(), Detached> {
        // Before the directory is asked: what it says is true now, and may not be after a wait.
        if self.open == NONE_OPEN {
            self.open(lane, world)?;
        }
        let place = layout::place(address, kind.size_log2, kind.store);
        let owning = kind.store || instruction.owning();
        let answer = directory.access(self.member, address, owning);
        let id = u64::from(instruction.id());
        let at = (place ^ id << 20).wrapping_mul(0x9e37_79b9_7f4a_7c15)
            >> (64 - RECENT.trailing_zeros());
        let last = address.wrapping_add((1 << kind.size_log2) - 1);
        let crosses = (address ^ last) >= LINE;
        if answer.silent && !crosses {
            for entry in self.recent[at as usize] {
                if entry >> NUMBER_SHIFT != self.open || entry as u16 != answer.version {
                    continue;
                }
                let index = (entry >> RECORD_SHIFT) as usize % RECORDS;
                let record = &lane.chunks[(self.open - 1) as usize % CHUNKS].records[index];
                if record.place.load(Relaxed) == place
                    && record.instruction.load(Relaxed) == instruction.id()
                {
                    add(&record.repeats, 1);
                    self.left -= 1;
                    if self.left == 0 {
                        self.seal(lane, world);
                    }
                    return Ok(());
                }
            }
        }
        let new = New {
            place,
            instruction,
            at: at as usize,
            version: answer.version,
        };
        let mut silent = answer.silent;
        if crosses {
            // Never a repeat, so the second line's version is nobody's concern.
            silent &= directory.access(self.member, last, owning).silent;
        }
        self.record(lane, world, new, silent);
        Ok(())
    }

    /// A function of its own, so that repeats save no registers for it.
    #[inline(never)]
    fn record(&mut self, lane: &Lane, world: &impl World, new: New, silent: bool) {
        // What asks for nothing needs no time of its own: it may stand anywhere between what gave this thread its copy
        // and what will take it, and the last stamp is there. Reading the counter is half of what a record costs.
        if !silent {
            self.stamp = world.stamp();
        }
        self.write(lane, &new);
        self.left -= 1;
        if self.left == 0 || self.used as usize == RECORDS {
            self.seal(lane, world);
        }
    }

    #[inline(always)]
    fn write(&mut self, lane: &Lane, new: &New) {
        let chunk = &lane.chunks[(self.open - 1) as usize % CHUNKS];
        let index = self.used as usize % RECORDS;
        let record = &chunk.records[index];
        record.tsc.store(self.stamp, Relaxed);
        record.place.store(new.place, Relaxed);
        record.instruction.store(new.instruction.id(), Relaxed);
        record.repeats.store(0, Relaxed);
        self.used += 1;
        // Whatever ends the process, the tool finds what was written until then.
        chunk.count.store(self.used, Release);
        let entry =
            self.open << NUMBER_SHIFT | (index as u64) << RECORD_SHIFT | u64::from(new.version);
        let [newest, _] = self.recent[new.at];
        self.recent[new.at] = [entry, newest];
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
        self.open = number + 1;
        self.used = 0;
        self.left = ACCESSES_PER_CHUNK;
        Ok(())
    }

    /// Hands the open chunk over, if there is one.
    pub fn seal(&mut self, lane: &Lane, world: &impl World) {
        if self.open == NONE_OPEN {
            return;
        }
        lane.head.store(self.open, Release);
        lane.state.store(QUIET, Release);
        let waiting = self.open - lane.tail.0.load(Relaxed);
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
