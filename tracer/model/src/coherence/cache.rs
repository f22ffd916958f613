//! One cache of one processor: which lines it has, set by set, least recently used first to leave.

/// How large a cache is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheGeometry {
    /// Bytes of content.
    pub bytes: u64,
    /// Lines of a set.
    pub ways: u32,
}

impl CacheGeometry {
    /// Sets that lines of that size make; `None` when they are not a whole number of 1 or more, or more than 2^24.
    pub fn sets(self, line_bytes: u64) -> Option<u32> {
        let set_bytes = line_bytes.checked_mul(self.ways.into())?;
        let whole = set_bytes > 0 && self.bytes.is_multiple_of(set_bytes);
        let sets = whole.then(|| self.bytes / set_bytes)?;
        u32::try_from(sets)
            .ok()
            .filter(|sets| (1..=1 << 24).contains(sets))
    }
}

/// Tags of all sets, the most recently used line of each first. A tag is the line's number and 1; 0 is an empty way,
/// and no line comes after one in its set.
#[derive(Clone, Debug)]
pub(super) struct Cache {
    tags: Vec<u32>,
    ways: usize,
}

/// What putting a line into a cache did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Put {
    /// It was there.
    Hit,
    /// It is there now. The line that made room, if one had to.
    Missed(Option<u32>),
}

impl Cache {
    /// Nothing in it.
    pub(super) fn new(sets: u32, ways: u32) -> Cache {
        Cache {
            tags: vec![0; sets as usize * ways as usize],
            ways: ways as usize,
        }
    }

    fn set(&mut self, set: u32) -> &mut [u32] {
        let start = set as usize * self.ways;
        &mut self.tags[start..start + self.ways]
    }

    /// Finds the line, or brings it in; either way it is the most recently used one of its set.
    #[inline]
    pub(super) fn put(&mut self, set: u32, line: u32) -> Put {
        let tag = line + 1;
        let ways = self.set(set);
        if ways[0] == tag {
            return Put::Hit;
        }
        // Each way takes what the one before had, up to the one that had the line; sets are too small to search first.
        let mut moved = tag;
        for way in ways {
            std::mem::swap(way, &mut moved);
            if moved == tag {
                return Put::Hit;
            }
        }
        Put::Missed(moved.checked_sub(1))
    }

    /// The line that has to make room for the next one of a full set.
    #[inline]
    pub(super) fn next_out(&self, set: u32) -> Option<u32> {
        let last = (set as usize + 1) * self.ways - 1;
        self.tags[last].checked_sub(1)
    }

    /// Takes the line out, if it is there.
    pub(super) fn take(&mut self, set: u32, line: u32) -> bool {
        let ways = self.set(set);
        let Some(place) = ways.iter().position(|way| *way == line + 1) else {
            return false;
        };
        ways.copy_within(place + 1.., place);
        if let Some(last) = ways.last_mut() {
            *last = 0;
        }
        true
    }

    /// Whether the line is there; the order of use stays.
    #[cfg(test)]
    pub(super) fn has(&self, set: u32, line: u32) -> bool {
        let start = set as usize * self.ways;
        self.tags[start..start + self.ways].contains(&(line + 1))
    }

    /// All lines that are there.
    #[cfg(test)]
    pub(super) fn lines(&self) -> impl Iterator<Item = u32> + '_ {
        self.tags.iter().filter_map(|tag| tag.checked_sub(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_used_longest_ago_makes_room() {
        let mut cache = Cache::new(2, 3);
        for line in [10, 11, 12] {
            assert_eq!(cache.put(1, line), Put::Missed(None));
        }
        assert_eq!(cache.put(1, 10), Put::Hit);
        assert_eq!(cache.put(1, 13), Put::Missed(Some(11)));
        assert_eq!(cache.put(1, 12), Put::Hit);
        assert_eq!(cache.put(1, 11), Put::Missed(Some(10)));
        // The other set is another one.
        assert_eq!(cache.put(0, 20), Put::Missed(None));
        assert!(cache.has(0, 20) && !cache.has(1, 20));
    }

    #[test]
    fn a_line_that_was_taken_leaves_its_way_to_the_next_one() {
        let mut cache = Cache::new(1, 3);
        for line in [0, 1, 2] {
            cache.put(0, line);
        }
        assert!(cache.take(0, 1));
        assert!(!cache.take(0, 1));
        assert_eq!(cache.put(0, 3), Put::Missed(None));
        assert_eq!(cache.put(0, 4), Put::Missed(Some(0)));
        assert_eq!(cache.lines().collect::<Vec<_>>(), [4, 3, 2]);
    }

    #[test]
    fn a_size_that_sets_do_not_divide_is_no_cache() {
        let sets = |bytes, ways| CacheGeometry { bytes, ways }.sets(64);
        assert_eq!(sets(256 << 10, 8), Some(512));
        assert_eq!(sets(3 << 20, 12), Some(4096));
        assert_eq!(sets(64, 1), Some(1));
        for (bytes, ways) in [(0, 8), (256 << 10, 0), (3 << 20, 13), (64, 2), (1 << 40, 1)] {
            assert_eq!(sets(bytes, ways), None, "{bytes} in {ways} ways");
        }
        assert_eq!(sets(u64::MAX, u32::MAX), None);
    }
}
