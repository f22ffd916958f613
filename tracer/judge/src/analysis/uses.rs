//! What each thread used of a line in a stretch of time: a watch window, some slices of samples, or some accesses of a
//! complete order.
//!
//! Two fields that the same threads use are one thing if they use them at the same time, as a lock and its data. Over a whole
//! run that cannot be told from two things that change hands: a runtime moves tasks from thread to thread, workers swap
//! their roles.
//!
//! ```text
//!   thread 1    AAAAAAAAAA BBBBBBBBBB      thread 1    ABABABABAB
//!   thread 2    BBBBBBBBBB AAAAAAAAAA      thread 2    ABABABABAB
//!               two things                             one thing
//! ```

use super::{
    served::{OrderFacts, Served, Statistic},
    small_map::SmallMap,
};
use crate::access::{ByteSet, Tid};

/// A thread with fewer accesses in a stretch may use both and have been seen at one: of four accesses to either by turns of
/// chance, one in eight shows but one of them.
const FEWEST_ACCESSES: u32 = 4;

/// Stretches that must show each of two fields before they tell whether these are used together.
const FEWEST_STRETCHES: f64 = 3.0;

/// Two fields that are used together in a smaller part of the stretches that show the rarer one are two things.
const TOGETHER: f64 = 0.5;

/// Sets of bytes told apart; further ones are not counted.
const MOST_SETS: usize = 32;

/// Accesses of one thread that are a stretch of a complete order: many rounds of a loop that uses several fields.
const STRETCH: u32 = 32;

/// Threads of a line whose stretches are counted.
const MOST_THREADS: usize = 64;

/// Sets of bytes that a thread touched in one stretch, and how many times that was.
#[derive(Clone, Debug, Default)]
pub struct Uses(SmallMap<u128, f64>);

impl PartialEq for Uses {
    fn eq(&self, other: &Uses) -> bool {
        self.0.iter().eq(other.0.iter())
    }
}

impl Uses {
    /// Counts what each thread used in a stretch.
    pub(super) fn add_stretch(&mut self, stretch: &Stretch) {
        for (_, (accesses, touched)) in stretch.0.iter() {
            self.add(*touched, *accesses);
        }
    }

    /// Counts a thread's part in a stretch.
    pub(super) fn add(&mut self, touched: u128, accesses: u32) {
        if accesses >= FEWEST_ACCESSES {
            self.add_times(touched, 1.0);
        }
    }

    /// Adds others'.
    pub fn add_all(&mut self, others: &Uses) {
        for (touched, times) in others.0.iter() {
            self.add_times(*touched, *times);
        }
    }

    fn add_times(&mut self, touched: u128, times: f64) {
        if let Some(sum) = self.0.slot(touched, MOST_SETS) {
            *sum += times;
        }
    }

    /// Whether threads are known to use the one or the other of two fields at a time.
    pub(super) fn apart(&self, a: ByteSet, b: ByteSet) -> bool {
        let (mut of_a, mut of_b, mut of_both) = (0.0, 0.0, 0.0);
        for (touched, times) in self.0.iter() {
            let (has_a, has_b) = (touched & a.0 != 0, touched & b.0 != 0);
            of_a += f64::from(u8::from(has_a)) * times;
            of_b += f64::from(u8::from(has_b)) * times;
            of_both += f64::from(u8::from(has_a && has_b)) * times;
        }
        let rarer = of_a.min(of_b);
        rarer >= FEWEST_STRETCHES && of_both < TOGETHER * rarer
    }
}

/// Accesses of each thread in a stretch, and the bytes they touched.
#[derive(Debug, Default)]
pub(super) struct Stretch(SmallMap<Tid, (u32, u128)>);

impl Stretch {
    /// Counts accesses of a thread.
    pub(super) fn take(&mut self, tid: Tid, accesses: u32, touched: ByteSet) {
        if let Some((sum, bytes)) = self.0.slot(tid, usize::MAX) {
            *sum = sum.saturating_add(accesses);
            *bytes |= touched.0;
        }
    }

    /// Threads in it.
    pub(super) fn threads(&self) -> usize {
        self.0.len()
    }

    /// Accesses of the thread that has most.
    pub(super) fn most_accesses(&self) -> u32 {
        (self.0.iter().map(|(_, (accesses, _))| *accesses).max()).unwrap_or(0)
    }
}

/// The stretches of a complete order, which has no time: so many accesses of one thread.
#[derive(Debug, Default)]
pub(super) struct Stretches {
    /// Accesses, and the bytes they touched.
    open: SmallMap<Tid, (u32, u128)>,
    ended: Uses,
}

impl Stretches {
    fn take(&mut self, tid: Tid, bytes: u128) {
        let Some((accesses, touched)) = self.open.slot(tid, MOST_THREADS) else {
            return;
        };
        *accesses += 1;
        *touched |= bytes;
        if *accesses == STRETCH {
            self.ended.add(*touched, *accesses);
            (*accesses, *touched) = (0, 0);
        }
    }

    /// What each thread used in each of those that ended.
    pub(super) fn uses(&self) -> &Uses {
        &self.ended
    }
}

impl Statistic for Stretches {
    fn see(&mut self, served: &Served, order: &OrderFacts) {
        let bytes = served.touched(order.line_size);
        if !bytes.is_empty() {
            self.take(served.access.tid, bytes.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: u128 = 0xff;
    const B: u128 = 0xff00;

    fn apart(stretches: &[(u128, u32, usize)]) -> bool {
        let mut uses = Uses::default();
        for (touched, accesses, times) in stretches {
            for _ in 0..*times {
                uses.add(*touched, *accesses);
            }
        }
        uses.apart(ByteSet(A), ByteSet(B))
    }

    #[test]
    fn fields_that_a_thread_uses_one_at_a_time_are_apart_and_those_used_at_once_are_not() {
        assert!(apart(&[(A, 9, 10), (B, 9, 10)]));
        assert!(!apart(&[(A | B, 9, 10)]));
        // A waiter that only looks at the lock, and a task that moved in the middle of some windows.
        assert!(!apart(&[(A, 9, 10), (A | B, 9, 10)]));
        assert!(apart(&[(A, 9, 10), (B, 9, 10), (A | B, 9, 3)]));
    }

    #[test]
    fn a_stretch_of_a_complete_order_is_some_accesses_of_one_thread() {
        let stretches = |swap: u32| {
            let mut stretches = Stretches::default();
            for n in 0..10_000 {
                for thread in 0..2 {
                    let is_first = (n / swap + thread).is_multiple_of(2);
                    let bytes = if is_first { A } else { B };
                    stretches.take(Tid(thread), bytes);
                }
            }
            stretches.uses().apart(ByteSet(A), ByteSet(B))
        };
        assert!(stretches(1000));
        assert!(!stretches(1));
    }

    #[test]
    fn few_stretches_and_few_accesses_do_not_tell() {
        assert!(!apart(&[(A, 9, 2), (B, 9, 2)]));
        assert!(!apart(&[(A, 2, 10), (B, 2, 10)]));
        assert!(!apart(&[]));
    }
}
