//! Who is in whose way, byte by byte, where the order of accesses is not known: the kinds of hand-offs that a random order
//! would have.

use rustc_hash::FxHashMap;

use super::{
    Group,
    lives::{Kinds, Life, Sums},
};
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

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Footprint {
    offset: u8,
    size: u8,
    stores: bool,
}

/// Judges some touches of a line; `None` when no thread touches what another stored to. `groups` are bytes that belong
/// together, as in [`Lives`](super::Lives).
///
/// In a random order, an access of thread t is a hand-off from a store s of another thread when s is the newest among
/// the other threads' stores and t's own accesses before it:
///
/// ```text
///   accesses of s / (own accesses + other threads' stores)
/// ```
///
/// Totals over all threads less the thread's own part keep 500 threads cheap: footprints for each thread's footprint.
pub(super) fn conflicts(touches: &[Touch], groups: &[Group], line_size: LineSize) -> Option<Kinds> {
    let (footprints, by_thread) = tabulate(touches);
    let bytes: Vec<u128> = footprints.iter().map(|f| bytes(f, line_size).0).collect();
    let mut sums = Sums::default();
    for own in &by_thread {
        let mut others: Vec<f64> = (footprints.iter())
            .map(|counted| {
                if counted.footprint.stores {
                    counted.accesses
                } else {
                    0.0
                }
            })
            .collect();
        let mut all = others.iter().sum::<f64>();
        for &(f, accesses) in own {
            if footprints[f].footprint.stores {
                others[f] -= accesses;
            } else {
                all += accesses;
            }
        }
        for &(f, accesses) in own {
            for (s, stores) in others
                .iter()
                .enumerate()
                .filter(|(_, stores)| **stores > 0.0)
            {
                let life = Life {
                    touched: bytes[f],
                    new: bytes[s],
                };
                sums.add(life, groups, accesses * stores / all);
            }
        }
    }
    sums.kinds()
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

    fn of(touches: &[Touch], stored: &[ByteSet]) -> Kinds {
        let group = |bytes: &ByteSet| Group {
            bytes: *bytes,
            writers: vec![Tid(1)],
            readers: Vec::new(),
        };
        let groups: Vec<Group> = stored.iter().map(group).collect();
        conflicts(touches, &groups, LineSize::B64).unwrap()
    }

    fn check(touches: &[Touch], truly: f64, falsely: f64) {
        let found = of(touches, &[]);
        let near = |a: f64, b: f64| (a - b).abs() < 0.005;
        assert!(
            near(found.truly, truly) && near(found.falsely, falsely),
            "{found:?} is not ({truly}, {falsely})"
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
        let none = |touches: &[Touch]| assert_eq!(conflicts(touches, &[], LineSize::B64), None);
        none(&[load(1, 0, 9), load(2, 0, 9)]);
        none(&[store(1, 0, 9), load(1, 8, 9)]);
        none(&[]);
    }

    #[test]
    fn a_lock_and_its_data_used_by_all_are_one_thing_where_they_are_one_group() {
        let both = |tid| [store(tid, 0, 40), store(tid, 8, 20)];
        let touches = [both(1), both(2)].concat();
        let together = of(&touches, &[ByteSet(0xffff)]);
        assert_eq!((together.truly, together.falsely), (1.0, 0.0));
        // 4 in 9 partners are on other bytes.
        check(&touches, 5.0 / 9.0, 4.0 / 9.0);
    }

    #[test]
    fn two_locks_with_a_pair_each_are_both() {
        let touches = [
            store(1, 0, 50),
            store(2, 0, 50),
            store(3, 8, 50),
            store(4, 8, 50),
        ];
        // Two of three partners are on the other lock.
        check(&touches, 1.0 / 3.0, 2.0 / 3.0);
    }

    #[test]
    fn a_fought_over_lock_stays_visible_beside_many_others() {
        let mut touches = vec![store(1, 0, 50), store(2, 0, 50)];
        touches.extend((3..9).map(|tid| store(tid, (tid - 2) as u8 * 8, 50)));
        let found = of(&touches, &[]);
        assert!(found.truly > 0.02, "{found:?}");
        assert!(found.falsely > 0.8, "{found:?}");
    }

    #[test]
    fn a_reporter_that_rarely_reads_the_counters_does_not_make_them_true() {
        let touches = [
            store(1, 0, 500),
            store(2, 8, 500),
            load(3, 0, 5),
            load(3, 8, 5),
        ];
        let found = of(&touches, &[]);
        assert!(found.truly < 0.05, "{found:?}");
    }

    #[test]
    fn wide_accesses_overlap_the_narrow_ones_they_cover() {
        let wide = Touch {
            size: 32,
            ..load(2, 0, 50)
        };
        let groups = [ByteSet(0xffff_ffff), ByteSet(0xff << 32)];
        let found = of(&[store(1, 24, 50), wide], &groups);
        assert_eq!((found.truly, found.falsely), (1.0, 0.0));
        let found = of(&[store(1, 32, 50), wide], &groups);
        assert_eq!((found.truly, found.falsely), (0.0, 1.0));
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
        assert!(of(&touches, &[]).falsely > 0.9);
    }
}
