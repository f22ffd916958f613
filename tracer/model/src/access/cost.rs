//! What accesses cost, in the unit of their run.

use std::{
    iter::Sum,
    ops::{Add, AddAssign, Mul, MulAssign, Sub, SubAssign},
};

use serde::Serialize;

use super::CostUnit;

/// An amount in the run's [`CostUnit`]: nanoseconds, cycles or messages. Amounts of one run add up and compare, and what
/// they mean is only known beside the unit ([`CostIn`]). Not for times that this tool itself takes, which are
/// nanoseconds whatever the unit.
///
/// Of one access it has 32 bits, so that many of them are kept; sums have 64, and neither overflow nor go below 0; a part
/// that was estimated is an `f64`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Cost<T = u64>(pub T);

/// A cost with the unit that it is in, for those who print or compare costs of several runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct CostIn {
    /// What it is in; `cost_unit` in JSON.
    #[serde(rename = "cost_unit")]
    pub unit: CostUnit,
    /// How much; `cost` in JSON.
    #[serde(rename = "cost")]
    pub amount: Cost,
}

impl<T: Default> Cost<T> {
    /// Nothing.
    pub fn none() -> Cost<T> {
        Cost(T::default())
    }
}

impl Cost {
    /// Part of `whole`; `None` of nothing.
    pub fn ratio_to(self, whole: Cost) -> Option<f64> {
        self.estimate().ratio_to(whole)
    }

    /// Part of `whole`, 0..=1; nothing of nothing is nothing.
    pub fn share_of(self, whole: Cost) -> f64 {
        self.estimate().share_of(whole)
    }

    /// The same amount, to estimate a part of it.
    pub fn estimate(self) -> Cost<f64> {
        Cost(self.0 as f64)
    }
}

impl Cost<f64> {
    /// Part of `whole`; `None` of nothing.
    pub fn ratio_to(self, whole: Cost) -> Option<f64> {
        (whole.0 > 0).then(|| self.0 / whole.0 as f64)
    }

    /// Part of `whole`, 0..=1; nothing of nothing is nothing.
    pub fn share_of(self, whole: Cost) -> f64 {
        self.ratio_to(whole)
            .map_or(0.0, |part| part.clamp(0.0, 1.0))
    }

    /// To whole nanoseconds, cycles or messages.
    pub fn rounded(self) -> Cost {
        Cost(self.0.round() as u64)
    }

    /// The larger one.
    #[must_use]
    pub fn max(self, other: Cost<f64>) -> Cost<f64> {
        Cost(self.0.max(other.0))
    }

    /// The smaller one.
    #[must_use]
    pub fn min(self, other: Cost<f64>) -> Cost<f64> {
        Cost(self.0.min(other.0))
    }
}

impl From<Cost<u32>> for Cost {
    fn from(cost: Cost<u32>) -> Cost {
        Cost(cost.0.into())
    }
}

impl Add for Cost {
    type Output = Cost;

    fn add(self, other: Cost) -> Cost {
        Cost(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Cost) {
        *self = *self + other;
    }
}

impl Sub for Cost {
    type Output = Cost;

    fn sub(self, other: Cost) -> Cost {
        Cost(self.0.saturating_sub(other.0))
    }
}

impl SubAssign for Cost {
    fn sub_assign(&mut self, other: Cost) {
        *self = *self - other;
    }
}

impl Sum for Cost {
    fn sum<I: Iterator<Item = Cost>>(costs: I) -> Cost {
        costs.fold(Cost(0), Add::add)
    }
}

impl<'a> Sum<&'a Cost<u32>> for Cost {
    fn sum<I: Iterator<Item = &'a Cost<u32>>>(costs: I) -> Cost {
        costs.map(|cost| Cost::from(*cost)).sum()
    }
}

impl Add for Cost<f64> {
    type Output = Cost<f64>;

    fn add(self, other: Cost<f64>) -> Cost<f64> {
        Cost(self.0 + other.0)
    }
}

impl AddAssign for Cost<f64> {
    fn add_assign(&mut self, other: Cost<f64>) {
        self.0 += other.0;
    }
}

impl Sub for Cost<f64> {
    type Output = Cost<f64>;

    fn sub(self, other: Cost<f64>) -> Cost<f64> {
        Cost(self.0 - other.0)
    }
}

impl Mul<f64> for Cost<f64> {
    type Output = Cost<f64>;

    fn mul(self, part: f64) -> Cost<f64> {
        Cost(self.0 * part)
    }
}

impl MulAssign<f64> for Cost<f64> {
    fn mul_assign(&mut self, part: f64) {
        self.0 *= part;
    }
}

impl Sum for Cost<f64> {
    fn sum<I: Iterator<Item = Cost<f64>>>(costs: I) -> Cost<f64> {
        Cost(costs.map(|cost| cost.0).sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_neither_overflow_nor_go_below_nothing() {
        let most = Cost(u64::MAX);
        assert_eq!([most, Cost(1)].into_iter().sum::<Cost>(), most);
        assert_eq!(Cost(1) - Cost(2), Cost::none());
        let (mut up, mut down) = (most, Cost(0));
        up += Cost(7);
        down -= Cost(7);
        assert_eq!((up, down), (most, Cost(0)));
        let each = [Cost(u32::MAX), Cost(u32::MAX)];
        assert_eq!(each.iter().sum::<Cost>(), Cost(2 * u64::from(u32::MAX)));
    }

    #[test]
    fn a_share_is_of_the_whole_and_of_nothing_there_is_none() {
        assert_eq!(Cost(1).ratio_to(Cost(4)), Some(0.25));
        assert_eq!(Cost(8).ratio_to(Cost(4)), Some(2.0));
        assert_eq!(Cost(1).ratio_to(Cost(0)), None);
        for (share, expected) in [
            (Cost(8).share_of(Cost(4)), 1.0),
            (Cost(1.0).share_of(Cost(4)), 0.25),
            (Cost(1).share_of(Cost(0)), 0.0),
        ] {
            assert!((share - expected).abs() < f64::EPSILON, "{share}");
        }
    }

    #[test]
    fn a_cost_in_a_unit_is_two_fields_in_json() {
        let cost = CostIn {
            unit: CostUnit::LatencyCycles,
            amount: Cost(7),
        };
        let json = serde_json::to_string(&cost).unwrap();
        assert_eq!(json, r#"{"cost_unit":"latency_cycles","cost":7}"#);
    }
}
