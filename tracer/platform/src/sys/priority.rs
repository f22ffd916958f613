//! The scheduling priority of the observing thread.
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
