//! Neighbouring lines of which samples, or watch windows, show that threads use each one of their own at the same time.
//!
//! Without an order nothing can be replayed: that threads would be on one line follows from the bytes that they use, and what it
//! would cost is not known. A thread that uses both lines is in the other's way today or never, so that only those count that
//! have the one line and not the other.

use rustc_hash::FxHashMap;

use super::{
    elsewhere::{LINE, Way},
    neighbours::RARE,
    replayed::{RunElsewhere, UsedLine},
};
use crate::{
    access::{Access, Basis, LineKey, Place, SpaceId, Tid},
    analysis::{Site, SiteCounts, small_map::SmallMap, split_by_line::split_by_line},
};

/// Lines that are kept, 64 bytes each; accesses on further ones are counted in [`SampledUses::untracked`].
const MOST_LINES: usize = 1 << 16;
/// Instructions of threads, with the bytes that each accesses, that are told apart on a line.
const MOST_SITES: usize = 64;
/// Accesses that each of two threads must be seen with: fewer are chance.
const LEAST_ACCESSES: u64 = 8;

/// An instruction of a thread on some bytes of a line.
#[derive(Clone, Debug)]
struct Seen {
    counts: SiteCounts,
    /// CLOCK_MONOTONIC, nanoseconds.
    first_ns: u64,
    last_ns: u64,
}

/// All lines of a run that was sampled or watched. Feed it every access.
#[derive(Debug, Default)]
pub struct SampledUses {
    lines: FxHashMap<LineKey, SmallMap<Site, Option<Seen>>>,
    untracked: u64,
}

/// Neighbouring lines on which threads would meet.
#[derive(Clone, Debug)]
pub struct SampledRun {
    /// The lines, with nothing replayed.
    pub run: RunElsewhere,
    /// In the order of [`Way::all`]: whether bytes of two threads, one of which stores, would be on one line that are not
    /// today.
    pub ways: Vec<(Way, bool)>,
}

/// What a thread does on a line.
#[derive(Debug)]
struct User {
    tid: Tid,
    accesses: u64,
    first_ns: u64,
    last_ns: u64,
    /// First byte, one past the last, whether it is stored to.
    bytes: Vec<(u8, u8, bool)>,
}

impl SampledUses {
    /// Takes an access at its resolved place; of what an emulator saw, or whose bytes are not known, nothing. `space` is the
    /// address space of the executing process.
    pub fn observe(&mut self, access: &Access, place: Place, space: SpaceId) {
        let is_known = access.size > 0 && access.within == 0;
        if access.basis == Basis::Emulated || !access.op.touches() || !is_known {
            return;
        }
        split_by_line(access, place, LINE, &[], |key, piece| {
            if !self.lines.contains_key(&key) && self.lines.len() >= MOST_LINES {
                self.untracked += 1;
                return;
            }
            let site = Site::of(access, space, &piece);
            let sites = self.lines.entry(key).or_default();
            let Some(seen) = sites.slot(site, MOST_SITES) else {
                return;
            };
            let seen = seen.get_or_insert_with(|| Seen {
                counts: SiteCounts::unseen(site),
                first_ns: access.time_ns,
                last_ns: access.time_ns,
            });
            seen.first_ns = seen.first_ns.min(access.time_ns);
            seen.last_ns = seen.last_ns.max(access.time_ns);
            let counts = &mut seen.counts;
            match access.basis {
                Basis::Stalled => counts.stalled = counts.stalled.saturating_add(1),
                Basis::Decoded => counts.decoded = counts.decoded.saturating_add(1),
                Basis::Harvested => counts.harvested = counts.harvested.saturating_add(1),
                Basis::Sampled => counts.pmu.sampled = counts.pmu.sampled.saturating_add(1),
                Basis::Trapped => counts.trapped = counts.trapped.saturating_add(1),
                Basis::Emulated => {}
            }
            counts.cpus.insert(access.cpu);
        });
    }

    /// Accesses on lines beyond the bound.
    pub fn untracked(&self) -> u64 {
        self.untracked
    }

    /// Neighbours on which threads would meet, by place.
    pub fn runs(&self) -> Vec<SampledRun> {
        let mut firsts: Vec<LineKey> = self.lines.keys().copied().collect();
        firsts.sort_unstable();
        let mut found: Vec<SampledRun> = Vec::new();
        for first in firsts {
            let Some(behind) = behind(first).filter(|behind| self.lines.contains_key(behind))
            else {
                continue;
            };
            let ways = self.meet(first, behind);
            if ways.iter().all(|(_, meet)| !meet) {
                continue;
            }
            match found.last_mut() {
                Some(run) if run.run.lines.last().is_some_and(|line| line.key == first) => {
                    run.run.lines.push(self.used(behind));
                    for (known, more) in run.ways.iter_mut().zip(ways) {
                        known.1 |= more.1;
                    }
                }
                _ => found.push(SampledRun {
                    run: RunElsewhere {
                        lines: vec![self.used(first), self.used(behind)],
                        ways: Vec::new(),
                    },
                    ways,
                }),
            }
        }
        found
    }

    /// Each way that memory may lie, and whether threads of two neighbouring lines would meet.
    fn meet(&self, first: LineKey, behind: LineKey) -> Vec<(Way, bool)> {
        let [users, others] = [first, behind].map(|key| self.users(key));
        let has = |users: &[User], tid: Tid| users.iter().any(|user| user.tid == tid);
        let mut pairs = Vec::new();
        for user in users.iter().filter(|user| !has(&others, user.tid)) {
            for other in others.iter().filter(|other| !has(&users, other.tid)) {
                let together = user.first_ns < other.last_ns && other.first_ns < user.last_ns;
                if together && user.accesses.min(other.accesses) >= LEAST_ACCESSES {
                    pairs.push((user, other));
                }
            }
        }
        let position = first.0.position();
        let meet = |way: Way| {
            let size = u64::from(way.line_bytes);
            let line = |at: u64| (position + u64::from(way.moved) + at) / size;
            pairs.iter().any(|(user, other)| {
                let bytes = user.bytes.iter();
                bytes.into_iter().any(|(_, end, stores)| {
                    other.bytes.iter().any(|(start, _, other_stores)| {
                        let last = line(u64::from(*end) - 1);
                        let next = line(LINE.bytes() + u64::from(*start));
                        (*stores || *other_stores) && last == next
                    })
                })
            })
        };
        Way::all().map(|way| (way, meet(way))).collect()
    }

    /// Those that do not only set the line up.
    fn users(&self, key: LineKey) -> Vec<User> {
        let mut users: Vec<User> = Vec::new();
        let sites = self.lines.get(&key).into_iter().flat_map(SmallMap::iter);
        for seen in sites.filter_map(|(_, seen)| seen.as_ref()) {
            let site = &seen.counts.site;
            let bytes = (site.offset, site.offset + site.size, site.op.stores());
            let accesses = seen.counts.accesses().saturating_add(seen.counts.trapped);
            match users.iter_mut().find(|user| user.tid == site.tid) {
                Some(user) => {
                    user.accesses += accesses;
                    user.first_ns = user.first_ns.min(seen.first_ns);
                    user.last_ns = user.last_ns.max(seen.last_ns);
                    user.bytes.push(bytes);
                }
                None => users.push(User {
                    tid: site.tid,
                    accesses,
                    first_ns: seen.first_ns,
                    last_ns: seen.last_ns,
                    bytes: vec![bytes],
                }),
            }
        }
        let most = users.iter().map(|user| user.accesses).max().unwrap_or(0);
        users.retain(|user| user.accesses as f64 >= most as f64 * RARE);
        users
    }

    fn used(&self, key: LineKey) -> UsedLine {
        let sites = self.lines.get(&key).into_iter().flat_map(SmallMap::iter);
        let seen = sites.filter_map(|(_, seen)| Some(seen.as_ref()?.counts.clone()));
        UsedLine {
            key,
            sites: seen.collect(),
            fights: true,
        }
    }
}

fn behind(key: LineKey) -> Option<LineKey> {
    let position = key.0.position().checked_add(LINE.bytes())?;
    (key.0.reaches(position)).then(|| LineKey(key.0.at(position)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::Op;

    /// The start of a line of 128 bytes.
    const BASE: u64 = 0x7f00_0000_1000;

    fn place(access: &Access) -> Place {
        Place::Private {
            space: SpaceId(3),
            addr: access.addr,
        }
    }

    /// A sample a millisecond of each: thread, what it does, place, first and last millisecond.
    fn uses(sampled: &[(u32, Op, u64, u64, u64)]) -> SampledUses {
        let mut uses = SampledUses::default();
        for (thread, op, at, from, to) in sampled {
            for ms in *from..*to {
                let access = Access {
                    time_ns: ms * 1_000_000 + u64::from(*thread),
                    addr: BASE + at,
                    ip: 0x40_1000,
                    tid: Tid(*thread),
                    size: 8,
                    op: *op,
                    basis: Basis::Decoded,
                    ..Access::BLANK
                };
                uses.observe(&access, place(&access), SpaceId(3));
            }
        }
        uses
    }

    fn meeting(found: &[SampledRun]) -> Vec<(u8, u8)> {
        let ways = found.iter().flat_map(|run| &run.ways);
        let meet = ways.filter(|(_, meet)| *meet);
        meet.map(|(way, _)| (way.moved, way.line_bytes)).collect()
    }

    #[test]
    fn two_threads_with_a_line_each_meet_where_their_bytes_come_onto_one() {
        // The last word of a line and the first of the next.
        let found = uses(&[(1, Op::Store, 56, 0, 100), (2, Op::Load, 64, 0, 100)]).runs();
        let starts = [8, 16, 24, 32, 40, 48, 56].map(|moved| (moved, 64));
        assert_eq!(meeting(&found), [&starts[..], &[(0, 128)]].concat());
        assert_eq!(found[0].run.lines.len(), 2);
        // Words a line apart meet on longer lines only.
        let found = uses(&[(1, Op::Store, 0, 0, 100), (2, Op::Store, 64, 0, 100)]).runs();
        assert_eq!(meeting(&found), [(0, 128)]);
    }

    #[test]
    fn who_only_reads_comes_later_is_one_thread_or_has_both_lines_meets_nobody() {
        let none = |sampled: &[(u32, Op, u64, u64, u64)]| assert!(uses(sampled).runs().is_empty());
        none(&[(1, Op::Load, 56, 0, 100), (2, Op::Load, 64, 0, 100)]);
        none(&[(1, Op::Store, 56, 0, 100), (2, Op::Store, 64, 200, 300)]);
        none(&[(1, Op::Store, 56, 0, 100), (1, Op::Store, 64, 0, 100)]);
        // A lock on the one and its data on the other.
        none(&[
            (1, Op::Rmw, 56, 0, 100),
            (2, Op::Rmw, 56, 0, 100),
            (1, Op::Store, 64, 0, 100),
            (2, Op::Store, 64, 0, 100),
        ]);
        // Too few.
        none(&[(1, Op::Store, 56, 0, 100), (2, Op::Store, 64, 0, 7)]);
    }

    #[test]
    fn lines_in_a_row_are_one_run_with_who_uses_each() {
        let found = uses(&[
            (1, Op::Store, 0, 0, 100),
            (2, Op::Store, 64, 0, 100),
            (3, Op::Store, 128, 0, 100),
        ])
        .runs();
        let threads: Vec<u32> = (found[0].run.lines.iter())
            .map(|line| line.sites[0].site.tid.0)
            .collect();
        assert_eq!((found.len(), threads), (1, vec![1, 2, 3]));
        assert_eq!(meeting(&found), [(0, 128), (64, 128)]);
    }
}
