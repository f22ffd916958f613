//! What two neighbours would cost if one of them lay closer to the other: two blocks of the heap, without the block between them
//! or with a smaller one before.
//!
//! ```text
//!   today                          |aaaa........bbbb|....cccc........|
//!   the second 16 bytes earlier    |aaaa........bbbb|cccc............|
//!   the second 32 bytes earlier    |aaaa....bbbbcccc|................|     closer than b's end: not replayed
//!   the first 16 bytes later       |....aaaa........|bbbbcccc........|     b and c fight
//! ```
//!
//! Farther from each other they meet no more than they do today, and both together are moved by
//! [`Elsewhere`](super::Elsewhere). Only the two lines are looked at. Whether what lies on them are two objects, and may come
//! that close, who knows the names can tell.

use rustc_hash::FxHashMap;

use super::{
    counted::{Counted, at},
    elsewhere::LINE,
    neighbours::RARE,
    replayed::{RunElsewhere, There, UsedLine},
};
use crate::{
    access::{Access, Basis, LineKey, Place, SpaceId},
    analysis::{Site, Way, split_by_line::split_by_line},
};

/// Blocks of the heap begin at multiples of so many bytes.
const STEP: u8 = 16;

/// Which of two neighbours moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mover {
    /// The first, to the second: it begins so many bytes later.
    First(u8),
    /// The second, to the first: it begins so many bytes earlier.
    Second(u8),
}

impl Mover {
    /// Each way that malloc may move one of two blocks within a line.
    fn all() -> impl Iterator<Item = Mover> {
        let steps = || (STEP..LINE.bytes() as u8).step_by(STEP.into());
        steps().map(Mover::First).chain(steps().map(Mover::Second))
    }

    /// Bytes by which it moves.
    pub fn bytes(self) -> u8 {
        match self {
            Mover::First(bytes) | Mover::Second(bytes) => bytes,
        }
    }
}

/// Two neighbouring lines, and what they would cost closer to each other.
#[derive(Clone, Debug)]
pub struct PairMoved {
    /// What they cost as they are.
    pub today: There,
    /// What they would cost, each way that leaves what is used of them apart.
    pub moved: Vec<(Mover, There)>,
    /// Both lines as they are.
    pub run: RunElsewhere,
}

/// Some pairs of neighbours, in all ways in which one of them may move. Feed it every access, in order.
#[derive(Debug)]
pub struct OneMoves {
    /// The first line of each.
    pairs: Vec<LineKey>,
    /// By line: pair, and whether the line is its second.
    of_line: FxHashMap<LineKey, Vec<(u32, bool)>>,
    today: Counted,
    moved: Vec<(Mover, Counted)>,
}

impl OneMoves {
    /// Nothing fed yet. Of each pair the first line.
    pub fn new(pairs: Vec<LineKey>) -> OneMoves {
        let mut of_line: FxHashMap<LineKey, Vec<(u32, bool)>> = FxHashMap::default();
        for (first, number) in pairs.iter().zip(0..) {
            for (line, is_second) in lines(*first).into_iter().zip([false, true]) {
                of_line.entry(line).or_default().push((number, is_second));
            }
        }
        OneMoves {
            pairs,
            of_line,
            today: Counted::new(),
            moved: Mover::all().map(|mover| (mover, Counted::new())).collect(),
        }
    }

    /// Serves an access at its resolved place; `space` is the address space of the executing process.
    pub fn observe(&mut self, access: &Access, place: Place, space: SpaceId) {
        if access.basis != Basis::Emulated {
            return;
        }
        split_by_line(access, place, LINE, &[], |key, piece| {
            let Some(pairs) = self.of_line.get(&key) else {
                return;
            };
            let part = Access {
                size: piece.size.into(),
                ..*access
            };
            let position = key.0.position() + u64::from(piece.offset);
            for (number, is_second) in pairs {
                self.today.take(&part, at(*number, position), space);
                for (mover, counted) in &mut self.moved {
                    let position = match mover {
                        Mover::First(bytes) if !is_second => position + u64::from(*bytes),
                        Mover::Second(bytes) if *is_second => position - u64::from(*bytes),
                        _ => position,
                    };
                    counted.take(&part, at(*number, position), space);
                }
            }
        });
    }

    /// What came of it, pair by pair.
    pub fn finish(self) -> Vec<PairMoved> {
        let pairs = self.pairs.iter().zip(0..);
        let mut found: Vec<PairMoved> = pairs
            .map(|(first, number)| {
                let lines = lines(*first).map(|key| self.used(number, key));
                let room = room(&lines);
                let movers = Mover::all().filter(|mover| mover.bytes() <= room);
                PairMoved {
                    today: There::default(),
                    moved: movers.map(|mover| (mover, There::default())).collect(),
                    run: RunElsewhere {
                        lines: lines.to_vec(),
                        ways: Vec::new(),
                    },
                }
            })
            .collect();
        for (number, _, there) in self.today.shared() {
            if let Some(pair) = found.get_mut(number) {
                pair.today = pair.today.plus(&there);
            }
        }
        for (mover, counted) in &self.moved {
            for (number, _, there) in counted.shared() {
                let pair = found.get_mut(number);
                let moved = pair.and_then(|pair| pair.moved.iter_mut().find(|(m, _)| m == mover));
                if let Some((_, sum)) = moved {
                    *sum = sum.plus(&there);
                }
            }
        }
        for pair in &mut found {
            pair.run.ways.push((Way::TODAY, pair.today));
        }
        found
    }

    fn used(&self, number: u32, key: LineKey) -> UsedLine {
        UsedLine {
            key,
            sites: self.today.sites(LineKey(at(number, key.0.position()))),
            fights: true,
        }
    }
}

fn lines(first: LineKey) -> [LineKey; 2] {
    let position = first.0.position();
    [0, LINE.bytes()].map(|behind| LineKey(first.0.at(position + behind)))
}

/// Bytes between the last that is used often of the first line and the first that is of the second; what is used rarely is set
/// up, or the allocator's.
fn room([first, second]: &[UsedLine; 2]) -> u8 {
    let often = |line: &UsedLine| {
        let most = line.sites.iter().map(|counts| counts.emulated).max();
        let least = most.unwrap_or(0) as f64 * RARE;
        let sites = line.sites.iter();
        let often = sites.filter(move |counts| counts.emulated as f64 >= least);
        often.map(|counts| counts.site).collect::<Vec<Site>>()
    };
    let last = often(first)
        .iter()
        .map(|site| site.offset + site.size)
        .max();
    let next = often(second).iter().map(|site| site.offset).min();
    let room = last
        .zip(next)
        .map(|(last, next)| LINE.bytes() as u8 - last + next);
    room.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        access::Op,
        analysis::{NeighbourBounds, Neighbours, emulated_fixture::emulated},
    };

    /// The start of a line.
    const BASE: u64 = 0x7f00_0000_1000;
    const ROUNDS: u64 = 1000;

    fn place(access: &Access) -> Place {
        Place::Private {
            space: SpaceId(3),
            addr: access.addr,
        }
    }

    /// Two threads add by turns, each to its own word, after a third that sets up all of the memory.
    fn moved(words: [u64; 2]) -> Vec<PairMoved> {
        let clear = |at| emulated(9, 0x40_3000, Op::Store, BASE + at);
        let mut order: Vec<Access> = (0..128).step_by(8).map(clear).collect();
        for _ in 0..ROUNDS {
            for (word, thread) in words.iter().zip(1..) {
                order.push(emulated(thread, 0x40_1000, Op::Rmw, BASE + word));
            }
        }
        let mut neighbours = Neighbours::new(NeighbourBounds::default());
        for access in &order {
            neighbours.observe(access, place(access));
        }
        let mut moves = OneMoves::new(neighbours.runs(8).pairs);
        for access in &order {
            moves.observe(access, place(access), SpaceId(3));
        }
        moves.finish()
    }

    #[test]
    fn one_of_two_neighbours_meets_the_other_where_it_comes_onto_its_line() {
        for words in [[0, 64], [8, 96], [32, 64], [40, 88], [16, 120]] {
            let [first, second] = words;
            let found = moved(words);
            let [pair] = &found[..] else {
                panic!("one pair: {words:?}");
            };
            assert!(pair.today.for_neighbours() <= 4);
            for (mover, there) in &pair.moved {
                let bytes = u64::from(mover.bytes());
                let (a, b) = match mover {
                    Mover::First(_) => (first + bytes, second),
                    Mover::Second(_) => (first, second - bytes),
                };
                assert!(a < b, "{words:?} {mover:?}");
                let meet = a / 64 == b / 64;
                let many = there.for_neighbours() >= 2 * ROUNDS - 6;
                assert_eq!(many, meet, "{words:?} {mover:?}: {there:?}");
            }
            // As many as there is room for.
            let room = (second - first - 8) / 16;
            assert_eq!(pair.moved.len() as u64, 2 * room.min(3), "{words:?}");
        }
    }

    #[test]
    fn neighbours_without_room_between_them_are_not_moved() {
        let none = |words| moved(words).iter().all(|pair| pair.moved.is_empty());
        assert!(none([56, 64]));
        assert!(none([48, 64]));
        // The twin.
        assert!(!none([40, 64]));
    }
}
