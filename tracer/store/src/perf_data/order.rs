//! Puts a file's records into the order of time, in bounded memory.
//!
//! perf empties the rings of all CPUs in rounds and ends each with `PERF_RECORD_FINISHED_ROUND`: what a round
//! brings is not older than the newest of the round before the last (tools/perf/util/ordered-events.c). A
//! file need not keep to that.

use std::{cmp::Ordering, collections::BinaryHeap};

/// An hour: perf writes each ring far more often, so a time farther than that from those before it is
/// believed only when the next one agrees.
const JUMP_NS: u64 = 3_600_000_000_000;

/// What is held back at most, in items and in bytes of text.
const MOST_ITEMS: usize = 1 << 18;
const MOST_BYTES: usize = 64 << 20;

/// An item that waits for older ones.
#[derive(Debug)]
struct Waiting<T> {
    time: u64,
    /// Items of one time keep the order of the file.
    number: u64,
    bytes: usize,
    item: T,
}

impl<T> PartialEq for Waiting<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<T> Eq for Waiting<T> {}

impl<T> PartialOrd for Waiting<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Waiting<T> {
    /// The oldest is the greatest, so that the heap gives it first.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.time, other.number).cmp(&(self.time, self.number))
    }
}

/// Buffers items until nothing older can come.
#[derive(Debug)]
pub(super) struct RoundOrder<T> {
    waiting: BinaryHeap<Waiting<T>>,
    bytes: usize,
    next: u64,
    /// Newest time so far that was believed, and that at the end of the last round.
    newest: u64,
    previous: u64,
    /// A time that was not believed.
    suspect: Option<u64>,
    released: u64,
    /// Of the items that are given out now: nothing, or all up to this.
    due: Option<u64>,
    /// Items to give out although older ones may come, because too many wait.
    forced: usize,
    most_items: usize,
    /// Items that came after a newer one was given out.
    pub(super) late: u64,
    /// Items far from those before and after them.
    pub(super) jumps: u64,
}

impl<T> Default for RoundOrder<T> {
    fn default() -> Self {
        RoundOrder::holding(MOST_ITEMS)
    }
}

impl<T> RoundOrder<T> {
    fn holding(most_items: usize) -> Self {
        RoundOrder {
            waiting: BinaryHeap::new(),
            bytes: 0,
            next: 0,
            newest: 0,
            previous: 0,
            suspect: None,
            released: 0,
            due: None,
            forced: 0,
            most_items,
            late: 0,
            jumps: 0,
        }
    }

    /// Newest time that was believed.
    pub(super) fn newest(&self) -> u64 {
        self.newest
    }

    /// Adds an item with `bytes` of text. One without a time belongs where the file has it.
    pub(super) fn push(&mut self, time: Option<u64>, bytes: usize, item: T) {
        let time = match time {
            Some(time) => {
                self.believe(time);
                self.late += u64::from(time < self.released);
                time.max(self.released)
            }
            None => self.released,
        };
        self.bytes = self.bytes.saturating_add(bytes);
        self.waiting.push(Waiting {
            time,
            number: self.next,
            bytes,
            item,
        });
        self.next += 1;
        if self.waiting.len() > self.most_items || self.bytes > MOST_BYTES {
            self.forced = self.waiting.len() / 2 + 1;
        }
    }

    fn believe(&mut self, time: u64) {
        let near = |other: u64| time.abs_diff(other) <= JUMP_NS;
        if self.newest == 0 || near(self.newest) {
            self.newest = self.newest.max(time);
            self.suspect = None;
        } else if self.suspect.is_some_and(near) {
            self.newest = time;
            self.previous = self.previous.min(time);
            self.suspect = None;
        } else {
            self.jumps += 1;
            self.suspect = Some(time);
        }
    }

    /// The file says that a round is over.
    pub(super) fn end_round(&mut self) {
        self.due = self.due.max(Some(self.previous));
        self.previous = self.newest;
    }

    /// Nothing more will come.
    pub(super) fn finish(&mut self) {
        self.due = Some(u64::MAX);
    }

    /// The next item of those that are due, with its place in time.
    pub(super) fn next(&mut self) -> Option<(u64, T)> {
        let oldest = self.waiting.peek()?;
        if self.forced > 0 {
            self.forced -= 1;
        } else if self.due.is_none_or(|due| oldest.time > due) {
            self.due = None;
            return None;
        }
        let Waiting {
            time, bytes, item, ..
        } = self.waiting.pop()?;
        self.bytes = self.bytes.saturating_sub(bytes);
        self.released = self.released.max(time);
        Some((time, item))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drain<T>(order: &mut RoundOrder<T>) -> Vec<T> {
        std::iter::from_fn(|| order.next().map(|(_, item)| item)).collect()
    }

    #[test]
    fn a_round_gives_out_what_the_round_before_it_completed() {
        let mut order = RoundOrder::default();
        for (time, item) in [(10, 'a'), (30, 'c'), (20, 'b')] {
            order.push(Some(time), 0, item);
        }
        order.end_round();
        assert!(drain(&mut order).is_empty());
        for (time, item) in [(33, 'd'), (25, 'x')] {
            order.push(Some(time), 0, item);
        }
        order.end_round();
        assert_eq!(drain(&mut order), ['a', 'b', 'x', 'c']);
        order.finish();
        assert_eq!(drain(&mut order), ['d']);
        assert_eq!((order.late, order.jumps), (0, 0));
    }

    #[test]
    fn what_comes_too_late_is_counted_and_does_not_go_back_in_time() {
        let mut order = RoundOrder::default();
        order.push(Some(100), 0, 'x');
        order.end_round();
        order.end_round();
        assert_eq!(drain(&mut order), ['x']);
        order.push(Some(50), 0, 'y');
        order.push(None, 0, 'z');
        order.finish();
        assert_eq!(order.next(), Some((100, 'y')));
        assert_eq!(order.next(), Some((100, 'z')));
        assert_eq!(order.late, 1);
    }

    #[test]
    fn one_wrong_clock_reading_does_not_make_all_later_ones_late() {
        let mut order = RoundOrder::default();
        for time in [100, u64::MAX - 1, 200] {
            order.push(Some(time), 0, time);
        }
        for time in [300, 400] {
            order.end_round();
            order.push(Some(time), 0, time);
        }
        order.finish();
        assert_eq!(drain(&mut order), [100, 200, 300, 400, u64::MAX - 1]);
        assert_eq!((order.late, order.jumps), (0, 1));
    }

    #[test]
    fn a_first_reading_that_is_wrong_is_found_by_the_next_two() {
        let mut order = RoundOrder::default();
        for time in [u64::MAX - 1, 100, 200] {
            order.push(Some(time), 0, time);
        }
        order.end_round();
        order.end_round();
        assert_eq!(drain(&mut order), [100, 200]);
        order.push(Some(300), 0, 300);
        order.finish();
        assert_eq!(drain(&mut order), [300, u64::MAX - 1]);
        assert_eq!(order.late, 0);
    }

    #[test]
    fn a_file_without_rounds_is_held_in_bounded_memory() {
        let mut order = RoundOrder::holding(8);
        let mut out = Vec::new();
        for time in (1..1000u64).map(|n| n ^ 3) {
            order.push(Some(time), 0, time);
            while let Some((_, time)) = order.next() {
                out.push(time);
            }
            assert!(order.waiting.len() <= 8);
        }
        order.finish();
        out.extend(drain(&mut order));
        let mut sorted = out.clone();
        sorted.sort_unstable();
        assert_eq!(out, sorted);
        assert_eq!((out.len(), order.late), (999, 0));
    }
}
