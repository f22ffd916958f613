//! How a counter errs: counts beside what was predicted, for growing sizes.
//!
//! The classes are Salayandia's ("A Study of the Validity and Utility of PAPI Performance Counter Data", El Paso 2002, page
//! 3), with bounds where the thesis has words.

use std::fmt;

/// Runs of one size.
#[derive(Clone, Debug, PartialEq)]
pub struct Size {
    /// Predicted.
    pub predicted: f64,
    /// Counted in each run.
    pub counted: Vec<f64>,
}

/// How the counts differ from the prediction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ErrorClass {
    /// By one, or one percent, at every size.
    None,
    /// By so many at the smallest size, which no longer matter at the largest.
    Bias(f64),
    /// By this factor.
    Multiplicative(f64),
    /// By much, in some of the runs.
    Random,
    /// In no way that has a name.
    Unknown,
}

impl fmt::Display for ErrorClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ErrorClass::None => f.write_str("none"),
            ErrorClass::Bias(by) => write!(f, "bias ({by:+.1})"),
            ErrorClass::Multiplicative(factor) => write!(f, "multiplicative ({factor:.3})"),
            ErrorClass::Random => f.write_str("random"),
            ErrorClass::Unknown => f.write_str("unknown"),
        }
    }
}

/// Part of a prediction that a count may be off.
const PART: f64 = 0.01;
/// Sizes from which on runs must agree.
const AGREE_FROM: f64 = 100.0;
/// Part of their median by which runs may disagree, and part of the runs that must not.
const SPREAD: f64 = 0.05;
const AGREEING: f64 = 0.9;

impl Size {
    /// Mean of the counts; 0 of no runs.
    pub fn mean(&self) -> f64 {
        self.counted.iter().sum::<f64>() / (self.counted.len() as f64).max(1.0)
    }

    /// Standard deviation of the counts, of a sample.
    pub fn deviation(&self) -> f64 {
        let mean = self.mean();
        let squares: f64 = self.counted.iter().map(|n| (n - mean).powi(2)).sum();
        (squares / (self.counted.len() as f64 - 1.0).max(1.0)).sqrt()
    }

    /// `(mean - predicted) / predicted`.
    pub fn difference(&self) -> f64 {
        (self.mean() - self.predicted) / self.predicted
    }

    fn is_right(&self) -> bool {
        (self.mean() - self.predicted).abs() <= f64::max(1.0, PART * self.predicted)
    }

    fn is_scattered(&self) -> bool {
        self.predicted >= AGREE_FROM && !agree(&self.counted)
    }
}

/// Whether nine of ten values are within 5 % of the middle one; no values do.
pub fn agree(values: &[f64]) -> bool {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let Some(median) = sorted.get(sorted.len() / 2).copied() else {
        return true;
    };
    let near = |n: &&f64| (**n - median).abs() <= SPREAD * median;
    let near = sorted.iter().filter(near).count();
    near as f64 >= AGREEING * sorted.len() as f64
}

/// The class of some sizes' error, `None` of no sizes. Sizes may come in any order.
pub fn error_class(sizes: &[Size]) -> Option<ErrorClass> {
    let mut by_size: Vec<&Size> = sizes.iter().collect();
    by_size.sort_by(|a, b| b.predicted.total_cmp(&a.predicted));
    let (largest, smallest) = (*by_size.first()?, *by_size.last()?);
    if sizes.iter().any(Size::is_scattered) {
        return Some(ErrorClass::Random);
    }
    if sizes.iter().all(Size::is_right) {
        return Some(ErrorClass::None);
    }
    let off = largest.difference();
    if off.abs() <= PART {
        return Some(ErrorClass::Bias(smallest.mean() - smallest.predicted));
    }
    let before = by_size.get(1).map(|size| size.difference());
    let is_factor = before.is_some_and(|before| (before - off).abs() <= PART);
    Some(if is_factor {
        ErrorClass::Multiplicative(1.0 + off)
    } else {
        ErrorClass::Unknown
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sizes with what one run counted.
    fn means(table: &[(f64, f64)]) -> Vec<Size> {
        let size = |(predicted, mean): &(f64, f64)| Size {
            predicted: *predicted,
            counted: vec![*mean],
        };
        table.iter().map(size).collect()
    }

    fn class(table: &[(f64, f64)]) -> String {
        error_class(&means(table)).map_or_else(String::new, |class| class.to_string())
    }

    /// Powers of ten from 1 on, with what was counted of them.
    fn powers(counted: &[f64]) -> String {
        let sizes = (0..).map(|power| 10_f64.powi(power));
        class(&sizes.zip(counted.iter().copied()).collect::<Vec<_>>())
    }

    #[test]
    fn salayandias_tables_have_the_classes_that_their_figures_show() {
        assert_eq!(
            powers(&[1.03, 10.49, 108.38, 1060.0, 10_628.7]),
            "multiplicative (1.063)"
        );
        assert_eq!(
            powers(&[3.08, 12.04, 99.75, 1009.1, 10_027.0]),
            "bias (+2.1)"
        );
        let l1 = [
            5.41,
            14.96,
            106.35,
            1026.5,
            10_028.0,
            100_059.0,
            1_000_391.0,
        ];
        assert_eq!(powers(&l1), "bias (+4.4)");
        let l2 = [
            1.03,
            10.05,
            100.03,
            999.82,
            10_020.11,
            100_058.9,
            1_000_454.0,
        ];
        assert_eq!(powers(&l2), "none");
        let invalidations = [1.1, 10.41, 101.3, 1010.7, 10_147.0, 100_770.0, 1_006_889.0];
        assert_eq!(powers(&invalidations), "bias (+0.1)");
        assert_eq!(powers(&[1.0, 10.0, 99.8, 998.2]), "none");
        // Beyond the 8,192 lines of the cache.
        assert_eq!(powers(&[1.0, 10.0, 99.8, 998.2, 7832.0]), "unknown");
        let clean = [0.8, 9.94, 99.34, 994.7, 9958.7, 99_482.0, 998_990.0];
        assert_eq!(powers(&clean), "none");
        let interventions = [
            (1.0, 3.59),
            (10.0, 12.48),
            (100.0, 100.56),
            (1000.0, 992.29),
            (2000.0, 1938.07),
            (3000.0, 2897.53),
            (4000.0, 3873.69),
            (5000.0, 4014.22),
            (10_000.0, 4278.26),
        ];
        assert_eq!(class(&interventions[..7]), "multiplicative (0.968)");
        assert_eq!(class(&interventions), "unknown");
    }

    /// A counter with a fault, for a hundred runs of each size.
    fn faulty(count: impl Fn(f64, usize) -> f64) -> Option<ErrorClass> {
        let sizes = (0..=6).map(|power| 10_f64.powi(power));
        let sized = sizes.map(|predicted| Size {
            predicted,
            counted: (0..100).map(|run| count(predicted, run)).collect(),
        });
        error_class(&sized.collect::<Vec<_>>())
    }

    #[test]
    fn seeded_faults_get_their_class_and_a_counter_without_one_none() {
        assert_eq!(faulty(|n, _| n), Some(ErrorClass::None));
        let drops = faulty(|n, _| n * 0.97);
        assert!(
            matches!(drops, Some(ErrorClass::Multiplicative(factor)) if (factor - 0.97).abs() < 1e-9)
        );
        assert_eq!(faulty(|n, _| n + 5.0), Some(ErrorClass::Bias(5.0)));
        let doubles = faulty(|n, run| if run % 5 == 0 { 2.0 * n } else { n });
        assert_eq!(doubles, Some(ErrorClass::Random));
        assert_eq!(
            faulty(|n, _| 2.0 * n),
            Some(ErrorClass::Multiplicative(2.0))
        );
    }

    #[test]
    fn of_nothing_there_is_no_class_and_one_size_has_no_factor() {
        assert_eq!(error_class(&[]), None);
        assert_eq!(class(&[(1000.0, 1100.0)]), "unknown");
    }

    #[test]
    fn runs_have_a_mean_and_a_deviation() {
        let size = Size {
            predicted: 100.0,
            counted: vec![98.0, 102.0],
        };
        assert!((size.mean() - 100.0).abs() < 1e-12);
        assert!((size.deviation() - 8.0_f64.sqrt()).abs() < 1e-12);
        assert!(size.difference().abs() < 1e-12);
    }
}
