//! A map for a few entries that may become thousands: a vector, hashed only when it is long.
//!
//! Most lines have one or two sites, so an entry must cost no more than itself. Iteration is in order
//! of insertion, which keeps every sum independent of hash seeds.

use std::hash::Hash;

use rustc_hash::FxHashMap;

/// Up to this many entries a scan is as fast as hashing.
const SCANNED: usize = 16;

/// Keys in order of insertion with their values.
#[derive(Clone, Debug)]
pub(super) struct SmallMap<K, V> {
    entries: Vec<(K, V)>,
    index: Option<Box<FxHashMap<K, u32>>>,
    /// Where the last one was found: loops ask for the same again, or for the one that first came after it.
    last: u32,
}

impl<K, V> Default for SmallMap<K, V> {
    fn default() -> Self {
        SmallMap {
            entries: Vec::new(),
            index: None,
            last: 0,
        }
    }
}

impl<K: Copy + Eq + Hash, V> SmallMap<K, V> {
    /// An empty one with memory for so many entries: for maps that are many, one after the other.
    pub(super) fn with_room(entries: usize) -> Self {
        SmallMap {
            entries: Vec::with_capacity(entries),
            ..SmallMap::default()
        }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &(K, V)> {
        self.entries.iter()
    }

    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.entries.iter_mut().map(|(_, value)| value)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (&K, &mut V)> {
        self.entries.iter_mut().map(|(key, value)| (&*key, value))
    }

    fn position(&self, key: &K) -> Option<usize> {
        match &self.index {
            Some(index) => index.get(key).map(|&at| at as usize),
            None => self.entries.iter().position(|(k, _)| k == key),
        }
    }

    pub(super) fn get(&self, key: &K) -> Option<&V> {
        self.position(key).map(|at| &self.entries[at].1)
    }

    /// The value of a key, added with its default when it is new; `None` when it is new and the map
    /// already has `most` entries.
    #[inline]
    pub(super) fn slot(&mut self, key: K, most: usize) -> Option<&mut V>
    where
        V: Default,
    {
        let last = self.last as usize;
        if self.entries.get(last).is_some_and(|(k, _)| *k == key) {
            return Some(&mut self.entries[last].1);
        }
        self.other_slot(key, most)
    }

    /// Not the one of the last time.
    fn other_slot(&mut self, key: K, most: usize) -> Option<&mut V>
    where
        V: Default,
    {
        let next = self.last as usize + 1;
        let at = match self.entries.get(next) {
            Some((k, _)) if *k == key => Some(next),
            _ => self.position(&key),
        };
        let at = match at {
            Some(at) => at,
            None if self.entries.len() >= most => return None,
            None => self.push(key, V::default()),
        };
        self.last = at as u32;
        Some(&mut self.entries[at].1)
    }

    fn push(&mut self, key: K, value: V) -> usize {
        let at = self.entries.len();
        if at == self.entries.capacity() {
            // `Vec` would start at four entries; nearly all lines need one.
            self.entries.reserve_exact(at.max(1));
        }
        self.entries.push((key, value));
        match &mut self.index {
            Some(index) => {
                index.insert(key, at as u32);
            }
            None if at >= SCANNED => self.rebuild_index(),
            None => {}
        }
        at
    }

    /// Keeps the entries for which `keep` holds, in their order.
    pub(super) fn retain(&mut self, mut keep: impl FnMut(&K, &V) -> bool) {
        self.entries.retain(|(k, v)| keep(k, v));
        self.rebuild_index();
    }

    /// Drops the rarer half by `count`, of equal ones the older; returns the sum of what left.
    pub(super) fn forget_rare(&mut self, count: impl Fn(&V) -> u64) -> u64 {
        let mut ranks: Vec<(u64, usize)> = (self.entries.iter())
            .zip(0..)
            .map(|((_, value), at)| (count(value), at))
            .collect();
        if ranks.is_empty() {
            return 0;
        }
        let half = ranks.len() / 2;
        let first_kept = *ranks.select_nth_unstable(half).1;
        let mut gone = 0;
        let mut at = 0;
        self.retain(|_, value| {
            let stays = (count(value), at) >= first_kept;
            at += 1;
            if !stays {
                gone += count(value);
            }
            stays
        });
        gone
    }

    /// Empties the map; keeps a small vector's memory for the next use.
    pub(super) fn clear(&mut self) {
        if self.entries.capacity() > SCANNED {
            self.entries = Vec::new();
        }
        self.entries.clear();
        self.index = None;
    }

    fn rebuild_index(&mut self) {
        self.index = (self.entries.len() > SCANNED).then(|| {
            let positions = self.entries.iter().enumerate();
            Box::new(positions.map(|(at, (k, _))| (*k, at as u32)).collect())
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(map: &mut SmallMap<u32, u32>, key: u32) {
        *map.slot(key, usize::MAX).unwrap() += 1;
    }

    fn value(map: &SmallMap<u32, u32>, key: u32) -> Option<u32> {
        map.position(&key).map(|at| map.entries[at].1)
    }

    #[test]
    fn it_counts_alike_below_and_above_the_hashing_length() {
        for keys in [3, 16, 17, 100] {
            let mut map = SmallMap::default();
            for round in 0..3 {
                for key in 0..keys {
                    count(&mut map, (key * 7 + round) % keys);
                }
            }
            assert_eq!(map.len(), keys as usize);
            assert!(map.iter().all(|(_, n)| *n == 3));
        }
    }

    #[test]
    fn entries_are_found_again_after_others_left() {
        let mut map = SmallMap::default();
        for key in 0..40 {
            map.push(key, key);
        }
        map.retain(|key, _| key % 2 == 1);
        assert_eq!(map.len(), 20);
        assert_eq!(value(&map, 38), None);
        assert_eq!(value(&map, 39), Some(39));
        map.clear();
        assert_eq!(value(&map, 39), None);
    }

    #[test]
    fn the_last_one_and_the_next_are_found_after_others_left() {
        for keys in [4, 40] {
            let mut map = SmallMap::default();
            for key in (0..keys).chain(0..keys) {
                count(&mut map, key);
            }
            map.retain(|key, _| *key == 1);
            for key in [keys - 1, 1, keys - 1] {
                count(&mut map, key);
            }
            assert_eq!((value(&map, 1), value(&map, keys - 1)), (Some(3), Some(2)));
            map.clear();
            count(&mut map, 1);
            assert_eq!(value(&map, 1), Some(1));
        }
    }

    #[test]
    fn a_full_map_takes_no_new_key_and_finds_the_old_ones() {
        let mut map: SmallMap<u32, u32> = SmallMap::default();
        count(&mut map, 1);
        assert_eq!(map.slot(2, 1), None);
        assert_eq!(map.slot(1, 1), Some(&mut 1));
    }

    #[test]
    fn the_rarer_half_is_forgotten_and_of_equal_ones_the_older() {
        let mut map = SmallMap::default();
        for (key, value) in [(1, 5), (2, 1), (3, 5), (4, 1), (5, 9), (6, 1)] {
            map.push(key, value);
        }
        assert_eq!(map.forget_rare(|n| *n), 3);
        assert_eq!(
            map.iter().map(|(key, _)| *key).collect::<Vec<_>>(),
            [1, 3, 5]
        );
        assert_eq!(map.forget_rare(|n| *n), 5);
        assert_eq!(map.iter().map(|(key, _)| *key).collect::<Vec<_>>(), [3, 5]);
    }

    #[test]
    fn the_first_entry_takes_no_room_for_others() {
        let mut map: SmallMap<u64, u64> = SmallMap::default();
        map.push(1, 1);
        assert_eq!(map.entries.capacity(), 1);
    }
}
