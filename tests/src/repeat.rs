//! How often the tool is right: each workload run many times, hits counted.

use std::fmt::Write;

use crate::{answer::Variant, live};

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

/// Runs the tool `runs` times on a workload. The caller holds the [`live::Turn`].
pub fn hit_rate(name: &str, variant: Variant, runs: usize) -> HitRate {
    let misses: Vec<String> = (0..runs)
        .filter_map(|_| live::observe(name, variant).err())
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

/// A table with a line for each workload and the first line of its first miss.
pub fn table(rates: &[HitRate]) -> String {
    let mut text = format!("{:<22} {:<8} {:>7}\n", "workload", "variant", "hits");
    for rate in rates {
        let hits = format!("{}/{}", rate.hits, rate.runs);
        let _ = write!(
            text,
            "{:<22} {:<8} {hits:>7}",
            rate.name,
            rate.variant.name()
        );
        if let Some(miss) = rate.misses.first() {
            let _ = write!(text, "  {}", miss.lines().next().unwrap_or_default());
        }
        text.push('\n');
    }
    let hits: usize = rates.iter().map(|rate| rate.hits).sum();
    let runs: usize = rates.iter().map(|rate| rate.runs).sum();
    let _ = writeln!(
        text,
        "{:<22} {:<8} {:>7}",
        "all",
        "",
        format!("{hits}/{runs}")
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_shows_hits_of_runs_and_why_one_missed() {
        let rate = |hits, misses: &[&str]| HitRate {
            name: "two_counters".into(),
            variant: Variant::Plain,
            hits,
            runs: 20,
            misses: misses.iter().map(|&m| m.to_owned()).collect(),
        };
        let text = table(&[rate(20, &[]), rate(19, &["no finding\nmore"])]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[1], "two_counters           plain      20/20");
        assert_eq!(
            lines[2],
            "two_counters           plain      19/20  no finding"
        );
        assert_eq!(lines[3], "all                               39/40");
    }
}
