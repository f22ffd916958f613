//! What the runs of one program came to.

use std::collections::BTreeMap;

use anyhow::Result;

use super::{
    answer::Answer,
    compare::{Grade, Verdict},
};

/// Runs by their grade, with the reasons, each with the number of runs that gave it.
#[derive(Default)]
pub(super) struct Tally {
    right: u32,
    partly: u32,
    wrong: u32,
    not_run: u32,
    reasons: BTreeMap<String, u32>,
    /// Of each expected thing: what kind it was said to have, nothing being one of them.
    kinds: BTreeMap<usize, BTreeMap<String, u32>>,
}

impl Tally {
    /// Adds a run.
    pub(super) fn add(&mut self, run: Result<Verdict>) {
        let (count, reasons) = match run {
            Ok(verdict) => {
                for (thing, kind) in verdict.kinds.into_iter().enumerate() {
                    let kind = kind.unwrap_or_else(|| "nothing".to_owned());
                    *self
                        .kinds
                        .entry(thing)
                        .or_default()
                        .entry(kind)
                        .or_default() += 1;
                }
                let count = match verdict.grade {
                    Grade::Right => &mut self.right,
                    Grade::Partly => &mut self.partly,
                    Grade::Wrong => &mut self.wrong,
                };
                (count, verdict.reasons)
            }
            Err(error) => (&mut self.not_run, vec![format!("not run: {error:#}")]),
        };
        *count += 1;
        for reason in reasons {
            *self.reasons.entry(reason).or_default() += 1;
        }
    }

    /// Right, partly, wrong, not run; a dash for none.
    pub(super) fn cells(&self) -> [String; 4] {
        [self.right, self.partly, self.wrong, self.not_run].map(|count| match count {
            0 => "-".to_owned(),
            count => count.to_string(),
        })
    }

    /// What was not right, and what was said differently from run to run; a line each.
    pub(super) fn details(&self, answer: &Answer) -> Vec<String> {
        let runs = self.right + self.partly + self.wrong + self.not_run;
        let mut lines: Vec<String> = (self.reasons.iter())
            .map(|(reason, count)| format!("{count} of {runs}: {reason}"))
            .collect();
        for (thing, kinds) in self.kinds.iter().filter(|(_, kinds)| kinds.len() > 1) {
            let expected = answer.findings.get(*thing);
            let names = expected.map_or_else(String::new, |expected| expected.names.join(", "));
            let kinds: Vec<String> = (kinds.iter())
                .map(|(kind, count)| format!("{kind} {count}"))
                .collect();
            lines.push(format!(
                "differs from run to run ({names}): {}",
                kinds.join(", ")
            ));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_between_runs_is_told_even_where_each_is_right() {
        let answer: Answer = serde_json::from_str(
            r#"{"language": "c", "findings": [{"kinds": ["true-sharing", "mixed-sharing"], "names": ["head"]}]}"#,
        )
        .unwrap();
        let run = |kind: Option<&str>| {
            Ok(Verdict {
                kinds: vec![kind.map(str::to_owned)],
                ..Verdict::of(Grade::Right)
            })
        };
        let mut tally = Tally::default();
        tally.add(run(Some("true-sharing")));
        assert_eq!(tally.details(&answer), Vec::<String>::new());
        tally.add(run(Some("mixed-sharing")));
        tally.add(run(None));
        assert_eq!(
            tally.details(&answer),
            ["differs from run to run (head): mixed-sharing 1, nothing 1, true-sharing 1"]
        );
        assert_eq!(tally.cells(), ["3", "-", "-", "-"]);
        tally.add(Err(anyhow::anyhow!("no registry")));
        assert_eq!(tally.details(&answer)[0], "1 of 4: not run: no registry");
    }
}
