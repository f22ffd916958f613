//! Whether a run could tell that there is no more to find than it found.

use super::model::{Doubt, Finding, Run};
use crate::event::Unresolved;

/// Samples that a line at the threshold should have given before "none found" means much: of 20
/// expected, seeing none has a chance of e^-20.
pub(super) const ENOUGH_SAMPLES: f64 = 20.0;

/// Where at least this part of the samples could not be read, 0..=1, and most of those that may have waited for memory,
/// lines may be missing. Below, what is seldom read is as rare as what one finding more or less takes.
const UNREAD: f64 = 0.1;

/// Where CPUs were not sampled for at least this part of the time, 0..=1, what ran on them then may have been a finding.
const BLIND: f64 = 0.1;

/// Samples that may have waited for memory and of which it is not known for what.
pub(super) fn unread(run: &Run) -> u64 {
    // Time that was not spent waiting for memory hides no line.
    let unread =
        (run.unresolved.iter()).filter(|(reason, _)| **reason != Unresolved::NoMemoryOperand);
    unread.map(|(_, n)| *n).sum()
}

/// The samples that a line at the threshold would have given.
pub(super) fn expected(run: &Run) -> f64 {
    run.samples.saturating_sub(unread(run)) as f64 * run.threshold
}

/// Why something may have been missed; `None` where that is unlikely.
pub(super) fn of(run: &Run, findings: &[Finding], insignificant: &[Finding]) -> Option<Doubt> {
    if run.samples == 0 {
        return Some(Doubt::NoSamples);
    }
    if run.order.is_some() {
        return None;
    }
    if findings.is_empty() && run.software_emulation.is_some() {
        return Some(Doubt::SoftwareEmulation);
    }
    if findings.is_empty()
        && run.blind_s >= BLIND * run.observed.duration_s() * f64::from(run.observed.cpus)
    {
        return Some(Doubt::Blind);
    }
    // Whatever they are of.
    if findings.is_empty() && run.samples as f64 * run.threshold < ENOUGH_SAMPLES {
        return Some(Doubt::TooFewSamples);
    }
    let unread = unread(run);
    if unread as f64 >= UNREAD * run.samples as f64 && unread >= run.attributed {
        return Some(Doubt::Unread);
    }
    if !findings.is_empty() {
        return None;
    }
    if insignificant.iter().any(|line| line.moves) {
        return Some(Doubt::BytesUnknown);
    }
    (expected(run) < ENOUGH_SAMPLES).then_some(Doubt::TooFewSamples)
}
