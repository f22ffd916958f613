//! Where the observing thread runs.

use std::{io, mem};

use crate::access::Cpu;

/// The calling thread runs on one CPU for as long as this lives; then wherever it might before.
#[derive(Debug)]
pub struct OnCpu {
    before: libc::cpu_set_t,
}

impl OnCpu {
    /// Moves there at once; an error where the CPU is offline or not allowed.
    pub fn move_to(cpu: Cpu) -> io::Result<OnCpu> {
        // SAFETY: all zero is an empty set.
        let mut before: libc::cpu_set_t = unsafe { mem::zeroed() };
        let mut only = before;
        if cpu.0 as usize >= 8 * size_of::<libc::cpu_set_t>() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        // SAFETY: the CPU's bit is inside the set, as was just checked.
        unsafe { libc::CPU_SET(cpu.0 as usize, &mut only) };
        // SAFETY: the set is live and as long as said; 0 is the calling thread.
        let got = unsafe { libc::sched_getaffinity(0, size_of_val(&before), &raw mut before) };
        if got != 0 {
            return Err(io::Error::last_os_error());
        }
        set(&only)?;
        Ok(OnCpu { before })
    }
}

impl Drop for OnCpu {
    fn drop(&mut self) {
        // Where it may not go back, it stays.
        let _ = set(&self.before);
    }
}

fn set(cpus: &libc::cpu_set_t) -> io::Result<()> {
    // SAFETY: the set is live and as long as said; 0 is the calling thread.
    match unsafe { libc::sched_setaffinity(0, size_of_val(cpus), &raw const *cpus) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn here() -> u32 {
        // SAFETY: the call touches no memory.
        unsafe { libc::sched_getcpu() as u32 }
    }

    fn allowed() -> libc::cpu_set_t {
        // SAFETY: all zero is an empty set.
        let mut set: libc::cpu_set_t = unsafe { mem::zeroed() };
        // SAFETY: the set is live and as long as said.
        unsafe { libc::sched_getaffinity(0, size_of_val(&set), &raw mut set) };
        set
    }

    #[test]
    fn a_thread_runs_where_it_was_moved_and_afterwards_wherever_it_might() {
        let before = allowed();
        let cpus = (0..1024).filter(|cpu| {
            // SAFETY: below 1024 the bit is inside the set.
            unsafe { libc::CPU_ISSET(*cpu, &before) }
        });
        for cpu in cpus.take(4) {
            let on = OnCpu::move_to(Cpu(cpu as u32)).unwrap();
            assert_eq!(here(), cpu as u32);
            drop(on);
        }
        // SAFETY: both sets are live.
        assert!(unsafe { libc::CPU_EQUAL(&allowed(), &before) });
        assert!(OnCpu::move_to(Cpu(u32::MAX)).is_err());
    }
}
