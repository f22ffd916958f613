//! The order by line: a radix sort of hashes, stable, in time linear in their number.

use super::SortRecord;

/// Where a line's accesses are in a sorted run: by a hash, and among lines of equal hash by their code.
///
/// The hash spreads lines evenly over any cut of its range, whatever their addresses are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SortKey {
    /// 32 bits of hash.
    pub hash: u32,
    /// As [`SortRecord::code`].
    pub code: u128,
}

impl SortKey {
    /// Of an access.
    pub fn of(access: &SortRecord) -> SortKey {
        SortKey::of_code(access.code())
    }

    /// Of a line.
    pub fn of_code(code: u128) -> SortKey {
        SortKey {
            hash: hash(code),
            code,
        }
    }
}

/// Two rounds of multiply and xor-shift with the constants of MurmurHash3's 64-bit finalizer.
fn hash(code: u128) -> u32 {
    let mut mixed = (code as u64) ^ ((code >> 64) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^= mixed >> 33;
    mixed = mixed.wrapping_mul(0xff51_afd7_ed55_8ccd);
    mixed ^= mixed >> 33;
    mixed = mixed.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    (mixed >> 32) as u32
}

/// Bits of the hash that one pass sorts by: 2,048 counters stay in the first-level cache.
const DIGIT_BITS: u32 = 11;

/// The accesses in order of [`SortKey`], those of one line in the order in which they are given: hash in the upper
/// half of each number, index in the lower. There are less than 2^32.
pub fn order(accesses: &[SortRecord]) -> Vec<u64> {
    let mut sorted: Vec<u64> = (0u64..)
        .zip(accesses)
        .map(|(n, access)| u64::from(hash(access.code())) << 32 | n)
        .collect();
    let mut scratch = vec![0; sorted.len()];
    for shift in [32, 32 + DIGIT_BITS, 32 + 2 * DIGIT_BITS] {
        let digit = |number: u64| (number >> shift & ((1 << DIGIT_BITS) - 1)) as usize;
        let mut starts = [0usize; 1 << DIGIT_BITS];
        for number in &sorted {
            starts[digit(*number)] += 1;
        }
        let mut before = 0;
        for start in &mut starts {
            before += std::mem::replace(start, before);
        }
        for number in &sorted {
            let start = &mut starts[digit(*number)];
            scratch[*start] = *number;
            *start += 1;
        }
        std::mem::swap(&mut sorted, &mut scratch);
    }
    part_equal_hashes(accesses, &mut sorted);
    sorted
}

/// Lines of equal hash, of which there are hardly any, are still mixed up.
fn part_equal_hashes(accesses: &[SortRecord], sorted: &mut [u64]) {
    let code = |number: u64| accesses[number as u32 as usize].code();
    for equal in sorted.chunk_by_mut(|a, b| a >> 32 == b >> 32) {
        let first = code(equal[0]);
        if equal.iter().any(|number| code(*number) != first) {
            equal.sort_by_key(|number| code(*number));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn access(line: u64, time_ns: u64) -> SortRecord {
        SortRecord {
            line,
            time_ns,
            ..SortRecord::default()
        }
    }

    /// Two lines of one hash, found by trying.
    fn twins() -> (u64, u64) {
        let mut seen = rustc_hash::FxHashMap::default();
        (0..)
            .find_map(|line| Some((seen.insert(hash(line), line as u64)?, line as u64)))
            .expect("32 bits run out")
    }

    #[test]
    fn lines_of_equal_hash_are_parted() {
        let (a, b) = twins();
        let accesses: Vec<SortRecord> = (0..9)
            .map(|n| access(if n % 2 == 0 { b } else { a }, n))
            .collect();
        let times: Vec<u32> = order(&accesses).iter().map(|n| *n as u32).collect();
        assert_eq!(times, [1, 3, 5, 7, 0, 2, 4, 6, 8]);
    }

    proptest! {
        #[test]
        fn it_is_what_a_stable_sort_by_key_gives(lines in prop::collection::vec(0u64..50, 0..400)) {
            let accesses: Vec<SortRecord> =
                (0..).zip(&lines).map(|(n, line)| access(*line, n)).collect();
            let found: Vec<SortRecord> =
                order(&accesses).iter().map(|n| accesses[*n as u32 as usize]).collect();
            let mut expected = accesses;
            expected.sort_by_key(SortKey::of);
            prop_assert_eq!(found, expected);
        }
    }
}
