//! Who is in whose way, byte by byte: the arithmetic behind false and true sharing.
//!
//! Two accesses of different threads conflict when at least one stores; truly when they share a byte,
//! falsely when they do not. Both kinds may hold for one access.

use rustc_hash::FxHashMap;

use crate::access::{ByteSet, LineSize, Tid};

/// Footprints told apart; the rarest are left out beyond it. 128 of them hold 99 % of any real line,
/// and the table below is their square.
const MAX_FOOTPRINTS: usize = 128;

/// The accesses of one thread to one byte range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Touch {
    pub(super) tid: Tid,
    pub(super) offset: u8,
    pub(super) size: u8,
    pub(super) stores: bool,
    pub(super) accesses: u64,
}

/// How the conflicting accesses of a window conflict.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Conflicts {
    /// Share of them, 0..=1, that would still be handed off if every field had a line of its own.
    pub(super) true_share: f64,
    /// Share of their conflicting partners, 0..=1, that touch other bytes only.
    pub(super) false_share: f64,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Footprint {
    offset: u8,
    size: u8,
    stores: bool,
}

/// For one access: the accesses of others that it conflicts with, and the own thread's ones.
#[derive(Clone, Copy, Default)]
struct Around {
    /// Conflicting, on common bytes.
    same_bytes: f64,
    /// Conflicting, on other bytes only.
    other_bytes: f64,
    /// Any, on common bytes.
    overlapping: f64,
    /// Any.
    all: f64,
}

impl Around {
    fn add(&mut self, conflict: bool, overlap: bool, accesses: f64) {
        self.all += accesses;
        if overlap {
            self.overlapping += accesses;
        }
        if conflict && overlap {
            self.same_bytes += accesses;
        } else if conflict {
            self.other_bytes += accesses;
        }
    }
}

/// Judges the touches of one window; `None` when none conflict.
///
/// In a random order, an access of thread t is a hand-off when the newest relevant access before it is
/// a conflicting one of another thread rather than one of t itself:
///
/// ```text
///   on the line as it is        h0 = (T + F) / (T + F + own)
///   with each field on its own  h1 = T / (T + own on the same bytes)
/// ```
///
/// with T and F the conflicting accesses of others on the same and on other bytes. An access is true
/// by h1 / h0 and false by F / (T + F). The two need not add up to 1: a lock and its data, both
/// stored by all threads in turn, are truly shared (each would travel on its own as well) and
/// conflict with one another's bytes all the same.
///
/// Totals over all threads less the thread's own part keep 500 threads cheap:
/// footprints² + Σ (footprints of a thread)².
pub(super) fn conflicts(touches: &[Touch], line_size: LineSize) -> Option<Conflicts> {
    let (footprints, by_thread) = tabulate(touches);
    let relation = |f: usize, g: usize| {
        let (a, b) = (&footprints[f], &footprints[g]);
        let conflict = a.footprint.stores || b.footprint.stores;
        (conflict, bytes(a, line_size).overlaps(bytes(b, line_size)))
    };
    let everyone: Vec<Around> = (0..footprints.len())
        .map(|f| {
            let mut around = Around::default();
            for (g, other) in footprints.iter().enumerate() {
                let (conflict, overlap) = relation(f, g);
                around.add(conflict, overlap, other.accesses);
            }
            around
        })
        .collect();
    let (mut sum, mut by_true, mut by_false) = (0.0, 0.0, 0.0);
    for own in &by_thread {
        for &(f, accesses) in own {
            let mut mine = Around::default();
            for &(g, others) in own {
                let (conflict, overlap) = relation(f, g);
                mine.add(conflict, overlap, others);
            }
            let same_bytes = everyone[f].same_bytes - mine.same_bytes;
            let other_bytes = everyone[f].other_bytes - mine.other_bytes;
            let conflicting = same_bytes + other_bytes;
            if conflicting <= 0.0 {
                continue;
            }
            let as_it_is = conflicting / (conflicting + mine.all);
            let apart = same_bytes / (same_bytes + mine.overlapping);
            sum += accesses;
            by_true += accesses * (apart / as_it_is).min(1.0);
            by_false += accesses * (other_bytes / conflicting);
        }
    }
    (sum > 0.0).then(|| Conflicts {
        true_share: by_true / sum,
        false_share: by_false / sum,
    })
}

struct Counted {
    footprint: Footprint,
    accesses: f64,
}

fn bytes(counted: &Counted, line_size: LineSize) -> ByteSet {
    let footprint = &counted.footprint;
    ByteSet::range(footprint.offset, u16::from(footprint.size), line_size)
}

/// The most frequent footprints, and per thread its accesses to each of them. Counts are whole
/// numbers below 2^53, so every sum and difference of them is exact in `f64`.
fn tabulate(touches: &[Touch]) -> (Vec<Counted>, Vec<Vec<(usize, f64)>>) {
    let footprint = |touch: &Touch| Footprint {
        offset: touch.offset,
        size: touch.size,
        stores: touch.stores,
    };
    let mut totals: FxHashMap<Footprint, f64> = FxHashMap::default();
    for touch in touches {
        *totals.entry(footprint(touch)).or_default() += touch.accesses as f64;
    }
    let mut footprints: Vec<Counted> = totals
        .into_iter()
        .map(|(footprint, accesses)| Counted {
            footprint,
            accesses,
        })
        .collect();
    footprints.sort_by(|a, b| {
        let place = |c: &Counted| (c.footprint.offset, c.footprint.size, c.footprint.stores);
        (b.accesses.total_cmp(&a.accesses)).then_with(|| place(a).cmp(&place(b)))
    });
    footprints.truncate(MAX_FOOTPRINTS);
    let index: FxHashMap<Footprint, usize> = footprints
        .iter()
        .enumerate()
        .map(|(f, counted)| (counted.footprint, f))
        .collect();
    let mut entries: Vec<(Tid, usize, f64)> = touches
        .iter()
        .filter_map(|touch| {
            let f = *index.get(&footprint(touch))?;
            Some((touch.tid, f, touch.accesses as f64))
        })
        .collect();
    entries.sort_unstable_by_key(|&(tid, f, _)| (tid, f));
    let by_thread = entries
        .chunk_by(|a, b| a.0 == b.0)
        .map(|thread| {
            thread
                .chunk_by(|a, b| a.1 == b.1)
                .map(|same| (same[0].1, same.iter().map(|entry| entry.2).sum()))
                .collect()
        })
        .collect();
    (footprints, by_thread)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(tid: u32, offset: u8, accesses: u64) -> Touch {
        Touch {
            tid: Tid(tid),
            offset,
            size: 8,
            stores: false,
            accesses,
        }
    }

    fn store(tid: u32, offset: u8, accesses: u64) -> Touch {
        Touch {
            stores: true,
            ..load(tid, offset, accesses)
        }
    }

    fn check(touches: &[Touch], true_share: f64, false_share: f64) {
        let found = conflicts(touches, LineSize::B64).unwrap();
        let near = |a: f64, b: f64| (a - b).abs() < 0.005;
        assert!(
            near(found.true_share, true_share) && near(found.false_share, false_share),
            "{found:?} is not ({true_share}, {false_share})"
        );
    }

    #[test]
    fn counters_side_by_side_conflict_falsely_and_one_counter_truly() {
        check(&[store(1, 0, 50), store(2, 8, 50)], 0.0, 1.0);
        check(&[store(1, 0, 50), store(2, 0, 50)], 1.0, 0.0);
        check(&[store(1, 0, 50), load(2, 8, 50)], 0.0, 1.0);
        check(&[store(1, 0, 50), load(2, 0, 50)], 1.0, 0.0);
    }

    #[test]
    fn loads_and_single_threads_do_not_conflict() {
        assert_eq!(
            conflicts(&[load(1, 0, 9), load(2, 0, 9)], LineSize::B64),
            None
        );
        assert_eq!(
            conflicts(&[store(1, 0, 9), load(1, 8, 9)], LineSize::B64),
            None
        );
        assert_eq!(conflicts(&[], LineSize::B64), None);
    }

    #[test]
    fn a_lock_and_its_data_used_by_all_are_both() {
        let both = |tid| [store(tid, 0, 40), store(tid, 8, 20)];
        // Apart, each would still travel: all of it is true; 4 in 9 partners are on other bytes.
        check(&[both(1), both(2)].concat(), 1.0, 4.0 / 9.0);
    }

    #[test]
    fn two_locks_with_a_pair_each_are_both() {
        let touches = [
            store(1, 0, 50),
            store(2, 0, 50),
            store(3, 8, 50),
            store(4, 8, 50),
        ];
        // h0 = 3/4, h1 = 1/2; two of three partners are on the other lock.
        check(&touches, 2.0 / 3.0, 2.0 / 3.0);
    }

    #[test]
    fn a_fought_over_lock_stays_visible_beside_many_others() {
        let mut touches = vec![store(1, 0, 50), store(2, 0, 50)];
        touches.extend((3..9).map(|tid| store(tid, (tid - 2) as u8 * 8, 50)));
        let found = conflicts(&touches, LineSize::B64).unwrap();
        assert!(found.true_share > 0.1, "{found:?}");
        assert!(found.false_share > 0.8, "{found:?}");
    }

    #[test]
    fn a_reporter_that_rarely_reads_the_counters_does_not_make_them_true() {
        let touches = [
            store(1, 0, 500),
            store(2, 8, 500),
            load(3, 0, 5),
            load(3, 8, 5),
        ];
        let found = conflicts(&touches, LineSize::B64).unwrap();
        assert!(found.true_share < 0.05, "{found:?}");
    }

    #[test]
    fn wide_accesses_overlap_the_narrow_ones_they_cover() {
        let wide = Touch {
            size: 32,
            ..load(2, 0, 50)
        };
        check(&[store(1, 24, 50), wide], 1.0, 0.0);
        check(&[store(1, 32, 50), wide], 0.0, 1.0);
    }

    #[test]
    fn thousands_of_footprints_are_cut_to_the_most_frequent() {
        let mut touches = vec![store(1, 0, 10_000), store(2, 8, 10_000)];
        for n in 0..4000u32 {
            touches.push(Touch {
                offset: 16 + (n % 40) as u8,
                size: 1 + (n / 40) as u8,
                ..load(3 + n % 2, 0, 1)
            });
        }
        let (footprints, by_thread) = tabulate(&touches);
        assert_eq!(footprints.len(), MAX_FOOTPRINTS);
        assert_eq!(by_thread.len(), 4);
        assert!(conflicts(&touches, LineSize::B64).unwrap().false_share > 0.9);
    }
}
