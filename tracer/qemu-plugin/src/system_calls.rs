//! What system calls say: threads that come and go, mappings that change, processes that are not observed.

use std::{
    cell::{Cell, RefCell},
    sync::{Mutex, PoisonError, RwLock, RwLockWriteGuard, atomic::Ordering::Relaxed},
};

use crate::{
    api::{Api, Id},
    layout::entry,
    process, program,
    program::Program,
    programs, shared_memory,
};

// Numbers of x86-64 (arch/x86/entry/syscalls/syscall_64.tbl).
const MMAP: i64 = 9;
const MUNMAP: i64 = 11;
const BRK: i64 = 12;
const MREMAP: i64 = 25;
const SHMAT: i64 = 30;
const CLONE: i64 = 56;
const FORK: i64 = 57;
const VFORK: i64 = 58;
const EXECVE: i64 = 59;
const EXIT: i64 = 60;
const SHMDT: i64 = 67;
const PRCTL: i64 = 157;
const ARCH_PRCTL: i64 = 158;
const EXECVEAT: i64 = 322;

const MAP_SHARED: u64 = 1;
const MAP_ANONYMOUS: u64 = 0x20;
const CLONE_VM: u64 = 0x0000_0100;
const CLONE_VFORK: u64 = 0x0000_4000;
const CLONE_THREAD: u64 = 0x0001_0000;
const CLONE_SETTLS: u64 = 0x0008_0000;
const PR_SET_NAME: u64 = 15;
const ARCH_SET_FS: u64 = 0x1002;

thread_local! {
    /// Arguments of the call that the thread is in.
    static ARGUMENTS: Cell<[u64; 6]> = const { Cell::new([0; 6]) };
    /// The thread's pointer to its local storage, if it was told.
    static POINTER: Cell<u64> = const { Cell::new(0) };
    /// While the thread forks.
    static FORKING: RefCell<Option<RwLockWriteGuard<'static, ()>>> = const { RefCell::new(None) };
}

/// Who forks has it alone, and all others are outside of what is here: a child finds no lock taken by a thread that it does
/// not have.
static GATE: RwLock<()> = RwLock::new(());

/// Ranges that the program mapped with a file or to share, as long as it has not unmapped them.
static NOTED: Mutex<Vec<(u64, u64)>> = Mutex::new(Vec::new());

/// Registers both ends of each call.
pub(crate) fn register(id: Id, api: Api) {
    // SAFETY: QEMU's own function; the callback is of the type it asks for and lives as long as the process.
    unsafe { (api.on_syscall)(id, begins) };
    // SAFETY: as above.
    unsafe { (api.on_syscall_return)(id, returns) };
}

extern "C" fn begins(
    _id: Id,
    vcpu: u32,
    number: i64,
    a1: u64,
    a2: u64,
    a3: u64,
    a4: u64,
    a5: u64,
    a6: u64,
    _a7: u64,
    _a8: u64,
) {
    let program = program();
    if program.is_off() {
        return;
    }
    let mut tid = 0;
    if let Some((writer, lane)) = crate::program::writer(vcpu) {
        // Calls may take long, and others shall not wait for what this thread has written.
        writer.seal(lane, program);
        tid = writer.tid;
    }
    ARGUMENTS.set([a1, a2, a3, a4, a5, a6]);
    if forks(number, a1) {
        share_anonymous();
        let alone = GATE.write().unwrap_or_else(PoisonError::into_inner);
        FORKING.set(Some(alone));
        return;
    }
    let _inside = GATE.read().unwrap_or_else(PoisonError::into_inner);
    match number {
        EXIT if tid != 0 => {
            program.tell(entry::EXIT, [u64::from(tid), 0, 0], &process::name(tid));
        }
        EXECVE | EXECVEAT => {
            if number == EXECVE {
                programs::follow(&program.tool, a1, a2, a3);
            }
            program.shared().header.execs.fetch_add(1, Relaxed);
        }
        ARCH_PRCTL if a1 == ARCH_SET_FS => {
            POINTER.set(a2);
            program.tell(entry::POINTER, [u64::from(process::tid()), a2, 0], &[]);
        }
        _ => {}
    }
}

extern "C" fn returns(_id: Id, vcpu: u32, number: i64, result: i64) {
    let program = program();
    if let Some(alone) = FORKING.take() {
        drop(alone);
        if result == 0 && !program.is_off() {
            program.became_child(vcpu, POINTER.get());
        }
        return;
    }
    if program.is_off() {
        return;
    }
    let _inside = GATE.read().unwrap_or_else(PoisonError::into_inner);
    let arguments = ARGUMENTS.get();
    match number {
        CLONE => new_thread(program, arguments, result),
        EXECVE | EXECVEAT => {
            // It only returns when it failed.
            program.shared().header.execs.fetch_sub(1, Relaxed);
        }
        BRK => program.tell(entry::BREAK, [result as u64, 0, 0], &[]),
        PRCTL if arguments[0] == PR_SET_NAME => {
            let tid = process::tid();
            program.tell(entry::NAME, [u64::from(tid), 0, 0], &process::name(tid));
        }
        _ if is_error(result) => {}
        MMAP => mapped(program, result as u64, arguments),
        MREMAP if covers_noted(arguments[0], arguments[1]) => {
            note(result as u64, arguments[2]);
            program.tell_maps();
            let shared = shared_memory::has(arguments[0]);
            let anonymous = with(&ANONYMOUS, |anonymous| {
                anonymous.iter().any(overlap(arguments[0], arguments[1]))
            });
            if shared || anonymous {
                unshare(arguments[0], arguments[1]);
                share(result as u64, arguments[2], !shared);
            }
        }
        SHMAT => {
            let bytes = process::mapped_bytes(result as u64);
            note(result as u64, bytes);
            share(result as u64, bytes, false);
            program.tell_maps();
        }
        MUNMAP => {
            unshare(arguments[0], arguments[1]);
            forget(arguments[0], arguments[1]);
        }
        SHMDT => {
            let start = arguments[0];
            let end = noted_end(start);
            unshare(start, end.saturating_sub(start));
            forget(start, 1);
        }
        _ => {}
    }
}

fn is_error(result: i64) -> bool {
    (-4095..0).contains(&result)
}

/// Whether a call makes a process. (QEMU makes one where a thread shares less than all, too; it has no `clone3`.)
fn forks(number: i64, flags: u64) -> bool {
    match number {
        FORK | VFORK => true,
        CLONE => flags & CLONE_VM == 0 || flags & CLONE_VFORK != 0,
        _ => false,
    }
}

fn new_thread(program: &Program, arguments: [u64; 6], result: i64) {
    let [flags, _, _, _, pointer, _] = arguments;
    if result > 0 && flags & CLONE_THREAD != 0 && flags & CLONE_SETTLS != 0 {
        program.tell(entry::POINTER, [result as u64, pointer, 0], &[]);
    }
}

/// What has no file and is not private is shared as soon as there is a child.
static ANONYMOUS: Mutex<Vec<(u64, u64)>> = Mutex::new(Vec::new());

fn share_anonymous() {
    for (start, end) in with(&ANONYMOUS, std::mem::take) {
        crate::program::share(start, end - start);
    }
}

/// Memory that other processes have, or `anonymous`, which only children will.
fn share(start: u64, len: u64, anonymous: bool) {
    if anonymous {
        with(&ANONYMOUS, |anonymous| {
            anonymous.push((start, start.saturating_add(len)));
        });
    } else {
        crate::program::share(start, len);
    }
}

/// Anonymous private memory has no name, so only its place over something else is worth telling.
fn mapped(program: &Program, start: u64, [_, len, _, flags, _, _]: [u64; 6]) {
    let (shared, anonymous) = (flags & MAP_SHARED != 0, flags & MAP_ANONYMOUS != 0);
    // What was there is gone, whatever it was.
    unshare(start, len);
    if shared {
        share(start, len, anonymous);
    }
    if shared || !anonymous {
        note(start, len);
        program.tell_maps();
    } else if was_noted(start, len) {
        program.tell_maps();
    }
}

/// What was unmapped since the last look at the mappings: what comes there next is something else.
static GONE: Mutex<Vec<(u64, u64)>> = Mutex::new(Vec::new());

fn with<T>(list: &Mutex<Vec<(u64, u64)>>, take: impl FnOnce(&mut Vec<(u64, u64)>) -> T) -> T {
    take(&mut list.lock().unwrap_or_else(PoisonError::into_inner))
}

fn overlap(start: u64, len: u64) -> impl Fn(&(u64, u64)) -> bool {
    let end = start.saturating_add(len);
    move |range| range.0 < end && start < range.1
}

/// Memory that is mapped no more.
fn unshare(start: u64, len: u64) {
    shared_memory::remove(start, len);
    with(&ANONYMOUS, |anonymous| {
        let end = start.saturating_add(len);
        anonymous.retain(|range| range.0 < start || end < range.1);
    });
}

fn note(start: u64, len: u64) {
    with(&NOTED, |noted| {
        noted.push((start, start.saturating_add(len)));
    });
}

/// Where a range ends that begins here; its beginning, if there is none.
fn noted_end(start: u64) -> u64 {
    with(&NOTED, |noted| {
        let range = noted.iter().find(|range| range.0 == start);
        range.map_or(start, |range| range.1)
    })
}

fn covers_noted(start: u64, len: u64) -> bool {
    with(&NOTED, |noted| noted.iter().any(overlap(start, len)))
}

fn forget(start: u64, len: u64) {
    let hit = with(&NOTED, |noted| {
        let before = noted.len();
        noted.retain(|range| !overlap(start, len)(range));
        before != noted.len()
    });
    if hit {
        with(&GONE, |gone| {
            gone.push((start, start.saturating_add(len)));
        });
    }
}

/// Whether a new anonymous mapping is where something with a name is or was.
fn was_noted(start: u64, len: u64) -> bool {
    let gone = with(&GONE, |gone| {
        let before = gone.len();
        gone.retain(|range| !overlap(start, len)(range));
        before != gone.len()
    });
    covers_noted(start, len) || gone
}
