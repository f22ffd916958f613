//! What is said of a program, to be held against its answer.

use super::programs::BASE;
use crate::finding::{Judgement, Reason, Significance, Verdict};

/// Lines that are shared, by their offset from the base, with the kind.
pub(super) type Shared = Vec<(u64, Verdict)>;

/// The findings, by line.
pub(super) fn findings(judgements: &[Judgement]) -> Shared {
    let findings = judgements.iter().filter(|judgement| judgement.is_finding());
    let mut found: Shared = findings
        .map(|judgement| {
            let line = judgement.key.0.position() - BASE;
            (line, judgement.verdict.expect("a kind"))
        })
        .collect();
    found.sort_unstable();
    found
}

/// Checks that these lines, by their offset from the base, are the findings, and nothing else is.
pub(super) fn expect_findings(judgements: &[Judgement], expected: &[(u64, Verdict)], seed: u64) {
    let found = findings(judgements);
    assert_eq!(found, expected, "seed {seed}: {}", summary(judgements));
}

/// Checks that a line is listed, and no finding for this reason.
pub(super) fn expect_reason(
    line: Option<&Judgement>,
    reason: Reason,
    judgements: &[Judgement],
    seed: u64,
) {
    let significance = line.map(|judgement| judgement.significance);
    let expected = Some(Significance::Insignificant(reason));
    let all = summary(judgements);
    assert_eq!(significance, expected, "seed {seed}: {all}");
}

/// All judgements, a line each.
pub(super) fn summary(judgements: &[Judgement]) -> String {
    let lines = judgements.iter().map(|j| {
        format!(
            "{} {:?} {:?} share {:.3?} samples {} interleaving {:.2} {:.2?} {:?}\n",
            j.key,
            j.verdict,
            j.significance,
            j.shared_share,
            j.samples,
            j.interleaving,
            j.kinds,
            j.pmu,
        )
    });
    lines.collect()
}
