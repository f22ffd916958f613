//! How far a share of some samples may be from the share of the time, by chance.

use std::ops::RangeInclusive;

/// What is left to chance, on both sides together.
const CHANCE: f64 = 0.01;

/// How many of `all` samples are of something that has this share of the time, but for one case in a hundred: half of that
/// below, half above. Clopper and Pearson's test ("The Use of Confidence or Fiducial Limits Illustrated in the Case of the
/// Binomial", Biometrika 26, 1934).
pub fn likely(all: u64, share: f64) -> RangeInclusive<u64> {
    let mut low = 0;
    let mut below = 0.0;
    let mut high = all;
    for count in 0..=all {
        let probability = probability(all, share, count);
        if below + probability <= CHANCE / 2.0 {
            low = count + 1;
        }
        below += probability;
        if below >= 1.0 - CHANCE / 2.0 {
            high = count;
            break;
        }
    }
    low.min(high)..=high
}

/// How many of `runs` may be outside of [`likely`], since each is in one case of a hundred.
pub fn most_outside(runs: u64) -> u64 {
    *likely(runs, CHANCE).end()
}

/// Of `count` of `all`, where each has this probability.
fn probability(all: u64, share: f64, count: u64) -> f64 {
    if share <= 0.0 || share >= 1.0 {
        let certain = if share <= 0.0 { 0 } else { all };
        return f64::from(u8::from(count == certain));
    }
    let mut log = count as f64 * share.ln() + (all - count) as f64 * (1.0 - share).ln();
    // all over count, factor by factor.
    for factor in 1..=count.min(all - count) {
        let factor = factor as f64;
        log += ((all as f64 - factor + 1.0) / factor).ln();
    }
    log.exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_within_what_tables_of_the_binomial_say() {
        // 2.576 standard deviations of 4.58, and 14.5.
        assert_eq!(likely(100, 0.3), 19..=42);
        assert_eq!(likely(1000, 0.3), 263..=338);
        assert_eq!(likely(0, 0.3), 0..=0);
        assert_eq!(likely(10, 0.0), 0..=0);
        assert_eq!(likely(10, 1.0), 10..=10);
    }

    #[test]
    fn one_run_in_a_hundred_may_be_outside_and_some_more_by_chance() {
        assert_eq!(most_outside(100), 4);
        assert_eq!(most_outside(10), 1);
        assert_eq!(most_outside(1), 1);
    }
}
