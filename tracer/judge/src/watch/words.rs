//! Which words of a line to watch together: a window has room for four at most.

use std::cmp::Reverse;

use crate::{
    access::{LineSize, Tid},
    analysis::SiteCounts,
};

/// Bytes that one breakpoint register can watch, and so the grain of a plan.
pub(super) const WORD_BYTES: u64 = 8;

/// How a word is used, as far as samples say.
#[derive(Clone, Debug, Default)]
struct Use {
    stores: u64,
    accesses: u64,
    /// Who stores to it most often.
    storer: Option<(u64, Tid)>,
}

/// The words that are touched, the most telling first: those that different threads store to, then others
/// that are stored to, then those that are only read; within each, the most used first.
pub(super) fn ranked(sites: &[SiteCounts], line_size: LineSize) -> Vec<u8> {
    let mut uses = vec![Use::default(); (line_size.bytes() / WORD_BYTES) as usize];
    for site in sites.iter().filter(|site| site.site.op.touches()) {
        let bytes = site.site.reach(line_size).0;
        for (word, usage) in uses.iter_mut().enumerate() {
            let of_word = (bytes >> (word as u64 * WORD_BYTES)) as u8;
            if of_word == 0 {
                continue;
            }
            let accesses = site.accesses().max(1);
            usage.accesses += accesses;
            if site.site.op.stores() {
                usage.stores += accesses;
                usage.storer = usage.storer.max(Some((accesses, site.site.tid)));
            }
        }
    }
    let mut words: Vec<u8> = (0..uses.len() as u8)
        .filter(|word| uses[usize::from(*word)].accesses > 0)
        .collect();
    let of = |word: u8| &uses[usize::from(word)];
    words.sort_by_key(|&word| (Reverse(of(word).stores), Reverse(of(word).accesses), word));
    // Two words of one thread show nothing; move the first of each further storer to the front.
    let mut storers: Vec<Tid> = Vec::new();
    let (mut first, mut rest) = (Vec::new(), Vec::new());
    for word in words {
        match of(word).storer {
            Some((_, tid)) if !storers.contains(&tid) => {
                storers.push(tid);
                first.push(word);
            }
            _ => rest.push(word),
        }
    }
    first.extend(rest);
    first
}

/// Of the ranked words as many as there is `room` for, each taking `slots`: all where they fit, else the set that shows the
/// most pairs of words that were seen together least (`together`), so that in the end every pair has been.
pub(super) fn choose(
    ranked: &[u8],
    room: usize,
    slots: impl Fn(u8) -> usize,
    together: impl Fn(u8, u8) -> u64,
) -> Vec<u8> {
    let taken = |words: &[u8]| words.iter().map(|word| slots(*word)).sum::<usize>();
    if taken(ranked) <= room {
        return ranked.to_vec();
    }
    let pairs = ranked.iter().enumerate().flat_map(|(n, &a)| {
        let others = ranked[n + 1..].iter();
        others.map(move |&b| vec![a, b])
    });
    // A word that leaves no room for any other is seen alone or not at all.
    let alone = ranked.iter().filter(|&&word| {
        let mut others = ranked.iter().filter(|other| **other != word);
        others.all(|&other| slots(word) + slots(other) > room)
    });
    let sets = pairs.chain(alone.map(|word| vec![*word]));
    let fitting = sets.filter(|set| taken(set) <= room);
    let seen = |set: &Vec<u8>| match set.as_slice() {
        [a, b] => together(*a, *b),
        _ => set.iter().map(|word| together(*word, *word)).sum(),
    };
    // Of sets seen equally often, the first by rank.
    let mut chosen = fitting.min_by_key(seen).unwrap_or_default();
    loop {
        let seen = |word: &u8| {
            chosen
                .iter()
                .map(|other| together(*word, *other))
                .sum::<u64>()
        };
        let left = room - taken(&chosen);
        let next = ranked.iter().filter(|word| !chosen.contains(word));
        let fitting = next.filter(|word| slots(**word) <= left);
        // `min_by_key` takes the first of equal ones.
        let Some(next) = fitting.min_by_key(|word| seen(word)).copied() else {
            return chosen;
        };
        chosen.push(next);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::{access::Op, analysis::site_fixture::site};

    #[test]
    fn words_of_different_storers_come_first_and_read_ones_last() {
        let sites = [
            site(1, 0, 8, Op::Rmw, 50),
            site(1, 8, 8, Op::Rmw, 40),
            site(2, 16, 4, Op::Store, 5),
            site(3, 24, 8, Op::Load, 900),
            site(3, 32, 8, Op::Prefetch, 900),
        ];
        assert_eq!(ranked(&sites, LineSize::B64), [0, 2, 1, 3]);
    }

    #[test]
    fn an_access_across_words_uses_both() {
        assert_eq!(
            ranked(&[site(1, 4, 8, Op::Store, 1)], LineSize::B64),
            [0, 1]
        );
        assert_eq!(
            ranked(&[site(1, 120, 8, Op::Store, 1)], LineSize::B128),
            [15]
        );
    }

    #[test]
    fn where_all_fit_all_are_watched() {
        assert_eq!(choose(&[3, 1], 4, |_| 1, |_, _| 0), [3, 1]);
        assert!(choose(&[], 4, |_| 1, |_, _| 0).is_empty());
    }

    /// Windows until every pair of `words` was together at least once; panics when that takes too many.
    fn windows_until_all_pairs(words: u8, room: usize) -> usize {
        windows_with(words, room, |_| 1)
    }

    /// The same, where words take this many slots.
    fn windows_with(words: u8, room: usize, slots: impl Fn(u8) -> usize + Copy) -> usize {
        let ranked: Vec<u8> = (0..words).collect();
        let mut seen: BTreeMap<(u8, u8), u64> = BTreeMap::new();
        let pairs = usize::from(words) * (usize::from(words) - 1) / 2;
        for window in 1..=pairs {
            let together =
                |a: u8, b: u8| seen.get(&(a.min(b), a.max(b))).copied().unwrap_or_default();
            let chosen = choose(&ranked, room, slots, together);
            let taken = |words: &[u8]| words.iter().map(|word| slots(*word)).sum::<usize>();
            assert!(taken(&chosen) <= room, "{chosen:?}");
            let mut left = ranked.iter().filter(|word| !chosen.contains(word));
            assert!(left.all(|word| taken(&chosen) + slots(*word) > room));
            for (n, &a) in chosen.iter().enumerate() {
                for &b in &chosen[n + 1..] {
                    *seen.entry((a.min(b), a.max(b))).or_default() += 1;
                }
            }
            if seen.len() == pairs {
                return window;
            }
        }
        panic!("{words} words, {room} at once: only {} pairs", seen.len());
    }

    #[test]
    fn a_divided_word_is_seen_with_the_others_where_it_leaves_them_room() {
        let divided = |word| if word == 2 { 2 } else { 1 };
        assert!(windows_with(5, 4, divided) <= 6);
        assert!(windows_with(4, 3, divided) <= 6);
        let both = |word| if word < 2 { 2 } else { 1 };
        assert!(windows_with(4, 4, both) <= 6);
        // Where it takes all, it has its turns alone.
        let mut windows = BTreeMap::<u8, u64>::new();
        for _ in 0..9 {
            let seen = |a: u8, b: u8| {
                let of = |word| windows.get(&word).copied().unwrap_or_default();
                of(a).min(of(b))
            };
            for word in choose(&[0, 1, 2], 2, divided, seen) {
                *windows.entry(word).or_default() += 1;
            }
        }
        assert!((0..3).all(|word| windows[&word] >= 3), "{windows:?}");
        // Too large for what there is.
        assert_eq!(choose(&[2], 1, divided, |_, _| 0), [0; 0]);
    }

    #[test]
    fn every_pair_of_words_is_watched_together_before_long() {
        assert!(windows_until_all_pairs(5, 4) <= 3);
        assert!(windows_until_all_pairs(8, 4) <= 8);
        assert!(windows_until_all_pairs(8, 3) <= 14);
        assert_eq!(windows_until_all_pairs(8, 2), 28);
        assert!(windows_until_all_pairs(16, 4) <= 40);
    }
}
