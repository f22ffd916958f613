//! Threads on several CPUs that do something at the same time, or not at all.
//!
//! A CPU of a virtual machine may be away for tens of milliseconds. What the others did meanwhile, ahead of it, would be in vain.

use std::{
    sync::atomic::{AtomicU8, AtomicUsize, Ordering},
    time::{Duration, Instant},
};

const WAITING: u8 = 0;
const MET: u8 = 1;
const GIVEN_UP: u8 = 2;

/// Where so many threads meet, once.
#[derive(Debug)]
pub(super) struct Rendezvous {
    missing: AtomicUsize,
    state: AtomicU8,
}

impl Rendezvous {
    /// For so many.
    pub(super) fn of(threads: usize) -> Rendezvous {
        Rendezvous {
            missing: AtomicUsize::new(threads),
            state: AtomicU8::new(WAITING),
        }
    }

    /// Waits for the others, without giving up the CPU. All get the same answer: whether they met before the first of them had
    /// waited for `most`.
    pub(super) fn meet(&self, most: Duration) -> bool {
        // What it is to be, if nobody was before.
        let settle = |to| {
            let (success, failure) = (Ordering::AcqRel, Ordering::Acquire);
            let settled = (self.state).compare_exchange(WAITING, to, success, failure);
            settled.map_or_else(|already| already == MET, |_| to == MET)
        };
        if self.missing.fetch_sub(1, Ordering::AcqRel) == 1 {
            return settle(MET);
        }
        let start = Instant::now();
        while self.state.load(Ordering::Acquire) == WAITING {
            if start.elapsed() >= most {
                return settle(GIVEN_UP);
            }
            std::hint::spin_loop();
        }
        self.state.load(Ordering::Acquire) == MET
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    const LONG: Duration = Duration::from_mins(1);

    /// What each of `coming` threads is told where so many were expected.
    fn answers(expected: usize, coming: usize, most: Duration) -> Vec<bool> {
        let place = Rendezvous::of(expected);
        thread::scope(|scope| {
            let come = |_| scope.spawn(|| place.meet(most));
            let all: Vec<_> = (0..coming).map(come).collect();
            all.into_iter().map(|one| one.join().unwrap()).collect()
        })
    }

    #[test]
    fn threads_meet_when_all_come_and_none_does_when_one_stays_away() {
        assert_eq!(answers(3, 3, LONG), [true; 3]);
        assert_eq!(answers(1, 1, Duration::ZERO), [true]);
        assert_eq!(answers(3, 2, Duration::from_millis(5)), [false; 2]);
    }

    #[test]
    fn who_comes_late_is_told_what_the_others_were() {
        for _ in 0..200 {
            let all = answers(2, 2, Duration::from_micros(20));
            assert_eq!(all[0], all[1]);
        }
    }
}
