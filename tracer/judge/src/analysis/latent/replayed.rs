//! What came of a replay: the costs of a run of lines, one way and another, and which of its lines threads would fight for.

use super::{
    elsewhere::{LINE, Way, begin},
    neighbours::{User, Users, most_hand_offs},
};
use crate::{
    access::LineKey,
    analysis::{Group, HandOffs, OrderedLine, Site, SiteCounts, Uses, groups},
};

/// What a run would cost where it lies one way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct There {
    /// Hand-offs of its lines, by kind.
    pub hand_offs: HandOffs,
    /// Messages of the directory protocol that are caused by sharing, as in
    /// [`OrderCounts::shared_transactions`](crate::analysis::OrderCounts::shared_transactions).
    pub messages: u64,
}

impl There {
    /// Both together.
    #[must_use]
    pub fn plus(&self, other: &There) -> There {
        There {
            hand_offs: self.hand_offs.plus(&other.hand_offs),
            messages: self.messages.saturating_add(other.messages),
        }
    }

    /// Hand-offs that would not be if each thread's bytes had lines of their own.
    pub fn for_neighbours(&self) -> u64 {
        self.hand_offs
            .falsely
            .saturating_add(self.hand_offs.dragged)
    }
}

/// A line of 64 bytes as it lies today, and who uses it.
#[derive(Clone, Debug)]
pub struct UsedLine {
    /// The line.
    pub key: LineKey,
    /// Instructions, threads and bytes, in order of appearance.
    pub sites: Vec<SiteCounts>,
    /// Whether threads would fight for it and a neighbour, one way or another, that do not today.
    pub fights: bool,
}

/// A run, and what it would cost.
#[derive(Clone, Debug)]
pub struct RunElsewhere {
    /// Its lines, by place.
    pub lines: Vec<UsedLine>,
    /// In the order of [`Way::all`].
    pub ways: Vec<(Way, There)>,
}

impl RunElsewhere {
    /// The two neighbours that threads would fight for most, if they were one line.
    pub fn worst_neighbours(&self) -> Option<[&UsedLine; 2]> {
        let users: Vec<Option<Users>> = self.lines.iter().map(UsedLine::users).collect();
        let hand_offs = |n: usize| match (&users[n], &users[n + 1]) {
            (Some(line), Some(behind)) => most_hand_offs(line.all(), behind.all()),
            _ => 0,
        };
        let pairs = 0..self.lines.len().saturating_sub(1);
        let worst = pairs.max_by_key(|n| (hand_offs(*n), std::cmp::Reverse(*n)))?;
        Some([&self.lines[worst], &self.lines[worst + 1]])
    }
}

impl UsedLine {
    fn users(&self) -> Option<Users> {
        let mut sites = self.sites.iter().map(|counts| User {
            tid: counts.site.tid,
            executions: u32::try_from(counts.accesses() + counts.trapped).unwrap_or(u32::MAX),
            stored: counts.site.op.stores(),
        });
        let mut users = Users::One(sites.next()?);
        for user in sites {
            users.add(user);
        }
        Some(users)
    }
}

/// A line of a run where it lies one way.
#[derive(Debug)]
struct Window {
    way: Way,
    /// Where it begins in the memory of the run.
    addr: u64,
    there: There,
}

/// A run that was replayed, while what came of it is put together.
#[derive(Debug)]
pub(super) struct Replayed {
    first: LineKey,
    lines: Vec<UsedLine>,
    ways: Vec<(Way, There)>,
    windows: Vec<Window>,
}

impl Replayed {
    pub(super) fn new(first: LineKey, lines: Vec<UsedLine>) -> Replayed {
        Replayed {
            first,
            lines,
            ways: Vec::new(),
            windows: Vec::new(),
        }
    }

    /// What is added from here on is of this way.
    pub(super) fn begin(&mut self, way: Way) {
        self.ways.push((way, There::default()));
    }

    /// A line that begins there in the memory of the run.
    pub(super) fn add(&mut self, line: &OrderedLine, addr: u64) {
        let Some((way, all)) = self.ways.last_mut() else {
            return;
        };
        let groups = groups_at(&self.lines, self.first, addr, *way, line.uses());
        let counts = line.counts(&groups);
        let there = There {
            hand_offs: counts.hand_offs,
            messages: counts.shared_transactions,
        };
        *all = all.plus(&there);
        self.windows.push(Window {
            way: *way,
            addr,
            there,
        });
    }

    /// So many hand-offs more than today make a line one that threads would fight for; any, where no line has as many.
    pub(super) fn finish(mut self, hand_offs: u64) -> RunElsewhere {
        let mut today = vec![0; self.lines.len()];
        for window in &self.windows {
            if window.way == Way::TODAY {
                for n in self.covered(window) {
                    today[n] += window.there.for_neighbours();
                }
            }
        }
        let more = |window: &Window| {
            let covered = self.covered(window);
            let today: u64 = today[covered.clone()].iter().sum();
            let there = window.there.for_neighbours();
            (covered, there.saturating_sub(today))
        };
        let windows: Vec<_> = self.windows.iter().map(more).collect();
        // Where it is a little on each of many lines, it is on all of these.
        let most = windows.iter().map(|(_, more)| *more).max().unwrap_or(0);
        let least = if most >= hand_offs { hand_offs } else { 1 };
        for (covered, _) in windows.into_iter().filter(|(_, more)| *more >= least) {
            for line in &mut self.lines[covered] {
                line.fights = true;
            }
        }
        RunElsewhere {
            lines: self.lines,
            ways: self.ways,
        }
    }

    /// The lines, as they lie today, that have bytes in a window.
    fn covered(&self, window: &Window) -> std::ops::Range<usize> {
        let begin = begin(self.first, window.way);
        let end = window.addr + u64::from(window.way.line_bytes);
        let number = |at: u64| (at.saturating_sub(begin) / LINE.bytes()) as usize;
        let last = number(end.saturating_sub(1)) + 1;
        let most = self.lines.len();
        number(window.addr).min(most)..last.min(most)
    }
}

/// The bytes of a line one way, by who uses them: `addr` is where the line begins in the memory of the run.
fn groups_at(lines: &[UsedLine], first: LineKey, addr: u64, way: Way, uses: &Uses) -> Vec<Group> {
    let line_size = way.line_size();
    let begin = begin(first, way);
    let mut sites = Vec::new();
    for (n, used) in lines.iter().enumerate() {
        let at = begin + n as u64 * LINE.bytes();
        if at + LINE.bytes() <= addr || at >= addr + line_size.bytes() {
            continue;
        }
        for counts in &used.sites {
            let from = at + u64::from(counts.site.offset);
            let to = from + u64::from(counts.site.size);
            let (from, to) = (from.max(addr), to.min(addr + line_size.bytes()));
            if from < to {
                sites.push(SiteCounts {
                    site: Site {
                        offset: (from - addr) as u8,
                        size: (to - from) as u8,
                        ..counts.site
                    },
                    ..counts.clone()
                });
            }
        }
    }
    groups(&sites, uses, line_size)
}
