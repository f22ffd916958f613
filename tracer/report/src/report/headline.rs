//! What the text form says first: the result of the run, what was looked at, and what "none" is worth.

use super::{
    cost_words,
    doubt::{self, ENOUGH_SAMPLES},
    finding_text::kind_words,
    model::{Doubt, Finding, Report, Run},
    shorten,
    style::Role,
    text::{Lines, WIDTH},
    wrap::wrap,
};
use crate::number::{count, grouped, list, percent, seconds};

use crate::{access::CostUnit, finding::Verdict};

/// The first lines of a report.
pub(super) fn print(out: &mut Lines, report: &Report) {
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
        (_, 0) if report.run.doubt == Some(Doubt::Unread) => (
            Role::Mixed,
            format!(
                "It cannot be told whether threads fight over cache lines: what {} of the samples waited for could not be read.",
                unread(&report.run)
            ),
        ),
        (_, 0) if report.run.doubt == Some(Doubt::SoftwareEmulation) => (
            Role::Mixed,
            "No sharing of cache lines was seen, on a machine where it cannot be seen.".to_owned(),
        ),
        (_, 0) if report.run.doubt == Some(Doubt::Blind) => (
            Role::Mixed,
            "No sharing of cache lines was seen, but CPUs were not sampled for much of the time."
                .to_owned(),
        ),
        (_, 0) if report.run.doubt == Some(Doubt::TooFewSamples) => (
            Role::Mixed,
            "No sharing of cache lines was seen, in too few samples to tell.".to_owned(),
        ),
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
                    "{} took {} {}{}",
                    if n == 1 { "It" } else { "Together they" },
                    percent(share.min(1.0)),
                    cost_words::of_sampled(out.unit),
                    besides(report, share)
                )
            };
            let more = if report.run.doubt == Some(Doubt::Unread) {
                format!(
                    "What {} of the samples waited for could not be read, so there may be more. ",
                    unread(&report.run)
                )
            } else {
                String::new()
            };
            let text = format!(
                "{more}Threads fight over {}, {}. {cost}.",
                fought_over(&report.findings),
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

/// `99.9 %` of the samples.
fn unread(run: &Run) -> String {
    percent(doubt::unread(run) as f64 / run.samples.max(1) as f64)
}

/// `3 cache lines`, or `2 objects on 130 cache lines`.
fn fought_over(findings: &[Finding]) -> String {
    let lines = findings
        .iter()
        .map(|f| f.lines.as_ref().map_or(1, |lines| lines.count));
    let lines = count(lines.sum(), "cache line", "cache lines");
    match findings.len() as u64 {
        _ if findings.iter().all(|finding| finding.lines.is_none()) => lines,
        n => format!("{} on {lines}", count(n, "object", "objects")),
    }
}

/// `, of 61.0 % for all lines that threads share`; nothing where the findings are all of it.
fn besides(report: &Report, found: f64) -> String {
    match report.run.shared_share {
        Some(all) if percent(all) != percent(found) && all > found => {
            format!(", of {} for all lines that threads share", percent(all))
        }
        _ => String::new(),
    }
}

/// `2 by false sharing and 1 by true sharing`, worst first.
fn kinds(findings: &[Finding]) -> String {
    let mut kinds: Vec<(Option<Verdict>, u64)> = Vec::new();
    for finding in findings {
        match kinds.iter_mut().find(|(kind, _)| *kind == finding.kind) {
            Some((_, n)) => *n += 1,
            None => kinds.push((finding.kind, 1)),
        }
    }
    let words: Vec<String> = kinds
        .iter()
        .map(|(kind, n)| {
            let kind = kind_words(*kind);
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

/// What was observed, for how long, by what.
pub(super) fn looked_at(run: &Run) -> String {
    let targets: Vec<String> = run
        .observed
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
        .observed
        .frequency_hz
        .map_or_else(String::new, |hz| format!(" at {} Hz per CPU", grouped(hz)));
    let source = if run.observed.sources.is_empty() {
        String::new()
    } else {
        format!(" by {}", list(&run.observed.sources, 4))
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
            seconds(run.observed.duration_s()),
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
        seconds(run.observed.duration_s()),
        count(u64::from(run.observed.cpus), "CPU", "CPUs"),
        count(run.samples, "sample", "samples"),
        count(run.accesses, "memory access", "memory accesses"),
    )
}

/// `software emulation (QEMU TCG)`.
pub(super) fn by(emulator: &str) -> String {
    format!("software emulation ({emulator})")
}

/// What "none" is worth: how many samples a line at the threshold would have given.
fn how_sure(run: &Run, unit: CostUnit) -> String {
    let least = format!(
        "A line is a finding from {} {} on",
        percent(run.threshold),
        cost_words::of(unit)
    );
    if run.order.is_some() {
        return format!("{least}. Every access was seen: none was missed in what the program did.");
    }
    if let Some(emulator) = &run.software_emulation {
        return format!(
            "Its processors are a program, {}, and wait for no line, so that none was seen says nothing. Look on a real \
             machine or a virtual one (KVM), or let --source emulate see every access.",
            by(emulator)
        );
    }
    if run.doubt == Some(Doubt::Blind) {
        return format!(
            "{least}. What ran on CPUs while they were not sampled may have been one: look again."
        );
    }
    let expected = doubt::expected(run);
    let here = count(expected.round() as u64, "sample", "samples");
    if expected >= ENOUGH_SAMPLES {
        return format!("{least}, about {here} here: it is unlikely that one was missed.");
    }
    let too_few = format!("{least}, about {here} here: too few to be sure");
    if expected <= 0.0 || run.threshold <= 0.0 || run.observed.duration_s() <= 0.0 {
        return format!("{too_few}. Look longer, and while the program is busy.");
    }
    let needed = seconds((run.observed.duration_s() * ENOUGH_SAMPLES / expected).ceil());
    // An imported recording has no frequency, and is not made longer by options of ours.
    let advice = if run.observed.frequency_hz.is_none() {
        format!("Record for {needed} or more")
    } else {
        format!("Look for {needed} or more (--duration)")
    };
    format!("{too_few}. {advice}, while the program is busy.")
}
