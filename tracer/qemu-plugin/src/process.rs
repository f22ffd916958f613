//! The process around: shared memory, waiting, names. Declared by hand, since the crate has no dependencies.

use std::ffi::{c_int, c_long, c_void};

use crate::layout::{PROCESSES, Shared};

unsafe extern "C" {
    fn mmap(
        at: *mut c_void,
        len: usize,
        protection: c_int,
        flags: c_int,
        fd: c_int,
        offset: i64,
    ) -> *mut c_void;
    fn close(fd: c_int) -> c_int;
    fn usleep(microseconds: u32) -> c_int;
    fn sched_yield() -> c_int;
    fn syscall(number: c_long, ...) -> c_long;
}

const PROT_READ_WRITE: c_int = 3;
const MAP_SHARED: c_int = 1;
const MAP_NORESERVE: c_int = 0x4000;
const SYS_GETTID: c_long = 186;
const SYS_FUTEX: c_long = 202;
const FUTEX_WAKE: c_int = 1;

/// Maps the tool's memory. It stays for the life of the process, and of those that it forks.
pub(crate) fn map(fd: c_int) -> Option<&'static [Shared; PROCESSES]> {
    let protection = PROT_READ_WRITE;
    let flags = MAP_SHARED | MAP_NORESERVE;
    // SAFETY: a new mapping, wherever there is room; nothing of ours is replaced.
    let at = unsafe {
        mmap(
            std::ptr::null_mut(),
            size_of::<[Shared; PROCESSES]>(),
            protection,
            flags,
            fd,
            0,
        )
    };
    if at.addr() == usize::MAX {
        return None;
    }
    // SAFETY: page-aligned, as long as the type, never unmapped, and any bytes are valid: the type is all atomics.
    Some(unsafe { &*at.cast::<[Shared; PROCESSES]>() })
}

/// Maps the memory that is the tool's descriptor of that number.
pub(crate) fn map_of(tool: c_int, fd: c_int) -> Option<&'static [Shared; PROCESSES]> {
    let path = format!("/proc/{tool}/fd/{fd}");
    let file = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(path)
        .ok()?;
    map(std::os::fd::AsRawFd::as_raw_fd(&file))
}

/// Closes a descriptor, so that the program finds its own numbers free.
pub(crate) fn close_fd(fd: c_int) {
    // SAFETY: the tool gave us the descriptor, and nobody else in this process knows it.
    unsafe { close(fd) };
}

/// Whether a process is there and has not ended.
pub(crate) fn lives(pid: c_int) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // Behind the name, which may have parentheses itself, comes the state.
    let state = stat.rsplit(')').next().unwrap_or_default().trim_start();
    !stat.is_empty() && !state.starts_with(['Z', 'X'])
}

/// The calling thread.
pub(crate) fn tid() -> u32 {
    // SAFETY: gettid takes no arguments.
    unsafe { syscall(SYS_GETTID) as u32 }
}

/// Wakes the tool, which sleeps on `word`.
pub(crate) fn wake(word: &std::sync::atomic::AtomicU32) {
    // SAFETY: the word lives as long as the mapping; waking reads and writes no memory of ours.
    unsafe { syscall(SYS_FUTEX, std::ptr::from_ref(word), FUTEX_WAKE, 1) };
}

/// Lets others run: shortly at first, then longer.
pub(crate) fn pause(turn: u32) {
    if turn < 20 {
        // SAFETY: no preconditions.
        unsafe { sched_yield() };
    } else {
        // SAFETY: no preconditions.
        unsafe { usleep(100) };
    }
}

/// Name of the calling thread.
pub(crate) fn name(tid: u32) -> Vec<u8> {
    let mut name = std::fs::read(format!("/proc/self/task/{tid}/comm")).unwrap_or_default();
    if name.last() == Some(&b'\n') {
        name.pop();
    }
    name
}

/// What is mapped now.
pub(crate) fn maps() -> Vec<u8> {
    std::fs::read("/proc/self/maps").unwrap_or_default()
}

/// Bytes from `start` to the end of the mapping that begins there.
pub(crate) fn mapped_bytes(start: u64) -> u64 {
    let maps = maps();
    let text = String::from_utf8_lossy(&maps);
    let begins = format!("{start:x}-");
    let line = text.lines().find_map(|line| line.strip_prefix(&begins));
    let end = line.and_then(|rest| rest.split(' ').next());
    let end = end.and_then(|end| u64::from_str_radix(end, 16).ok());
    end.map_or(1, |end| end.saturating_sub(start))
}
