//! The report for people: the worst line first, and for each what, where, who, why and how to fix it.
//!
//! No line is wider than [`WIDTH`] columns, and nothing of what binaries or threads are called can act
//! on a terminal.

use super::{
    access_text, cost_words, finding_text,
    model::{Finding, Pair, Report, Run},
    number::{count, grouped, list, percent, seconds},
    pairs_text,
    printable::columns,
    shorten,
    style::Role,
    table::{self, Column},
    wrap::{labelled, wrap},
};

pub use super::style::TextOptions;

use crate::access::CostUnit;

/// Columns of the widest line.
pub const WIDTH: usize = 100;

/// Insignificant lines listed; the others are counted.
const SUSPECTS: usize = 10;

/// Pairs with a hint that are printed in the report.
const HINTS: usize = 5;

/// Findings listed at the top; the others are counted.
const OVERVIEW: usize = 20;

/// Lines printed in full that move for unknown bytes.
const MOVING: usize = 5;

/// Findings printed in full; the others are in the overview only.
const IN_FULL: usize = 10;

/// Samples that a line at the threshold should have given before "none found" means much: of 20
/// expected, seeing none has a chance of e^-20.
const ENOUGH_SAMPLES: f64 = 20.0;

/// The report as text, with a newline at the end.
pub fn render(report: &Report, options: TextOptions) -> String {
    let mut out = Lines {
        text: String::new(),
        options,
        unit: unit(&report.run),
    };
    headline(&mut out, report);
    if report.findings.len() > 1 {
        out.blank();
        let place = |finding: &Finding| access_text::first_place(finding);
        one_line_each(
            &mut out,
            &report.findings.iter().collect::<Vec<_>>(),
            OVERVIEW,
            &|f| f.cost.share,
            &place,
        );
    }
    let mut explained: Vec<&str> = Vec::new();
    for finding in report.findings.iter().take(IN_FULL) {
        out.blank();
        let explain = !explained.contains(&finding.kind.as_str());
        explained.push(&finding.kind);
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
    moving(&mut out, report);
    hints(&mut out, report);
    suspects(&mut out, report);
    caveats(&mut out, report);
    out.text
}

/// Collects lines; the only place where text becomes output.
pub(super) struct Lines {
    pub(super) text: String,
    pub(super) options: TextOptions,
    /// What shares are of.
    pub(super) unit: CostUnit,
}

fn unit(run: &Run) -> CostUnit {
    CostUnit::from_name(&run.cost_unit).unwrap_or_default()
}

impl Lines {
    /// An empty line, unless the last one is empty.
    pub(super) fn blank(&mut self) {
        if !self.text.ends_with("\n\n") {
            self.text.push('\n');
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

/// Pairs with a hint; all are in the JSON form.
fn hints(out: &mut Lines, report: &Report) {
    let hinted: Vec<&Pair> = report
        .pairs
        .iter()
        .filter(|pair| pair.hint.is_some())
        .collect();
    if hinted.is_empty() {
        return;
    }
    out.blank();
    let title = out.options.paint(
        Role::Strong,
        "Loads that should fetch their line for ownership",
    );
    out.line(&title);
    for pair in hinted.iter().take(HINTS) {
        pairs_text::print(out, pair);
    }
    if hinted.len() > HINTS {
        let rest = (hinted.len() - HINTS) as u64;
        let text = format!("{} in the JSON form (--json).", count(rest, "more", "more"));
        out.prose("", &text);
    }
}

/// All pairs as text, for those who ask for nothing else.
pub fn render_pairs(report: &Report, options: TextOptions) -> String {
    let mut out = Lines {
        text: String::new(),
        options,
        unit: unit(&report.run),
    };
    out.prose("", &looked_at(&report.run));
    if report.pairs.is_empty() {
        let text = if report.run.order.is_some() {
            "No line that several processors touch has a load that the same thread's store to it follows."
        } else if report
            .run
            .watch
            .as_ref()
            .is_some_and(|watch| watch.windows > 0)
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
    caveats(&mut out, report);
    out.text
}

fn headline(out: &mut Lines, report: &Report) {
    let (role, text) = match (report.run.samples, report.findings.len()) {
        (0, _) => (
            Role::Mixed,
            "No samples were taken, so nothing can be said about sharing.".to_owned(),
        ),
        (_, 0) if report.insignificant.iter().any(|line| line.moves) => {
            let lines = report.insignificant.iter().filter(|line| line.moves);
            let share: f64 = lines.clone().map(|line| line.cost.share).sum();
            let text = format!(
                "{} {} {}, but the samples do not tell which bytes are fought over.",
                count(
                    lines.count() as u64,
                    "cache line that moves between CPUs takes",
                    "cache lines that move between CPUs take"
                ),
                percent(share.min(1.0)),
                cost_words::of_sampled(out.unit)
            );
            (Role::Mixed, text)
        }
        (_, 0) => (
            Role::Good,
            "No sharing of cache lines worth acting on.".to_owned(),
        ),
        (_, n) => {
            let share: f64 = report
                .findings
                .iter()
                .map(|finding| finding.cost.share)
                .sum();
            let cost = if cost_words::is_unmeasured(out.unit, share) {
                "What that costs was not measured".to_owned()
            } else {
                format!(
                    "{} took {} {}",
                    if n == 1 { "It" } else { "Together they" },
                    percent(share.min(1.0)),
                    cost_words::of_sampled(out.unit)
                )
            };
            let text = format!(
                "Threads fight over {}, {}. {cost}.",
                count(n as u64, "cache line", "cache lines"),
                kinds(&report.findings)
            );
            (Role::Strong, text)
        }
    };
    for line in wrap(&text, WIDTH) {
        let line = out.options.paint(role, &line);
        out.line(&line);
    }
    out.prose("", &looked_at(&report.run));
    let moving = report.insignificant.iter().any(|line| line.moves);
    if report.findings.is_empty() && report.run.samples > 0 && !moving {
        out.prose("", &how_sure(&report.run, out.unit));
    }
}

/// `2 by false sharing and 1 by true sharing`, worst first.
fn kinds(findings: &[Finding]) -> String {
    let mut kinds: Vec<(&str, u64)> = Vec::new();
    for finding in findings {
        match kinds.iter_mut().find(|(kind, _)| *kind == finding.kind) {
            Some((_, n)) => *n += 1,
            None => kinds.push((&finding.kind, 1)),
        }
    }
    let words: Vec<String> = kinds
        .iter()
        .map(|(kind, n)| {
            let kind = kind.replace('-', " ");
            if kinds.len() == 1 {
                format!("by {kind}")
            } else {
                format!("{} by {kind}", grouped(*n))
            }
        })
        .collect();
    let order = if findings.len() > 1 {
        ", worst first"
    } else {
        ""
    };
    format!("{}{order}", list(&words, 3))
}

fn looked_at(run: &Run) -> String {
    let targets: Vec<String> = run
        .targets
        .iter()
        .map(|target| match (&target.command, target.pid) {
            (Some(command), Some(pid)) => format!("{} (pid {pid})", shorten::end(command, 40)),
            (Some(command), None) => shorten::end(command, 40),
            (None, Some(pid)) => format!("pid {pid}"),
            (None, None) => "every process".to_owned(),
        })
        .collect();
    let targets = if targets.is_empty() {
        "the targets".to_owned()
    } else {
        list(&targets, 3)
    };
    let rate = run
        .frequency_hz
        .map_or_else(String::new, |hz| format!(" at {} Hz per CPU", grouped(hz)));
    let source = if run.sources.is_empty() {
        String::new()
    } else {
        format!(" by {}", list(&run.sources, 4))
    };
    let lines = match (run.lines, run.shared_lines) {
        (Some(lines), Some(shared)) => format!(
            " on {}, {} of them used by more than one thread",
            count(lines, "cache line", "cache lines"),
            grouped(shared)
        ),
        (Some(lines), None) => format!(" on {}", count(lines, "cache line", "cache lines")),
        (None, Some(shared)) => format!(
            " ({} used by more than one thread)",
            count(shared, "cache line", "cache lines")
        ),
        (None, None) => String::new(),
    };
    if let Some(order) = &run.order {
        return format!(
            "Looked at {targets} for {}{source}: every access of the program, in order; {}: {}, {}{lines}.",
            seconds(run.duration_s),
            count(order.processors, "processor", "processors"),
            count(run.samples, "memory access", "memory accesses"),
            count(
                order.transactions,
                "coherence transaction",
                "coherence transactions"
            ),
        );
    }
    format!(
        "Looked at {targets} for {} on {}{rate}{source}: {}, {}{lines}.",
        seconds(run.duration_s),
        count(u64::from(run.cpus), "CPU", "CPUs"),
        count(run.samples, "sample", "samples"),
        count(run.accesses, "memory access", "memory accesses"),
    )
}

/// What "none" is worth: how many samples a line at the threshold would have given.
fn how_sure(run: &Run, unit: CostUnit) -> String {
    if run.order.is_some() {
        return format!(
            "A line becomes a finding when it costs {} {}. Every access was seen: no such line was missed in what the \
             program did.",
            percent(run.threshold),
            cost_words::of(unit)
        );
    }
    let blind: u64 = run
        .unresolved
        .iter()
        // Time that was not spent waiting for memory hides no line.
        .filter(|(reason, _)| reason.as_str() != "no_memory_operand")
        .map(|(_, n)| *n)
        .sum();
    let seeing = run.samples.saturating_sub(blind) as f64;
    let expected = seeing * run.threshold;
    let line = format!(
        "A line becomes a finding when it costs {} {}. Such a line would have shown in about {}",
        percent(run.threshold),
        cost_words::of(unit),
        count(expected.round() as u64, "sample", "samples")
    );
    if expected >= ENOUGH_SAMPLES {
        return format!(
            "{line}, so it is unlikely that one was missed in what ran during that time."
        );
    }
    if seeing < 1.0 || run.threshold <= 0.0 || run.duration_s <= 0.0 {
        return format!("{line}: too few to be sure. Look longer, and while the program is busy.");
    }
    let needed = seconds((run.duration_s * ENOUGH_SAMPLES / expected).ceil());
    // An imported recording has no frequency, and is not made longer by options of ours.
    let advice = if run.frequency_hz.is_none() {
        format!("Record for {needed} or more")
    } else {
        format!("Look for {needed} or more (--duration)")
    };
    format!("{line}: too few to be sure. {advice}, while the program is busy.")
}

/// Lines that move, and that are no findings because nobody knows for which bytes.
fn moving(out: &mut Lines, report: &Report) {
    let lines: Vec<&Finding> = report.insignificant.iter().filter(|f| f.moves).collect();
    if lines.is_empty() {
        return;
    }
    out.blank();
    let title = "Lines that move between CPUs, without enough samples to say for which bytes:";
    let title = out.options.paint(Role::Strong, title);
    out.line(&title);
    for line in lines.iter().take(MOVING) {
        out.blank();
        finding_text::print(out, line, false);
    }
    if lines.len() > MOVING {
        let rest = (lines.len() - MOVING) as u64;
        let text = format!("{} in the JSON form (--json).", count(rest, "more", "more"));
        out.prose("", &text);
    }
}

fn suspects(out: &mut Lines, report: &Report) {
    let insignificant: Vec<&Finding> = report.insignificant.iter().filter(|f| !f.moves).collect();
    if insignificant.is_empty() {
        return;
    }
    out.blank();
    let title = if report.findings.is_empty() && insignificant.len() == report.insignificant.len() {
        "Closest to a finding:"
    } else {
        "Also shared, but not worth acting on:"
    };
    let title = out.options.paint(Role::Strong, title);
    out.line(&title);
    let reason = |finding: &Finding| finding.insignificant_because.clone().unwrap_or_default();
    one_line_each(
        out,
        &insignificant,
        SUSPECTS,
        &|f| f.cost.stalled_share,
        &reason,
    );
}

/// A table with a line per finding: its id, kind, subject, share of the time, and a remark.
fn one_line_each(
    out: &mut Lines,
    findings: &[&Finding],
    most: usize,
    share: &dyn Fn(&Finding) -> f64,
    remark: &dyn Fn(&Finding) -> String,
) {
    let rows: Vec<Vec<String>> = findings
        .iter()
        .take(most)
        .map(|finding| {
            vec![
                finding.id.clone(),
                finding.kind.replace('-', " "),
                out.options.name(&finding_text::subject(finding)),
                percent(share(finding)),
                out.options.name(&remark(finding)),
            ]
        })
        .collect();
    let table = [
        Column::left("", 4, shorten::end),
        Column::left("", 13, shorten::end),
        Column::left("", 20, shorten::middle),
        Column::right("", 7, shorten::end),
        Column::left("", 38, shorten::end),
    ];
    for line in table::layout(&table, &rows, WIDTH - 2).iter().skip(1) {
        out.line(&format!("  {line}"));
    }
    if findings.len() > most {
        out.line(&format!(
            "  and {} more",
            grouped((findings.len() - most) as u64)
        ));
    }
}

fn caveats(out: &mut Lines, report: &Report) {
    if report.caveats.is_empty() {
        return;
    }
    out.blank();
    let title = out.options.paint(Role::Strong, "What to keep in mind:");
    out.line(&title);
    let bullet = format!("  {} ", out.options.bullet());
    for caveat in &report.caveats {
        out.prose(&bullet, caveat);
    }
}
