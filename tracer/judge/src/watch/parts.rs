//! The parts of a word that are watched one by one, where an access to the whole would not tell which bytes it was.
//!
//! ```text
//!   stored        [0123]....                 by an instruction whose bytes are known
//!   read          ........?                  somewhere, by one that overwrites its own address
//!   watched       [0123][4567]               a hit of the second part alone is no use of what is stored
//! ```

use super::words::WORD_BYTES;
use crate::{
    access::{ByteSet, LineSize},
    analysis::SiteCounts,
};

/// Accesses rarer than this share of a word's do not divide it.
const DIVIDING: f64 = 0.01;

/// A run of bytes that one breakpoint can watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// From the line's start.
    pub(super) offset: u8,
    /// 1, 2, 4 or 8.
    pub(super) len: u8,
}

/// The parts of a word, at most `most`: the fewest that no access with known bytes begins or ends in. One, the word, where
/// the bytes of all accesses are known (`unplaced` says where not).
pub(super) fn parts(
    word: u8,
    sites: &[SiteCounts],
    unplaced: ByteSet,
    line_size: LineSize,
    most: usize,
) -> Vec<Part> {
    let whole = Part {
        offset: word * WORD_BYTES as u8,
        len: WORD_BYTES as u8,
    };
    let of_word = |bytes: ByteSet| (bytes.0 >> whole.offset) as u8;
    if of_word(unplaced) == 0 || most < 2 {
        return vec![whole];
    }
    let here =
        || (sites.iter()).filter(|s| s.site.op.touches() && of_word(s.site.reach(line_size)) != 0);
    let weight = |site: &SiteCounts| (site.accesses() + site.trapped) as f64;
    let least = here().map(weight).sum::<f64>() * DIVIDING;
    // Bit n: something begins or ends between byte n - 1 and byte n.
    let mut cuts = here()
        .filter(|site| weight(site) >= least)
        .map(|site| of_word(site.site.bytes(line_size)))
        .fold(0, |cuts, bytes| cuts | bytes ^ bytes << 1);
    let size = here().filter(|s| s.site.within > 0).map(|s| s.site.size);
    if cuts & !1 == 0 {
        // Nothing is known yet: halves, or quarters for what is smaller than a half.
        let quarters = most > 2 && size.min().is_some_and(|size| size < whole.len / 2);
        cuts = if quarters { 0b0101_0100 } else { 0b0001_0000 };
    }
    let mut parts = vec![whole];
    // Halving the widest first: where there is no room for all, the finest cuts are left out.
    let is_cut = |part: &Part| {
        let inner = (part.offset + 1..part.offset + part.len).map(|byte| byte - whole.offset);
        inner.into_iter().any(|byte| cuts >> byte & 1 == 1)
    };
    while parts.len() < most {
        let widest = (0..parts.len()).filter(|n| is_cut(&parts[*n]));
        let Some(n) = widest.max_by_key(|n| (parts[*n].len, std::cmp::Reverse(*n))) else {
            break;
        };
        let half = parts[n].len / 2;
        parts[n].len = half;
        let offset = parts[n].offset + half;
        parts.insert(n + 1, Part { offset, len: half });
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{access::Op, analysis::site_fixture::site};

    const UNPLACED: ByteSet = ByteSet(0xff00);

    fn somewhere(size: u8) -> SiteCounts {
        let mut somewhere = site(9, 8, size, Op::Load, 100);
        somewhere.site.within = 8;
        somewhere
    }

    fn divided(sites: &[SiteCounts], most: usize) -> Vec<(u8, u8)> {
        let parts = parts(1, sites, UNPLACED, LineSize::B64, most);
        parts.iter().map(|part| (part.offset, part.len)).collect()
    }

    #[test]
    fn a_word_is_divided_where_accesses_of_known_bytes_end() {
        let half = site(1, 8, 4, Op::Store, 50);
        assert_eq!(divided(&[half.clone(), somewhere(4)], 4), [(8, 4), (12, 4)]);
        let byte = site(1, 8, 1, Op::Store, 50);
        let all = [(8, 1), (9, 1), (10, 2), (12, 4)];
        assert_eq!(divided(&[byte.clone(), somewhere(1)], 4), all);
        // Less room: the coarser cuts.
        assert_eq!(divided(&[byte, somewhere(1)], 2), [(8, 4), (12, 4)]);
        let last = site(1, 14, 2, Op::Store, 50);
        assert_eq!(
            divided(&[last, somewhere(2)], 3),
            [(8, 4), (12, 2), (14, 2)]
        );
        // What is in other words, or rare, divides nothing.
        let other = site(1, 4, 2, Op::Store, 50);
        let rare = site(1, 9, 1, Op::Store, 1);
        assert_eq!(
            divided(&[other, half, rare, somewhere(4)], 4),
            [(8, 4), (12, 4)]
        );
    }

    #[test]
    fn where_nothing_is_known_the_size_divides() {
        assert_eq!(divided(&[somewhere(4)], 4), [(8, 4), (12, 4)]);
        let quarters = [(8, 2), (10, 2), (12, 2), (14, 2)];
        assert_eq!(divided(&[somewhere(1)], 4), quarters);
        assert_eq!(divided(&[somewhere(1)], 2), [(8, 4), (12, 4)]);
    }

    #[test]
    fn a_word_whose_accesses_are_all_known_stays_whole() {
        let sites = [site(1, 0, 4, Op::Store, 50), site(2, 4, 4, Op::Load, 50)];
        let whole = [Part { offset: 0, len: 8 }];
        assert_eq!(parts(0, &sites, UNPLACED, LineSize::B64, 4), whole);
        // A breakpoint register alone divides nothing.
        assert_eq!(divided(&[somewhere(4)], 1), [(8, 8)]);
    }
}
