//! Who uses which bytes of which line, as far as it takes to see whose neighbours could fight.

use crate::{
    access::{Access, Basis, LineKey, LineSize, Place, Tid},
    analysis::split_by_line::split_by_line,
    coherence::Lines,
};

/// How much is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NeighbourBounds {
    /// Lines of 64 bytes; what is on more is left out and counted in [`Runs::untracked`].
    pub lines: usize,
    /// Pairs of neighbouring lines that are worth a replay, those first where threads could be in each other's way most
    /// often; the others are counted in [`Runs::left_out`].
    pub pairs: usize,
}

impl Default for NeighbourBounds {
    /// 4 Mi lines, 256 MiB of memory that a program touches, in some 300 MiB of ours; 8192 pairs, whose replays take 100 MiB
    /// and more where many threads use them.
    fn default() -> Self {
        NeighbourBounds {
            lines: 1 << 22,
            pairs: 1 << 13,
        }
    }
}

/// Threads of a line that are told apart; accesses of others are not counted.
const MOST_USERS: usize = 64;

/// Lines are looked at as they are today, and longer ones are made of these.
const LINE: LineSize = LineSize::B64;

/// What a thread did on a line.
#[derive(Clone, Copy, Debug)]
pub(super) struct User {
    pub(super) tid: Tid,
    /// Repeats included.
    pub(super) executions: u32,
    pub(super) stored: bool,
}

/// The threads of a line.
#[derive(Clone, Debug)]
pub(super) enum Users {
    One(User),
    Several(Vec<User>),
}

impl Users {
    pub(super) fn all(&self) -> &[User] {
        match self {
            Users::One(user) => std::slice::from_ref(user),
            Users::Several(users) => users,
        }
    }

    pub(super) fn add(&mut self, user: User) {
        match self {
            Users::One(known) if known.tid == user.tid => known.add(user),
            Users::One(known) => *self = Users::Several(vec![*known, user]),
            Users::Several(users) => {
                if let Some(known) = users.iter_mut().find(|one| one.tid == user.tid) {
                    known.add(user);
                } else if users.len() < MOST_USERS {
                    users.push(user);
                }
            }
        }
    }
}

impl User {
    fn add(&mut self, more: User) {
        self.executions = self.executions.saturating_add(more.executions);
        self.stored |= more.stored;
    }
}

/// Lines of 64 bytes, one behind the other in the same memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The first of them.
    pub first: LineKey,
    /// How many, at least two.
    pub lines: u32,
}

impl Run {
    /// The line of that number.
    pub fn line(&self, n: u32) -> LineKey {
        let position = self.first.0.position() + u64::from(n) * LINE.bytes();
        LineKey(self.first.0.at(position))
    }
}

/// Who uses a line less than this part of what its busiest thread does, sets it up.
pub(super) const RARE: f64 = 0.02;

/// What is worth a replay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Runs {
    /// Neighbouring lines of which each two may be fought for, by place.
    pub runs: Vec<Run>,
    /// The first line of each two of them, by place.
    pub pairs: Vec<LineKey>,
    /// Pairs of neighbours that may be, beyond the bound.
    pub left_out: u64,
    /// Accesses on lines beyond the bound.
    pub untracked: u64,
}

/// All lines of a run whose order is complete. Feed it every access, in any order.
#[derive(Debug)]
pub struct Neighbours {
    bounds: NeighbourBounds,
    lines: Lines,
    /// By number of the line.
    users: Vec<(LineKey, Users)>,
    untracked: u64,
}

impl Neighbours {
    /// Nothing fed yet.
    pub fn new(bounds: NeighbourBounds) -> Neighbours {
        Neighbours {
            bounds,
            lines: Lines::up_to(LINE, bounds.lines),
            users: Vec::new(),
            untracked: 0,
        }
    }

    /// Takes an access at its resolved place; of what no emulator saw, nothing.
    pub fn observe(&mut self, access: &Access, place: Place) {
        if access.basis != Basis::Emulated || !access.op.touches() {
            return;
        }
        let user = User {
            tid: access.tid,
            executions: u32::try_from(access.executions()).unwrap_or(u32::MAX),
            stored: access.op.stores(),
        };
        split_by_line(access, place, LINE, &[], |key, _| {
            let Some(line) = self.lines.line(key) else {
                self.untracked += 1;
                return;
            };
            match self.users.get_mut(line.id as usize) {
                Some((_, users)) => users.add(user),
                None => self.users.push((key, Users::One(user))),
            }
        });
    }

    /// Whether no emulator saw anything.
    pub fn is_empty(&self) -> bool {
        self.users.is_empty()
    }

    /// The lines whose neighbours could be handed from thread to thread at least so many times if both were one.
    pub fn runs(&self, hand_offs: u64) -> Runs {
        let mut ranked: Vec<(u64, LineKey)> = Vec::new();
        for (key, users) in &self.users {
            let behind = self.behind(*key);
            let most = behind.map_or(0, |behind| most_hand_offs(users.all(), behind.all()));
            if most > 0 && most >= hand_offs {
                ranked.push((most, *key));
            }
        }
        ranked.sort_unstable_by(|(a, at), (b, other)| b.cmp(a).then_with(|| at.cmp(other)));
        let left_out = ranked.len().saturating_sub(self.bounds.pairs) as u64;
        ranked.truncate(self.bounds.pairs);
        let mut firsts: Vec<LineKey> = ranked.into_iter().map(|(_, key)| key).collect();
        firsts.sort_unstable();
        let pairs = firsts.clone();
        let mut runs: Vec<Run> = Vec::new();
        for first in firsts {
            match runs.last_mut() {
                Some(run) if run.line(run.lines - 1) == first => run.lines += 1,
                _ => runs.push(Run { first, lines: 2 }),
            }
        }
        Runs {
            runs,
            pairs,
            left_out,
            untracked: self.untracked,
        }
    }

    /// The users of the line behind.
    fn behind(&self, key: LineKey) -> Option<&Users> {
        let position = key.0.position().checked_add(LINE.bytes())?;
        let behind = LineKey(key.0.at(position));
        let line = key.0.reaches(position).then(|| self.lines.get(behind))??;
        Some(&self.users.get(line.id as usize)?.1)
    }
}

/// Times that a line of both lines' bytes could go from a user of the one to one of the other and back, at most: each of the
/// rarer one's accesses may be such a turn.
pub(super) fn most_hand_offs(line: &[User], behind: &[User]) -> u64 {
    let turns = |user: &User| {
        let others = behind
            .iter()
            .filter(|other| other.tid != user.tid && (user.stored || other.stored));
        let others: u64 = others.map(|other| u64::from(other.executions)).sum();
        u64::from(user.executions).min(others)
    };
    line.iter().map(turns).sum::<u64>().saturating_mul(2)
}
