//! Which pairs of CPUs are alike, by what was measured between them.

/// Classes of pairs, nearest first: the pairs' numbers.
pub type Classes = Vec<Vec<usize>>;

/// Neighbours in the order of their latencies that are this many times apart are of two classes.
const GAP: f64 = 1.5;

/// Clusters pairs by latency: a class ends where the next latency is more than 1.5 times the one before. Latencies that are
/// none (not positive, not finite) belong to no class.
pub fn classes(latencies: &[f64]) -> Classes {
    let mut order: Vec<usize> = (0..latencies.len())
        .filter(|n| latencies[*n].is_finite() && latencies[*n] > 0.0)
        .collect();
    order.sort_by(|a, b| latencies[*a].total_cmp(&latencies[*b]));
    let is_near = |a: &usize, b: &usize| latencies[*b] <= GAP * latencies[*a];
    order.chunk_by(is_near).map(<[usize]>::to_vec).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn siblings_cores_and_sockets_are_classes_and_noise_makes_none() {
        let latencies = [36.0, 190.0, 32.0, 8.0, 183.0, 37.0, 9.0];
        assert_eq!(classes(&latencies), [vec![3, 6], vec![2, 0, 5], vec![4, 1]]);
        assert_eq!(classes(&[30.0, 36.0, 44.0, 55.0]).len(), 1);
    }

    #[test]
    fn what_was_not_measured_is_in_no_class() {
        assert_eq!(classes(&[f64::NAN, 0.0, 10.0]), [vec![2]]);
        assert!(classes(&[]).is_empty());
    }
}
