//! The values of a BPF array map, mapped: both halves store single words there, without system calls.

use std::{
    io,
    os::fd::{AsRawFd as _, BorrowedFd},
    ptr::{self, NonNull},
};

/// The mapped values; unmapped with the value.
#[derive(Debug)]
pub struct MapMemory {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping belongs to the value alone and is not tied to a thread.
unsafe impl Send for MapMemory {}
// SAFETY: the value itself only tells where the mapping is; access through it is its user's to order.
unsafe impl Sync for MapMemory {}

impl MapMemory {
    /// Maps the first `len` bytes of an array map made with `BPF_F_MMAPABLE`, to read and write.
    pub fn map(fd: BorrowedFd<'_>, len: usize) -> io::Result<MapMemory> {
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
        Ok(MapMemory { base, len })
    }

    /// Where the `bytes` bytes at an offset are, valid as long as the value; `None` outside of the mapping.
    pub fn at(&self, offset: usize, bytes: usize) -> Option<NonNull<u8>> {
        if offset.checked_add(bytes)? > self.len {
            return None;
        }
        // SAFETY: inside the mapping.
        Some(unsafe { self.base.add(offset) })
    }
}

impl Drop for MapMemory {
    fn drop(&mut self) {
        // SAFETY: the whole mapping, made in `map`; no reference into it outlives the value.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.len) };
    }
}
