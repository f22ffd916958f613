//! From counted lines to rows with words, in the order in which they are printed.

use super::{
    Counts, Event,
    fold::{Line, Lines, Row, RowKey},
};
use crate::{
    access::{LineKey, LineSize},
    event::Unresolved,
    names::{AccessedBy, Names},
    report::{
        model::{Finding, Report},
        named::kind_name,
    },
};

/// Lines with less than this share of all HITM and peer loads are left out, as in perf (`DISPLAY_LINE_LIMIT`).
const LEAST_SHARE: f64 = 0.001;

/// The tables.
#[derive(Debug)]
pub struct C2c {
    /// Of all accesses.
    pub totals: Counts,
    /// Records without a data address, which are no accesses.
    pub without_address: u64,
    /// Of the shared lines.
    pub shared: Counts,
    /// Lines with HITM or peer loads.
    pub shared_lines: u64,
    /// Those shown.
    pub(super) lines: Vec<NamedLine>,
    /// There were more than could be kept.
    pub(super) incomplete: bool,
}

#[derive(Debug)]
pub(super) struct NamedLine {
    pub(super) counts: Counts,
    pub(super) address: Option<u64>,
    pub(super) pages: u64,
    pub(super) verdict: Option<String>,
    pub(super) variable: Option<String>,
    pub(super) rows: Vec<NamedRow>,
    rank: usize,
}

#[derive(Debug)]
pub(super) struct NamedRow {
    pub(super) key: RowKey,
    pub(super) counts: Counts,
    pub(super) pages: u64,
    pub(super) cycles: [f64; 3],
    pub(super) cpus: usize,
    pub(super) symbol: Option<String>,
    pub(super) module: Option<String>,
    pub(super) source: Option<String>,
    pub(super) field: Option<String>,
}

/// Names the lines worth showing: those with HITM or peer loads, most first, then those that `report` has.
pub fn name(lines: &Lines, report: &Report, names: &dyn Names, line_size: LineSize) -> C2c {
    let mut shared = Counts::default();
    let mut shared_lines = 0;
    let weight = |counts: &Counts| counts.hitm() + counts.peer();
    for line in lines
        .counted
        .values()
        .filter(|line| weight(&line.counts) > 0)
    {
        shared.add(&line.counts);
        shared_lines += 1;
    }
    let whole = weight(&lines.totals);
    let judged: Vec<&Finding> = report
        .findings
        .iter()
        .chain(&report.insignificant)
        .collect();
    let mut named: Vec<NamedLine> = (lines.counted.iter())
        .filter_map(|(key, line)| {
            let rank = judged.iter().position(|finding| finding.line.key == *key);
            let share = weight(&line.counts) as f64 / whole.max(1) as f64;
            let shown = share >= LEAST_SHARE || rank.is_some();
            let counted = line.counts.get(Event::Records) > 0;
            let finding = rank.and_then(|rank| judged.get(rank).copied());
            (shown && counted).then(|| NamedLine {
                rank: rank.unwrap_or(usize::MAX),
                ..named_line(*key, line, finding, names, line_size)
            })
        })
        .collect();
    named.sort_by(|a, b| {
        let order = |line: &NamedLine| (std::cmp::Reverse(weight(&line.counts)), line.rank);
        order(a).cmp(&order(b)).then(a.address.cmp(&b.address))
    });
    C2c {
        totals: lines.totals,
        without_address: report
            .run
            .unresolved
            .get(&Unresolved::NoDataAddress)
            .copied()
            .unwrap_or(0),
        shared,
        shared_lines,
        lines: named,
        incomplete: lines.incomplete,
    }
}

fn named_line(
    key: LineKey,
    line: &Line,
    finding: Option<&Finding>,
    names: &dyn Names,
    line_size: LineSize,
) -> NamedLine {
    let mut rows: Vec<(&RowKey, &Row)> = line.rows.iter().collect();
    rows.sort_by_key(|(key, row)| (key.offset, std::cmp::Reverse(row.counts.hitm()), **key));
    let by: Vec<AccessedBy> = rows
        .iter()
        .map(|(key, row)| accessed_by(key, row))
        .collect();
    let objects = names.objects(key, line_size, &by);
    let object_name = objects.iter().find_map(|object| object.name.clone());
    let of_finding = finding.and_then(|finding| finding.object.name.clone());
    let several = objects.len() > 1;
    let named = rows.iter().map(|(row_key, row)| {
        let code = names.code(Some(row.space), row_key.ip, row_key.kernel);
        let field = names.field(key, line_size, row_key.offset, row.size.max(1));
        let field = field.and_then(|field| {
            let object = objects.get(field.object).and_then(|o| o.name.clone());
            match (object.filter(|_| several), field.path) {
                (Some(object), path) => Some(object + path.as_deref().unwrap_or("")),
                (None, path) => path,
            }
        });
        NamedRow {
            key: **row_key,
            counts: row.counts,
            pages: row.pages.count,
            cycles: [row.remote_hitm, row.local_hitm, row.load].map(super::fold::Mean::cycles),
            cpus: row.cpus.len(),
            symbol: code.symbol,
            module: code.module,
            source: (code.file.zip(code.line)).map(|(file, line)| format!("{file}:{line}")),
            field,
        }
    });
    NamedLine {
        counts: line.counts,
        address: line.address,
        pages: line.pages.count,
        verdict: finding.map(verdict),
        variable: of_finding.or(object_name),
        rows: named.collect(),
        rank: 0,
    }
}

fn verdict(finding: &Finding) -> String {
    let (kind, confidence) = (kind_name(finding.kind), finding.confidence.name());
    format!("{} {kind} ({confidence})", finding.id)
}

fn accessed_by(key: &RowKey, row: &Row) -> AccessedBy {
    AccessedBy {
        space: row.space,
        ip: key.ip,
        kernel: key.kernel,
        op: row.op,
        offset: key.offset,
        size: u8::try_from(row.size.max(1)).unwrap_or(u8::MAX),
        count: row.counts.get(Event::Records),
    }
}
