//! What the debug object tells beside its records: why a program recorded nothing of what it was run for.
//!
//! A line is text of aya-log, [`LINE`] with numbers in its gaps, so that the kernel half carries no sentences.

use super::programs;

/// The words of a line before each of its numbers: CLOCK_MONOTONIC nanoseconds, process and thread in the initial pid
/// namespace, position in [`PROGRAMS`], [`Reason`], and an address in hexadecimal, 0 where there is none.
pub const LINE: [&str; 6] = ["time", "pid", "tid", "program", "reason", "at"];

/// Tasks and reasons that are remembered as told.
pub const REMEMBERED: u32 = 4096;

/// Programs as they are called, and their entries in the debug object: each runs the program and tells of it.
pub const PROGRAMS: [(&str, &str); 14] = [
    (programs::SAMPLE, "told_sample"),
    (programs::MEMORY, "told_memory"),
    (programs::TASK_FORK, "told_task_fork"),
    (programs::WATCH, "told_watch"),
    (programs::HEAP_SIZE_FIRST, "told_heap_size_first"),
    (programs::HEAP_SIZE_SECOND, "told_heap_size_second"),
    (programs::HEAP_CALLOC, "told_heap_calloc"),
    (programs::HEAP_REALLOC, "told_heap_realloc"),
    (programs::HEAP_POSIX_MEMALIGN, "told_heap_posix_memalign"),
    (programs::HEAP_MMAP, "told_heap_mmap"),
    (programs::HEAP_MREMAP, "told_heap_mremap"),
    (programs::HEAP_FREE, "told_heap_free"),
    (programs::HEAP_MUNMAP, "told_heap_munmap"),
    (programs::HEAP_RETURN, "told_heap_return"),
];

/// Where a program is in [`PROGRAMS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "they are the programs of that name")]
pub enum Program {
    Sample,
    Memory,
    TaskFork,
    Watch,
    HeapSizeFirst,
    HeapSizeSecond,
    HeapCalloc,
    HeapRealloc,
    HeapPosixMemalign,
    HeapMmap,
    HeapMremap,
    HeapFree,
    HeapMunmap,
    HeapReturn,
}

const _: () = assert!(Program::HeapReturn as usize + 1 == PROGRAMS.len());

/// Why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The thread's group is no target.
    NoTarget,
    /// The record found no room in its ring.
    NoRoom,
    /// A sample was recorded without the thread pointer, which could not be read.
    NoThreadPointer,
    /// The sampled instruction touched no memory.
    NoMemory,
    /// A watched word was hit while no window was open.
    NoWindow,
    /// The watched word is not this process's.
    Foreign,
    /// The window had its hits before.
    LimitReached,
    /// The window had its time before.
    DeadlineReached,
    /// 32-bit code passes arguments elsewhere.
    Code32,
    /// A call inside of an allocating call, which stands for it.
    Nested,
    /// An earlier call of the thread never returned; this one took its place, and is noted.
    StaleCall,
    /// There was no room to note the call until it returns.
    NoRoomForCall,
    /// Fewer bytes than are recorded.
    Small,
    /// A return whose call was not noted.
    NoCall,
    /// A return from another depth of the stack than the noted call's.
    OtherReturn,
    /// The call gave no memory.
    Failed,
    /// What the kernel will refuse to unmap.
    Unmappable,
}

impl Reason {
    /// All, each at its own number.
    pub const ALL: [Reason; 17] = [
        Reason::NoTarget,
        Reason::NoRoom,
        Reason::NoThreadPointer,
        Reason::NoMemory,
        Reason::NoWindow,
        Reason::Foreign,
        Reason::LimitReached,
        Reason::DeadlineReached,
        Reason::Code32,
        Reason::Nested,
        Reason::StaleCall,
        Reason::NoRoomForCall,
        Reason::Small,
        Reason::NoCall,
        Reason::OtherReturn,
        Reason::Failed,
        Reason::Unmappable,
    ];

    /// For people, after the name of a program.
    pub const fn words(self) -> &'static str {
        match self {
            Reason::NoTarget => "not recorded: the process is no target",
            Reason::NoRoom => "lost: the record found no room in the ring",
            Reason::NoThreadPointer => "recorded, but the thread pointer could not be read",
            Reason::NoMemory => "not recorded: the sampled instruction touched no memory",
            Reason::NoWindow => "not recorded: no watch window was open",
            Reason::Foreign => "not recorded: the watched word is another process's",
            Reason::LimitReached => "not recorded: the window had had its hits",
            Reason::DeadlineReached => "not recorded: the window's time was over",
            Reason::Code32 => "not recorded: 32-bit code passes arguments elsewhere",
            Reason::Nested => {
                "not recorded: a call inside of an allocating call, which stands for it"
            }
            Reason::StaleCall => "recorded in the place of an earlier call that never returned",
            Reason::NoRoomForCall => "lost: no room to note the call until it returns",
            Reason::Small => "not recorded: fewer bytes than are to be recorded",
            Reason::NoCall => "not recorded: no call was noted that returns here",
            Reason::OtherReturn => "not recorded: the noted call is another",
            Reason::Failed => "not recorded: the call gave no memory",
            Reason::Unmappable => "not recorded: the kernel unmaps no such memory",
        }
    }

    /// For programs: it stays as it is.
    pub const fn name(self) -> &'static str {
        match self {
            Reason::NoTarget => "no_target",
            Reason::NoRoom => "no_room",
            Reason::NoThreadPointer => "no_thread_pointer",
            Reason::NoMemory => "no_memory",
            Reason::NoWindow => "no_window",
            Reason::Foreign => "foreign",
            Reason::LimitReached => "limit_reached",
            Reason::DeadlineReached => "deadline_reached",
            Reason::Code32 => "code32",
            Reason::Nested => "nested",
            Reason::StaleCall => "stale_call",
            Reason::NoRoomForCall => "no_room_for_call",
            Reason::Small => "small",
            Reason::NoCall => "no_call",
            Reason::OtherReturn => "other_return",
            Reason::Failed => "failed",
            Reason::Unmappable => "unmappable",
        }
    }
}
