//! The program under observation, and its threads.

use std::{
    ffi::c_int,
    ops::Range,
    sync::{
        OnceLock,
        atomic::{
            AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize,
            Ordering::{Acquire, Relaxed, SeqCst},
            fence,
        },
    },
};

use crate::{
    api::Api,
    directory::{Directory, SLOTS},
    lane::{Detached, Kind, Tagged, World, Writer},
    layout::{LANES, Lane, MAGIC, PROCESSES, Shared, entry},
    log::LogWriter,
    process, program, shared_memory,
};

/// Who has which line.
static DIRECTORY: Directory = Directory([const { AtomicU64::new(0) }; SLOTS]);
/// The threads, by QEMU's number; null where nobody is observed.
static WRITERS: [AtomicPtr<Observed>; LANES] =
    [const { AtomicPtr::new(std::ptr::null_mut()) }; LANES];
/// QEMU's words for kinds of accesses, once asked: 0 is not asked yet.
static KINDS: [AtomicU8; 1 << 18] = [const { AtomicU8::new(0) }; 1 << 18];
const KIND_KNOWN: u8 = 0x80;
const KIND_STORE: u8 = 0x40;

/// A thread's writer and its lane.
struct Observed {
    writer: Writer,
    lane: &'static Lane,
}

/// Waits for the tool that make us look whether it lives.
const TURNS_PER_LOOK: u32 = 64;

/// What is the same for all threads.
pub(crate) struct Program {
    all: &'static [Shared; PROCESSES],
    /// Which of them is this process's.
    at: AtomicUsize,
    pub api: Api,
    pub log: LogWriter,
    pub tool: Tool,
    /// Code whose executions are counted.
    pub counted: Range<u64>,
    /// This process is not observed any more: there was no room for it, or the tool is gone.
    off: AtomicBool,
    /// Threads of this process so far.
    threads: AtomicU32,
    baseline: OnceLock<Vec<u8>>,
}

/// The tool's process, and its descriptors of the shared memory and of this plugin.
pub(crate) struct Tool {
    pub pid: c_int,
    pub memory: c_int,
    pub plugin: c_int,
}

impl Program {
    /// The first process of a program: `all` is the memory of all, and the first place the program's that the tool
    /// started.
    pub(crate) fn new(
        all: &'static [Shared; PROCESSES],
        api: Api,
        tool: Tool,
        counted: Range<u64>,
    ) -> Result<Program, String> {
        if all[0].header.magic.load(Acquire) != MAGIC {
            return Err("the tool is of another version".to_owned());
        }
        let Some(at) = claim(all) else {
            return Err(format!("more than {PROCESSES} processes"));
        };
        let program = Program {
            all,
            at: AtomicUsize::new(at),
            api,
            log: LogWriter::new(),
            tool,
            counted,
            off: AtomicBool::new(false),
            threads: AtomicU32::new(0),
            baseline: OnceLock::new(),
        };
        let maps = program.baseline.get_or_init(process::maps);
        program.tell(entry::BASELINE, [0; 3], maps);
        let header = &program.shared().header;
        header.installed.store(1, SeqCst);
        header.running.store(1, SeqCst);
        Ok(program)
    }

    /// This process's memory.
    pub(crate) fn shared(&self) -> &'static Shared {
        &self.all[self.at.load(Relaxed) % PROCESSES]
    }

    /// The calling thread is the only one of a process that was forked just now.
    pub(crate) fn became_child(&self, vcpu: u32, thread_pointer: u64) {
        let parents = self.shared();
        let Some(at) = claim(self.all) else {
            parents.header.children.fetch_add(1, Relaxed);
            return self.detach();
        };
        self.at.store(at, SeqCst);
        let shared = self.shared();
        // The code that was translated for the parent runs on here, with the numbers that it has.
        let described = parents.header.instructions.load(Acquire);
        for (to, from) in (shared.instructions.iter())
            .zip(&parents.instructions)
            .take(described as usize)
        {
            to.copy(from);
        }
        let header = &shared.header;
        header.instructions.store(described, SeqCst);
        header
            .guest_base
            .store(parents.header.guest_base.load(Relaxed), Relaxed);
        // Its own word for its parent may be another process by now, which took it over.
        header
            .parent
            .store(parents.header.pid.load(Relaxed), Relaxed);
        for flag in [&header.installed, &header.translated] {
            flag.store(1, SeqCst);
        }
        DIRECTORY.forget();
        for writer in &WRITERS {
            writer.store(std::ptr::null_mut(), SeqCst);
        }
        self.threads.store(0, Relaxed);
        self.new_thread(vcpu);
        self.tell(entry::BASELINE, [0; 3], self.baseline.get_or_init(Vec::new));
        self.tell_maps();
        if let Some((writer, _)) = writer(vcpu) {
            self.introduce(writer);
            let pointer = [writer.tid.into(), thread_pointer, 0];
            if thread_pointer != 0 {
                self.tell(entry::POINTER, pointer, &[]);
            }
        }
        header.running.store(1, SeqCst);
    }

    pub(crate) fn is_off(&self) -> bool {
        self.off.load(Relaxed)
    }

    /// Observes nothing any more in this process.
    pub(crate) fn detach(&self) {
        self.off.store(true, SeqCst);
        for writer in &WRITERS {
            // The threads may be in the middle of an access: their writers stay where they are.
            writer.store(std::ptr::null_mut(), SeqCst);
        }
    }

    /// Writes a log entry.
    pub(crate) fn tell(&self, kind: u32, numbers: [u64; 3], text: &[u8]) {
        if !self.is_off() {
            let log = &self.shared().log;
            (self.log).append(
                log,
                kind,
                numbers,
                text,
                || self.stamp(),
                |turn| self.wait(turn),
            );
        }
    }

    /// The mappings as they are now.
    pub(crate) fn tell_maps(&self) {
        self.tell(entry::MAPS, [0; 3], &process::maps());
    }

    /// A virtual CPU has a new thread, which makes no access yet.
    pub(crate) fn new_thread(&self, vcpu: u32) {
        let number = self.threads.fetch_add(1, Relaxed);
        let processor = self.all[0].header.threads.fetch_add(1, Relaxed);
        if let Some(place) = WRITERS.get(vcpu as usize)
            && !self.is_off()
        {
            let shared = self.shared();
            shared.header.lanes.fetch_max(vcpu + 1, SeqCst);
            // The last thread of this number has ended; nobody holds its writer, which lives on for the next one.
            let old = place.load(Relaxed);
            let new = Observed {
                writer: Writer::new(number, processor),
                lane: &shared.lanes[vcpu as usize],
            };
            if old.is_null() {
                place.store(Box::into_raw(Box::new(new)), SeqCst);
            } else {
                // SAFETY: made by `Box::into_raw`, never freed, and its thread is gone.
                unsafe { *old = new };
            }
        }
    }

    #[cold]
    fn ask_kind(&self, word: u32) -> Kind {
        // SAFETY: QEMU's own function on the word that it just gave us.
        let size_log2 = unsafe { (self.api.size_log2)(word) } & 0xf;
        // SAFETY: as above.
        let store = unsafe { (self.api.is_store)(word) };
        if let Some(kind) = KINDS.get(word as usize) {
            let store = if store { KIND_STORE } else { 0 };
            kind.store(KIND_KNOWN | store | size_log2 as u8, Relaxed);
        }
        Kind { size_log2, store }
    }

    /// An access that changes who has the line, or needs more than most. Again a function of its own.
    #[inline(never)]
    fn accessed_other(
        &self,
        writer: &mut Writer,
        lane: &Lane,
        address: u64,
        word: u32,
        instruction: Tagged,
    ) {
        if writer.tid == 0 {
            self.introduce(writer);
        }
        if let Err(Detached) = writer.access(&DIRECTORY, lane, self, address, word, instruction) {
            self.detach();
        }
    }

    /// An access that cannot be written.
    #[cold]
    pub(crate) fn accessed_unobserved(&self) {
        if !self.is_off() {
            self.shared().header.unseen.fetch_add(1, Relaxed);
        }
    }

    /// A described instruction of the counted code is executed.
    pub(crate) fn executed(&self, id: u32) {
        if let Some(instruction) = self.shared().instructions.get(id as usize) {
            instruction.executions.fetch_add(1, Relaxed);
        }
    }

    #[cold]
    fn introduce(&self, writer: &mut Writer) {
        writer.tid = process::tid();
        let numbers = [writer.tid, writer.processor, 0].map(u64::from);
        self.tell(entry::THREAD, numbers, &process::name(writer.tid));
    }
}

/// From here on each access to memory that other processes may have is a record.
pub(crate) fn share(start: u64, bytes: u64) {
    shared_memory::add(start, bytes);
    DIRECTORY.forget_lines(start, bytes);
}

/// A place for this process; the first is the program's that the tool started.
fn claim(all: &[Shared; PROCESSES]) -> Option<usize> {
    let pid = std::process::id();
    let free = |shared: &Shared| {
        let pid = shared.header.pid.compare_exchange(0, pid, SeqCst, Relaxed);
        pid.is_ok()
    };
    all.iter().position(free)
}

/// The program accessed memory.
#[inline(always)]
pub(crate) fn accessed(vcpu: u32, word: u32, address: u64, instruction: Tagged) {
    let Some(Observed { writer, lane }) = observed(vcpu) else {
        return program().accessed_unobserved();
    };
    // Repeats do without what is the same for all threads.
    if !writer.repeats(&DIRECTORY, lane, program, address, word, instruction) {
        accessed_silent(writer, lane, address, word, instruction);
    }
}

/// A function of its own, so that repeats save no registers for it.
#[inline(never)]
fn accessed_silent(writer: &mut Writer, lane: &Lane, address: u64, word: u32, instruction: Tagged) {
    let program = program();
    if !writer.silent(&DIRECTORY, lane, program, address, word, instruction) {
        program.accessed_other(writer, lane, address, word, instruction);
    }
}

/// The calling thread's writer and its lane, if it is observed.
pub(crate) fn writer(vcpu: u32) -> Option<(&'static mut Writer, &'static Lane)> {
    let Observed { writer, lane } = observed(vcpu)?;
    Some((writer, lane))
}

#[inline(always)]
fn observed(vcpu: u32) -> Option<&'static mut Observed> {
    let observed = WRITERS.get(vcpu as usize)?.load(Relaxed);
    // SAFETY: null, or made by `Box::into_raw`, never freed, and used by the thread of this virtual CPU alone, one
    // callback at a time.
    unsafe { observed.as_mut() }
}

impl World for Program {
    #[inline(always)]
    fn kind(&self, word: u32) -> Kind {
        let known = KINDS
            .get(word as usize)
            .map_or(0, |kind| kind.load(Relaxed));
        if known != 0 {
            return Kind {
                size_log2: u32::from(known & 0xf),
                store: known & KIND_STORE != 0,
            };
        }
        self.ask_kind(word)
    }

    #[inline(always)]
    fn stamp(&self) -> u64 {
        // SAFETY: every x86-64 has the counter, and user mode may read it on Linux.
        unsafe { std::arch::x86_64::_rdtsc() }
    }

    fn stamp_after(&self) -> u64 {
        fence(SeqCst);
        // SAFETY: every x86-64 has it.
        unsafe { std::arch::x86_64::_mm_lfence() };
        self.stamp()
    }

    fn wait(&self, turn: u32) -> bool {
        if self.is_over() {
            return false;
        }
        self.ring();
        process::pause(turn);
        turn % TURNS_PER_LOOK != TURNS_PER_LOOK - 1 || process::lives(self.tool.pid)
    }

    #[inline(always)]
    fn is_shared(&self, address: u64) -> bool {
        shared_memory::has(address)
    }

    fn is_over(&self) -> bool {
        self.all[0].header.stop.load(Relaxed) != 0 || self.is_off()
    }

    fn sealed(&self, waiting: u64) {
        if waiting >= crate::layout::CHUNKS as u64 / 2 {
            self.ring();
        }
    }
}

impl Program {
    /// Wakes the tool if it sleeps.
    fn ring(&self) {
        fence(SeqCst);
        let sleeping = &self.all[0].header.sleeping;
        if sleeping.load(Relaxed) != 0 && sleeping.swap(0, SeqCst) != 0 {
            process::wake(sleeping);
        }
    }
}
