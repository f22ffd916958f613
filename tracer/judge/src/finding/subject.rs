//! Lines that belong together, judged as one thing.
//!
//! Traffic that is spread over the slots of a ring, over an array of locks or over the nodes of a list costs as much as
//! traffic on one line, and no line of it costs enough to be seen. So lines are put together by what they are of
//! ([`Owner`](crate::names::Owner)), else by the instructions that touch them, and the limits apply to the sum.
//!
//! Findings are about subjects; lines are their members. A subject of one line that several threads use is judged by what
//! that line shows, one of several lines by all of them [together](super::together).

use std::collections::BTreeMap;

use super::{
    Confidence, Judgement, Member, Model, Significance, Verdict,
    meeting::{Pieces, pieces},
    same_code::by_code,
    together::Together,
    watched::pooled,
    witness::Opinion,
};
use crate::{
    access::Cost,
    analysis::{HandOffs, Kinds},
    distribution::Distributions,
    names::{Owned, Owner},
};

/// Some lines that are one thing.
#[derive(Clone, Debug, PartialEq)]
pub struct Subject {
    /// The lines, costliest first; at least one.
    pub members: Vec<Member>,
    /// What they are of; `None` where only the instructions are the same.
    pub owned: Option<Owned>,
    /// How they are shared; `None` where no conflict was seen, or its kind could not be told.
    pub verdict: Option<Verdict>,
    /// Whether it is a finding.
    pub significance: Significance,
    /// How sure the verdict is.
    pub confidence: Confidence,
    /// What was waited for the lines that several threads use.
    pub cost: Cost,
    /// The part of it that counts as sharing.
    pub shared_cost: Cost<f64>,
    /// The kinds of their hand-offs.
    pub kinds: Option<Kinds>,
    /// Hand-offs on those lines that windows, or a complete order, saw.
    pub hand_offs: Option<HandOffs>,
    /// Lines of several threads.
    pub lines: u64,
    /// Of those, lines on which windows saw threads meet.
    pub watched_lines: u64,
    /// Which of the pieces that repeat are used by several threads; `None` where nothing repeats.
    pub pieces: Option<Pieces>,
}

impl Subject {
    /// Whether it is a finding.
    pub fn is_finding(&self) -> bool {
        self.significance == Significance::Significant
    }

    /// Whether it is one line, judged by itself.
    pub fn is_one_line(&self) -> bool {
        self.lines <= 1
    }

    /// What was seen and thought of its costliest line, with what is thought of all of them. `worst` is the judgement of
    /// that line where there is one; else what is kept of it must do.
    pub fn judgement(&self, worst: Option<&Judgement>, model: &Model) -> Judgement {
        let worst = worst
            .cloned()
            .unwrap_or_else(|| self.members[0].judgement(model));
        if self.is_one_line() {
            return worst;
        }
        let mut distributions = Distributions::default();
        for member in self.shared_lines() {
            distributions.add_all(&member.distributions);
        }
        Judgement {
            distributions,
            verdict: self.verdict,
            significance: self.significance,
            confidence: self.confidence,
            cost: self.cost,
            shared_cost: self.shared_cost.rounded(),
            shared_share: model.share(self.shared_cost),
            kinds: self.kinds,
            ..worst
        }
    }

    /// Lines of several threads, costliest first.
    pub fn shared_lines(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(|member| member.several_threads)
    }

    /// The lines, fewest first, that take half of the cost.
    pub fn lines_of_half(&self) -> u64 {
        let mut sum = Cost(0);
        let half = self.shared_lines().take_while(|member| {
            let before = sum;
            sum += member.cost;
            before + before < self.cost
        });
        half.count() as u64
    }
}

/// Puts the lines together and judges them: findings first, highest shared cost first, then others, highest cost first.
/// `owner` says what a line is of.
pub fn subjects(
    members: Vec<Member>,
    mut owner: impl FnMut(&Member) -> Option<Owned>,
    model: &Model,
) -> Vec<Subject> {
    let mut named: BTreeMap<Owner, (Owned, Vec<Member>)> = BTreeMap::new();
    let mut nameless: Vec<Member> = Vec::new();
    for member in members {
        match owner(&member) {
            Some(owned) => {
                let group = named.entry(owned.owner.clone());
                group.or_insert_with(|| (owned, Vec::new())).1.push(member);
            }
            None => nameless.push(member),
        }
    }
    let groups = named
        .into_values()
        .map(|(owned, members)| (Some(owned), members));
    let by_code = by_code(nameless).into_iter().map(|members| (None, members));
    let mut subjects: Vec<Subject> = groups
        .chain(by_code)
        .map(|(owned, members)| judge(members, owned, model))
        .collect();
    subjects.sort_by(|a, b| {
        let rank = |s: &Subject| (!s.is_finding(), !s.significance.moves());
        let cost = |s: &Subject| match s.significance {
            Significance::Significant => s.shared_cost,
            Significance::Insignificant(_) => s.cost.estimate(),
        };
        rank(a)
            .cmp(&rank(b))
            .then_with(|| cost(b).0.total_cmp(&cost(a).0))
            .then_with(|| a.members[0].rank().cmp(&b.members[0].rank()))
    });
    subjects
}

fn judge(mut members: Vec<Member>, owned: Option<Owned>, model: &Model) -> Subject {
    members.sort_by_key(Member::rank);
    let unit = owned.as_ref().and_then(|owned| owned.unit);
    let lines = members.iter().filter(|m| m.several_threads).count();
    if lines <= 1 {
        return alone(members, owned);
    }
    let together = Together::new(&members, unit);
    let mut opinion = Opinion::of(&together, model);
    let watched = pooled(together.lines(), &model.thresholds.watch);
    if let Some(watched) = &watched {
        opinion = opinion.confirm_together(watched, lines, model);
    }
    let order = together.hand_offs();
    if order.is_some() || together.is_proven() {
        opinion.confidence = Confidence::Confirmed;
    }
    Subject {
        verdict: opinion.verdict,
        significance: opinion.significance,
        confidence: opinion.confidence,
        cost: together.lines().map(|member| member.cost).sum(),
        shared_cost: opinion.shared_cost,
        kinds: together.kinds,
        hand_offs: order.or(watched
            .as_ref()
            .map(|watched| watched.verdict.sure_hand_offs())),
        lines: lines as u64,
        watched_lines: watched.map_or(0, |watched| watched.lines as u64),
        pieces: unit.map(|unit| pieces(together.lines(), unit)),
        owned,
        members,
    }
}

/// A thing of which one line at most is used by several threads: what that line alone shows.
fn alone(mut members: Vec<Member>, owned: Option<Owned>) -> Subject {
    if let Some(shared) = members.iter().position(|m| m.several_threads) {
        members.swap(0, shared);
        members.truncate(1);
    }
    let line = &members[0];
    Subject {
        verdict: line.verdict,
        significance: line.significance,
        confidence: line.confidence,
        cost: line.cost,
        shared_cost: line.shared_cost,
        kinds: line.kinds,
        hand_offs: line.order.or(line
            .watched
            .as_ref()
            .map(|watched| watched.sure_hand_offs())),
        lines: u64::from(line.several_threads),
        watched_lines: line
            .watched
            .as_ref()
            .map_or(0, |watched| u64::from(watched.shared_windows > 0)),
        pieces: None,
        owned,
        members,
    }
}

/// What a list of subjects accounts for: all that was waited for lines of several threads, as far as it counts as sharing.
pub fn shared_cost(subjects: &[Subject]) -> Cost<f64> {
    subjects.iter().map(|subject| subject.shared_cost).sum()
}
