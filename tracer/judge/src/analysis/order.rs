//! In which order threads came to a line within one window: by turns, or one after the other.
//!
//! The order is compared with chance. Of the samples of a window, a pair of neighbours is a *hand-off*
//! when thread and CPU both differ and at least one of the two stores:
//!
//! ```text
//!   phases      A A A A A A B B B B B B    1 hand-off
//!   contention  A B B A B A A B A B B A    8 hand-offs, 6 expected of a random order
//! ```

use crate::{
    access::{Cpu, Tid},
    analysis::small_map::SmallMap,
};

/// Below this interleaving a window counts as phases: two threads that alternate every 10 samples
/// come to 0.17, contending ones to 0.8 and more.
const PHASES_BELOW: f64 = 0.25;

/// How many samples of its victims one sample of the lesser party can explain. A hand-off delays both
/// sides about alike, except that a store buffer hides most of a plain store's wait; without this
/// bound a single stray sample would turn a whole window of private use into sharing.
const STALLS_PER_SAMPLE: f64 = 16.0;

/// Thread and CPU pairs told apart in a window; only damaged input has more.
const MAX_SEEN: usize = 1 << 14;

/// Samples of one thread on one CPU.
#[derive(Clone, Debug, Default)]
struct Seen {
    last_ns: u64,
    /// Whether the newest sample stores.
    last_stores: bool,
    loads: u32,
    stores: u32,
}

/// The newest sample.
#[derive(Clone, Copy, Debug)]
struct Last {
    tid: Tid,
    cpu: Cpu,
    stores: bool,
    /// It and the one before differ but neither stores: a store found later in it makes a hand-off.
    pending: bool,
}

/// The order of one open window, counted as it grows.
#[derive(Clone, Debug, Default)]
pub(super) struct Order {
    seen: SmallMap<(Tid, Cpu), Seen>,
    last: Option<Last>,
    samples: u32,
    hand_offs: u32,
}

/// What the order of a window shows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Turns {
    /// Samples of the window.
    pub(super) samples: f64,
    /// Of those, with a store.
    pub(super) stores: f64,
    /// Samples by threads other than the most frequent one.
    pub(super) minority: f64,
    /// Hand-offs seen.
    pub(super) hand_offs: f64,
    /// Hand-offs of a random order of the same samples.
    pub(super) expected: f64,
    /// 0 for phases, 1 for contention.
    pub(super) interleaving: f64,
}

impl Order {
    /// Notes that a sample touches the line; `true` when it is a new one. Accesses of equal time and
    /// thread are one sample.
    pub(super) fn note(&mut self, time_ns: u64, tid: Tid, cpu: Cpu, stores: bool) -> bool {
        let Some(seen) = self.seen.slot((tid, cpu), MAX_SEEN) else {
            return true;
        };
        let known = seen.loads + seen.stores > 0;
        if known && seen.last_ns == time_ns {
            if stores && !seen.last_stores {
                seen.last_stores = true;
                seen.loads -= 1;
                seen.stores += 1;
                self.last_now_stores(tid);
            }
            return false;
        }
        seen.last_ns = time_ns;
        seen.last_stores = stores;
        let count = if stores {
            &mut seen.stores
        } else {
            &mut seen.loads
        };
        *count += 1;
        self.samples += 1;
        let differs = (self.last).is_some_and(|last| last.tid != tid && last.cpu != cpu);
        let either_stores = stores || self.last.is_some_and(|last| last.stores);
        if differs && either_stores {
            self.hand_offs += 1;
        }
        self.last = Some(Last {
            tid,
            cpu,
            stores,
            pending: differs && !either_stores,
        });
        true
    }

    fn last_now_stores(&mut self, tid: Tid) {
        let Some(last) = self.last.as_mut().filter(|last| last.tid == tid) else {
            return;
        };
        last.stores = true;
        if last.pending {
            last.pending = false;
            self.hand_offs += 1;
        }
    }

    /// Samples so far.
    pub(super) fn samples(&self) -> u32 {
        self.samples
    }

    /// Forgets the window; the next one starts without a neighbour.
    pub(super) fn clear(&mut self) {
        self.seen.clear();
        self.last = None;
        self.samples = 0;
        self.hand_offs = 0;
    }

    /// What the window shows; `None` when only one thread was there.
    ///
    /// In a random order of n samples each ordered pair of them is adjacent with probability 1/n, so
    /// the expectation is (ordered pairs that would be a hand-off) / n. Pairs of which one stores are
    /// all pairs less those of loads alone; pairs that differ in thread and CPU are n² less those with
    /// equal thread, less those with equal CPU, plus those with both equal.
    ///
    /// Phases are not free of hand-offs: k threads one after the other make up to k - 1, and each
    /// storing thread takes part in two of them at most. That floor is taken off both sides, so that
    /// phases come to 0 at any n. A denominator of at least 1 keeps windows of two or three samples,
    /// which cannot tell, from voting with full weight.
    pub(super) fn turns(&self) -> Option<Turns> {
        let mut tids = self.seen.iter().map(|((tid, _), _)| *tid);
        let first = tids.next()?;
        if tids.all(|tid| tid == first) {
            return None;
        }
        let mut threads: Vec<Group<Tid>> = Vec::new();
        let mut cpus: Vec<Group<Cpu>> = Vec::new();
        let mut both = Squares::default();
        let mut all = Counts::default();
        for ((tid, cpu), seen) in self.seen.iter() {
            let counts = Counts {
                samples: f64::from(seen.loads) + f64::from(seen.stores),
                loads: f64::from(seen.loads),
            };
            threads.push((*tid, counts));
            cpus.push((*cpu, counts));
            both.add(counts);
            all.add(counts);
        }
        merge_equal(&mut threads);
        merge_equal(&mut cpus);
        let by_thread = squares(&threads);
        let by_cpu = squares(&cpus);
        let pairs = all.samples.powi(2) - by_thread.samples - by_cpu.samples + both.samples;
        let load_pairs = all.loads.powi(2) - by_thread.loads - by_cpu.loads + both.loads;
        let expected = ((pairs - load_pairs) / all.samples).max(0.0);
        let storing = threads.iter().filter(|(_, c)| c.samples > c.loads).count();
        let floor = (threads.len() - 1).min(2 * storing) as f64;
        let hand_offs = f64::from(self.hand_offs);
        let by_turns = ((hand_offs - floor) / (expected - floor).max(1.0)).clamp(0.0, 1.0);
        let most = threads.iter().map(|(_, c)| c.samples).fold(0.0, f64::max);
        let minority = all.samples - most;
        let interleaving = if by_turns < PHASES_BELOW {
            0.0
        } else {
            by_turns * (STALLS_PER_SAMPLE * minority / all.samples).min(1.0)
        };
        Some(Turns {
            samples: all.samples,
            stores: all.samples - all.loads,
            minority,
            hand_offs,
            expected,
            interleaving,
        })
    }
}

/// Samples, and of those the ones without a store. Whole numbers below 2^53, hence exact.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    samples: f64,
    loads: f64,
}

impl Counts {
    fn add(&mut self, other: Counts) {
        self.samples += other.samples;
        self.loads += other.loads;
    }
}

type Group<K> = (K, Counts);

/// Sums of squared [`Counts`]: ordered pairs within groups.
#[derive(Default)]
struct Squares {
    samples: f64,
    loads: f64,
}

impl Squares {
    fn add(&mut self, counts: Counts) {
        self.samples += counts.samples.powi(2);
        self.loads += counts.loads.powi(2);
    }
}

fn squares<K>(groups: &[Group<K>]) -> Squares {
    let mut sums = Squares::default();
    for (_, counts) in groups {
        sums.add(*counts);
    }
    sums
}

fn merge_equal<K: Ord + Copy>(groups: &mut Vec<Group<K>>) {
    groups.sort_unstable_by_key(|(key, _)| *key);
    groups.dedup_by(|later, kept| {
        let equal = later.0 == kept.0;
        if equal {
            kept.1.add(later.1);
        }
        equal
    });
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "counts and clamped values are exact")]
mod tests {
    use super::*;

    /// One sample per letter: the letter names the thread, upper case stores; `cpu_of` places it.
    fn order(letters: &str, cpu_of: impl Fn(u8) -> u32) -> Order {
        let mut order = Order::default();
        for (time_ns, letter) in letters.bytes().enumerate() {
            let thread = letter.to_ascii_lowercase();
            let new = order.note(
                time_ns as u64,
                Tid(u32::from(thread)),
                Cpu(cpu_of(thread)),
                letter.is_ascii_uppercase(),
            );
            assert!(new);
        }
        order
    }

    fn own_cpu(thread: u8) -> u32 {
        u32::from(thread)
    }

    fn interleaving(letters: &str) -> f64 {
        order(letters, own_cpu).turns().unwrap().interleaving
    }

    #[test]
    fn threads_by_turns_interleave_and_phases_do_not() {
        assert_eq!(interleaving("ABABABABABAB"), 1.0);
        assert_eq!(interleaving("ABBABAABABBA"), 1.0);
        assert_eq!(interleaving("AAAAAABBBBBB"), 0.0);
        assert_eq!(
            interleaving("AAAAAAAAAABBBBBBBBBBAAAAAAAAAABBBBBBBBBB"),
            0.0
        );
        assert_eq!(interleaving("AAAABBBBCCCCDDDD"), 0.0);
    }

    #[test]
    fn the_expectation_is_that_of_a_random_order() {
        let turns = order("AAABBB", own_cpu).turns().unwrap();
        // Six samples, three each: the next one is of the other thread in 3 of 5 cases, 5 times.
        assert_eq!(turns.expected, 3.0);
        assert_eq!(turns.hand_offs, 1.0);
        let turns = order("Abbbb", own_cpu).turns().unwrap();
        // The store is at an end in 2 of 5 places, then it makes one hand-off, else two.
        assert_eq!(turns.expected, 1.6);
        let turns = order("Abc", own_cpu).turns().unwrap();
        // Of two neighbourhoods, each has the store in it in 2 of 3 orders; b beside c is none.
        assert_eq!(turns.expected, 4.0 / 3.0);
    }

    #[test]
    fn loads_alone_are_no_hand_off_and_a_store_among_them_is() {
        assert_eq!(interleaving("abababababab"), 0.0);
        assert!(interleaving("aBaBaBaBaBaB") > 0.9);
        // Two readers by turns all the time, the writer before them.
        assert_eq!(interleaving("CCCCCCCCabababababab"), 0.0);
        assert!(interleaving("CaCbaCbCabCaCbabCaCb") > 0.9);
    }

    #[test]
    fn threads_that_share_one_cpu_never_hand_over() {
        let turns = order("ABABABAB", |_| 0).turns().unwrap();
        assert_eq!((turns.expected, turns.interleaving), (0.0, 0.0));
    }

    #[test]
    fn one_thread_on_many_cpus_shows_nothing() {
        let mut order = Order::default();
        for n in 0..20 {
            order.note(n, Tid(7), Cpu(n as u32 % 4), true);
        }
        assert_eq!(order.turns(), None);
    }

    #[test]
    fn two_samples_cannot_tell_contention_from_phases() {
        assert_eq!(interleaving("AB"), 0.0);
        assert_eq!(interleaving("AAB"), 0.0);
    }

    #[test]
    fn one_stray_sample_explains_no_more_than_a_few_stalls() {
        let private_use = format!("{0}B{0}", "A".repeat(100));
        assert!(interleaving(&private_use) < 0.1);
    }

    #[test]
    fn accesses_of_one_sample_count_once_and_its_store_counts_whenever_it_is_seen() {
        let mut order = Order::default();
        let (a, b) = ((Tid(1), Cpu(0)), (Tid(2), Cpu(1)));
        for n in 0..10 {
            let (tid, cpu) = if n % 2 == 0 { a } else { b };
            assert!(order.note(n, tid, cpu, false));
            assert!(!order.note(n, tid, cpu, true));
            assert!(!order.note(n, tid, cpu, false));
        }
        let turns = order.turns().unwrap();
        assert_eq!((turns.samples, turns.stores), (10.0, 10.0));
        assert_eq!(turns.hand_offs, 9.0);
    }

    #[test]
    fn samples_of_two_threads_at_one_instant_are_two_however_they_are_mixed() {
        let mut order = Order::default();
        assert!(order.note(5, Tid(1), Cpu(0), true));
        assert!(order.note(5, Tid(2), Cpu(1), true));
        assert!(!order.note(5, Tid(1), Cpu(0), false));
        assert!(!order.note(5, Tid(2), Cpu(1), true));
        assert_eq!(order.turns().unwrap().hand_offs, 1.0);
    }
}
