//! CPUs that go offline and come online, as the kernel announces them to device managers.
//!
//! A CPU may be away for less time than lies between two looks at the list of those online, and its events are gone all the
//! same: only the announcement tells (`KOBJ_OFFLINE` and `KOBJ_ONLINE` in drivers/base/core.c).

use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use rustix::{
    io::Errno,
    net::{
        AddressFamily, RecvFlags, SocketFlags, SocketType, bind,
        netlink::{KOBJECT_UEVENT, SocketAddrNetlink},
        recv, socket_with,
    },
};

use crate::access::Cpu;

/// The group that the kernel itself sends to.
const KERNEL_GROUP: u32 = 1;
/// Longest announcement (`UEVENT_BUFFER_SIZE` in include/linux/kobject.h).
const LONGEST: usize = 2048;

/// The kernel's announcements since the last look.
#[derive(Debug)]
pub struct CpuChanges(OwnedFd);

impl AsFd for CpuChanges {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl CpuChanges {
    /// Listens from now on. Needs no rights; fails where the system calls are filtered.
    pub fn listen() -> io::Result<CpuChanges> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(
            AddressFamily::NETLINK,
            SocketType::RAW,
            flags,
            Some(KOBJECT_UEVENT),
        )?;
        bind(&socket, &SocketAddrNetlink::new(0, KERNEL_GROUP))?;
        Ok(CpuChanges(socket))
    }

    /// The CPUs that went or came since the last look; `None` when there was so much to announce (of disks and anything
    /// else) that some of it was lost.
    pub fn take(&mut self) -> Option<Vec<Cpu>> {
        let mut changed = Vec::new();
        let mut overrun = false;
        let mut bytes = [0; LONGEST];
        loop {
            match recv(self.0.as_fd(), &mut bytes, RecvFlags::empty()) {
                Ok((read, _)) => changed.extend(cpu_of(&bytes[..read])),
                Err(Errno::NOBUFS) => overrun = true,
                Err(Errno::INTR) => {}
                Err(_) => return (!overrun).then_some(changed),
            }
        }
    }
}

/// The CPU that an announcement says went offline or came online.
fn cpu_of(announcement: &[u8]) -> Option<Cpu> {
    let first = announcement.split(|byte| *byte == 0).next()?;
    let (action, device) = std::str::from_utf8(first).ok()?.split_once('@')?;
    if !matches!(action, "online" | "offline") {
        return None;
    }
    let number = device.strip_prefix("/devices/system/cpu/cpu")?;
    number.parse().ok().map(Cpu)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_cpus_that_go_and_come_are_told() {
        let of = |text: &str| cpu_of(text.as_bytes());
        assert_eq!(
            of("offline@/devices/system/cpu/cpu1\0ACTION=offline\0"),
            Some(Cpu(1))
        );
        assert_eq!(of("online@/devices/system/cpu/cpu17\0"), Some(Cpu(17)));
        for other in [
            "remove@/devices/virtual/cpuid/cpu1\0",
            "add@/devices/system/cpu/cpu1\0",
            "online@/devices/system/memory/memory3\0",
            "online@/devices/system/cpu/cpufreq\0",
            "",
        ] {
            assert_eq!(of(other), None, "{other}");
        }
    }

    #[test]
    fn nothing_is_told_of_a_machine_whose_cpus_stay() {
        let mut changes = CpuChanges::listen().unwrap();
        // CPUs may change while this runs, but not all the time.
        let quiet = (0..100).any(|_| changes.take().is_some_and(|cpus| cpus.is_empty()));
        assert!(quiet);
    }
}
