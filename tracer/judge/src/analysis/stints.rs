//! The samples of a window as a sparse order of accesses, and the lives of copies in it.
//!
//! Threads that fight over a line hand it over far more often than they are sampled, so that neighbours among the samples
//! are as good as chosen at random, and hand-offs among the samples are of the kinds that all hand-offs are of, in the
//! same shares. What happens seldom is another thing: a thread that initialised the line before, a slot that a new owner
//! takes over. It is seen once at any rate of sampling, and would count for too much. So it is told apart by that: of half
//! of the samples, hand-offs of a fight are half as many, and those between two phases as many as before.
//!
//! ```text
//!   samples    A B A B B A B A | C B C B C ..     A ends, C takes over its bytes
//!   half       A     B B     A |   B C            new to C: once in either
//! ```

use super::{
    lifetimes::Lifetimes,
    lives::Lives,
    served::{Home, OnLine, Served},
};
use crate::access::{Access, Cpu, Op, SpaceId, Tid};

/// Stints kept of a window. The kinds of that many are known as well as is useful.
const MOST_STINTS: usize = 128;

/// Samples of one thread on one CPU, without one of another thread in between.
#[derive(Clone, Copy, Debug)]
struct Stint {
    tid: Tid,
    cpu: Cpu,
    samples: u32,
    certain: Bytes,
    widest: Bytes,
}

/// Bytes of the line that a stint touched, and of these the stored ones.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bytes {
    pub(super) touched: u128,
    pub(super) stored: u128,
}

impl Bytes {
    fn add(&mut self, other: Bytes) {
        self.touched |= other.touched;
        self.stored |= other.stored;
    }
}

/// The stints of an open window, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Stints {
    stints: Vec<Stint>,
}

impl Stints {
    /// Notes an access, by the bytes that are certain and by those that are possible; `new` with the first one of its
    /// sample.
    pub(super) fn note(&mut self, tid: Tid, cpu: Cpu, new: bool, certain: Bytes, widest: Bytes) {
        let last = self.stints.last_mut();
        if let Some(stint) = last.filter(|stint| (stint.tid, stint.cpu) == (tid, cpu)) {
            stint.samples += u32::from(new);
            stint.certain.add(certain);
            stint.widest.add(widest);
        } else if self.stints.len() < MOST_STINTS {
            if self.stints.is_empty() {
                // Most lines are one thread's.
                self.stints.reserve_exact(1);
            }
            self.stints.push(Stint {
                tid,
                cpu,
                samples: u32::from(new),
                certain,
                widest,
            });
        }
    }

    /// Forgets the window, and keeps a small one's memory.
    pub(super) fn clear(&mut self) {
        if self.stints.capacity() > 4 {
            self.stints = Vec::new();
        }
        self.stints.clear();
    }

    /// Lives by the bytes that are certain.
    pub(super) fn lives(&self) -> Lives {
        self.weighed(|stint| stint.certain)
    }

    /// Lives if each access of unknown size reached to the end of its word.
    pub(super) fn widest_lives(&self) -> Lives {
        self.weighed(|stint| stint.widest)
    }

    fn weighed(&self, bytes: fn(&Stint) -> Bytes) -> Lives {
        let mut lives = Lives::default();
        let halves: [Taken; 2] = [|_| true, is_of_half];
        for (taken, weight) in halves.into_iter().zip([2.0, -2.0]) {
            let lifetimes = follow(&self.stints, taken, bytes);
            lives.add_all(lifetimes.lives(), weight);
            lifetimes.add_held(&mut lives, weight);
        }
        lives
    }
}

/// Half of the numbers, in no rhythm that samples of several CPUs could have: the Thue-Morse sequence.
fn is_of_half(number: u32) -> bool {
    number.count_ones().is_multiple_of(2)
}

/// Whether the sample of this number is one of those looked at.
type Taken = fn(u32) -> bool;

/// Follows the copies through those stints that have a sample of a taken number.
fn follow(stints: &[Stint], taken: Taken, bytes: fn(&Stint) -> Bytes) -> Lifetimes {
    let mut home = Home::unknown();
    let mut lifetimes = Lifetimes::short();
    let mut sampled = 0;
    for stint in stints {
        let first = sampled;
        sampled += stint.samples;
        // Of three numbers in a row, one is taken.
        if !(first..sampled).take(3).any(taken) {
            continue;
        }
        let Bytes { touched, stored } = bytes(stint);
        let op = if stored == 0 { Op::Load } else { Op::Store };
        let access = OnLine {
            cpu: stint.cpu,
            tid: stint.tid,
            op,
            ..OnLine::new(&Access::BLANK, SpaceId(0), 0, 0)
        };
        let Some(served) = home.serve(access) else {
            continue;
        };
        let touch = |op, missed| Served {
            access: OnLine { op, ..access },
            missed,
            ..served
        };
        lifetimes.see(&touch(Op::Load, served.missed), touched);
        if stored != 0 {
            lifetimes.see(&touch(Op::Store, false), stored);
        }
    }
    lifetimes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{access::ByteSet, analysis::Group};

    const A: u128 = 0xff;
    const B: u128 = 0xff00;

    /// A sample for each thread named, which stores these bytes and loads those.
    fn stints(samples: &[(u32, u128, u128)]) -> Stints {
        let mut stints = Stints::default();
        for (tid, stored, loaded) in samples {
            let bytes = Bytes {
                touched: stored | loaded,
                stored: *stored,
            };
            stints.note(Tid(*tid), Cpu(*tid), true, bytes, bytes);
        }
        stints
    }

    fn kinds(stints: &Stints) -> (f64, f64) {
        let stored = |bytes: u128| Group {
            bytes: ByteSet(bytes),
            writers: vec![Tid(1)],
            readers: Vec::new(),
        };
        let kinds = stints.lives().kinds(&[stored(A), stored(B)]);
        kinds.map_or((0.0, 0.0), |kinds| (kinds.truly, kinds.falsely))
    }

    #[test]
    fn samples_by_turns_show_what_the_threads_hand_over() {
        assert_eq!(
            kinds(&stints(&[(1, A, 0), (2, B, 0)].repeat(20))),
            (0.0, 1.0)
        );
        assert_eq!(
            kinds(&stints(&[(1, A, 0), (2, A, 0)].repeat(20))),
            (1.0, 0.0)
        );
        assert_eq!(
            kinds(&stints(&[(1, A, B), (2, B, A)].repeat(20))),
            (1.0, 1.0)
        );
        assert_eq!(
            kinds(&stints(&[(1, A, 0), (2, 0, A)].repeat(20))),
            (1.0, 0.0)
        );
    }

    #[test]
    fn who_initialised_both_or_owned_one_before_does_not_make_them_shared() {
        let mut samples = vec![(8, A | B, 0)];
        for owner in [1, 3, 5, 7] {
            samples.extend([(owner, A, 0), (2, B, 0), (2, B, 0), (owner, A, 0)].repeat(4));
        }
        let (truly, falsely) = kinds(&stints(&samples));
        assert!(truly < 0.05 && falsely > 0.95, "{truly} {falsely}");
        // Owners that take turns all the time do.
        let by_turns = [(1, A, 0), (2, B, 0), (3, A, 0), (2, B, 0)].repeat(10);
        let (truly, _) = kinds(&stints(&by_turns));
        assert!(truly > 0.4, "{truly}");
    }

    #[test]
    fn one_thread_alone_or_loads_alone_have_no_lives() {
        assert_eq!(kinds(&stints(&[(1, A, B)].repeat(20))), (0.0, 0.0));
        assert_eq!(
            kinds(&stints(&[(1, 0, A), (2, 0, A)].repeat(20))),
            (0.0, 0.0)
        );
    }
}
