//! A process by descriptor: unlike a pid, it cannot come to mean another process.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd, FromRawFd as _, OwnedFd, RawFd},
    time::Duration,
};

use super::poll::wait_readable;
use crate::access::Pid;

/// An open process; readable ([`wait_readable`]) once all its threads have ended.
#[derive(Debug)]
pub struct PidFd(OwnedFd);

impl PidFd {
    /// Opens a process. `ESRCH`: there is none of that pid in our pid namespace.
    pub fn open(pid: Pid) -> io::Result<PidFd> {
        const NO_FLAGS: libc::c_uint = 0;
        // SAFETY: the call takes plain numbers.
        let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid.0 as libc::pid_t, NO_FLAGS) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just returned this descriptor, and nobody else owns it.
        Ok(PidFd(unsafe { OwnedFd::from_raw_fd(fd as RawFd) }))
    }

    /// Whether the process has ended; a zombie has.
    pub fn has_ended(&self) -> io::Result<bool> {
        Ok(wait_readable(&[self.0.as_fd()], Duration::ZERO)?[0])
    }
}

impl AsFd for PidFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_process_that_waits_has_not_ended_and_one_that_was_killed_has() {
        let mut child = Command::new("cat")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let pidfd = PidFd::open(Pid(child.id())).unwrap();
        assert!(!pidfd.has_ended().unwrap());
        child.kill().unwrap();
        let ready = wait_readable(&[pidfd.as_fd()], Duration::from_secs(10)).unwrap();
        assert_eq!(ready, [true]);
        child.wait().unwrap();
        assert!(pidfd.has_ended().unwrap());
        let gone = PidFd::open(Pid(child.id())).unwrap_err();
        assert_eq!(gone.raw_os_error(), Some(libc::ESRCH));
    }
}
