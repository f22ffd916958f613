//! The report for people: the worst line first, and for each what, where, who, why and how to fix it.
//!
//! No line is wider than [`WIDTH`] columns, and nothing of what binaries or threads are called can act
//! on a terminal.

use super::{
    access_text, closing, finding_text, headline, latent_text,
    model::{Finding, Report},
    pairs_text,
    printable::columns,
    style::Role,
    wrap::labelled,
};
use crate::number::count;

pub use super::style::TextOptions;

use crate::access::CostUnit;

/// Columns of the widest line.
pub const WIDTH: usize = 100;

/// Findings listed at the top; the others are counted.
const OVERVIEW: usize = 20;

/// Findings printed in full; the others are in the overview only.
const IN_FULL: usize = 10;

/// The report as text, with a newline at the end.
pub fn render(report: &Report, options: TextOptions) -> String {
    let mut out = Lines {
        text: String::new(),
        options,
        unit: report.run.cost_unit,
    };
    headline::print(&mut out, report);
    if report.findings.len() > 1 {
        out.blank();
        let place = |finding: &Finding| access_text::first_place(finding);
        closing::one_line_each(
            &mut out,
            &report.findings.iter().collect::<Vec<_>>(),
            OVERVIEW,
            report.run.threshold,
            &|f| f.cost.share,
            &place,
        );
    }
    let mut explained = Vec::new();
    for finding in report.findings.iter().take(IN_FULL) {
        out.blank();
        let explain = !explained.contains(&finding.kind);
        explained.push(finding.kind);
        finding_text::print(&mut out, finding, explain);
    }
    if report.findings.len() > IN_FULL {
        out.blank();
        let rest = (report.findings.len() - IN_FULL) as u64;
        let text = format!(
            "{} costing less; the JSON form (--json) has all details.",
            count(
                rest,
                "more finding is not shown in full,",
                "more findings are not shown in full,"
            )
        );
        out.prose("", &text);
    }
    closing::moving(&mut out, report);
    closing::suspects(&mut out, report);
    closing::pairs(&mut out, report);
    latent_text::print(&mut out, report);
    closing::caveats(&mut out, report);
    out.text
}

/// Collects lines; the only place where text becomes output.
pub(super) struct Lines {
    pub(super) text: String,
    pub(super) options: TextOptions,
    /// What shares are of.
    pub(super) unit: CostUnit,
}

impl Lines {
    /// An empty line, unless the last one is empty.
    pub(super) fn blank(&mut self) {
        if !self.text.ends_with("\n\n") {
            self.text.push('\n');
        }
    }

    /// One line that stands out.
    pub(super) fn strong(&mut self, text: &str) {
        let text = self.options.paint(Role::Strong, text);
        self.line(&text);
    }

    /// How many of a list are left out of it.
    pub(super) fn and_more(&mut self, all: usize, listed: usize) {
        if all > listed {
            let rest = count((all - listed) as u64, "more", "more");
            self.line(&format!("  and {rest} in the JSON form (--json)"));
        }
    }

    pub(super) fn line(&mut self, line: &str) {
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }

    /// A paragraph behind a label, which is quiet. The label's width indents the other lines.
    pub(super) fn prose(&mut self, label: &str, text: &str) {
        let text = self.options.name(text);
        self.labelled(label, &text);
    }

    /// Several paragraphs and lines of code behind a label. Names inside must have no line breaks.
    pub(super) fn paragraphs(&mut self, label: &str, text: &str) {
        let lines: Vec<String> = text.lines().map(|line| self.options.name(line)).collect();
        self.labelled(label, &lines.join("\n"));
    }

    fn labelled(&mut self, label: &str, text: &str) {
        if text.trim().is_empty() {
            return;
        }
        for (n, line) in labelled(label, text, WIDTH).into_iter().enumerate() {
            match line.strip_prefix(label) {
                Some(rest) if n == 0 => {
                    let label = self.options.paint(Role::Quiet, label);
                    self.line(&format!("{label}{rest}"));
                }
                _ => self.line(&line),
            }
        }
    }

    /// One line with something at its right end.
    pub(super) fn both_ends(&mut self, left: &str, left_columns: usize, right: &str) {
        let gap = WIDTH.saturating_sub(left_columns + columns(right)).max(2);
        let right = self.options.paint(Role::Strong, right);
        self.line(&format!("{left}{}{right}", " ".repeat(gap)));
    }
}

/// All pairs as text, for those who ask for nothing else.
pub fn render_pairs(report: &Report, options: TextOptions) -> String {
    let mut out = Lines {
        text: String::new(),
        options,
        unit: report.run.cost_unit,
    };
    out.prose("", &headline::looked_at(&report.run));
    if report.pairs.is_empty() {
        let text = if report.run.order.is_some() {
            "No line that several processors touch has a load that the same thread's store to it follows."
        } else if report
            .run
            .watch
            .as_ref()
            .is_some_and(|watch| watch.tally.windows > 0)
        {
            "The watch windows saw no load that the same thread's store to its line follows."
        } else {
            "No line was watched, and only watch windows see what follows a load: record without --no-watch."
        };
        out.prose("", text);
    }
    for pair in &report.pairs {
        out.blank();
        pairs_text::print(&mut out, pair);
    }
    closing::caveats(&mut out, report);
    out.text
}
