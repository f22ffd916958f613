//! The kernel half's table of targets, mapped: one byte per pid, non-zero where sampled.
//!
//! Single bytes are stored, never chunks: the kernel half stores its own bytes at every fork, and a
//! chunk written back from here would undo them.

use std::{
    io,
    os::fd::BorrowedFd,
    sync::atomic::{AtomicU8, Ordering},
};

use super::map_memory::MapMemory;
use crate::access::Pid;

/// The mapped table.
#[derive(Debug)]
pub struct TargetTable(MapMemory);

impl TargetTable {
    /// Maps the first `len` bytes of an array map made with `BPF_F_MMAPABLE`.
    pub fn map(fd: BorrowedFd<'_>, len: usize) -> io::Result<TargetTable> {
        MapMemory::map(fd, len).map(TargetTable)
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
        let byte = self.0.at(pid.0 as usize, 1)?;
        // SAFETY: mapped as long as `self`; the kernel half too stores whole bytes only.
        Some(unsafe { AtomicU8::from_ptr(byte.as_ptr()) })
    }
}
