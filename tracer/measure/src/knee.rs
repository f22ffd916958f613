//! Restart latency: how much work fits behind a miss without making it longer.
//!
//! A chain of dependent misses takes its latency and, before the next miss may begin, what is left of the line's fill. With
//! growing dependent work between the misses the time stays flat as long as the work fits into that rest, and rises with the
//! work from there on (Hristea, MIT 1997, chapter 2): the knee is the fill, and back-to-back minus fill is the restart latency.

/// A measured point; all of a curve in one unit of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Worked {
    /// Dependent work between two misses.
    pub work: f64,
    /// One miss with the work.
    pub time: f64,
}

/// A curve's knee, in the unit of its points.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Knee {
    /// Without work.
    pub back_to_back: f64,
    /// Most work that adds no time.
    pub fill: f64,
}

impl Knee {
    /// Until the word that was asked for is there.
    pub fn restart(self) -> f64 {
        (self.back_to_back - self.fill).max(0.0)
    }
}

/// The knee of `time = b + max(0, work - fill)`, by least squares over both, each point by its part of its time, as noise is.
/// `None` of fewer than three points.
///
/// For a given fill the best `b` is a mean. The sum of squares is a parabola in the fill between two neighbouring amounts of
/// work, so its lowest point there is found exactly.
pub fn knee(points: &[Worked]) -> Option<Knee> {
    if points.len() < 3 {
        return None;
    }
    let mut points = points.to_vec();
    points.sort_by(|a, b| a.work.total_cmp(&b.work));
    let weight = |p: &Worked| p.time.max(f64::MIN_POSITIVE).powi(-2);
    let mean = |points: &[Worked], of: &dyn Fn(&Worked) -> f64| {
        let weights: f64 = points.iter().map(weight).sum();
        points.iter().map(|p| weight(p) * of(p)).sum::<f64>() / weights
    };
    let squares = |fill: f64| -> (f64, f64) {
        let rest = |p: &Worked| p.time - (p.work - fill).max(0.0);
        let base = mean(&points, &rest);
        let error = |p: &Worked| weight(p) * (rest(p) - base).powi(2);
        (points.iter().map(error).sum(), base)
    };
    let mut fills = vec![0.0];
    for (below, pair) in points.windows(2).enumerate() {
        let (from, to) = (pair[0].work.max(0.0), pair[1].work.max(0.0));
        // Those to the left are flat at `b`, those to the right at `b - fill` once their work is taken off.
        let (flat, rising) = points.split_at(below + 1);
        let fill = mean(flat, &|p| p.time) - mean(rising, &|p| p.time - p.work);
        fills.extend([from, to, fill.clamp(from, to)]);
    }
    let best = fills.into_iter().map(|fill| (fill, squares(fill)));
    let (fill, (_, back_to_back)) = best.min_by(|a, b| a.1.0.total_cmp(&b.1.0))?;
    Some(Knee { back_to_back, fill })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without work more often: where there is no fill, nothing else tells so.
    const WORK: [f64; 16] = [
        0.0, 0.0, 0.0, 0.0, 2.0, 4.0, 8.0, 12.0, 16.0, 24.0, 32.0, 64.0, 128.0, 192.0, 256.0, 320.0,
    ];

    /// A curve with noise of some percent, never the same.
    fn curve(back_to_back: f64, fill: f64, noise: f64, seed: u64) -> Vec<Worked> {
        let mut seed = seed;
        let mut random = || {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1442695);
            (seed >> 11) as f64 / (1_u64 << 53) as f64 * 2.0 - 1.0
        };
        // As measured ones, a point is the median of many.
        let mut median = || {
            let mut all: Vec<f64> = (0..61).map(|_| random()).collect();
            all.sort_by(f64::total_cmp);
            all[30]
        };
        let point = |work: f64, off: f64| Worked {
            work,
            time: (back_to_back + (work - fill).max(0.0)) * (1.0 + noise * off),
        };
        WORK.iter().map(|work| point(*work, median())).collect()
    }

    #[test]
    fn the_fill_of_a_chain_is_found_within_a_nanosecond_or_three_percent() {
        for fill in [0.0, 5.0, 20.0, 133.0] {
            let mut off: Vec<f64> = (0..100)
                .map(|seed| {
                    let found = knee(&curve(200.0, fill, 0.03, seed)).expect("points");
                    (found.fill - fill).abs()
                })
                .collect();
            off.sort_by(f64::total_cmp);
            let bound = f64::max(1.0, 0.03 * fill);
            assert!(off[94] <= bound, "{fill}: {} of {bound}", off[94]);
        }
    }

    #[test]
    fn without_noise_it_is_exact_and_restart_is_what_is_left() {
        let found = knee(&curve(472.0, 134.0, 0.0, 1)).expect("points");
        assert!((found.fill - 134.0).abs() < 1e-9, "{found:?}");
        assert!((found.restart() - 338.0).abs() < 1e-9, "{found:?}");
        assert_eq!(knee(&curve(472.0, 134.0, 0.0, 1)[..2]), None);
    }
}
