//! Words that only one thread stores to: where they grow, they tell how fast it is.

use std::collections::BTreeMap;

use super::{Line, SiteCounts};
use crate::access::{ByteSet, LineKey, LineSize, Pid, Tid};

/// Threads of which a word is told, those that were seen to store most often.
const MOST_THREADS: usize = 64;

/// A word of one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnWord {
    /// Process.
    pub pid: Pid,
    /// The thread.
    pub tid: Tid,
    /// The word's line.
    pub line: LineKey,
    /// Bytes from its start.
    pub offset: u8,
    /// Its bytes, 4 or 8.
    pub len: u8,
    /// Stores that were seen.
    pub stores: u64,
}

/// Words of the line that only this thread stores to, costliest first.
pub fn of_line(
    line: LineKey,
    sites: &[SiteCounts],
    tid: Tid,
    line_size: LineSize,
) -> impl Iterator<Item = OwnWord> {
    let stores = sites.iter().filter(|site| site.site.op.stores());
    let foreign = stores.clone().filter(move |site| site.site.tid != tid);
    let foreign = foreign.fold(0, |all, site| all | site.site.reach(line_size).0);
    let own = stores.filter(move |site| {
        let site = &site.site;
        let is_word = site.size_known && site.within == 0 && matches!(site.size, 4 | 8);
        let is_aligned = site.offset.is_multiple_of(site.size.max(1));
        let is_own = ByteSet(site.bytes(line_size).0 & foreign) == ByteSet(0);
        site.tid == tid && !site.kernel && is_word && is_aligned && is_own
    });
    own.map(move |site| OwnWord {
        pid: site.site.pid,
        tid,
        line,
        offset: site.site.offset,
        len: site.site.size,
        stores: site.accesses(),
    })
}

/// Of each thread the word that it was seen to store to most often, wherever it is.
pub fn of_all<'a>(
    lines: impl Iterator<Item = (LineKey, &'a Line)>,
    line_size: LineSize,
) -> Vec<OwnWord> {
    let mut best: BTreeMap<Tid, OwnWord> = BTreeMap::new();
    for (key, line) in lines {
        let sites = line.sites();
        let mut tids: Vec<Tid> = sites.iter().map(|site| site.site.tid).collect();
        tids.sort_unstable();
        tids.dedup();
        for word in tids
            .iter()
            .flat_map(|tid| of_line(key, &sites, *tid, line_size))
        {
            let known = best.entry(word.tid).or_insert(word);
            if (word.stores, word.line) > (known.stores, known.line) {
                *known = word;
            }
        }
    }
    let mut words: Vec<OwnWord> = best.into_values().collect();
    words.sort_by_key(|word| (std::cmp::Reverse(word.stores), word.tid));
    words.truncate(MOST_THREADS);
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        access::{Op, Place, SpaceId},
        analysis::site_fixture::site,
    };

    const LINE: LineKey = LineKey(Place::Private {
        space: SpaceId(0),
        addr: 0x7000,
    });

    fn words(sites: &[SiteCounts], tid: u32) -> Vec<(u8, u8)> {
        let words = of_line(LINE, sites, Tid(tid), LineSize::B64);
        words.map(|word| (word.offset, word.len)).collect()
    }

    #[test]
    fn a_word_that_others_store_to_is_nobodys_and_one_that_others_read_is_ones_own() {
        let both = [
            site(1, 0, 8, Op::Rmw, 10),
            site(2, 4, 4, Op::Store, 10),
            site(2, 8, 8, Op::Load, 10),
        ];
        assert_eq!(words(&both, 1), []);
        let read = [site(1, 0, 8, Op::Rmw, 10), site(2, 4, 4, Op::Load, 10)];
        assert_eq!(words(&read, 1), [(0, 8)]);
        assert_eq!(words(&read, 2), []);
    }

    #[test]
    fn bytes_and_words_across_their_alignment_are_no_counters() {
        let odd = [site(1, 0, 1, Op::Rmw, 10), site(1, 12, 8, Op::Rmw, 10)];
        assert_eq!(words(&odd, 1), []);
    }
}
