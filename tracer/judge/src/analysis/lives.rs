//! Hand-offs of a line by kind: what each brought to its taker, per group of bytes.
//!
//! A copy of a line comes to a CPU after another thread stored there, is used, and is lost again to the next store. Of
//! each such life two sets of bytes tell what it was for:
//!
//! ```text
//!   bytes of the line     |aaaaaaaa|bbbbbbbb|cccccccc|
//!   touched by the taker   x         x
//!   new to it              y                            stored by others since it had the line before
//! ```
//!
//! [Groups](super::groups) say which bytes belong together, since the same threads use them. Had each group a line of its
//! own, then
//! - the life would be all the same for a group that was touched and is new in part (`a`): this is *true* sharing;
//! - the copy of a group that was touched and has nothing new (`b`) would never have left: it is a victim of its
//!   neighbours, which is *false* sharing.
//!
//! A life may be both, with one exception: a group that nobody stores to is no victim of a life that its user needed
//! anyway. What a lock's taker reads beside it comes with it for nothing. A group that the taker stores to is: its
//! ownership was taken away. Bytes that no group holds are judged each by itself.
//!
//! The same pairs of sets come from a complete order, from a watch window's, and from samples in their order, so that
//! one rule judges them all.

use super::groups::Group;
use super::small_map::SmallMap;

/// Pairs of sets told apart for a line; lives beyond it are counted without a kind. Those of a loop come in a handful;
/// of many threads' fields on one line, any sample of them tells the shares.
const MOST_PAIRS: usize = 64;

/// What one life of a copy was for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Life {
    /// Bytes that the taker touched while it had the copy.
    pub(super) touched: u128,
    /// Bytes that another thread had stored since the taker had the line before.
    pub(super) new: u128,
}

/// What a hand-off was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The taker used nothing of it, or nothing is new: nobody knows what for.
    Unknown,
    /// What the taker used was new, all or what matters of it.
    True,
    /// Nothing was.
    False,
    /// Some of it was, and of the rest others store to some.
    Both,
}

/// Misses by which a line came to a CPU after another thread, on another CPU, had stored to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HandOffs {
    /// Those that brought a change of bytes which the taker used.
    pub truly: u64,
    /// Those that brought nothing the taker used before it lost the line again.
    pub falsely: u64,
    /// Of those that count as true: hand-offs that also took along bytes to which the taker or others store, and which
    /// nobody had changed.
    pub dragged: u64,
    /// Those whose copy was still held at the end, without a use until then: of any kind.
    pub undecided: u64,
}

impl HandOffs {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.truly + self.falsely + self.undecided
    }

    /// Both together.
    #[must_use]
    pub fn plus(&self, other: &HandOffs) -> HandOffs {
        HandOffs {
            truly: self.truly.saturating_add(other.truly),
            falsely: self.falsely.saturating_add(other.falsely),
            dragged: self.dragged.saturating_add(other.dragged),
            undecided: self.undecided.saturating_add(other.undecided),
        }
    }

    /// Those of a known kind.
    pub fn decided(&self) -> u64 {
        self.truly + self.falsely
    }

    /// The parts of the decided ones; `None` when none is decided.
    pub fn kinds(&self) -> Option<Kinds> {
        let part = |n: u64| n as f64 / self.decided() as f64;
        (self.decided() > 0).then(|| Kinds {
            truly: part(self.truly),
            falsely: part(self.falsely + self.dragged),
        })
    }
}

/// The parts of a line's hand-offs, 0..=1, that are of each kind. They overlap where one hand-off is both: a queue's
/// two positions on one line, each stored by one thread and read by the other, are all true and all false.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct Kinds {
    /// Hand-offs that would also be if each group of bytes had a line of its own.
    pub truly: f64,
    /// Hand-offs that took along bytes which nobody had changed, and that their user would still have.
    pub falsely: f64,
}

/// The lives of a line's copies, summed.
#[derive(Clone, Debug, Default)]
pub struct Lives {
    pairs: SmallMap<Life, f64>,
    /// Without a pair of sets to judge them by.
    unknown: f64,
}

impl Lives {
    /// Counts a life, or what it weighs.
    pub(super) fn add(&mut self, life: Life, weight: f64) {
        let tells = life.touched != 0 && life.new != 0;
        let sum = tells.then(|| self.pairs.slot(life, MOST_PAIRS)).flatten();
        *sum.unwrap_or(&mut self.unknown) += weight;
    }

    /// Adds others', each times a factor.
    pub(super) fn add_all(&mut self, others: &Lives, factor: f64) {
        for (life, weight) in others.pairs.iter() {
            self.add(*life, weight * factor);
        }
        self.unknown += others.unknown * factor;
    }

    /// Their sum.
    pub(super) fn all(&self) -> f64 {
        self.unknown + self.known()
    }

    /// The sum of those that have a pair of sets.
    pub(super) fn known(&self) -> f64 {
        self.pairs.iter().map(|(_, weight)| *weight).sum()
    }

    /// The parts of each kind; `None` where no life tells. `groups` do not overlap.
    pub fn kinds(&self, groups: &[Group]) -> Option<Kinds> {
        self.sums(groups).kinds()
    }

    /// Whole lives by kind, and with them those in `held`, which are not over: of these only a use of something new
    /// is known.
    pub(super) fn hand_offs(&self, held: &Lives, groups: &[Group]) -> HandOffs {
        let (over, held) = (self.sums(groups), held.sums(groups));
        let count = |sum: f64| sum.round() as u64;
        HandOffs {
            truly: count(over.truly + over.both + held.truly + held.both),
            falsely: count(over.falsely),
            dragged: count(over.both + held.both),
            undecided: count(over.unknown + held.falsely + held.unknown),
        }
    }

    /// The parts of each kind among whole lives and those in `held`, without lives that no other is like, where the others
    /// are at least as many: what was set up before threads shared the line, or summed after, comes once.
    pub(super) fn lasting_kinds(&self, held: &Lives, groups: &[Group]) -> Option<Kinds> {
        let mut all = self.clone();
        all.add_all(held, 1.0);
        all.pairs.retain(|_, weight| *weight > 1.0);
        let lasting = |lives: &Lives| {
            let mut lasting = lives.clone();
            lasting
                .pairs
                .retain(|life, _| all.pairs.get(life).is_some());
            lasting
        };
        let every = self.hand_offs(held, groups);
        let lasting = lasting(self).hand_offs(&lasting(held), groups);
        if 2 * lasting.decided() < every.decided() {
            return every.kinds();
        }
        lasting.kinds()
    }

    fn sums(&self, groups: &[Group]) -> Sums {
        let mut sums = Sums {
            unknown: self.unknown,
            ..Sums::default()
        };
        for (life, weight) in self.pairs.iter() {
            sums.add(*life, groups, *weight);
        }
        sums
    }
}

/// Lives by kind.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sums {
    truly: f64,
    falsely: f64,
    both: f64,
    unknown: f64,
}

impl Sums {
    /// Counts a life, or what it weighs.
    pub(super) fn add(&mut self, life: Life, groups: &[Group], weight: f64) {
        let sum = match life.kind(groups) {
            Kind::Unknown => &mut self.unknown,
            Kind::True => &mut self.truly,
            Kind::False => &mut self.falsely,
            Kind::Both => &mut self.both,
        };
        *sum += weight;
    }

    /// The parts of each kind; `None` where no life tells.
    pub(super) fn kinds(&self) -> Option<Kinds> {
        let all = self.truly + self.falsely + self.both;
        let part = |sum: f64| (sum / all).clamp(0.0, 1.0);
        (all > 0.0).then(|| Kinds {
            truly: part(self.truly + self.both),
            falsely: part(self.falsely + self.both),
        })
    }
}

impl Life {
    fn kind(self, groups: &[Group]) -> Kind {
        let (mut changed, mut unchanged, mut dragged) = (false, false, false);
        let mut rest = u128::MAX;
        for group in groups {
            let bytes = group.bytes.0;
            rest &= !bytes;
            if self.touched & bytes == 0 {
                continue;
            }
            if self.new & bytes != 0 {
                changed = true;
            } else {
                unchanged = true;
                dragged |= group.is_stored();
            }
        }
        changed |= self.touched & rest & self.new != 0;
        unchanged |= self.touched & rest & !self.new != 0;
        match (changed, unchanged) {
            _ if self.new == 0 => Kind::Unknown,
            (true, _) if dragged => Kind::Both,
            (true, _) => Kind::True,
            (false, true) => Kind::False,
            (false, false) => Kind::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::{ByteSet, Tid};

    const A: u128 = 0xff;
    const B: u128 = 0xff00;
    const C: u128 = 0xff_0000;
    /// Only read.
    const READ: u128 = 0xff00_0000;

    fn group(bytes: u128) -> Group {
        Group {
            bytes: ByteSet(bytes),
            writers: if bytes == READ { vec![] } else { vec![Tid(1)] },
            readers: vec![Tid(2)],
        }
    }

    fn kinds(lives: &[(u128, u128, f64)], groups: &[u128]) -> Option<(f64, f64)> {
        let mut all = Lives::default();
        for (touched, new, weight) in lives {
            let (touched, new) = (*touched, *new);
            all.add(Life { touched, new }, *weight);
        }
        let groups: Vec<Group> = groups.iter().map(|bytes| group(*bytes)).collect();
        let kinds = all.kinds(&groups)?;
        Some((kinds.truly, kinds.falsely))
    }

    #[test]
    fn a_change_of_what_is_used_is_true_and_one_of_neighbours_false() {
        assert_eq!(kinds(&[(A, A, 5.0)], &[A, B]), Some((1.0, 0.0)));
        assert_eq!(kinds(&[(A, B, 5.0)], &[A, B]), Some((0.0, 1.0)));
        assert_eq!(
            kinds(&[(A, A, 3.0), (B, A, 1.0)], &[A, B]),
            Some((0.75, 0.25))
        );
    }

    #[test]
    fn a_position_of_ones_own_beside_that_of_the_other_is_both_at_once() {
        // Each reads the other's and stores its own; who has them in one group has one thing that both use.
        let queue = [(A | B, A, 5.0), (A | B, B, 5.0)];
        assert_eq!(kinds(&queue, &[A, B]), Some((1.0, 1.0)));
        assert_eq!(kinds(&queue, &[A | B]), Some((1.0, 0.0)));
        assert_eq!(kinds(&[(A | C, A, 1.0)], &[A, C]), Some((1.0, 1.0)));
    }

    #[test]
    fn what_is_only_read_is_no_victim_of_a_life_that_was_needed_anyway() {
        assert_eq!(kinds(&[(A | READ, A, 1.0)], &[A, READ]), Some((1.0, 0.0)));
        // By itself it is.
        assert_eq!(kinds(&[(READ, A, 1.0)], &[A, READ]), Some((0.0, 1.0)));
    }

    #[test]
    fn bytes_without_a_group_are_judged_one_by_one() {
        assert_eq!(kinds(&[(A, 0xf, 1.0)], &[]), Some((1.0, 0.0)));
        assert_eq!(kinds(&[(A, B, 1.0)], &[]), Some((0.0, 1.0)));
        assert_eq!(kinds(&[(A, B, 1.0)], &[A | B]), Some((1.0, 0.0)));
        assert_eq!(kinds(&[(A, A | B, 1.0)], &[B]), Some((1.0, 0.0)));
    }

    #[test]
    fn what_was_not_used_or_brought_nothing_has_no_kind() {
        assert_eq!(kinds(&[(0, A, 5.0), (A, 0, 5.0)], &[A, B]), None);
        let mut lives = Lives::default();
        lives.add(Life { touched: 0, new: A }, 1.0);
        let mut held = Lives::default();
        held.add(Life { touched: A, new: A }, 1.0);
        held.add(Life { touched: B, new: A }, 1.0);
        let found = lives.hand_offs(&held, &[group(A), group(B)]);
        let expected = HandOffs {
            truly: 1,
            undecided: 2,
            ..HandOffs::default()
        };
        assert_eq!(found, expected);
        assert_eq!((found.total(), found.decided()), (3, 1));
    }

    #[test]
    fn what_came_once_beside_what_goes_on_tells_no_kind() {
        let kinds = |victims: f64, last: u128| {
            let mut lives = Lives::default();
            lives.add(
                Life {
                    touched: A,
                    new: A | B,
                },
                1.0,
            );
            lives.add(Life { touched: B, new: A }, victims);
            let mut held = Lives::default();
            held.add(
                Life {
                    touched: last,
                    new: A | B,
                },
                1.0,
            );
            let kinds = lives.lasting_kinds(&held, &[group(A), group(B)])?;
            Some((kinds.truly, kinds.falsely))
        };
        assert_eq!(kinds(2.0, A | B), Some((0.0, 1.0)));
        // Twice the same is no accident, and two of three are most of them.
        assert_eq!(kinds(2.0, A), Some((0.5, 0.5)));
        assert_eq!(kinds(1.0, A | B), Some((2.0 / 3.0, 1.0 / 3.0)));
    }

    #[test]
    fn more_pairs_than_are_kept_are_counted_without_a_kind() {
        let mut lives = Lives::default();
        for n in 0..2 * MOST_PAIRS as u128 {
            lives.add(
                Life {
                    touched: 1 << (n % 100),
                    new: 1 << 127 | n,
                },
                1.0,
            );
        }
        let found = lives.hand_offs(&Lives::default(), &[]);
        assert_eq!(found.total(), 2 * MOST_PAIRS as u64);
        assert_eq!(found.undecided, MOST_PAIRS as u64);
    }
}
