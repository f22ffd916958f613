//! How a quantity is spread over its values: not only its mean. Latencies of loads have two humps or three, one for each place
//! that serves them, and intervals have long tails.

use hdrhistogram::Histogram;

/// What a distribution is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Quantity {
    /// Nanoseconds from one time that a processor took the line from another to the next, as windows or a complete order saw them.
    HandOffInterval,
    /// Core cycles that a sampled load took, by the PMU.
    LoadLatency,
}

impl Quantity {
    /// Stable name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Quantity::HandOffInterval => "hand_off_interval",
            Quantity::LoadLatency => "load_latency",
        }
    }

    /// What its values are in.
    pub fn unit(self) -> &'static str {
        match self {
            Quantity::HandOffInterval => "ns",
            Quantity::LoadLatency => "cycles",
        }
    }
}

/// Values that are kept as they are; a histogram is larger.
const FEW: usize = 64;
/// Significant decimal digits of the values of a histogram: 7 % at most between two that it tells apart, in about a kibibyte.
const DIGITS: u8 = 1;

/// Values of a quantity.
#[derive(Clone, Debug, PartialEq)]
pub struct Distribution(Values);

#[derive(Clone, Debug, PartialEq)]
enum Values {
    Few(Vec<u64>),
    Many(Box<Histogram<u32>>),
}

impl Default for Distribution {
    fn default() -> Distribution {
        Distribution(Values::Few(Vec::new()))
    }
}

impl Distribution {
    /// Adds a value.
    pub fn record(&mut self, value: u64) {
        match &mut self.0 {
            Values::Few(values) if values.len() < FEW => values.push(value),
            Values::Few(values) => {
                let mut all = histogram();
                for value in values.iter() {
                    count(&mut all, *value);
                }
                count(&mut all, value);
                self.0 = Values::Many(Box::new(all));
            }
            Values::Many(all) => count(all, value),
        }
    }

    /// Adds the values of another one.
    pub fn add(&mut self, other: &Distribution) {
        match (&mut self.0, &other.0) {
            (_, Values::Few(values)) => values.iter().for_each(|value| self.record(*value)),
            (Values::Few(values), Values::Many(more)) => {
                let mut all = more.clone();
                for value in values.iter() {
                    count(&mut all, *value);
                }
                self.0 = Values::Many(all);
            }
            (Values::Many(all), Values::Many(more)) => {
                // Both grow as they must.
                let _ = all.add(&**more);
            }
        }
    }

    /// How many values.
    pub fn count(&self) -> u64 {
        match &self.0 {
            Values::Few(values) => values.len() as u64,
            Values::Many(all) => all.len(),
        }
    }

    /// The least value that so many of all, 0..=1, are not above; `None` where there are none.
    pub fn quantile(&self, share: f64) -> Option<u64> {
        match &self.0 {
            Values::Few(values) => {
                let mut sorted = values.clone();
                sorted.sort_unstable();
                let rank = (share * sorted.len() as f64).ceil() as usize;
                sorted.get(rank.clamp(1, sorted.len().max(1)) - 1).copied()
            }
            Values::Many(all) => Some(all.value_at_quantile(share)),
        }
    }
}

fn count(all: &mut Histogram<u32>, value: u64) {
    // It grows with its values, so none is out of its range.
    let _ = all.record(value);
}

fn histogram() -> Histogram<u32> {
    let mut histogram =
        Histogram::new(DIGITS).expect("one digit is less than the five that there may be");
    histogram.auto(true);
    histogram
}

/// What was measured of something, by quantity.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Distributions(Vec<(Quantity, Distribution)>);

impl Distributions {
    /// Adds values of a quantity, if there are any.
    pub fn add(&mut self, quantity: Quantity, values: &Distribution) {
        if values.count() == 0 {
            return;
        }
        match self.0.binary_search_by_key(&quantity, |(known, _)| *known) {
            Ok(at) => self.0[at].1.add(values),
            Err(at) => self.0.insert(at, (quantity, values.clone())),
        }
    }

    /// Adds all of another one.
    pub fn add_all(&mut self, other: &Distributions) {
        for (quantity, values) in &other.0 {
            self.add(*quantity, values);
        }
    }

    /// The quantities that have values, in their order.
    pub fn iter(&self) -> impl Iterator<Item = (Quantity, &Distribution)> {
        self.0.iter().map(|(quantity, values)| (*quantity, values))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: impl IntoIterator<Item = u64>) -> Distribution {
        let mut all = Distribution::default();
        values.into_iter().for_each(|value| all.record(value));
        all
    }

    fn near(found: Option<u64>, right: u64) -> bool {
        found.is_some_and(|found| found.abs_diff(right) * 100 <= right * 7)
    }

    #[test]
    fn few_values_have_exact_quantiles_and_none_has_none() {
        assert_eq!(of([]).quantile(0.5), None);
        let ten = of((1..=10).rev());
        let quantiles = [0.0, 0.5, 0.9, 0.99, 1.0].map(|share| ten.quantile(share).unwrap());
        assert_eq!(quantiles, [1, 5, 9, 10, 10]);
    }

    #[test]
    fn many_values_have_quantiles_within_seven_percent_whatever_their_size() {
        for unit in [1, 1000, 1_000_000_000] {
            let all = of((1..=10_000).map(|n| n * unit));
            assert_eq!(all.count(), 10_000);
            for (share, right) in [(0.5, 5000), (0.9, 9000), (0.99, 9900)] {
                let found = all.quantile(share);
                assert!(near(found, right * unit), "{unit} {share}: {found:?}");
            }
        }
    }

    #[test]
    fn two_humps_stay_two() {
        let all = of((0..1000).map(|n| if n % 10 < 6 { 80 } else { 900 }));
        assert!(near(all.quantile(0.5), 80) && near(all.quantile(0.9), 900));
    }

    #[test]
    fn sums_do_not_depend_on_how_many_values_each_part_has() {
        let whole = of(1..=300);
        for cut in [1, 20, 150, 290] {
            let mut sum = of(1..=cut);
            sum.add(&of(cut + 1..=300));
            assert_eq!(sum.count(), 300);
            assert_eq!(sum.quantile(0.5), whole.quantile(0.5), "{cut}");
        }
        let mut all = Distributions::default();
        all.add(Quantity::HandOffInterval, &of([]));
        assert_eq!(all.iter().count(), 0);
        let mut more = Distributions::default();
        more.add(Quantity::HandOffInterval, &of([7]));
        all.add_all(&more);
        all.add_all(&more);
        let counts: Vec<_> = all
            .iter()
            .map(|(quantity, of)| (quantity, of.count()))
            .collect();
        assert_eq!(counts, [(Quantity::HandOffInterval, 2)]);
    }
}
