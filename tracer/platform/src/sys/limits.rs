//! Limits that this process raises for itself, or survives; programs that it starts get back what it was given.

use std::{io, os::unix::process::CommandExt as _, process::Command, ptr, sync::OnceLock};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::capabilities;

/// Descriptors that we were allowed when we were started.
static GIVEN: OnceLock<Rlimit> = OnceLock::new();

/// Allows this process as many descriptors as it may allow itself: an event takes one on each CPU, a probe in each
/// process. Where it may not, it stays as it was.
pub fn raise_descriptors() {
    let given = GIVEN.get_or_init(|| getrlimit(Resource::Nofile));
    let raised = Rlimit {
        current: given.maximum,
        maximum: given.maximum,
    };
    let _ = setrlimit(Resource::Nofile, raised);
}

/// Descriptors that this process may have open at once; `None` without a limit.
pub fn descriptors() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}

/// Largest file that this process may write, bytes; `None` without a limit.
pub fn file_bytes() -> Option<u64> {
    getrlimit(Resource::Fsize).current
}

/// Makes a write beyond the largest file an error (EFBIG), and no longer a signal that ends the process. What is started
/// later has the signal as it is by default; where it was ignored already, it stays so.
pub fn survive_large_files() -> io::Result<()> {
    extern "C" fn nothing(_signal: libc::c_int) {}

    // SAFETY: all zero is a valid action: no flags, an empty mask, the default handler.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: asks only; the structure is live and writable.
    let asked = unsafe { libc::sigaction(libc::SIGXFSZ, ptr::null(), &raw mut action) };
    if asked != 0 {
        return Err(io::Error::last_os_error());
    }
    if action.sa_sigaction == libc::SIG_IGN {
        return Ok(());
    }
    // A handler, because `exec` resets it, and keeps what is ignored.
    action.sa_sigaction = nothing as *const () as usize;
    action.sa_flags = libc::SA_RESTART;
    // SAFETY: the structure is live; the handler does nothing, which is async-signal-safe.
    match unsafe { libc::sigaction(libc::SIGXFSZ, &raw const action, ptr::null_mut()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Has a program start as its user's: with the limits that we were started with, and no right of ours.
pub fn give_back(command: &mut Command) {
    let given = GIVEN.get().copied();
    let restore = move || {
        capabilities::leave_to_user();
        match given {
            Some(given) => Ok(setrlimit(Resource::Nofile, given)?),
            None => Ok(()),
        }
    };
    // SAFETY: the closure makes two system calls; nothing in it allocates or locks.
    unsafe { command.pre_exec(restore) };
}
