//! Waiting for several descriptors at once.

use std::{
    io,
    os::fd::{AsRawFd as _, BorrowedFd},
    time::Duration,
};

/// Waits until one of the descriptors is readable or hung up, or the time is over. Says which are; a
/// signal ends the wait early with none, so that the caller can look at its flags.
pub fn wait_readable(fds: &[BorrowedFd<'_>], timeout: Duration) -> io::Result<Vec<bool>> {
    let mut entries: Vec<libc::pollfd> = fds
        .iter()
        .map(|fd| libc::pollfd {
            fd: fd.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        })
        .collect();
    // Rounded up: a wait of less than a millisecond must not become a busy loop.
    let milliseconds = timeout.as_nanos().div_ceil(1_000_000);
    let milliseconds = i32::try_from(milliseconds).unwrap_or(i32::MAX);
    // SAFETY: the array is live and as long as said; the descriptors are open as long as borrowed.
    let ready = unsafe {
        libc::poll(
            entries.as_mut_ptr(),
            entries.len() as libc::nfds_t,
            milliseconds,
        )
    };
    if ready < 0 {
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
        for entry in &mut entries {
            entry.revents = 0;
        }
    }
    Ok(entries.iter().map(|entry| entry.revents != 0).collect())
}
