//! Orphans of processes that we started: made our children, so that they can be found, ended and reaped.

use std::io;

use crate::access::Pid;

/// What `waitid` says of our children.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Children {
    /// There is none, alive or dead.
    None,
    /// None has ended.
    Alive,
    /// This one has ended and waits to be reaped.
    Ended(Pid),
}

/// Makes this process the parent of all orphans below it, in init's place, until it ends (`PR_SET_CHILD_SUBREAPER`,
/// Linux 3.4). An orphan then sees another parent than 1, as it does below systemd's user instances and containers'
/// shims.
pub fn adopt() -> io::Result<()> {
    // SAFETY: the option takes plain numbers.
    if unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Looks at our children, adopted ones among them, and reaps none.
pub fn children() -> Children {
    match wait(libc::P_ALL, 0, libc::WNOWAIT) {
        Ok(0) => Children::Alive,
        Ok(pid) => Children::Ended(Pid(pid)),
        // The only other error of such a call is EINVAL, for flags that it does not know.
        Err(_) => Children::None,
    }
}

/// Reaps a child that has ended; false where there was none. Its pid is free afterwards.
pub fn reap(child: Pid) -> bool {
    wait(libc::P_PID, child.0, 0).is_ok_and(|pid| pid == child.0)
}

/// The pid of a child that has ended, 0 when none has.
fn wait(which: libc::idtype_t, id: u32, flags: libc::c_int) -> io::Result<u32> {
    // SAFETY: a siginfo is plain numbers and unions of such; all zero is what waitid leaves when nobody has ended.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    let flags = libc::WEXITED | libc::WNOHANG | flags;
    // SAFETY: `info` is a writable siginfo for the time of the call; the rest are plain numbers.
    if unsafe { libc::waitid(which, id, &raw mut info, flags) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: waitid wrote the fields of SIGCHLD, or left the zeroes of above.
    Ok(unsafe { info.si_pid() } as u32)
}
