//! What the text form says after the findings: what else is shared, pairs, and what to keep in mind; a line each.

use super::{
    finding_text,
    model::{Finding, Pair, Report, Weight},
    pairs_text, shorten,
    table::{self, Column},
    text::{Lines, WIDTH},
};
use crate::number::{count, percent_beside};

/// Insignificant lines listed; the others are counted.
const SUSPECTS: usize = 10;

/// Columns of what a line is about, in a list.
const SUBJECT: usize = 44;

/// Pairs with a hint that are listed.
const HINTS: usize = 5;

/// Lines printed in full that move for unknown bytes.
const MOVING: usize = 5;

/// Lines that move, and that are no findings because nobody knows for which bytes.
pub(super) fn moving(out: &mut Lines, report: &Report) {
    let lines: Vec<&Finding> = report.insignificant.iter().filter(|f| f.moves).collect();
    if lines.is_empty() {
        return;
    }
    out.blank();
    out.strong("Lines that move between CPUs, without enough samples to say for which bytes:");
    for line in lines.iter().take(MOVING) {
        out.blank();
        finding_text::print(out, line, false);
    }
    out.and_more(lines.len(), MOVING);
}

/// Lines that are shared, and no findings.
pub(super) fn suspects(out: &mut Lines, report: &Report) {
    let suspects: Vec<&Finding> = report.insignificant.iter().filter(|f| !f.moves).collect();
    let Some(first) = suspects.first() else {
        return;
    };
    let limit = report.run.threshold;
    let is_clean = report.findings.is_empty() && suspects.len() == report.insignificant.len();
    if is_clean && !out.options.verbose {
        closest(out, first, limit);
        return;
    }
    out.blank();
    out.strong(if is_clean {
        "Closest to a finding:"
    } else {
        "Also shared, but not worth acting on:"
    });
    one_line_each(out, &suspects, SUSPECTS, limit, &waited, &|finding| {
        finding.insignificant_because.clone().unwrap_or_default()
    });
}

/// Time on a line that is no finding: while it was shared, where that is known.
fn waited(finding: &Finding) -> f64 {
    match finding.kind {
        Some(_) => finding.cost.share,
        None => finding.cost.stalled_share,
    }
}

/// `Closest to one: stats.hits (0.4 %, true sharing): costs less than 1.0 % of the time.`
fn closest(out: &mut Lines, finding: &Finding, limit: f64) {
    let share = percent_beside(waited(finding), limit);
    let what = match finding.kind {
        Some(_) => format!("{share}, {}", finding_text::kind_words(finding.kind)),
        None => share,
    };
    let because = finding.insignificant_because.as_deref().unwrap_or("shared");
    let (before, after) = ("Closest to one: ", format!(" ({what}): {because}."));
    let room = WIDTH.saturating_sub(before.len() + after.chars().count());
    let subject = finding_text::subject_within(finding, room.max(20));
    out.prose("", &format!("{before}{subject}{after}"));
}

/// A table with a line per finding: its id, kind, subject, share of the time, and a remark; `limit` is what would be
/// worth acting on.
pub(super) fn one_line_each(
    out: &mut Lines,
    findings: &[&Finding],
    most: usize,
    limit: f64,
    share: &dyn Fn(&Finding) -> f64,
    remark: &dyn Fn(&Finding) -> String,
) {
    let rows: Vec<Vec<String>> = findings
        .iter()
        .take(most)
        .map(|finding| {
            vec![
                finding.id.to_string(),
                finding_text::kind_words(finding.kind),
                out.options
                    .name(&finding_text::subject_within(finding, SUBJECT)),
                percent_beside(share(finding), limit),
                out.options.name(&remark(finding)),
            ]
        })
        .collect();
    let table = [
        Column::left("", 4, shorten::end),
        Column::left("", 13, shorten::end),
        Column::left("", 20, shorten::name),
        Column::right("", 7, shorten::end),
        Column::left("", 38, shorten::end),
    ];
    listed(out, &table, &rows);
    out.and_more(findings.len(), most);
}

fn listed(out: &mut Lines, table: &[Column], rows: &[Vec<String>]) {
    for line in table::layout(table, rows, WIDTH - 2).iter().skip(1) {
        out.line(&format!("  {line}"));
    }
}

/// Loads that should fetch their line for ownership.
pub(super) fn pairs(out: &mut Lines, report: &Report) {
    let hinted: Vec<&Pair> = (report.pairs.iter())
        .filter(|pair| pair.hint.is_some())
        .collect();
    if hinted.is_empty() {
        return;
    }
    if report.findings.is_empty() && !out.options.verbose {
        let text = format!(
            "{} fetch the line for ownership: --verbose, or `cohtrace pairs`.",
            count(hinted.len() as u64, "load should", "loads should")
        );
        out.prose("", &text);
        return;
    }
    out.blank();
    out.strong("Loads that should fetch their line for ownership");
    if out.options.verbose {
        for pair in hinted.iter().take(HINTS) {
            pairs_text::print(out, pair);
        }
    } else {
        let rows: Vec<Vec<String>> = (hinted.iter().take(HINTS))
            .map(|pair| pairs_text::cells(pair, out.options))
            .collect();
        listed(out, &pairs_text::COLUMNS, &rows);
    }
    out.and_more(hinted.len(), HINTS);
}

/// What must be known to read the report; all that there is to know for those who ask for it.
pub(super) fn caveats(out: &mut Lines, report: &Report) {
    let (shown, others): (Vec<_>, Vec<_>) = (report.caveats.iter())
        .partition(|caveat| out.options.verbose || caveat.weight == Weight::Reading);
    if !shown.is_empty() {
        out.blank();
        out.strong("What to keep in mind:");
        let bullet = format!("  {} ", out.options.bullet());
        for caveat in shown {
            out.prose(&bullet, &caveat.text);
        }
    }
    if !others.is_empty() {
        if !report.findings.is_empty() {
            out.blank();
        }
        let text = format!(
            "{} on how this was measured: --verbose.",
            count(others.len() as u64, "remark", "remarks")
        );
        out.prose("", &text);
    }
}
