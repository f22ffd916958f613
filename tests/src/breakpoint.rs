//! Hardware breakpoints as anybody may have them: how many are free, and a debugger that holds some.

use std::{
    fs::{self, File},
    io::{self, Read},
    os::fd::FromRawFd,
    sync::atomic::AtomicU64,
};

use anyhow::{Context, bail};

/// include/uapi/linux/perf_event.h.
const PERF_TYPE_BREAKPOINT: u64 = 5;
const PERF_ATTR_SIZE_VER1: u64 = 72;
const PERF_FLAG_FD_CLOEXEC: libc::c_ulong = 8;
/// Bits of the attribute's flags.
const DISABLED: u64 = 1;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HV: u64 = 1 << 6;

/// More than any machine has for data: an upper bound for a loop that ends when they are used up.
const MOST: usize = 64;

/// What triggers a breakpoint; include/uapi/linux/hw_breakpoint.h.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// Stores only.
    Write = 2,
    /// Loads and stores.
    ReadWrite = 3,
}

/// A breakpoint that counts; gone when dropped.
#[derive(Debug)]
pub struct Breakpoint(File);

impl Breakpoint {
    /// Counts a thread's accesses in user mode to the 8 bytes at its address, from now on and wherever it runs, as a
    /// debugger's breakpoint would.
    pub fn of_thread(tid: u32, addr: u64, trigger: Trigger) -> io::Result<Breakpoint> {
        open(tid as libc::pid_t, -1, addr, trigger, 0)
    }

    /// Accesses so far.
    pub fn count(&mut self) -> io::Result<u64> {
        let mut count = [0; 8];
        self.0.read_exact(&mut count)?;
        Ok(u64::from_ne_bytes(count))
    }
}

/// Breakpoints of whole CPUs that are free now, on the CPU that has the fewest.
///
/// Takes them for a moment to know, without arming any.
pub fn free() -> anyhow::Result<usize> {
    static NOWHERE: AtomicU64 = AtomicU64::new(0);
    let addr = (&raw const NOWHERE).addr() as u64;
    let mut fewest = MOST;
    for cpu in online()? {
        let mut taken = Vec::new();
        while taken.len() < fewest {
            match open(-1, cpu, addr, Trigger::ReadWrite, DISABLED) {
                Ok(breakpoint) => taken.push(breakpoint),
                Err(error) if error.raw_os_error() == Some(libc::ENOSPC) => break,
                // The machine has none at all.
                Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => return Ok(0),
                Err(error) => bail!("opening a breakpoint on CPU {cpu}: {error}"),
            }
        }
        fewest = taken.len();
    }
    Ok(fewest)
}

fn open(
    pid: libc::pid_t,
    cpu: libc::c_int,
    addr: u64,
    trigger: Trigger,
    flags: u64,
) -> io::Result<Breakpoint> {
    // struct perf_event_attr up to bp_len: type and size, config, sample_period, sample_type, read_format, flags,
    // wakeup_events and bp_type, bp_addr, bp_len.
    let attr: [u64; 9] = [
        PERF_TYPE_BREAKPOINT | PERF_ATTR_SIZE_VER1 << 32,
        0,
        0,
        0,
        0,
        flags | EXCLUDE_KERNEL | EXCLUDE_HV,
        (trigger as u64) << 32,
        addr,
        8,
    ];
    // SAFETY: the kernel reads the `size` bytes that the attribute says it has, which are all of `attr`, and keeps
    // no pointer to it.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            attr.as_ptr(),
            pid,
            cpu,
            -1,
            PERF_FLAG_FD_CLOEXEC,
        )
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just given us this descriptor, and nobody else knows it.
    Ok(Breakpoint(unsafe { File::from_raw_fd(fd as libc::c_int) }))
}

/// Numbers of the CPUs that run: `0-3,8`.
fn online() -> anyhow::Result<Vec<libc::c_int>> {
    let list = fs::read_to_string("/sys/devices/system/cpu/online").context("listing the CPUs")?;
    cpus_in(&list).with_context(|| format!("the kernel lists the CPUs {list:?}"))
}

fn cpus_in(list: &str) -> Option<Vec<libc::c_int>> {
    let mut cpus = Vec::new();
    for range in list.trim().split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (libc::c_int, libc::c_int) = (first.parse().ok()?, last.parse().ok()?);
        cpus.extend(first..=last);
    }
    Some(cpus)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;
    use crate::kernel;

    #[test]
    fn lists_of_cpus_are_read() {
        assert_eq!(cpus_in("0-2,5\n"), Some(vec![0, 1, 2, 5]));
        assert_eq!(cpus_in("0\n"), Some(vec![0]));
        assert_eq!(cpus_in("none"), None);
    }

    #[test]
    fn a_breakpoint_counts_each_access_and_takes_one_of_those_that_are_free() {
        static WATCHED: AtomicU64 = AtomicU64::new(0);
        if !kernel::is_root() || !matches!(free(), Ok(1..)) {
            return crate::live::skipped("no hardware breakpoints to be had");
        }
        // SAFETY: gettid has no arguments and cannot fail.
        let tid = unsafe { libc::gettid() } as u32;
        let addr = (&raw const WATCHED).addr() as u64;
        let mut stores = Breakpoint::of_thread(tid, addr, Trigger::Write).unwrap();
        let with_one_less = free().unwrap();
        for n in 0..10 {
            WATCHED.store(n, Ordering::Relaxed);
            std::hint::black_box(WATCHED.load(Ordering::Relaxed));
        }
        assert_eq!(stores.count().unwrap(), 10);
        drop(stores);
        assert_eq!(free().unwrap(), with_one_less + 1);
    }
}
