//! How often the tool is right: each workload run many times, hits counted.

use crate::{
    answer::Variant,
    live::{self, Windows},
};

/// The outcome of many runs of one workload.
#[derive(Clone, Debug)]
pub struct HitRate {
    /// Which workload.
    pub name: String,
    /// Which build.
    pub variant: Variant,
    /// Runs that gave the answer and nothing else.
    pub hits: usize,
    /// Runs.
    pub runs: usize,
    /// Why the others did not, in order.
    pub misses: Vec<String>,
}

/// Runs the tool `runs` times on a workload. A finding that no window confirmed is a miss. The caller holds the
/// [`crate::turn::Turn`].
pub fn hit_rate(name: &str, variant: Variant, runs: usize) -> HitRate {
    let misses: Vec<String> = (0..runs)
        .filter_map(|_| live::observe(name, variant, Windows::Required).err())
        .map(|error| format!("{error:#}"))
        .collect();
    HitRate {
        name: name.to_owned(),
        variant,
        hits: runs - misses.len(),
        runs,
        misses,
    }
}

/// The heading above the [`row`]s.
pub fn heading() -> String {
    line("workload", "variant", "hits", "")
}

/// One workload's line, with the first line of its first miss.
pub fn row(rate: &HitRate) -> String {
    let why = rate.misses.first().and_then(|miss| miss.lines().next());
    let hits = format!("{}/{}", rate.hits, rate.runs);
    line(
        &rate.name,
        rate.variant.name(),
        &hits,
        why.unwrap_or_default(),
    )
}

/// The line below the rows: all together.
pub fn sum(rates: &[HitRate]) -> String {
    let hits: usize = rates.iter().map(|rate| rate.hits).sum();
    let runs: usize = rates.iter().map(|rate| rate.runs).sum();
    line("all", "", &format!("{hits}/{runs}"), "")
}

fn line(name: &str, variant: &str, hits: &str, why: &str) -> String {
    let line = format!("{name:<22} {variant:<8} {hits:>7}  {why}");
    format!("{}\n", line.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_shows_hits_of_runs_and_why_one_missed() {
        let rate = |hits, misses: &[&str]| HitRate {
            name: "two_counters".into(),
            variant: Variant::Plain,
            hits,
            runs: 20,
            misses: misses.iter().map(|&m| m.to_owned()).collect(),
        };
        let rates = [rate(20, &[]), rate(19, &["no finding\nmore"])];
        let [right, missed] = rates.each_ref().map(row);
        assert_eq!(right, "two_counters           plain      20/20\n");
        assert_eq!(
            missed,
            "two_counters           plain      19/20  no finding\n"
        );
        assert_eq!(sum(&rates), "all                               39/40\n");
    }
}
