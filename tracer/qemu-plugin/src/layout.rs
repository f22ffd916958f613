//! The memory that the plugin and the tool share: a file without a name, mapped by both.
//!
//! The plugin writes and the tool reads, but for the fields marked "tool". Everything is an atomic, so that both
//! sides may look at any time; the order that matters is said where it does. All zeroes is the valid beginning.
//! (This file is part of two programs; it may be used under MIT or Apache-2.0 as well as under the GPL.)

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// First word: both sides speak of the same layout. Counts up with each change.
pub const MAGIC: u64 = u64::from_le_bytes(*b"cohtemu4");
/// Processes that can be observed at the same time: one [`Shared`] each, side by side.
pub const PROCESSES: usize = 32;
/// Threads of a process that can be observed at the same time: one lane each.
pub const LANES: usize = 256;
/// Chunks in a lane's ring.
pub const CHUNKS: usize = 32;
/// Records in a chunk, a power of two.
pub const RECORDS: usize = 2048;
/// Accesses after which a chunk is sealed although it has room: a thread that only repeats itself holds nobody up.
pub const ACCESSES_PER_CHUNK: u32 = 65_536;
/// Instructions that can be described.
pub const INSTRUCTIONS: usize = 1 << 21;
/// Words of the log's ring, a power of two.
pub const LOG_WORDS: usize = 1 << 19;
/// Bits of an address in [`Record::place`].
pub const ADDRESS_BITS: u32 = 48;
/// Bit of [`Record::place`]: a store. The bytes accessed, at most 127, are between it and the address.
pub const STORE: u64 = 1 << 56;

/// Everything of one process.
#[repr(C, align(4096))]
pub struct Shared {
    /// What is said once.
    pub header: Header,
    /// Side-band of the accesses.
    pub log: Log,
    /// By instruction id.
    pub instructions: [Instruction; INSTRUCTIONS],
    /// By QEMU's number of the virtual CPU.
    pub lanes: [Lane; LANES],
}

/// What is said once, and what is counted.
#[repr(C)]
pub struct Header {
    /// [`MAGIC`], by the tool before QEMU starts; the plugin refuses another.
    pub magic: AtomicU64,
    /// The plugin was loaded.
    pub installed: AtomicU32,
    /// Code of the program was translated.
    pub translated: AtomicU32,
    /// What to add to an address of the program to find the memory in QEMU's process: 0, or nothing is as it seems.
    pub guest_base: AtomicU64,
    /// Threads of all processes so far; of the first process's header alone.
    pub threads: AtomicU32,
    /// Described instructions.
    pub instructions: AtomicU64,
    /// Lanes that have had a thread are below.
    pub lanes: AtomicU32,
    /// Accesses that were not written: by instructions or threads for which there was no room.
    pub unseen: AtomicU64,
    /// Process, by its id; 0 where there was none yet. Claimed by compare-exchange, before all else.
    pub pid: AtomicU32,
    /// Process that forked it, or 0 of a program's first one, and of one that became another program.
    pub parent: AtomicU32,
    /// All fields of a process are there, and it runs.
    pub running: AtomicU32,
    /// Processes that it forked and that run on without being observed: there was no room.
    pub children: AtomicU32,
    /// Programs that the process became (`execve`) without the emulator, while it does or did so.
    pub execs: AtomicU32,
    /// Tool, in the first process's header: 1 while it sleeps on this word.
    pub sleeping: AtomicU32,
    /// Tool, in the first process's header: it takes no more; the program shall run on without being observed.
    pub stop: AtomicU32,
}

/// A ring of entries of whole words: [`ENTRY_WORDS`] for the entry, then its text.
#[repr(C)]
pub struct Log {
    /// Words written.
    pub head: AtomicU64,
    /// Tool: words read.
    pub tail: AtomicU64,
    /// Word `n` is at `n % LOG_WORDS`.
    pub words: [AtomicU64; LOG_WORDS],
}

/// Words before an entry's text: kind and bytes of text, time, and three numbers.
pub const ENTRY_WORDS: usize = 5;

/// Kinds of log entries: what is in their three numbers and their text.
pub mod entry {
    /// Text: `/proc/self/maps` before the program was loaded: what is QEMU's own.
    pub const BASELINE: u32 = 1;
    /// Text: `/proc/self/maps` now.
    pub const MAPS: u32 = 2;
    /// A thread's first access. Thread id; processor; thread pointer or 0. Text: its name.
    pub const THREAD: u32 = 3;
    /// A thread has a name. Thread id. Text: the name.
    pub const NAME: u32 = 4;
    /// A thread has a thread pointer. Thread id; the pointer.
    pub const POINTER: u32 = 5;
    /// A thread ends. Thread id. Text: its name.
    pub const EXIT: u32 = 6;
    /// The end of the heap (`brk`).
    pub const BREAK: u32 = 7;
}

/// An instruction that accesses memory.
#[repr(C)]
pub struct Instruction {
    /// Its address.
    pub ip: AtomicU64,
    /// Its bytes, and their number in the last byte.
    pub code: [AtomicU64; 2],
    /// The bytes of the instruction before it, when that is a `prefetchw` and control came from there.
    pub before: [AtomicU64; 2],
    /// Executions, of the code that these are counted of.
    pub executions: AtomicU64,
}

impl Instruction {
    /// Describes what the other does. Nobody else writes either.
    pub fn copy(&self, from: &Instruction) {
        self.ip.store(from.ip.load(Relaxed), Relaxed);
        for (to, from) in [(&self.code, &from.code), (&self.before, &from.before)] {
            for (to, from) in to.iter().zip(from) {
                to.store(from.load(Relaxed), Relaxed);
            }
        }
    }
}

/// The ring of one virtual CPU.
#[repr(C, align(64))]
pub struct Lane {
    /// Chunks sealed. Written with release after the chunk, and before [`Lane::state`] and [`Lane::opened`].
    pub head: AtomicU64,
    /// [`QUIET`] or [`ACTIVE`]. Whoever reads a time stamp, fences, and then finds QUIET, knows that whatever this
    /// lane writes later has a later stamp.
    pub state: AtomicU32,
    /// Time stamp at the opening of the open chunk: nothing in it is older.
    pub opened: AtomicU64,
    /// Tool: chunks taken, on a cache line of its own.
    pub tail: OwnLine,
    /// Chunk `n` is at `n % CHUNKS`.
    pub chunks: [Chunk; CHUNKS],
    /// The accesses of the chunk at the same place, in order of time.
    pub records: [[Record; RECORDS]; CHUNKS],
}

/// Records in a lane's ring, a power of two.
pub const ALL_RECORDS: usize = CHUNKS * RECORDS;

impl Lane {
    /// A record by its place among those of all chunks in the ring.
    #[inline]
    pub fn record(&self, at: u32) -> &Record {
        &self.records.as_flattened()[at as usize % ALL_RECORDS]
    }
}

/// No chunk is open.
pub const QUIET: u32 = 0;
/// A chunk is open.
pub const ACTIVE: u32 = 1;

/// A number that shares its line with nothing.
#[repr(C, align(64))]
pub struct OwnLine(pub AtomicU64);

/// What there is to know of a chunk: accesses of one thread.
#[repr(C, align(64))]
pub struct Chunk {
    /// Which of the lane's chunks it is, plus one; written when it is opened, after the fields below.
    pub number: AtomicU64,
    /// Records written so far.
    pub count: AtomicU32,
    /// Thread.
    pub tid: AtomicU32,
    /// Number of the thread in order of appearance; the program's first is 0.
    pub processor: AtomicU32,
}

/// An access, and how often it was repeated.
#[repr(C)]
pub struct Record {
    /// Time stamp counter.
    pub tsc: AtomicU64,
    /// [`place`] of the access.
    pub place: AtomicU64,
    /// Instruction id.
    pub instruction: AtomicU32,
    /// Further executions of the same instruction on bytes among these.
    pub repeats: AtomicU32,
}

/// Where an access was and what it did, in a word.
pub const fn place(address: u64, bytes: u64, store: bool) -> u64 {
    let address = address & ((1 << ADDRESS_BITS) - 1);
    address | (bytes & 0x7f) << ADDRESS_BITS | if store { STORE } else { 0 }
}

/// Up to 15 bytes and their number, in two words; more are cut.
pub fn pack_code(bytes: &[u8]) -> [u64; 2] {
    let mut packed = [0_u8; 16];
    let len = bytes.len().min(15);
    packed[..len].copy_from_slice(&bytes[..len]);
    packed[15] = len as u8;
    let [low, high] = [0, 8].map(|at| {
        let mut word = [0; 8];
        word.copy_from_slice(&packed[at..at + 8]);
        u64::from_le_bytes(word)
    });
    [low, high]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_has_24_bytes_and_the_tool_writes_to_lines_of_its_own() {
        assert_eq!(size_of::<Record>(), 24);
        assert_eq!(std::mem::offset_of!(Lane, tail) % 64, 0);
        assert_eq!(std::mem::offset_of!(Lane, chunks) % 64, 0);
        assert_eq!(std::mem::offset_of!(Lane, records) % 64, 0);
        assert!(size_of::<Shared>() < 1 << 30);
        assert_eq!(size_of::<Shared>() % 4096, 0);
    }
}
