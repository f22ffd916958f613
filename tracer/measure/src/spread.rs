//! How measured values are spread.

use hdrhistogram::Histogram;

/// Values are kept in hundredths, up to ten million of them, to three digits.
const PARTS: f64 = 100.0;
const MOST: u64 = 10_000_000;
const DIGITS: u8 = 3;

/// Values that are not negative.
#[derive(Clone, Debug)]
pub struct Spread(Histogram<u32>);

impl Default for Spread {
    fn default() -> Spread {
        let values = Histogram::new_with_bounds(1, MOST, DIGITS);
        Spread(values.unwrap_or_else(|_| unreachable!("bounds that a histogram takes")))
    }
}

impl Spread {
    /// Adds a value; one that is too large counts as the largest that is kept.
    pub fn record(&mut self, value: f64) {
        self.0.saturating_record((value * PARTS).round() as u64);
    }

    /// Adds the values of another one.
    pub fn add(&mut self, other: &Spread) {
        // Both have the same bounds.
        let _ = self.0.add(&other.0);
    }

    /// Values added.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// The value that a part of all, 0 to 1, do not exceed; `None` of none.
    pub fn quantile(&self, part: f64) -> Option<f64> {
        (!self.0.is_empty()).then(|| self.0.value_at_quantile(part) as f64 / PARTS)
    }

    /// The middle one; `None` of none.
    pub fn median(&self) -> Option<f64> {
        self.quantile(0.5)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_right_within_a_thousandth() {
        let mut spread = Spread::default();
        assert_eq!(spread.median(), None);
        (1..=1000).for_each(|n| spread.record(f64::from(n) / 10.0));
        assert_eq!(spread.count(), 1000);
        for (part, expected) in [(0.05, 5.0), (0.5, 50.0), (0.95, 95.0)] {
            let found = spread.quantile(part).unwrap();
            assert!((found / expected - 1.0).abs() < 0.001, "{found} {expected}");
        }
        spread.record(1e12);
        assert!(spread.quantile(1.0).unwrap() < 1e6);
    }
}
