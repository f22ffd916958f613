//! The scheduling priority of the observing thread.
//!
//! Beside hundreds of busy threads a fair share of a CPU is less than a hundredth of it: too little to empty
//! rings and to close watch windows in time. The observer needs little, but needs it now.

use std::io;

/// Most favourable of all (sched(7)): about 86 times the share of an ordinary thread.
const URGENT: libc::c_int = -20;

/// The calling thread's priority is raised for as long as this lives. Threads and processes that the thread
/// starts meanwhile inherit it.
#[derive(Debug)]
pub struct Urgent {
    before: libc::c_int,
}

impl Urgent {
    /// Raises it; an error without CAP_SYS_NICE (or RLIMIT_NICE).
    pub fn raise() -> io::Result<Urgent> {
        // SAFETY: the call reads no memory. An error looks like a priority of -1, which is taken for one.
        let before = unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) };
        set(URGENT)?;
        Ok(Urgent { before })
    }
}

impl Drop for Urgent {
    fn drop(&mut self) {
        // To be less favourable is always allowed.
        let _ = set(self.before);
    }
}

fn set(priority: libc::c_int) -> io::Result<()> {
    // SAFETY: the call reads no memory; 0 is the calling thread.
    match unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, priority) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own() -> libc::c_int {
        // SAFETY: the call reads no memory.
        unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) }
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
