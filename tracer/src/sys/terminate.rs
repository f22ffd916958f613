//! Asks a process to end.

use std::io;

use crate::access::Pid;

/// Sends SIGTERM. The caller must not have waited for the process yet, so that the pid is still its own.
pub fn terminate(pid: Pid) -> io::Result<()> {
    // SAFETY: kill has no memory effects on us; the pid is a child that was not reaped.
    if unsafe { libc::kill(pid.0 as libc::pid_t, libc::SIGTERM) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
