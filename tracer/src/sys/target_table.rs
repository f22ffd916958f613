//! The kernel half's table of targets, mapped: one byte per pid, non-zero where sampled.
//!
//! Single bytes are stored, never chunks: the kernel half stores its own bytes at every fork, and a
//! chunk written back from here would undo them.

use std::{
    io,
    os::fd::{AsRawFd as _, BorrowedFd},
    ptr::{self, NonNull},
    sync::atomic::{AtomicU8, Ordering},
};

use crate::access::Pid;

/// The mapped table.
#[derive(Debug)]
pub struct TargetTable {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping belongs to the value alone and is not tied to a thread.
unsafe impl Send for TargetTable {}
// SAFETY: all access is by atomics.
unsafe impl Sync for TargetTable {}

impl TargetTable {
    /// Maps the first `len` bytes of an array map made with `BPF_F_MMAPABLE`.
    pub fn map(fd: BorrowedFd<'_>, len: usize) -> io::Result<TargetTable> {
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory of ours.
        let base = unsafe {
            libc::mmap(
                ptr::null_mut(),
                len,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                fd.as_raw_fd(),
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::AddrNotAvailable)?;
        Ok(TargetTable { base, len })
    }

    /// Says whether the process is a target; `false` when the table has no place for its pid.
    #[must_use]
    pub fn set(&self, pid: Pid, target: bool) -> bool {
        self.byte(pid)
            .map(|byte| byte.store(u8::from(target), Ordering::Relaxed))
            .is_some()
    }

    /// Whether the process is a target, by our word or by inheritance.
    pub fn get(&self, pid: Pid) -> bool {
        self.byte(pid)
            .is_some_and(|byte| byte.load(Ordering::Relaxed) != 0)
    }

    fn byte(&self, pid: Pid) -> Option<&AtomicU8> {
        let index = pid.0 as usize;
        if index >= self.len {
            return None;
        }
        // SAFETY: `index` is inside the mapping.
        let byte = unsafe { self.base.add(index) };
        // SAFETY: mapped as long as `self`; the kernel half too stores whole bytes only.
        Some(unsafe { AtomicU8::from_ptr(byte.as_ptr()) })
    }
}

impl Drop for TargetTable {
    fn drop(&mut self) {
        // SAFETY: the whole mapping, made in `map`; no reference into it outlives the value.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.len) };
    }
}
