//! A process by descriptor: unlike a pid, it cannot come to mean another process.

use std::{
    io,
    os::fd::{AsFd, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd},
    time::Duration,
};

use super::poll::wait_readable;
use crate::access::Pid;

/// What is sent to a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// SIGTERM: end in order.
    Terminate,
    /// SIGCONT: go on, where stopped.
    Continue,
    /// SIGKILL: end.
    Kill,
}

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

    /// Sends a signal. `ESRCH`: it has ended and was reaped; `EPERM`: it is another user's.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        const NO_FLAGS: libc::c_uint = 0;
        let number = match signal {
            Signal::Terminate => libc::SIGTERM,
            Signal::Continue => libc::SIGCONT,
            Signal::Kill => libc::SIGKILL,
        };
        let info: *const libc::siginfo_t = std::ptr::null();
        // SAFETY: the descriptor is open; without a siginfo the kernel makes that of kill(2).
        let result = unsafe {
            libc::syscall(
                libc::SYS_pidfd_send_signal,
                self.0.as_raw_fd(),
                number,
                info,
                NO_FLAGS,
            )
        };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
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
    fn a_process_that_waits_has_not_ended_and_one_that_got_sigterm_has() {
        let mut child = Command::new("cat")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let pidfd = PidFd::open(Pid(child.id())).unwrap();
        assert!(!pidfd.has_ended().unwrap());
        pidfd.signal(Signal::Terminate).unwrap();
        let ready = wait_readable(&[pidfd.as_fd()], Duration::from_secs(10)).unwrap();
        assert_eq!(ready, [true]);
        child.wait().unwrap();
        assert!(pidfd.has_ended().unwrap());
        let gone = PidFd::open(Pid(child.id())).unwrap_err();
        assert_eq!(gone.raw_os_error(), Some(libc::ESRCH));
        // Whoever has the pid by now, it is not him that the descriptor means.
        let nobody = pidfd.signal(Signal::Kill).unwrap_err();
        assert_eq!(nobody.raw_os_error(), Some(libc::ESRCH));
    }
}
