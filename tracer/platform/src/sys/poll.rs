//! Waiting for several descriptors at once.

use std::{io, os::fd::BorrowedFd, time::Duration};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
};

/// Waits until one of the descriptors is readable or hung up, or the time is over. Says which are; a
/// signal ends the wait early with none, so that the caller can look at its flags.
pub fn wait_readable(fds: &[BorrowedFd<'_>], timeout: Duration) -> io::Result<Vec<bool>> {
    let mut entries: Vec<PollFd<'_>> = fds
        .iter()
        .map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN))
        .collect();
    // A time that the kernel has no number for is as good as none.
    let timeout = Timespec::try_from(timeout).ok();
    match poll(&mut entries, timeout.as_ref()) {
        Ok(_) => Ok(entries
            .iter()
            .map(|entry| !entry.revents().is_empty())
            .collect()),
        Err(Errno::INTR) => Ok(vec![false; fds.len()]),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::{io::Write as _, os::fd::AsFd as _};

    use super::*;

    #[test]
    fn what_was_written_to_is_readable_and_its_neighbour_is_not() {
        let (quiet, _quiet_writer) = io::pipe().unwrap();
        let (loud, mut writer) = io::pipe().unwrap();
        let (closed, _) = io::pipe().unwrap();
        let fds = [quiet.as_fd(), loud.as_fd(), closed.as_fd()];
        assert_eq!(
            wait_readable(&fds[..2], Duration::from_millis(1)).unwrap(),
            [false, false]
        );
        writer.write_all(b"x").unwrap();
        let wait = Duration::from_secs(10);
        assert_eq!(wait_readable(&fds, wait).unwrap(), [false, true, true]);
        assert_eq!(
            wait_readable(&fds, Duration::MAX).unwrap(),
            [false, true, true]
        );
    }
}
