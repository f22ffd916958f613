//! Runs of lines, replayed as if they lay elsewhere.

use rustc_hash::FxHashMap;

use super::{
    executed::Executed,
    neighbours::Run,
    replayed::{Replayed, RunElsewhere, UsedLine},
};
use crate::{
    access::{Access, Basis, Cost, LineKey, LineSize, Place, SpaceId},
    analysis::{OrderBounds, OrderedLines, split_by_line::split_by_line},
};

/// Instructions of threads, with the bytes that each accesses, that are told apart on a line. Of further ones the bytes are
/// judged each by itself, and no name is known.
pub(super) const MOST_SITES: usize = 256;

/// Lines are cut as they are today first.
pub(super) const LINE: LineSize = LineSize::B64;

/// Bytes from one start address that is tried to the next: the alignment of the widest numbers and of pointers.
const STEP: u8 = 8;

/// Where a run begins if it does not move: behind memory of its own that it may not reach, at a multiple of the longest line.
const ROOM: u64 = 128;

/// How memory lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Way {
    /// Bytes by which it begins later than it does, below the size of a line.
    pub moved: u8,
    /// 64 or 128.
    pub line_bytes: u8,
}

impl Way {
    /// As it is.
    pub const TODAY: Way = Way {
        moved: 0,
        line_bytes: 64,
    };

    /// All that are replayed, today's first: each start address that is a multiple of eight bytes from today's, and both ways
    /// in which lines of 128 bytes can be made of today's. What lines of 128 bytes that begin elsewhere would cost,
    /// the order of an emulator does not tell.
    pub fn all() -> impl Iterator<Item = Way> {
        let of = |line_bytes, moved| Way { moved, line_bytes };
        let short = (0..64).step_by(STEP.into()).map(move |moved| of(64, moved));
        short.chain([0, 64].map(|moved| of(128, moved)))
    }

    /// Whether what starts at a multiple of so many bytes today, does so this way.
    pub fn keeps(self, alignment: u64) -> bool {
        alignment == 0 || u64::from(self.moved).is_multiple_of(alignment)
    }

    pub(super) fn line_size(self) -> LineSize {
        LineSize::new(self.line_bytes.into()).unwrap_or(LINE)
    }
}

/// Some runs, in all ways in which they may lie. Feed it every access, in order.
#[derive(Debug)]
pub struct Elsewhere {
    runs: Vec<Run>,
    /// By line of 64 bytes: run, and number of the line in it.
    of_line: FxHashMap<LineKey, (u32, u32)>,
    ways: Vec<(Way, OrderedLines)>,
    executed: Executed,
    /// Of the access that is served.
    costs: Vec<Cost<u32>>,
}

impl Elsewhere {
    /// Nothing fed yet.
    pub fn new(runs: Vec<Run>) -> Elsewhere {
        let mut of_line = FxHashMap::default();
        for (run, number) in runs.iter().zip(0..) {
            of_line.extend((0..run.lines).map(|n| (run.line(n), (number, n))));
        }
        let bounds = OrderBounds {
            paired_lines: 0,
            ..OrderBounds::default()
        };
        let order = |way: Way| (way, OrderedLines::new(way.line_size(), bounds));
        Elsewhere {
            runs,
            of_line,
            ways: Way::all().map(order).collect(),
            executed: Executed::default(),
            costs: Vec::new(),
        }
    }

    /// Serves an access at its resolved place; `space` is the address space of the executing process.
    pub fn observe(&mut self, access: &Access, place: Place, space: SpaceId) {
        if access.basis != Basis::Emulated {
            return;
        }
        split_by_line(access, place, LINE, &[], |key, piece| {
            let Some((run, n)) = self.of_line.get(&key).copied() else {
                return;
            };
            let part = Access {
                size: piece.size.into(),
                ..*access
            };
            let first = self.runs[run as usize].first;
            let from_start = u64::from(n) * LINE.bytes() + u64::from(piece.offset);
            for (way, order) in &mut self.ways {
                let place = placed(run, first, from_start, *way);
                order.observe(&part, place, space, &mut self.costs);
            }
            self.executed.count(access, space, key, &piece);
        });
    }

    /// What came of it, run by run in their order. So many hand-offs more than today are worth a look.
    pub fn finish(self, hand_offs: u64) -> Vec<RunElsewhere> {
        let lines = |run: &Run| (0..run.lines).map(|n| self.used(run.line(n))).collect();
        let mut found: Vec<Replayed> = (self.runs.iter())
            .map(|run| Replayed::new(run.first, lines(run)))
            .collect();
        for (way, order) in &self.ways {
            for run in &mut found {
                run.begin(*way);
            }
            for line in order.shared() {
                if let Place::Private { space, addr } = line.key().0
                    && let Some(run) = found.get_mut(space.0 as usize)
                {
                    run.add(line, addr);
                }
            }
        }
        let runs = found.into_iter();
        runs.map(|run| run.finish(hand_offs)).collect()
    }

    fn used(&self, key: LineKey) -> UsedLine {
        UsedLine {
            key,
            sites: self.executed.of(key),
            fights: false,
        }
    }
}

/// Where a byte of a run lies one way, in memory that is the run's alone: of runs that are neighbours, what the one does is
/// no matter for the other.
fn placed(run: u32, first: LineKey, from_start: u64, way: Way) -> Place {
    Place::Private {
        space: SpaceId(run),
        addr: begin(first, way) + from_start,
    }
}

pub(super) fn begin(first: LineKey, way: Way) -> u64 {
    ROOM + first.0.position() % ROOM + u64::from(way.moved)
}
