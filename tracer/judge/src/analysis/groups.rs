//! Which byte ranges of a line belong together, by who stores and touches them: what tells the kind of its sharing, and
//! the base of layout advice. Bytes in different groups should not be on one line; bytes of one group may.

use std::{borrow::Cow, collections::BTreeMap, ops::Range};

use crate::{
    access::{ByteSet, LineSize, Tid},
    analysis::{SiteCounts, Uses},
};

/// Stores rarer than this share of a line's stores do not join two fields into one: an initial
/// `memset` writes the whole line once.
const JOINING_STORES: f64 = 0.01;

/// A field with less than this share of the line's accesses makes no group: one wrong address does not
/// ask for another layout.
const FIELD_SHARE: f64 = 0.01;

/// Two stored fields stay together when their threads overlap by this much (1: the same threads as
/// often; 0: none in common). A lock and its data come near 1, per-thread counters to 0; between
/// them lies sampling noise.
const SAME_THREADS: f64 = 0.4;

/// A field of one thread, of which others have at most this part of the accesses, and one that others use in at least
/// [`SHARED`] of them are two things, although their main user is the same: a counter of its own beside a position that
/// it publishes.
const PRIVATE: f64 = 0.05;

/// See [`PRIVATE`]. Between the two lies sampling noise.
const SHARED: f64 = 0.15;

/// A thread with less than this part of the accesses of the busiest one is not named among the users of a group: who
/// initialises memory, or looks at it once, does not fight for it.
const RARE_USER: f64 = 0.02;

/// A stored and a never stored field stay together while a store of the one meets an access of another
/// thread to the other in at most this share of their pairs.
const CONFLICT_TOLERATED: f64 = 0.1;

/// Of the accesses to what is only read, this part may be by threads that do not use the stored field beside it as well, or
/// much less often ([`READS_PER_USE`]). Whoever takes a lock reads its kind before; the line comes once for both.
const READ_BY_OTHERS: f64 = 0.1;

/// Reads of a field that is never stored for each use of the stored one beside it, up to which the two are used as one.
const READS_PER_USE: f64 = 3.0;

/// Byte ranges of a line that may stay together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The bytes that were touched.
    pub bytes: ByteSet,
    /// Threads that store to any of them, ascending; not those that hardly ever do.
    pub writers: Vec<Tid>,
    /// Others that read them, ascending; not those that hardly ever do.
    pub readers: Vec<Tid>,
}

impl Group {
    /// Whether some thread stores to it.
    pub fn is_stored(&self) -> bool {
        !self.writers.is_empty()
    }

    /// The bytes as ranges of offsets in the line, ascending.
    pub fn ranges(&self) -> Vec<Range<u8>> {
        ranges(self.bytes)
    }
}

/// The maximal runs of bytes in a set, ascending.
fn ranges(bytes: ByteSet) -> Vec<Range<u8>> {
    let has = |n: u8| n < 128 && bytes.0 >> n & 1 == 1;
    let starts = (0..128u8).filter(|&n| has(n) && (n == 0 || !has(n - 1)));
    starts
        .map(|start| start..(start..=128).find(|&n| !has(n)).unwrap_or(128))
        .collect()
}

/// Groups the bytes of a line by its sites, ordered by first byte. One group: nothing to move apart.
pub fn groups(sites: &[SiteCounts], uses: &Uses, line_size: LineSize) -> Vec<Group> {
    let weighed = weighed(sites);
    // Accesses whose bytes are not known neither join fields nor part them.
    let placed = |s: &&SiteCounts| s.site.op.touches() && s.site.within == 0;
    let touching: Vec<&SiteCounts> = weighed.iter().filter(placed).collect();
    let total: f64 = touching.iter().map(|s| s.accesses() as f64).sum();
    let mut fields: Vec<Usage> = field_bytes(&touching, line_size)
        .into_iter()
        .map(|bytes| Usage::of(bytes, &touching, line_size))
        .filter(|field| field.accesses() >= total * FIELD_SHARE)
        .collect();
    // The most used field founds the first group, so that noise joins it and not the reverse.
    fields.sort_by(|a, b| {
        (b.accesses().total_cmp(&a.accesses())).then_with(|| a.bytes.0.cmp(&b.bytes.0))
    });
    // What is only read comes last, and of it first what fits to nothing that is stored to: it founds the group that the
    // rest of it would rather join.
    let (stored, read): (Vec<Usage>, Vec<Usage>) =
        (fields.into_iter()).partition(|field| !field.stores.is_empty());
    let fits = |field: &Usage| stored.iter().any(|group| group.may_hold(field, uses));
    let (homeless, fitting): (Vec<Usage>, Vec<Usage>) = read.into_iter().partition(|f| !fits(f));
    let mut merged: Vec<Usage> = Vec::new();
    for field in stored.into_iter().chain(homeless).chain(fitting) {
        let fit = |group: &Usage| group.conflict_with(&field);
        let holds = merged
            .iter_mut()
            .filter(|group| group.may_hold(&field, uses));
        // What is only read stays with what is only read, where there is such a group, and is nobody's in particular.
        match holds.min_by(|a, b| fit(a).total_cmp(&fit(b))) {
            Some(group) => group.add(&field),
            None => merged.push(field),
        }
    }
    merged.sort_by_key(|group| group.bytes.0.trailing_zeros());
    merged.into_iter().map(Usage::into_group).collect()
}

/// Gives sites that only windows saw the samples they would have had at the rate of the others. An access
/// that no sample shows must not be left out of a layout, and hits are far more than samples.
fn weighed(sites: &[SiteCounts]) -> Cow<'_, [SiteCounts]> {
    let unsampled = |s: &SiteCounts| s.accesses() == 0 && s.trapped > 0;
    if !sites.iter().any(unsampled) {
        return Cow::Borrowed(sites);
    }
    let known = || sites.iter().filter(|s| s.accesses() > 0 && s.trapped > 0);
    let sampled: u64 = known().map(SiteCounts::accesses).sum();
    let trapped: u64 = known().map(|s| s.trapped).sum();
    let rate = if trapped > 0 {
        sampled as f64 / trapped as f64
    } else {
        1.0
    };
    let mut weighed = sites.to_vec();
    for site in weighed.iter_mut().filter(|s| unsampled(s)) {
        site.decoded = (site.trapped as f64 * rate).round() as u32;
    }
    Cow::Owned(weighed)
}

/// Cuts the touched bytes into fields: bytes that one store writes together, then bytes never stored
/// that one load reads together. A load over several stored fields joins none of them.
fn field_bytes(sites: &[&SiteCounts], line_size: LineSize) -> Vec<ByteSet> {
    let stores = || sites.iter().filter(|s| s.site.op.stores());
    let stored: f64 = stores().map(|s| s.accesses() as f64).sum();
    let mut by_footprint: BTreeMap<(u8, u8), f64> = BTreeMap::new();
    for site in stores() {
        let footprint = (site.site.offset, site.site.size);
        *by_footprint.entry(footprint).or_default() += site.accesses() as f64;
    }
    let joining = by_footprint
        .into_iter()
        .filter(|(_, accesses)| *accesses >= stored * JOINING_STORES)
        .map(|((offset, size), _)| ByteSet::range(offset, u16::from(size), line_size));
    let mut fields = join_overlapping(joining);
    let taken = fields.iter().fold(0, |all, field| all | field.0);
    let rest = sites
        .iter()
        .map(|s| ByteSet(s.site.bytes(line_size).0 & !taken));
    fields.extend(join_overlapping(rest));
    fields
}

fn join_overlapping(sets: impl Iterator<Item = ByteSet>) -> Vec<ByteSet> {
    let mut joined: Vec<ByteSet> = Vec::new();
    for mut set in sets.filter(|set| !set.is_empty()) {
        joined.retain(|other| {
            let overlaps = other.overlaps(set);
            if overlaps {
                set.0 |= other.0;
            }
            !overlaps
        });
        joined.push(set);
    }
    joined
}

/// Accesses per thread to some bytes.
struct Usage {
    bytes: ByteSet,
    stores: BTreeMap<Tid, f64>,
    touches: BTreeMap<Tid, f64>,
}

impl Usage {
    fn of(bytes: ByteSet, sites: &[&SiteCounts], line_size: LineSize) -> Usage {
        let mut usage = Usage {
            bytes,
            stores: BTreeMap::new(),
            touches: BTreeMap::new(),
        };
        let here = |s: &&&SiteCounts| s.site.bytes(line_size).overlaps(bytes);
        for site in sites.iter().filter(here) {
            let accesses = site.accesses() as f64;
            *usage.touches.entry(site.site.tid).or_default() += accesses;
            if site.site.op.stores() {
                *usage.stores.entry(site.site.tid).or_default() += accesses;
            }
        }
        usage
    }

    fn accesses(&self) -> f64 {
        sum(&self.touches)
    }

    fn may_hold(&self, field: &Usage, uses: &Uses) -> bool {
        if self.stores.is_empty() || field.stores.is_empty() {
            return self.conflict_with(field) <= CONFLICT_TOLERATED || self.takes_along(field);
        }
        let others = [by_others(&self.touches), by_others(&field.touches)];
        let one_is_private =
            others[0].min(others[1]) <= PRIVATE && others[0].max(others[1]) >= SHARED;
        let change_hands =
            others[0].min(others[1]) >= SHARED && uses.apart(self.bytes, field.bytes);
        !one_is_private
            && !change_hands
            && overlap(&self.touches, &field.touches) >= SAME_THREADS
            && overlap(&self.stores, &field.stores) >= SAME_THREADS
    }

    /// Whether whoever reads a field that is never stored uses this one as well, about as often.
    fn takes_along(&self, field: &Usage) -> bool {
        if self.stores.is_empty() || !field.stores.is_empty() {
            return false;
        }
        let reads_of_others = field.touches.iter().map(|(tid, reads)| {
            let uses = self.touches.get(tid).copied().unwrap_or(0.0);
            (reads - READS_PER_USE * uses).max(0.0)
        });
        reads_of_others.sum::<f64>() <= READ_BY_OTHERS * field.accesses()
    }

    /// Part of the pairs of a store of one and an access to the other, 0..=1, that are of different threads; of two
    /// that are both stored to, or both not, none.
    fn conflict_with(&self, field: &Usage) -> f64 {
        match (self.stores.is_empty(), field.stores.is_empty()) {
            (true, true) | (false, false) => 0.0,
            (false, true) => crossing(&self.stores, &field.touches),
            (true, false) => crossing(&field.stores, &self.touches),
        }
    }

    fn add(&mut self, other: &Usage) {
        self.bytes.0 |= other.bytes.0;
        let pairs = [
            (&mut self.stores, &other.stores),
            (&mut self.touches, &other.touches),
        ];
        for (mine, others) in pairs {
            for (tid, accesses) in others {
                *mine.entry(*tid).or_default() += accesses;
            }
        }
    }

    fn into_group(self) -> Group {
        let writers = frequent(&self.stores, most(&self.stores));
        let only_reads = |tid: &Tid| !writers.contains(tid);
        let users = frequent(&self.touches, most(&self.touches));
        Group {
            bytes: self.bytes,
            readers: users.into_iter().filter(only_reads).collect(),
            writers,
        }
    }
}

fn sum(of: &BTreeMap<Tid, f64>) -> f64 {
    of.values().sum()
}

fn most(of: &BTreeMap<Tid, f64>) -> f64 {
    of.values().copied().fold(0.0, f64::max)
}

/// Part by all threads but the busiest, 0..=1.
fn by_others(of: &BTreeMap<Tid, f64>) -> f64 {
    1.0 - most(of) / sum(of)
}

/// Threads that are not rare beside the busiest one, ascending.
fn frequent(of: &BTreeMap<Tid, f64>, most: f64) -> Vec<Tid> {
    let often = |n: &f64| *n >= most * RARE_USER;
    of.iter()
        .filter(|(_, n)| often(n))
        .map(|(tid, _)| *tid)
        .collect()
}

/// How alike two distributions over threads are, 0..=1.
fn overlap(a: &BTreeMap<Tid, f64>, b: &BTreeMap<Tid, f64>) -> f64 {
    let (all_a, all_b) = (sum(a), sum(b));
    let common = a.iter().filter_map(|(tid, n)| Some((n, b.get(tid)?)));
    common.map(|(m, n)| (m / all_a).min(n / all_b)).sum()
}

/// Probability that an access of `a` and one of `b` are of different threads.
fn crossing(a: &BTreeMap<Tid, f64>, b: &BTreeMap<Tid, f64>) -> f64 {
    let common = a.iter().filter_map(|(tid, n)| Some(n * b.get(tid)?));
    1.0 - common.sum::<f64>() / (sum(a) * sum(b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{access::Op, analysis::site_fixture::site};

    /// One line per group: `ranges w writers r readers`.
    fn check(sites: &[SiteCounts], expected: &[&str]) {
        check_with(sites, &Uses::default(), expected);
    }

    fn check_with(sites: &[SiteCounts], uses: &Uses, expected: &[&str]) {
        let list = |tids: &[Tid]| tids.iter().map(|tid| tid.0).collect::<Vec<_>>();
        let found: Vec<String> = groups(sites, uses, LineSize::B64)
            .iter()
            .map(|g| {
                format!(
                    "{:?} w {:?} r {:?}",
                    g.ranges(),
                    list(&g.writers),
                    list(&g.readers)
                )
            })
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn counters_of_two_threads_are_two_groups() {
        let sites = [site(1, 0, 8, Op::Rmw, 50), site(2, 8, 8, Op::Rmw, 50)];
        check(&sites, &["[0..8] w [1] r []", "[8..16] w [2] r []"]);
    }

    #[test]
    fn a_counter_leaves_the_configuration_beside_it_together() {
        let sites = [
            site(1, 0, 8, Op::Rmw, 90),
            site(2, 8, 4, Op::Load, 50),
            site(3, 8, 4, Op::Load, 40),
            site(2, 16, 8, Op::Load, 20),
            site(1, 16, 8, Op::Load, 10),
        ];
        check(
            &sites,
            &["[0..8] w [1] r []", "[8..12, 16..24] w [] r [1, 2, 3]"],
        );
    }

    #[test]
    fn a_lock_and_the_data_that_all_its_users_store_stay_together() {
        let both = |tid| [site(tid, 0, 4, Op::Rmw, 50), site(tid, 8, 8, Op::Rmw, 30)];
        let sites: Vec<_> = [both(1), both(2), both(3)].concat();
        check(&sites, &["[0..4, 8..16] w [1, 2, 3] r []"]);
    }

    #[test]
    fn what_threads_use_one_at_a_time_is_two_things_though_all_of_them_use_both() {
        let both = |tid| [site(tid, 0, 8, Op::Rmw, 50), site(tid, 8, 8, Op::Rmw, 50)];
        let sites = [both(1), both(2)].concat();
        let (a, b) = (0xff, 0xff00);
        let uses = |stretches: &[u128]| {
            let mut uses = Uses::default();
            for touched in stretches.iter().cycle().take(20) {
                uses.add(*touched, 10);
            }
            uses
        };
        let apart = ["[0..8] w [1, 2] r []", "[8..16] w [1, 2] r []"];
        check_with(&sites, &uses(&[a, b]), &apart);
        check_with(&sites, &uses(&[a | b]), &["[0..16] w [1, 2] r []"]);
        // What one thread uses stays together.
        check_with(&both(1), &uses(&[a, b]), &["[0..16] w [1] r []"]);
    }

    #[test]
    fn the_kind_of_a_lock_stays_with_it_unless_others_read_it_or_it_is_read_much_more_often() {
        let taker = |tid, reads| {
            [
                site(tid, 0, 4, Op::Rmw, 50),
                site(tid, 16, 4, Op::Load, reads),
            ]
        };
        let takers = |reads| [taker(1, reads), taker(2, reads)].concat();
        check(&takers(60), &["[0..4, 16..20] w [1, 2] r []"]);
        let apart = "[0..4] w [1, 2] r []";
        check(&takers(400), &[apart, "[16..20] w [] r [1, 2]"]);
        let read_by_another = [takers(60), vec![site(3, 16, 4, Op::Load, 60)]].concat();
        check(&read_by_another, &[apart, "[16..20] w [] r [1, 2, 3]"]);
    }

    #[test]
    fn everything_of_one_thread_stays_together() {
        let sites = [
            site(1, 0, 8, Op::Rmw, 50),
            site(1, 8, 8, Op::Load, 50),
            site(1, 32, 8, Op::Store, 50),
            site(2, 48, 8, Op::Store, 50),
        ];
        check(
            &sites,
            &["[0..16, 32..40] w [1] r []", "[48..56] w [2] r []"],
        );
    }

    #[test]
    fn head_and_tail_of_a_queue_move_apart() {
        let sites = [
            site(1, 0, 8, Op::Store, 50),
            site(1, 8, 8, Op::Load, 50),
            site(2, 8, 8, Op::Store, 50),
            site(2, 0, 8, Op::Load, 50),
        ];
        check(&sites, &["[0..8] w [1] r [2]", "[8..16] w [2] r [1]"]);
    }

    #[test]
    fn initialisation_and_a_reporter_do_not_join_the_counters() {
        let sites = [
            site(1, 0, 8, Op::Rmw, 500),
            site(2, 8, 8, Op::Rmw, 500),
            site(9, 0, 32, Op::Store, 2),
            site(9, 0, 16, Op::Load, 30),
        ];
        check(&sites, &["[0..8] w [1] r [9]", "[8..16] w [2] r [9]"]);
    }

    #[test]
    fn a_counter_of_ones_own_and_a_position_for_others_are_two_things() {
        let sites = [
            site(1, 0, 8, Op::Rmw, 500),
            site(1, 8, 8, Op::Store, 500),
            site(2, 8, 8, Op::Load, 500),
        ];
        check(&sites, &["[0..8] w [1] r []", "[8..16] w [1] r [2]"]);
        // Who uses both has one thing, and so have two that use both.
        let own = [site(1, 0, 8, Op::Rmw, 500), site(1, 8, 8, Op::Store, 500)];
        check(&own, &["[0..16] w [1] r []"]);
        let both = |tid| {
            [
                site(tid, 0, 8, Op::Rmw, 500),
                site(tid, 8, 8, Op::Store, 300),
            ]
        };
        check(&[both(1), both(2)].concat(), &["[0..16] w [1, 2] r []"]);
    }

    #[test]
    fn what_is_only_read_stays_with_what_is_only_read() {
        let sites = [
            site(1, 8, 8, Op::Store, 500),
            site(1, 16, 8, Op::Load, 500),
            site(2, 16, 8, Op::Load, 20),
            site(1, 24, 8, Op::Load, 200),
            site(2, 24, 8, Op::Load, 200),
        ];
        // Its main user has a group that it would fit into, too.
        check(&sites, &["[8..16] w [1] r []", "[16..32] w [] r [1, 2]"]);
    }

    #[test]
    fn a_stray_access_makes_no_group() {
        let sites = [
            site(1, 0, 8, Op::Rmw, 500),
            site(2, 8, 8, Op::Rmw, 500),
            site(2, 40, 8, Op::Store, 1),
        ];
        check(&sites, &["[0..8] w [1] r []", "[8..16] w [2] r []"]);
    }

    #[test]
    fn ranges_reach_both_ends_of_a_pair_of_lines() {
        assert_eq!(ranges(ByteSet(1 << 127 | 1)), [0..1, 127..128]);
        assert_eq!(format!("{:?}", ranges(ByteSet(u128::MAX))), "[0..128]");
        assert!(ranges(ByteSet::default()).is_empty());
    }
}
