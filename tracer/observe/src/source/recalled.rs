//! What a sampled process has in memory, and which addresses its loads are believed to be of.

use rustc_hash::FxHashMap;

use crate::{access::Pid, decode::Memory, sys};

/// So many times in a row a load had one address before that is believed whatever is there now.
const STEADY: u32 = 8;
/// Loads kept; beyond it all are let go, and those in use are soon back.
const MOST_LOADS: usize = 1 << 14;

/// By process and instruction: the address, and how often in a row it was that.
#[derive(Debug, Default)]
pub(super) struct Loads(FxHashMap<(Pid, u64), (u64, u32)>);

/// The memory of one process.
pub(super) struct ProcessMemory<'a> {
    pub(super) pid: Pid,
    pub(super) loads: &'a mut Loads,
}

impl Memory for ProcessMemory<'_> {
    fn read(&mut self, addr: u64, buffer: &mut [u8]) -> bool {
        let got = sys::process_memory::read(self.pid, addr, buffer);
        got.is_ok_and(|got| got == buffer.len())
    }

    fn believes(&mut self, ip: u64, addr: u64, agrees: bool) -> bool {
        let steady = self.loads.note(self.pid, ip, addr);
        agrees || steady
    }
}

impl Loads {
    /// Notes an address of a load; whether it had no other for long.
    fn note(&mut self, pid: Pid, ip: u64, addr: u64) -> bool {
        if self.0.len() >= MOST_LOADS {
            self.0.clear();
        }
        let (last, times) = self.0.entry((pid, ip)).or_insert((addr, 0));
        if *last != addr {
            (*last, *times) = (addr, 0);
        }
        *times = times.saturating_add(1);
        *times > STEADY
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_steady_after_some_times_in_a_row_and_no_longer_after_another() {
        let mut loads = Loads::default();
        let mut note = |pid, addr| loads.note(Pid(pid), 0x1000, addr);
        assert!((0..8).all(|_| !note(1, 0x5000)));
        assert!(note(1, 0x5000) && note(1, 0x5000));
        // Another process has its own.
        assert!(!note(2, 0x5000));
        assert!(!note(1, 0x6000));
        assert!((0..7).all(|_| !note(1, 0x5000)));
    }

    #[test]
    fn the_loads_kept_are_bounded() {
        let mut loads = Loads::default();
        for ip in 0..3 * MOST_LOADS as u64 {
            loads.note(Pid(1), ip, 0);
            assert!(loads.0.len() <= MOST_LOADS);
        }
    }
}
