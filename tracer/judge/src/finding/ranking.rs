//! Judging lines one at a time, each seen once.

use std::cmp::Reverse;

use rustc_hash::{FxHashMap, FxHashSet};

use super::{Judgement, Member, Model, Orders, Significance, judge, worth_listing};
use crate::{
    access::{Cost, LineKey, SpaceId},
    analysis::{Line, SiteCounts},
};

/// Orders what is no finding: highest cost first.
type ListedRank = (Reverse<(Cost, u64)>, LineKey);

/// The instruction that a line waits at most.
type Code = (SpaceId, u64);

/// Lines kept as members of what they are of: some 70 MiB. The cheapest leave beyond it.
const MOST_MEMBERS: usize = 1 << 17;

/// Lines that are judged in full although they are no findings, the costliest: more than are listed, since they may be
/// parts of one.
const KEPT: usize = 256;

/// All that was seen.
#[derive(Clone, Debug, Default)]
pub struct Judged {
    /// Findings, lines that move, then the costliest others, the costliest of each first; then those that reports
    /// [leave out](Significance::is_left_out), and that windows are to look at again.
    pub judgements: Vec<Judgement>,
    /// Every line that took time or that several threads touched, in no particular order.
    pub members: Vec<Member>,
}

/// Findings, and the costliest of the other lines, among those seen so far.
#[derive(Debug)]
pub struct Ranking<'a> {
    orders: Orders<'a>,
    model: Model<'a>,
    /// Shared cost, as a number, and weight.
    findings: Vec<([f64; 2], Judgement)>,
    /// No findings, but seen to move at a cost that matters; ranked likewise.
    moving: Vec<([f64; 2], Judgement)>,
    /// Lines that loads only seemed to wait for, or may have.
    not_waited: Vec<Judgement>,
    others: Vec<(ListedRank, Judgement)>,
    /// The last one of a full list, as of the last cut.
    bar: Option<ListedRank>,
    /// What was waited for lines while several threads used them, by the instruction that waited most.
    alike: FxHashMap<Code, Cost<f64>>,
    /// `None` where nobody asks.
    members: Option<Vec<Member>>,
}

impl Judged {
    /// All members, the costliest first; of judgements that have none among them, what the judgement knows.
    pub fn all_members(&self) -> Vec<Member> {
        let mut members = self.members.clone();
        let known: FxHashSet<LineKey> = members.iter().map(|member| member.key).collect();
        let missing = (self.judgements.iter()).filter(|judgement| !known.contains(&judgement.key));
        members.extend(missing.map(Member::of_judgement));
        // Who is asked about each may not have the time for all.
        members.sort_by_key(Member::rank);
        members
    }
}

impl<J: Into<Vec<Judgement>>> From<J> for Judged {
    fn from(judgements: J) -> Judged {
        Judged {
            judgements: judgements.into(),
            ..Judged::default()
        }
    }
}

impl<'a> Ranking<'a> {
    /// Nothing seen yet.
    pub fn new(orders: &Orders<'a>, model: Model<'a>) -> Ranking<'a> {
        Ranking {
            orders: *orders,
            model,
            findings: Vec::new(),
            moving: Vec::new(),
            not_waited: Vec::new(),
            others: Vec::new(),
            bar: None,
            alike: FxHashMap::default(),
            members: None,
        }
    }

    /// Keeps what it takes to judge lines together, too.
    #[must_use]
    pub fn with_members(mut self) -> Ranking<'a> {
        self.members = Some(Vec::new());
        self
    }

    /// Judges a line with all its accesses.
    pub fn see(&mut self, key: LineKey, line: &Line) {
        if !line.several_threads() && !line.taken() {
            if let Some(members) = &mut self.members {
                members.extend(Member::of_one_thread(key, line));
                self.cut_members();
            }
            return;
        }
        let model = self.model;
        let candidate = judge(key, line, &self.orders, &model);
        if let Some(members) = &mut self.members
            && line.several_threads()
        {
            members.push(Member::of(&candidate, line, model.line_size));
            self.cut_members();
        }
        let evidence = &candidate.evidence;
        let rank = [candidate.opinion.shared_cost.0, evidence.sharing.weight];
        if candidate.opinion.significance == Significance::Significant {
            self.findings.push((rank, candidate.into_judgement(&model)));
        } else if candidate.opinion.significance.moves() {
            self.moving.push((rank, candidate.into_judgement(&model)));
        } else if candidate.opinion.significance.is_left_out() {
            let judgement = candidate.into_judgement(&model);
            self.not_waited.push(judgement);
        } else if !line.several_threads() {
            // A line that only one thread was seen to use, and that hardly moves.
        } else {
            if let Some(code) = code(&candidate.sites) {
                *self.alike.entry(code).or_default() += evidence.sharing.together_cost;
            }
            let rank = (Reverse((evidence.cost, evidence.accesses)), key);
            let is_listed = worth_listing(evidence, &model);
            if is_listed && self.bar.is_none_or(|bar| rank < bar) {
                self.others.push((rank, candidate.into_judgement(&model)));
                if self.others.len() > 2 * KEPT {
                    self.cut();
                }
            }
        }
    }

    /// Drops what is beyond the list.
    fn cut(&mut self) {
        self.others.sort_by_key(|(rank, _)| *rank);
        if self.others.len() >= KEPT {
            self.others.truncate(KEPT);
            self.bar = self.others.last().map(|(rank, _)| *rank);
        }
    }

    fn cut_members(&mut self) {
        let Some(members) = &mut self.members else {
            return;
        };
        if members.len() > 2 * MOST_MEMBERS {
            members.select_nth_unstable_by_key(MOST_MEMBERS, Member::rank);
            members.truncate(MOST_MEMBERS);
        }
    }

    /// Adds what another one saw of other lines.
    pub fn merge(&mut self, other: Ranking<'_>) {
        self.findings.extend(other.findings);
        self.moving.extend(other.moving);
        self.not_waited.extend(other.not_waited);
        self.others.extend(other.others);
        for (code, cost) in other.alike {
            *self.alike.entry(code).or_default() += cost;
        }
        if let (Some(members), Some(others)) = (&mut self.members, other.members) {
            members.extend(others);
            self.cut_members();
        }
    }

    /// All that was seen.
    pub fn judged(mut self) -> Judged {
        self.cut();
        if let Some(members) = &mut self.members
            && members.len() > MOST_MEMBERS
        {
            members.sort_unstable_by_key(Member::rank);
            members.truncate(MOST_MEMBERS);
        }
        let mut judgements = Vec::new();
        for mut costly in [self.findings, self.moving] {
            costly.sort_by(|(a, left), (b, right)| {
                (b[0].total_cmp(&a[0]))
                    .then_with(|| b[1].total_cmp(&a[1]))
                    .then_with(|| left.key.cmp(&right.key))
            });
            judgements.extend(costly.into_iter().map(|(_, judgement)| judgement));
        }
        judgements.extend(self.others.into_iter().map(|(_, judgement)| judgement));
        self.not_waited.sort_by_key(|judgement| judgement.key);
        judgements.append(&mut self.not_waited);
        for judgement in &mut judgements {
            let cost = code(&judgement.sites).and_then(|code| self.alike.get(&code));
            judgement.alike_share = cost.and_then(|cost| self.model.share(*cost));
        }
        Judged {
            judgements,
            members: self.members.unwrap_or_default(),
        }
    }
}

/// The instruction that waits most.
fn code(sites: &[SiteCounts]) -> Option<Code> {
    sites
        .first()
        .map(|costliest| (costliest.site.space, costliest.site.ip))
}
