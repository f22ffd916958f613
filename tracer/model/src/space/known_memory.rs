//! What memory held when it was looked at, by address.

use std::{collections::BTreeMap, sync::Arc};

/// Bytes that are kept of all processes together, and of the kernel; what comes later is left out. Some thousand
/// functions, or a million pointers.
const MOST_BYTES: usize = 64 << 20;
/// What a stretch takes besides its bytes.
const OVERHEAD: usize = 64;

/// Stretches by their first address; a later one takes the place of one that starts there.
#[derive(Clone, Debug, Default)]
pub(super) struct KnownMemory {
    stretches: BTreeMap<u64, Arc<[u8]>>,
    size: usize,
}

impl KnownMemory {
    /// Takes in what was read; `others` are bytes kept elsewhere within the same bound.
    pub(super) fn insert(&mut self, start: u64, bytes: &Arc<[u8]>, others: usize) {
        let added = bytes.len() + OVERHEAD;
        if others + self.size + added > MOST_BYTES {
            return;
        }
        self.size += added;
        if let Some(old) = self.stretches.insert(start, bytes.clone()) {
            self.size -= old.len() + OVERHEAD;
        }
    }

    /// What is kept, bytes.
    pub(super) fn bytes(&self) -> usize {
        self.size
    }

    /// The stretch around an address.
    pub(super) fn around(&self, address: u64) -> Option<(u64, &Arc<[u8]>)> {
        let (start, bytes) = self.stretches.range(..=address).next_back()?;
        (address - start < bytes.len() as u64).then_some((*start, bytes))
    }

    /// All stretches that start in a range of addresses, by address.
    pub(super) fn starting_in(
        &self,
        addresses: std::ops::Range<u64>,
    ) -> impl Iterator<Item = (u64, &Arc<[u8]>)> {
        let stretches = self.stretches.range(addresses);
        stretches.map(|(start, bytes)| (*start, bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_read_last_holds_and_only_where_it_was_read() {
        let mut known = KnownMemory::default();
        known.insert(0x1000, &[1, 2, 3].into(), 0);
        known.insert(0x1000, &[4, 5, 6, 7].into(), 0);
        known.insert(0x2000, &[8].into(), 0);
        let around = |address| Some((known.around(address)?.0, known.around(address)?.1.to_vec()));
        assert_eq!(around(0x1003), Some((0x1000, vec![4, 5, 6, 7])));
        assert_eq!(around(0x1004), None);
        assert_eq!(around(0xfff), None);
        assert_eq!(known.starting_in(0x1001..0x2001).count(), 1);
    }

    #[test]
    fn more_than_the_limit_is_left_out() {
        let mut known = KnownMemory::default();
        let large: Arc<[u8]> = vec![0; MOST_BYTES / 2].into();
        known.insert(0, &large, 0);
        known.insert(1 << 40, &large, 0);
        assert!(known.around(1).is_some() && known.around(1 << 40).is_none());
        let mut second = KnownMemory::default();
        second.insert(0, &[1].into(), known.bytes());
        second.insert(8, &large, known.bytes());
        assert!(second.around(0).is_some() && second.around(8).is_none());
        // What takes the place of another does not add up.
        for _ in 0..4 {
            known.insert(1 << 41, &[1].into(), 0);
        }
        assert_eq!(known.size, large.len() + 1 + 2 * OVERHEAD);
    }
}
