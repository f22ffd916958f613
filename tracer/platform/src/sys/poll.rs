//! Waiting for several descriptors at once.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, epoll, poll},
    io::Errno,
};

/// Descriptors that count as one: it is readable when one of them is. What is closed is no longer among them.
#[derive(Debug)]
pub struct Descriptors(OwnedFd);

impl Descriptors {
    /// A set without descriptors.
    pub fn new() -> io::Result<Descriptors> {
        Ok(Descriptors(epoll::create(epoll::CreateFlags::CLOEXEC)?))
    }

    /// Adds one, which must stay open as long as it is to count. One that is there already stays.
    pub fn add(&self, fd: impl AsFd) -> io::Result<()> {
        let data = epoll::EventData::new_u64(0);
        match epoll::add(&self.0, fd, data, epoll::EventFlags::IN) {
            Ok(()) | Err(Errno::EXIST) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// What became readable until now is known.
    pub fn clear(&self) -> io::Result<()> {
        let mut events = [epoll::Event {
            flags: epoll::EventFlags::empty(),
            data: epoll::EventData::new_u64(0),
        }; 64];
        epoll::wait(&self.0, &mut events, Some(&Timespec::default()))?;
        Ok(())
    }
}

impl AsFd for Descriptors {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

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
    fn several_count_as_one_as_long_as_they_are_open() {
        let all = Descriptors::new().unwrap();
        let readable = || wait_readable(&[all.as_fd()], Duration::from_millis(1)).unwrap()[0];
        let (quiet, _quiet_writer) = io::pipe().unwrap();
        let (loud, mut writer) = io::pipe().unwrap();
        all.add(&quiet).unwrap();
        all.add(&loud).unwrap();
        all.add(&loud).unwrap();
        assert!(!readable());
        writer.write_all(b"x").unwrap();
        assert!(readable());
        drop(loud);
        assert!(!readable());
    }

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
