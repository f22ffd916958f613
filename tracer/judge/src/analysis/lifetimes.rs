//! The lives of a line's copies in an order of accesses, and which bytes each was for.
//!
//! A copy of the line lives in a CPU's cache from the miss that brought it to the store of another CPU that
//! takes it away:
//!
//! ```text
//!   CPU 1   miss ── use ── use ── lost          miss ── use ── ...
//!   CPU 2                         store of byte b
//! ```
//!
//! The miss is *essential* when, during the life of the copy, its CPU touches a byte that another stored since
//! the last essential miss; otherwise only the line moved, and no value that anyone wanted (Dubois,
//! Skeppstedt, Ricciulli, Ramamurthy, Stenström, "The Detection and Elimination of Useless Misses in
//! Multiprocessors", ISCA 1993). To judge by
//! the missing access alone (Torrellas, Lam, Hennessy, "False Sharing and Spatial Locality in Multiprocessor
//! Caches", IEEE Transactions on Computers 43(6), 1994) would call the hand-off of a lock's data false that
//! is followed by the release of the lock.
//!
//! What we keep of a life is what was touched in it and what was new ([`Life`]), so that it can be judged by groups of
//! bytes as well, when these are known. Ours, besides: bytes instead of words; a store is a touch as well, since padding does not part two writers of one
//! byte; a value is another's when another *thread* stored it, so that a thread that moves to another CPU hands
//! nothing to itself; and the first miss of a CPU in a window counts when another thread has stored
//! before it in the window, and not otherwise, as nobody knows what was before the window.

use super::{
    lives::{Life, Lives},
    served::Served,
    small_map::SmallMap,
};
use crate::access::{ByteSet, Cpu, Tid};

/// The threads that stored.
#[derive(Clone, Copy, Debug, Default)]
enum Storers {
    #[default]
    Nobody,
    One(Tid),
    Several,
}

impl Storers {
    fn add(&mut self, tid: Tid) {
        *self = match *self {
            Storers::Nobody => Storers::One(tid),
            Storers::One(only) if only == tid => Storers::One(tid),
            Storers::One(_) | Storers::Several => Storers::Several,
        };
    }

    fn include_another_than(self, tid: Tid) -> bool {
        match self {
            Storers::Nobody => false,
            Storers::One(only) => only != tid,
            Storers::Several => true,
        }
    }
}

/// A copy in a cache, as the thread has it that uses it.
#[derive(Clone, Copy, Debug)]
struct Copied {
    handed_off: bool,
    tid: Tid,
    life: Life,
}

impl Copied {
    /// One that was there already.
    fn at_hand(tid: Tid) -> Copied {
        Copied {
            handed_off: false,
            tid,
            life: Life::default(),
        }
    }
}

/// What one CPU has and has missed.
#[derive(Clone, Copy, Debug, Default)]
struct Cache {
    seen: bool,
    copy: Option<Copied>,
    /// Bytes that others stored since this CPU lost its copy.
    missed: u128,
    /// Bytes that others stored and this CPU has not touched since its last essential miss.
    unseen: u128,
    /// Others that stored since this CPU lost its copy.
    storers: Storers,
}

/// The copies of a line and their lives, access by access.
#[derive(Clone, Debug, Default)]
pub(super) struct Lifetimes {
    caches: SmallMap<Cpu, Cache>,
    /// The bytes that each thread was the last to store.
    newest: SmallMap<Tid, u128>,
    /// What a CPU that has not been here yet has missed: everything.
    stored: u128,
    storers: Storers,
    /// That are over.
    lives: Lives,
    /// Stores of these bytes by this thread there change nothing, as long as no other CPU comes.
    settled: Option<(Cpu, Tid, u128)>,
}

/// Threads whose bytes were all stored again by others leave the list when it is this long.
const MOST_STORERS: usize = 16;

impl Lifetimes {
    /// A line that one thread on one CPU had to itself so far. What it stored is news to nobody: it set the line up.
    pub(super) fn after(cpu: Cpu, tid: Tid) -> Lifetimes {
        let mut lifetimes = Lifetimes::default();
        if let Some(cache) = lifetimes.caches.slot(cpu, usize::MAX) {
            cache.seen = true;
            cache.copy = Some(Copied::at_hand(tid));
        }
        lifetimes
    }

    /// A line of a window: nobody has it yet, and few will.
    pub(super) fn short() -> Lifetimes {
        Lifetimes {
            caches: SmallMap::with_room(4),
            newest: SmallMap::with_room(4),
            ..Lifetimes::default()
        }
    }

    /// Takes the next access, and the bytes of the line that it touches: none for a prefetch. `true` when it is a hand-off.
    pub(super) fn see(&mut self, served: &Served, bytes: u128) -> bool {
        let (cpu, tid, stores) = (
            served.access.cpu,
            served.access.tid,
            served.access.op.stores(),
        );
        if let Some((by, thread, settled)) = self.settled {
            if by != cpu {
                self.settled = None;
            } else if stores && thread == tid && bytes & !settled == 0 && !served.missed {
                return false;
            }
        }
        let (stored, storers) = (self.stored, self.storers);
        let Some(cache) = self.caches.slot(cpu, usize::MAX) else {
            return false;
        };
        if !cache.seen {
            *cache = Cache {
                seen: true,
                copy: None,
                missed: stored,
                unseen: stored,
                storers,
            };
        }
        // A thread that comes from another CPU brings nothing new to itself.
        let own = (self.newest.iter()).find(|(by, _)| *by == tid);
        let anothers = !own.map_or(0, |(_, newest)| *newest);
        let mut handed_off = false;
        if served.missed {
            handed_off = cache.storers.include_another_than(tid);
            // One that no store ended: a fetch for ownership took the copy.
            let before = cache.copy.replace(Copied {
                handed_off,
                tid,
                life: Life {
                    touched: 0,
                    new: cache.missed & anothers,
                },
            });
            end(&mut self.lives, before);
            cache.missed = 0;
            cache.storers = Storers::Nobody;
        }
        let news = cache.unseen & bytes & anothers;
        if let Some(copy) = &mut cache.copy {
            if copy.tid != tid {
                // What was new to the one is not to the other, for which the line did not come.
                end(&mut self.lives, Some(*copy));
                *copy = Copied::at_hand(tid);
            }
            copy.life.touched |= bytes;
            copy.life.new |= news;
        }
        if news == 0 {
            cache.unseen &= !bytes;
        } else {
            cache.unseen = 0;
        }
        if stores {
            self.store(cpu, tid, bytes);
        }
        handed_off
    }

    fn store(&mut self, cpu: Cpu, tid: Tid, bytes: u128) {
        self.stored |= bytes;
        self.storers.add(tid);
        if self.newest.len() > MOST_STORERS {
            self.newest.retain(|_, newest| *newest != 0);
        }
        for newest in self.newest.values_mut() {
            *newest &= !bytes;
        }
        if let Some(newest) = self.newest.slot(tid, usize::MAX) {
            *newest |= bytes;
        }
        for (_, cache) in self.caches.iter_mut().filter(|(other, _)| **other != cpu) {
            cache.missed |= bytes;
            cache.unseen |= bytes;
            cache.storers.add(tid);
            end(&mut self.lives, cache.copy.take());
        }
        self.settled = match self.settled {
            Some((by, thread, settled)) if (by, thread) == (cpu, tid) => {
                Some((cpu, tid, settled | bytes))
            }
            _ => Some((cpu, tid, bytes)),
        };
    }

    /// Hand-offs whose copy is gone.
    pub(super) fn lives(&self) -> &Lives {
        &self.lives
    }

    /// Hand-offs whose copy is still held.
    pub(super) fn held(&self) -> Lives {
        let mut held = Lives::default();
        self.add_held(&mut held, 1.0);
        held
    }

    /// Adds these to others, each with a weight.
    pub(super) fn add_held(&self, lives: &mut Lives, weight: f64) {
        for copy in self.caches.iter().filter_map(|(_, cache)| cache.copy) {
            if copy.handed_off {
                lives.add(copy.life, weight);
            }
        }
    }

    /// CPUs that accessed the line.
    pub(super) fn cpus(&self) -> usize {
        self.caches.len()
    }
}

/// Counts a copy that is gone.
fn end(lives: &mut Lives, copy: Option<Copied>) {
    if let Some(copy) = copy.filter(|copy| copy.handed_off) {
        lives.add(copy.life, 1.0);
    }
}

/// Follows the copies of one window, if each access touches these bytes.
pub(super) fn of_window(order: &[Served], bytes: impl Fn(&Served) -> ByteSet) -> Lifetimes {
    let mut lifetimes = Lifetimes::short();
    for served in order {
        lifetimes.see(served, bytes(served).0);
    }
    lifetimes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        access::LineSize,
        analysis::watched_fixture::{Act, load, rmw, served, store},
    };

    fn check(acts: &[Act], truly: u64, falsely: u64, undecided: u64) {
        let lifetimes = of_window(&served(acts), |served| served.access.bytes(LineSize::B64));
        let found = lifetimes.lives().hand_offs(&lifetimes.held(), &[]);
        let found = (found.truly, found.falsely, found.undecided);
        assert_eq!(found, (truly, falsely, undecided));
    }

    #[test]
    fn a_value_used_makes_the_hand_off_true_and_none_used_false() {
        check(&[store(1, 0), load(2, 0)], 1, 0, 0);
        check(&[store(1, 0), load(2, 8), store(1, 0)], 0, 1, 0);
        check(&[store(1, 0), store(2, 0)], 1, 0, 0);
        check(&[store(1, 0), store(2, 8), store(1, 0)], 0, 1, 1);
    }

    #[test]
    fn what_is_still_held_at_the_end_is_decided_by_a_use_alone() {
        check(&[store(1, 0), load(2, 8)], 0, 0, 1);
        check(&[store(1, 0), load(2, 8), load(2, 0)], 1, 0, 0);
    }

    #[test]
    fn the_whole_life_of_the_copy_counts_not_the_missing_access_alone() {
        // The data first, then the lock that the other one stored.
        check(
            &[store(1, 0), load(2, 8), rmw(2, 0), load(1, 16), store(2, 8)],
            1,
            1,
            0,
        );
    }

    #[test]
    fn a_value_left_unused_by_one_copy_may_be_used_by_the_next() {
        let acts = [store(1, 0), load(2, 8), store(1, 16), load(2, 0)];
        check(&acts, 1, 1, 0);
    }

    #[test]
    fn an_essential_miss_brings_everything_that_was_stored_before() {
        // Thread 2 reads byte 0, so the line came for a reason; byte 8 came with it.
        let acts = [
            store(1, 0),
            store(1, 8),
            load(2, 0),
            store(1, 16),
            load(2, 8),
            store(1, 16),
        ];
        check(&acts, 1, 1, 0);
    }

    #[test]
    fn loads_first_touches_and_upgrades_hand_nothing_off() {
        check(&[load(1, 0), load(2, 0), load(1, 0)], 0, 0, 0);
        check(&[load(1, 0), store(1, 0), store(1, 0)], 0, 0, 0);
        // The store takes the reader's copy, but nothing comes to the storing CPU.
        check(&[load(1, 0), load(2, 0), store(1, 0)], 0, 0, 0);
    }

    #[test]
    fn threads_on_one_cpu_hand_nothing_off_and_a_moving_thread_nothing_to_itself() {
        check(
            &[store(1, 0).on(0), store(2, 0).on(0), load(1, 0).on(0)],
            0,
            0,
            0,
        );
        check(
            &[store(1, 0).on(0), load(1, 0).on(3), store(1, 0).on(0)],
            0,
            0,
            0,
        );
        // Someone else's value beside its own is a hand-off all the same.
        let acts = [store(1, 0).on(0), store(2, 8).on(1), load(1, 0).on(3)];
        check(&acts, 0, 0, 2);
    }
}
