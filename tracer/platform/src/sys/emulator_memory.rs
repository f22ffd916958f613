//! Files without names that the emulator inherits: the memory that our plugin shares with us, and the plugin itself.
//! They end with the last process that has them, however it ends.

use std::{
    fs::File,
    io::{self, Write as _},
    ops::Deref,
    os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd},
    ptr::NonNull,
    sync::atomic::AtomicU32,
    time::Duration,
};

use super::emulator_layout::{PROCESSES, Shared};

/// The shared memory, mapped.
#[derive(Debug)]
pub struct EmulatorMemory {
    fd: OwnedFd,
    all: NonNull<[Shared; PROCESSES]>,
}

/// Bytes of all processes' memory.
const ALL_BYTES: usize = size_of::<[Shared; PROCESSES]>();

// SAFETY: the memory is all atomics, and stays mapped as long as this value.
unsafe impl Send for EmulatorMemory {}
// SAFETY: as above.
unsafe impl Sync for EmulatorMemory {}

impl EmulatorMemory {
    /// All zeroes; pages are taken as they are written.
    pub fn new() -> io::Result<EmulatorMemory> {
        let fd = memory_file(c"cohtrace-accesses")?;
        let len = ALL_BYTES;
        // SAFETY: the descriptor is ours; no memory is passed.
        if unsafe { libc::ftruncate(fd.as_raw_fd(), len as i64) } != 0 {
            return Err(io::Error::last_os_error());
        }
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_SHARED | libc::MAP_NORESERVE;
        let anywhere = std::ptr::null_mut();
        // SAFETY: a new mapping of our file wherever there is room; nothing is replaced.
        let at = unsafe { libc::mmap(anywhere, len, protection, flags, fd.as_raw_fd(), 0) };
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let all = NonNull::new(at.cast()).ok_or_else(io::Error::last_os_error)?;
        Ok(EmulatorMemory { fd, all })
    }

    /// Makes the memory of a process that is gone all zeroes again, and gives its pages back.
    pub fn clear(&self, process: usize) -> io::Result<()> {
        let bytes = size_of::<Shared>();
        if process >= PROCESSES {
            return Ok(());
        }
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        let start = (process * bytes) as i64;
        // SAFETY: the descriptor is ours; the memory is all atomics, for which zeroes are valid.
        if unsafe { libc::fallocate(self.fd(), mode, start, bytes as i64) } != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }

    /// The number under which a child inherits it.
    pub fn fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

impl Deref for EmulatorMemory {
    type Target = [Shared; PROCESSES];

    fn deref(&self) -> &[Shared; PROCESSES] {
        // SAFETY: page-aligned, as long as the type, and mapped; any bytes are valid, for the type is all atomics.
        unsafe { self.all.as_ref() }
    }
}

impl Drop for EmulatorMemory {
    fn drop(&mut self) {
        // SAFETY: our own mapping of exactly this length, and no reference outlives `self`.
        unsafe { libc::munmap(self.all.as_ptr().cast(), ALL_BYTES) };
    }
}

/// A file with these bytes, which a child inherits.
pub fn inherited_file(bytes: &[u8]) -> io::Result<OwnedFd> {
    let mut file = File::from(memory_file(c"cohtrace-plugin")?);
    file.write_all(bytes)?;
    Ok(file.into())
}

/// Stays open in children, unlike all other descriptors of ours.
fn memory_file(name: &std::ffi::CStr) -> io::Result<OwnedFd> {
    // SAFETY: the name ends with a zero byte.
    let fd = unsafe { libc::memfd_create(name.as_ptr(), 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: just made, and nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Sleeps while `word` is `value`, until somebody wakes us or the time is over.
pub fn sleep_on(word: &AtomicU32, value: u32, most: Duration) {
    let most = libc::timespec {
        tv_sec: most.as_secs() as i64,
        tv_nsec: i64::from(most.subsec_nanos()),
    };
    // SAFETY: the word and the time are live during the call; the kernel writes neither.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT,
            value,
            &raw const most,
        )
    };
}

/// The CPU's time stamp counter, after everything that this thread read before and before all that it reads later.
pub fn time_stamp() -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: every x86-64 has both instructions, and user mode may read the counter on Linux.
        unsafe { std::arch::x86_64::_mm_lfence() };
        // SAFETY: as above.
        let stamp = unsafe { std::arch::x86_64::_rdtsc() };
        // SAFETY: as above.
        unsafe { std::arch::x86_64::_mm_lfence() };
        stamp
    }
    #[cfg(not(target_arch = "x86_64"))]
    super::clock::monotonic_ns()
}
