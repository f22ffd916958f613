//! Ranges of addresses that are put over each other: code caches are used again.

use std::collections::BTreeMap;

/// Newer ranges that an older one is laid around; what of it lies behind them is dropped, as it is outdated
/// anyway. Bounds the work for a file with wild times.
const MOST_AROUND: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    end: u64,
    time: u64,
    value: u32,
}

/// Of all ranges at an address the one with the latest time is seen; of equal times, the one put last.
#[derive(Debug, Default)]
pub(super) struct Overlay(BTreeMap<u64, Piece>);

impl Overlay {
    /// Puts `start..end` over what is there and is not newer.
    pub(super) fn put(&mut self, start: u64, end: u64, time: u64, value: u32) {
        if start >= end {
            return;
        }
        let newer: Vec<(u64, u64)> = self
            .touching(start, end)
            .filter(|(_, piece)| piece.time > time)
            .map(|(at, piece)| (at, piece.end))
            .take(MOST_AROUND)
            .collect();
        if newer.is_empty() {
            self.replace(start, end, time, value);
            return;
        }
        let mut from = start;
        for (at, to) in newer.iter().copied() {
            self.replace(from, at, time, value);
            from = to;
        }
        if newer.len() < MOST_AROUND {
            self.replace(from, end, time, value);
        }
    }

    /// Takes away what is left of a value from `start..end`.
    pub(super) fn remove(&mut self, start: u64, end: u64, value: u32) {
        let pieces: Vec<u64> = self
            .touching(start, end)
            .filter(|(_, piece)| piece.value == value)
            .map(|(at, _)| at)
            .collect();
        for at in pieces {
            self.0.remove(&at);
        }
    }

    /// Bytes on the heap: nodes of a B-tree are two thirds full.
    pub(super) fn bytes(&self) -> usize {
        self.0.len() * (size_of::<u64>() + size_of::<Piece>()) / 2 * 3
    }

    /// What is seen at an address: where it starts, where it ends, its value.
    pub(super) fn at(&self, address: u64) -> Option<(u64, u64, u32)> {
        let (start, piece) = self.0.range(..=address).next_back()?;
        (address < piece.end).then_some((*start, piece.end, piece.value))
    }

    /// Pieces that overlap a range, by address.
    fn touching(&self, start: u64, end: u64) -> impl Iterator<Item = (u64, Piece)> {
        let before = self.0.range(..start).next_back();
        let before = before.filter(|(_, piece)| piece.end > start);
        let from = before.map_or(start, |(at, _)| *at);
        self.0
            .range(from..end.max(from))
            .map(|(at, piece)| (*at, *piece))
    }

    fn replace(&mut self, start: u64, end: u64, time: u64, value: u32) {
        if start >= end {
            return;
        }
        // Each is taken out once for all that it was put in, so all puts together take linear time.
        let covered: Vec<(u64, Piece)> = self.touching(start, end).collect();
        for (at, old) in covered {
            self.0.remove(&at);
            if at < start {
                self.0.insert(at, Piece { end: start, ..old });
            }
            if old.end > end {
                self.0.insert(end, old);
            }
        }
        self.0.insert(start, Piece { end, time, value });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same by an array of addresses.
    struct Array([Option<(u64, u32)>; 64]);

    impl Array {
        fn put(&mut self, start: u64, end: u64, time: u64, value: u32) {
            for cell in &mut self.0[start as usize..end as usize] {
                if cell.is_none_or(|(old, _)| old <= time) {
                    *cell = Some((time, value));
                }
            }
        }
    }

    #[test]
    fn what_is_seen_is_what_an_array_of_addresses_would_show() {
        let mut state = 7_u64;
        let mut random = |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % below
        };
        for _ in 0..200 {
            let (mut overlay, mut array) = (Overlay::default(), Array([None; 64]));
            for value in 0..20 {
                let start = random(60);
                let end = start + random(64 - start);
                let time = random(4);
                overlay.put(start, end, time, value);
                array.put(start, end, time, value);
            }
            for address in 0..64 {
                let seen = overlay.at(address).map(|(.., value)| value);
                let expected = array.0[address as usize].map(|(_, value)| value);
                assert_eq!(seen, expected, "at {address}");
            }
        }
    }

    #[test]
    fn ranges_at_the_end_of_the_address_space_do_not_overflow() {
        let mut overlay = Overlay::default();
        overlay.put(u64::MAX - 1, u64::MAX, 0, 1);
        overlay.put(0, u64::MAX, 0, 2);
        assert_eq!(overlay.at(u64::MAX - 1), Some((0, u64::MAX, 2)));
        assert_eq!(overlay.at(u64::MAX), None);
        overlay.remove(0, 10, 2);
        assert_eq!(overlay.at(5), None);
    }

    #[test]
    fn old_ranges_laid_over_many_newer_ones_stay_cheap() {
        let mut overlay = Overlay::default();
        for at in 0..100_000 {
            overlay.put(at * 2, at * 2 + 1, 9, 1);
        }
        for _ in 0..100_000 {
            overlay.put(0, u64::MAX, 1, 2);
        }
        assert_eq!(overlay.at(1).map(|(.., value)| value), Some(2));
        assert_eq!(overlay.at(0).map(|(.., value)| value), Some(1));
    }
}
