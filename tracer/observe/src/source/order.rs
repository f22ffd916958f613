//! Puts events of several CPUs' rings into one order of time.

use std::collections::VecDeque;

/// So long a CPU may be held up between taking a time stamp and committing the record, nanoseconds: a virtual one that has to wait
/// for its turn on a real one.
const SLACK_NS: u64 = 10_000_000;

/// Buffers timed items until nothing older can arrive.
///
/// Each ring is ordered in itself; rings are drained one after the other, in rounds. The clock is read
/// before a round begins, so a round brings everything up to that reading; a round that is at least the slack later covers
/// a CPU that was held up between taking its time stamp and committing the record:
///
/// ```text
///  clock read    r1            r2            r3
///  round            drain 1       drain 2       drain 3
///  released                       ..= r1        ..= r2
///  cpu 0       a  b   c    d    e     f
///  cpu 1        g       h          i
/// ```
#[derive(Debug)]
pub(super) struct TimeOrder<T> {
    pending: Vec<(u64, T)>,
    /// Readings of rounds before that are not released up to.
    rounds: VecDeque<u64>,
    slack_ns: u64,
    released_ns: u64,
    newest_ns: u64,
}

impl<T> Default for TimeOrder<T> {
    fn default() -> Self {
        TimeOrder {
            pending: Vec::new(),
            rounds: VecDeque::new(),
            slack_ns: SLACK_NS,
            released_ns: 0,
            newest_ns: 0,
        }
    }
}

impl<T> TimeOrder<T> {
    /// Adds an item. One that comes later than its slack is moved to the last released time, so that
    /// the order holds and nothing is lost.
    pub(super) fn push(&mut self, time_ns: u64, item: T) {
        self.newest_ns = self.newest_ns.max(time_ns);
        self.pending.push((time_ns.max(self.released_ns), item));
    }

    /// Time of the youngest item there ever was; 0 before the first.
    pub(super) fn newest_ns(&self) -> u64 {
        self.newest_ns
    }

    /// Ends a round that began at `round_ns` and releases, in order, what is complete up to an earlier one.
    pub(super) fn end_round(&mut self, round_ns: u64) -> impl Iterator<Item = (u64, T)> + use<T> {
        let (mut upto, slack_ns) = (0, self.slack_ns);
        let is_complete = |reading: &mut u64| reading.saturating_add(slack_ns) <= round_ns;
        while let Some(reading) = self.rounds.pop_front_if(is_complete) {
            upto = reading;
        }
        self.rounds.push_back(round_ns);
        self.release(upto)
    }

    /// Releases everything, in order: the rings are empty and will stay so.
    pub(super) fn finish(&mut self) -> impl Iterator<Item = (u64, T)> + use<T> {
        self.release(u64::MAX)
    }

    fn release(&mut self, upto_ns: u64) -> std::vec::IntoIter<(u64, T)> {
        // Stable: items of one time keep the order in which their ring had them.
        self.pending.sort_by_key(|(time_ns, _)| *time_ns);
        let count = self
            .pending
            .partition_point(|(time_ns, _)| *time_ns <= upto_ns);
        let later = self.pending.split_off(count);
        let released = std::mem::replace(&mut self.pending, later);
        if let Some((last_ns, _)) = released.last() {
            self.released_ns = self.released_ns.max(*last_ns);
        }
        released.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(slack_ns: u64) -> TimeOrder<char> {
        TimeOrder {
            slack_ns,
            ..TimeOrder::default()
        }
    }

    fn items<T>(released: impl Iterator<Item = (u64, T)>) -> Vec<T> {
        released.map(|(_, item)| item).collect()
    }

    #[test]
    fn rings_are_merged_by_time_one_round_late() {
        let mut order = order(0);
        order.push(10, 'a');
        order.push(30, 'c');
        order.push(20, 'b');
        assert_eq!(items(order.end_round(35)), Vec::<char>::new());
        order.push(33, 'd');
        order.push(50, 'f');
        assert_eq!(items(order.end_round(60)), ['a', 'b', 'c', 'd']);
        order.push(40, 'e');
        assert_eq!(items(order.finish()), ['e', 'f']);
    }

    #[test]
    fn rounds_in_quick_succession_leave_a_cpu_that_was_held_up_its_time() {
        let mut order = order(10);
        order.push(100, 'a');
        assert_eq!(items(order.end_round(101)), []);
        assert_eq!(items(order.end_round(103)), []);
        // Stamped before both readings.
        order.push(99, 'z');
        assert_eq!(items(order.end_round(112)), ['z', 'a']);
        order.push(111, 'b');
        assert_eq!(items(order.end_round(113)), []);
        assert_eq!(items(order.end_round(122)), ['b']);
        assert_eq!(order.newest_ns(), 111);
    }

    #[test]
    fn a_straggler_is_kept_and_never_goes_back_in_time() {
        let mut order = order(0);
        order.push(100, 'x');
        order.end_round(200).count();
        assert_eq!(items(order.end_round(300)), ['x']);
        order.push(50, 'y');
        let released: Vec<_> = order.finish().collect();
        assert_eq!(released, [(100, 'y')]);
    }
}
