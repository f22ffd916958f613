//! A process by descriptor: unlike a pid, it cannot come to mean another process.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    time::Duration,
};

use rustix::{
    io::Errno,
    process::{PidfdFlags, pidfd_open, pidfd_send_signal},
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
        // A number that no process can have is refused as the kernel does.
        let number = i32::try_from(pid.0).map_err(|_| Errno::INVAL)?;
        let pid = rustix::process::Pid::from_raw(number).ok_or(Errno::INVAL)?;
        Ok(PidFd(pidfd_open(pid, PidfdFlags::empty())?))
    }

    /// The same process once more.
    pub fn try_clone(&self) -> io::Result<PidFd> {
        Ok(PidFd(self.0.try_clone()?))
    }

    /// Whether the process has ended; a zombie has.
    pub fn has_ended(&self) -> io::Result<bool> {
        Ok(wait_readable(&[self.0.as_fd()], Duration::ZERO)?[0])
    }

    /// Sends a signal. `ESRCH`: it has ended and was reaped; `EPERM`: it is another user's.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        let signal = match signal {
            Signal::Terminate => rustix::process::Signal::TERM,
            Signal::Continue => rustix::process::Signal::CONT,
            Signal::Kill => rustix::process::Signal::KILL,
        };
        Ok(pidfd_send_signal(&self.0, signal)?)
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
        for never in [0, u32::MAX] {
            let refused = PidFd::open(Pid(never)).unwrap_err();
            assert_eq!(refused.raw_os_error(), Some(libc::EINVAL));
        }
    }
}
