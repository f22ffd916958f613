//! Where sampled accesses go: into a table that can be looked at any time, or into a sort that is judged at the end.

use rustc_hash::FxHashMap;

use crate::{
    access::{Access, ByteSet, Cost, LineKey, LineSize, Place, SpaceId},
    analysis::{Line, LineTable, OwnWord, Totals, own_words},
    finding::{Judged, Model, Orders, Ranking, Thresholds, judge_table},
    spill::{FedLines, SortedLines, SpillError},
};

/// Sampled accesses, or what became of them.
pub(super) enum Lines {
    /// All lines at once, within bounds.
    Table(LineTable),
    /// Being sorted; not judged yet.
    Sorting(Box<SortedLines>),
    /// Each line was judged when its accesses were together.
    Judged(JudgedLines),
}

/// What stays of lines that were folded one after the other.
pub(super) struct JudgedLines {
    line_size: LineSize,
    totals: Totals,
    lines: u64,
    shared_lines: u64,
    judged: Judged,
    /// Of watched lines, the bytes that samples saw accessed.
    sampled: FxHashMap<LineKey, ByteSet>,
}

/// What one thread saw of its lines.
struct Seen<'a> {
    ranking: Ranking<'a>,
    lines: u64,
    shared_lines: u64,
    sampled: Vec<(LineKey, ByteSet)>,
}

impl Lines {
    /// `costs` as in [`LineTable::observe_costed`].
    pub(super) fn observe(
        &mut self,
        access: &Access,
        place: Place,
        space: SpaceId,
        costs: &[Cost<u32>],
    ) {
        match self {
            Lines::Table(table) => table.observe_costed(access, place, space, costs),
            Lines::Sorting(sorting) => sorting.observe_costed(access, place, space, costs),
            // Judged is judged: there is no line to add to any more.
            Lines::Judged(_) => {}
        }
    }

    /// Of each thread a word that it alone stores to, while lines can be looked at.
    pub(super) fn own_words(&self) -> Vec<OwnWord> {
        match self {
            Lines::Table(table) => own_words::of_all(table.lines(), table.line_size()),
            Lines::Sorting(_) | Lines::Judged(_) => Vec::new(),
        }
    }

    /// Nothing from a sort that has not ended. Members are those that it takes to judge lines together.
    pub(super) fn judge(
        &self,
        orders: &Orders<'_>,
        whole: Cost,
        thresholds: &Thresholds,
        with_members: bool,
    ) -> Judged {
        match self {
            Lines::Table(table) => {
                let ranking = Ranking::new(
                    orders,
                    Model {
                        whole,
                        untimed_stores: table.totals().untimed_stores(),
                        line_size: table.line_size(),
                        thresholds,
                    },
                );
                let ranking = if with_members {
                    ranking.with_members()
                } else {
                    ranking
                };
                judge_table(table, ranking)
            }
            Lines::Sorting(_) => Judged::default(),
            Lines::Judged(judged) => judged.judged.clone(),
        }
    }

    /// Bytes of a watched line that samples saw accessed.
    pub(super) fn sampled(&self, key: LineKey) -> ByteSet {
        match self {
            Lines::Table(table) => {
                let line = table.get(key);
                line.map_or_else(ByteSet::default, |line| bytes(line, table.line_size()))
            }
            Lines::Sorting(_) => ByteSet::default(),
            Lines::Judged(judged) => judged.sampled.get(&key).copied().unwrap_or_default(),
        }
    }

    pub(super) fn totals(&self) -> Totals {
        match self {
            Lines::Table(table) => table.totals(),
            Lines::Sorting(sorting) => sorting.totals(),
            Lines::Judged(judged) => judged.totals,
        }
    }

    pub(super) fn line_size(&self) -> LineSize {
        match self {
            Lines::Table(table) => table.line_size(),
            Lines::Sorting(sorting) => sorting.line_size(),
            Lines::Judged(judged) => judged.line_size,
        }
    }

    pub(super) fn lines(&self) -> u64 {
        match self {
            Lines::Table(table) => table.len() as u64,
            Lines::Sorting(_) => 0,
            Lines::Judged(judged) => judged.lines,
        }
    }

    pub(super) fn shared_lines(&self) -> u64 {
        match self {
            Lines::Table(table) => {
                let shared = table.lines().filter(|(_, line)| line.several_threads());
                shared.count() as u64
            }
            Lines::Sorting(_) => 0,
            Lines::Judged(judged) => judged.shared_lines,
        }
    }
}

impl JudgedLines {
    /// Folds and judges every line.
    pub(super) fn of(
        fed: FedLines,
        line_size: LineSize,
        orders: &Orders<'_>,
        whole: Cost,
        thresholds: &Thresholds,
    ) -> Result<JudgedLines, SpillError> {
        let totals = fed.totals();
        let model = Model {
            whole,
            untimed_stores: totals.untimed_stores(),
            line_size,
            thresholds,
        };
        let start = || Seen {
            ranking: Ranking::new(orders, model).with_members(),
            lines: 0,
            shared_lines: 0,
            sampled: Vec::new(),
        };
        let see = |seen: &mut Seen<'_>, key: LineKey, line: &Line| {
            seen.lines += 1;
            seen.shared_lines += u64::from(line.several_threads());
            seen.ranking.see(key, line);
            if orders.watched.get(key).is_some() {
                seen.sampled.push((key, bytes(line, line_size)));
            }
        };
        let mut all = start();
        for seen in fed.each_line(start, see, |seen| seen)? {
            all.ranking.merge(seen.ranking);
            all.lines += seen.lines;
            all.shared_lines += seen.shared_lines;
            all.sampled.extend(seen.sampled);
        }
        Ok(JudgedLines {
            line_size,
            totals,
            lines: all.lines,
            shared_lines: all.shared_lines,
            judged: all.ranking.judged(),
            sampled: all.sampled.into_iter().collect(),
        })
    }
}

fn bytes(line: &Line, line_size: LineSize) -> ByteSet {
    let sites = line.sites();
    ByteSet(
        sites
            .iter()
            .fold(0, |all, site| all | site.site.reach(line_size).0),
    )
}
