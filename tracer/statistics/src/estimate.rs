//! How far an estimate may be off by chance: intervals of 95 %.

/// Standard deviations on each side of a normal distribution that hold 95 %.
const Z: f64 = 1.96;

/// Where the expectation of a count is likely to be when `n` were seen: Byar's approximation of the exact interval of a
/// Poisson distribution (Breslow and Day, "Statistical Methods in Cancer Research II", 1987, section 2.3).
pub(crate) fn of_count(n: u64) -> (f64, f64) {
    let bound = |n: f64, z: f64| n * (1.0 - 1.0 / (9.0 * n) + z / (3.0 * n.sqrt())).powi(3);
    let low = if n == 0 { 0.0 } else { bound(n as f64, -Z) };
    (low.max(0.0), bound(n as f64 + 1.0, Z))
}

/// Where a share is likely to be when `part` of `whole` were seen, 0..=1: Wilson's interval ("Probable Inference, the Law
/// of Succession, and Statistical Inference", JASA 22, 1927). `None` of nothing.
pub(crate) fn of_share(part: u64, whole: u64) -> Option<(f64, f64)> {
    if whole == 0 {
        return None;
    }
    let (n, p) = (whole as f64, part.min(whole) as f64 / whole as f64);
    let shrink = 1.0 + Z * Z / n;
    let middle = (p + Z * Z / (2.0 * n)) / shrink;
    let half = Z / shrink * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt();
    Some(((middle - half).max(0.0), (middle + half).min(1.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: (f64, f64), table: (f64, f64)) {
        assert!(
            (found.0 - table.0).abs() <= 0.02 * table.0.max(1.0),
            "{found:?}"
        );
        assert!(
            (found.1 - table.1).abs() <= 0.02 * table.1.max(1.0),
            "{found:?}"
        );
    }

    #[test]
    fn counts_are_within_what_tables_of_the_poisson_distribution_say() {
        near(of_count(0), (0.0, 3.69));
        near(of_count(10), (4.80, 18.39));
        near(of_count(100), (81.36, 121.63));
    }

    #[test]
    fn shares_are_within_what_tables_say_and_between_nothing_and_all() {
        near(of_share(5, 10).unwrap(), (0.2366, 0.7634));
        assert!(of_share(0, 10).unwrap().0 < 1e-9);
        assert!(of_share(10, 10).unwrap().1 > 1.0 - 1e-9);
        assert_eq!(of_share(0, 0), None);
    }
}
