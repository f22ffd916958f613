//! The scheduling priority of observing threads.
//!
//! Beside hundreds of busy threads a fair share of a CPU is less than a hundredth of it: too little to empty
//! rings and to close watch windows in time. The observer needs little, but needs it now.

use std::io;

use rustix::process::{getpriority_process, setpriority_process};

/// Most favourable of all (sched(7)): about 86 times the share of an ordinary thread.
const URGENT: i32 = -20;

/// The calling thread's priority is raised for as long as this lives. Threads and processes that the thread
/// starts meanwhile inherit it.
#[derive(Debug)]
pub struct Urgent {
    before: i32,
}

impl Urgent {
    /// Raises it (of the calling thread alone: what the calls name a process is one to the kernel); an error without CAP_SYS_NICE (or RLIMIT_NICE).
    pub fn raise() -> io::Result<Urgent> {
        let before = getpriority_process(None)?;
        setpriority_process(None, URGENT)?;
        Ok(Urgent { before })
    }
}

impl Drop for Urgent {
    fn drop(&mut self) {
        // To be less favourable is always allowed.
        let _ = setpriority_process(None, self.before);
    }
}

/// The calling thread runs before all ordinary threads of its CPU for as long as this lives.
#[derive(Debug)]
pub struct RealTime(());

impl RealTime {
    /// Of the lowest priority that is real-time (SCHED_FIFO, 1).
    ///
    /// # Errors
    /// Without CAP_SYS_NICE (or RLIMIT_RTPRIO).
    pub fn raise() -> io::Result<RealTime> {
        schedule(libc::SCHED_FIFO, 1)?;
        Ok(RealTime(()))
    }
}

impl Drop for RealTime {
    fn drop(&mut self) {
        // To be an ordinary thread again is always allowed.
        let _ = schedule(libc::SCHED_OTHER, 0);
    }
}

fn schedule(policy: libc::c_int, sched_priority: libc::c_int) -> io::Result<()> {
    let priority = libc::sched_param { sched_priority };
    // SAFETY: the parameter is live; 0 is the calling thread.
    if unsafe { libc::sched_setscheduler(0, policy, &raw const priority) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Puts the calling thread, which does little at a time, ahead of all ordinary threads, and away from signals, which are the main
/// thread's. Without the right it stays among them.
pub(super) fn ahead_of_ordinary_threads() {
    const FIRST_REAL_TIME_PRIORITY: libc::c_int = 1;
    let _ = schedule(libc::SCHED_FIFO, FIRST_REAL_TIME_PRIORITY);
    // SAFETY: all zero is a valid set; the call below fills it.
    let mut signals: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: the set is live.
    unsafe { libc::sigfillset(&raw mut signals) };
    // SAFETY: the set is live; the old one is not asked for.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const signals, std::ptr::null_mut()) };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own() -> i32 {
        getpriority_process(None).unwrap()
    }

    #[test]
    fn the_priority_is_raised_for_the_life_of_the_value() {
        let before = own();
        match Urgent::raise() {
            Ok(urgent) => {
                assert_eq!(own(), URGENT);
                drop(urgent);
                assert_eq!(own(), before);
            }
            Err(error) => {
                assert!(matches!(
                    error.raw_os_error(),
                    Some(libc::EACCES | libc::EPERM)
                ));
                assert_eq!(own(), before);
            }
        }
    }
}
