//! Judging lines one at a time, each seen once.

use std::cmp::Reverse;

use super::{Judgement, Model, Orders, Standing, Thresholds, judge, worth_listing};
use crate::{
    access::{LineKey, LineSize},
    analysis::Line,
};

/// Orders what is no finding: highest cost first.
type ListedRank = (Reverse<(u64, u64)>, LineKey);

/// Findings, and the costliest of the other lines, among those seen so far.
#[derive(Debug)]
pub struct Ranking<'a> {
    orders: Orders<'a>,
    model: Model<'a>,
    /// Shared cost, weight.
    findings: Vec<([f64; 2], Judgement)>,
    /// No findings, but seen to move at a cost that matters; ranked likewise.
    moving: Vec<([f64; 2], Judgement)>,
    others: Vec<(ListedRank, Judgement)>,
    /// The last one of a full list, as of the last cut.
    bar: Option<ListedRank>,
}

impl<'a> Ranking<'a> {
    /// Nothing seen yet. `sampled_ns` and `untimed_stores` are of the whole run, as in [`Model`].
    pub fn new(
        orders: &Orders<'a>,
        line_size: LineSize,
        sampled_ns: u64,
        untimed_stores: u64,
        thresholds: &'a Thresholds,
    ) -> Ranking<'a> {
        Ranking {
            orders: *orders,
            model: Model {
                sampled_ns,
                untimed_stores,
                line_size,
                thresholds,
            },
            findings: Vec::new(),
            moving: Vec::new(),
            others: Vec::new(),
            bar: None,
        }
    }

    /// Judges a line with all its accesses.
    pub fn see(&mut self, key: LineKey, line: &Line) {
        if !line.several_threads() && !line.taken() {
            return;
        }
        let model = self.model;
        let candidate = judge(key, line, &self.orders, &model);
        let evidence = &candidate.evidence;
        let rank = [candidate.opinion.shared_cost_ns, evidence.sharing.weight];
        if candidate.opinion.standing == Standing::Significant {
            self.findings.push((rank, candidate.into_judgement(&model)));
        } else if candidate.opinion.standing.moves() {
            self.moving.push((rank, candidate.into_judgement(&model)));
        } else if !line.several_threads() {
            // A line that only one thread was seen to use, and that hardly moves.
        } else if worth_listing(evidence, &model) {
            let rank = (Reverse((evidence.cost_ns, evidence.samples)), key);
            if self.bar.is_none_or(|bar| rank < bar) {
                self.others.push((rank, candidate.into_judgement(&model)));
                if self.others.len() > 2 * model.thresholds.insignificant_listed {
                    self.cut();
                }
            }
        }
    }

    /// Drops what is beyond the list.
    fn cut(&mut self) {
        self.others.sort_by_key(|(rank, _)| *rank);
        let listed = self.model.thresholds.insignificant_listed;
        if self.others.len() >= listed {
            self.others.truncate(listed);
            self.bar = self.others.last().map(|(rank, _)| *rank);
        }
    }

    /// Adds what another one saw of other lines.
    pub fn merge(&mut self, other: Ranking<'_>) {
        self.findings.extend(other.findings);
        self.moving.extend(other.moving);
        self.others.extend(other.others);
    }

    /// Findings, then lines that move, then others; the costliest of each first.
    pub fn judgements(mut self) -> Vec<Judgement> {
        self.cut();
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
        judgements
    }
}
