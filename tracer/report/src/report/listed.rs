//! Which of the judged lines the report has, as what, and under which name.

use rustc_hash::FxHashMap;

use super::{
    gain,
    model::{FindingId, Gain},
    run_facts::RunFacts,
    spread,
};
use crate::{
    access::LineKey,
    event::Tally,
    finding::{self, Judged, Judgement, Member, Model, Subject},
    names::Names,
};

/// The lines of the run, put together by what they are of.
pub(super) fn subjects_of(
    judged: &Judged,
    names: &dyn Names,
    tally: &Tally,
    run: &RunFacts,
) -> Vec<Subject> {
    let owner = |member: &Member| names.owner(member.key, run.line_size, &spread::accessed(member));
    finding::subjects(judged.all_members(), owner, &model(tally, run))
}

fn model<'a>(tally: &Tally, run: &'a RunFacts) -> Model<'a> {
    Model {
        whole: tally.whole_cost(),
        untimed_stores: run.totals.untimed_stores(),
        line_size: run.line_size,
        thresholds: &run.thresholds,
    }
}

/// A subject that is in the report.
pub(super) struct Listed<'a> {
    pub(super) id: FindingId,
    pub(super) subject: &'a Subject,
    /// Of its costliest line, with what is thought of all.
    pub(super) judgement: Judgement,
    pub(super) gain: Option<Gain>,
}

/// Findings, and the other subjects that are worth listing, in their order; findings that nothing is gained by are behind
/// the others.
pub(super) fn listed<'a>(
    judged: &Judged,
    subjects: &'a [Subject],
    names: &dyn Names,
    tally: &Tally,
    run: &RunFacts,
) -> Vec<Listed<'a>> {
    let known: FxHashMap<LineKey, &Judgement> = (judged.judgements.iter())
        .map(|judgement| (judgement.key, judgement))
        .collect();
    let mut room = run.thresholds.insignificant_listed;
    let mut out = Vec::new();
    for subject in subjects {
        if subject.significance.is_left_out() {
            continue;
        }
        let worst = known.get(&subject.members[0].key).copied();
        if !subject.is_finding() && !subject.significance.moves() {
            let is_known = |member: &Member| known.contains_key(&member.key);
            if room == 0 || !subject.shared_lines().any(is_known) {
                continue;
            }
            room -= 1;
        }
        let judgement = subject.judgement(worst, &model(tally, run));
        let gain = (judgement.is_finding())
            .then(|| gain::gain(&judgement, names, run))
            .flatten();
        out.push(Listed {
            id: FindingId {
                insignificant: !judgement.is_finding(),
                number: 0,
            },
            subject,
            judgement,
            gain,
        });
    }
    out.sort_by_key(|listed| {
        let is_vain = listed.gain.as_ref().is_some_and(gain::is_none);
        (listed.id.insignificant, is_vain)
    });
    let mut numbers = [0; 2];
    for listed in &mut out {
        let number = &mut numbers[usize::from(listed.id.insignificant)];
        *number += 1;
        listed.id.number = *number;
    }
    out
}
