//! The difference for people.

use super::{
    Change, Difference, FindingChange, FindingSide, GainChange, MatchedBy, ObjectChange,
    PairChange, Side, is_emulated,
};
use crate::{
    number::{count, grouped, percent, seconds},
    report::{
        cost_words,
        named::kind_name,
        style::{Role, TextOptions},
    },
};

/// Objects listed; the others are in the JSON form.
const OBJECTS: usize = 10;
/// Changes of an object's share that are worth a line.
const LEAST_SHARE: f64 = 0.005;

/// As text, with a newline at the end.
pub fn render(difference: &Difference, options: TextOptions) -> String {
    let mut out = Text {
        printed: String::new(),
        options,
        comparable: difference.comparable,
    };
    out.side("before", &difference.before);
    out.side("after ", &difference.after);
    if is_emulated(&difference.before) && is_emulated(&difference.after) {
        out.counts(
            "transactions",
            difference.before.cost.amount.0,
            difference.after.cost.amount.0,
        );
        out.counts(
            "executions",
            difference.before.accesses,
            difference.after.accesses,
        );
    }
    for caution in &difference.cautions {
        let label = options.paint(Role::Mixed, "caution:");
        out.line(&format!("{label} {}", options.name(caution)));
    }
    out.line("");
    let head = tally(difference.findings.iter().map(|finding| finding.change));
    out.line(&format!("Findings: {head}"));
    for finding in &difference.findings {
        out.finding(finding);
    }
    if !difference.gains.is_empty() {
        let right = difference.gains.iter().filter(|gain| gain.is_as_predicted);
        out.line(&format!(
            "Gains: {} of {} as predicted",
            right.count(),
            difference.gains.len()
        ));
        for gain in &difference.gains {
            out.gain(gain);
        }
    }
    if !difference.pairs.is_empty() {
        let head = tally(difference.pairs.iter().map(|pair| pair.change));
        out.line(&format!("Pairs: {head}"));
        for pair in difference
            .pairs
            .iter()
            .filter(|pair| pair.change != Change::Same)
        {
            out.pair(pair);
        }
    }
    let moved = |object: &&ObjectChange| {
        let change = object.after_share.unwrap_or(0.0) - object.before_share.unwrap_or(0.0);
        change.abs() >= LEAST_SHARE
    };
    let objects: Vec<&ObjectChange> = difference.objects.iter().filter(moved).collect();
    if difference.comparable && !objects.is_empty() {
        out.line("Objects, by the share of the cost that they take:");
        for object in objects.iter().take(OBJECTS) {
            out.object(object);
        }
        if objects.len() > OBJECTS {
            let rest = (objects.len() - OBJECTS) as u64;
            out.line(&format!(
                "  {} in the JSON form",
                count(rest, "more is", "more are")
            ));
        }
    }
    if difference.is_nothing() {
        out.line("Nothing changed.");
    }
    out.printed
}

fn tally(changes: impl Iterator<Item = Change>) -> String {
    let mut counts = [0_u64; 4];
    for change in changes {
        counts[change as usize] += 1;
    }
    let [new, gone, changed, same] = counts.map(grouped);
    format!("{new} new, {gone} gone, {changed} changed, {same} the same")
}

fn part(side: Option<&FindingSide>) -> String {
    match side {
        None => "not seen".to_owned(),
        Some(side) => match &side.insignificant_because {
            None => format!("{} {}", side.id, percent(side.share)),
            Some(why) => format!("{} ({why})", side.id),
        },
    }
}

struct Text {
    printed: String,
    options: TextOptions,
    comparable: bool,
}

impl Text {
    fn line(&mut self, line: &str) {
        self.printed.push_str(line.trim_end());
        self.printed.push('\n');
    }

    fn side(&mut self, label: &str, side: &Side) {
        let rate = side
            .frequency_hz
            .map_or(String::new(), |hz| format!(", {} Hz", grouped(hz)));
        let text = format!(
            "{}: {}{rate}, {}, {}; {}, {} {}",
            side.session,
            side.sources.join(", "),
            seconds(side.duration_s),
            count(side.accesses, "access", "accesses"),
            count(side.findings, "finding", "findings"),
            percent(side.findings_share),
            cost_words::of(side.cost.unit),
        );
        let text = self.options.name(&text);
        let label = self.options.paint(Role::Quiet, label);
        self.line(&format!("{label}  {text}"));
    }

    fn counts(&mut self, what: &str, before: u64, after: u64) {
        let change = if before == 0 {
            String::new()
        } else {
            let change = (after as f64 - before as f64) / before as f64;
            let sign = if change < 0.0 { "-" } else { "+" };
            format!(" ({sign}{})", percent(change.abs()))
        };
        self.line(&format!(
            "{what}  {} before, {} after{change}",
            grouped(before),
            grouped(after)
        ));
    }

    fn change(&self, change: Change) -> String {
        let (word, role) = match change {
            Change::New => ("new    ", Role::False),
            Change::Gone => ("gone   ", Role::Good),
            Change::Changed => ("changed", Role::True),
            Change::Same => ("same   ", Role::Quiet),
        };
        self.options.paint(role, word)
    }

    fn finding(&mut self, finding: &FindingChange) {
        let mut name = finding
            .object
            .clone()
            .unwrap_or_else(|| "memory without a name".to_owned());
        if let Some(old) = &finding.renamed_from {
            name = format!("{name} (was {old})");
        }
        let kind = match (&finding.before, &finding.after) {
            (Some(before), Some(after)) if before.kind != after.kind => {
                format!("{} -> {}", kind_name(before.kind), kind_name(after.kind))
            }
            (_, Some(side)) | (Some(side), None) => kind_name(side.kind).to_owned(),
            (None, None) => String::new(),
        };
        let before = part(finding.before.as_ref());
        let after = part(finding.after.as_ref());
        let unsure = if self.comparable {
            ""
        } else {
            " (shares do not compare)"
        };
        let text = format!("{kind}  {name}  {before} -> {after}{unsure}");
        let text = self.options.name(&text);
        let change = self.change(finding.change);
        self.line(&format!("  {change}  {text}"));
        let side = finding.after.as_ref().or(finding.before.as_ref());
        let mut more = Vec::new();
        if !finding.fields.is_empty() {
            more.push(finding.fields.join(" "));
        }
        more.extend(side.and_then(|side| side.place.as_ref().map(|place| format!("at {place}"))));
        if let (Some(before), Some(after)) = (&finding.before, &finding.after) {
            let rates = before.handoffs_per_s.zip(after.handoffs_per_s);
            more.extend(
                rates.map(|(old, new)| format!("{old:.0} -> {new:.0} hand-offs per second")),
            );
        }
        if finding.matched_by == Some(MatchedBy::Code) {
            more.push("known to be the same by the functions that use it".to_owned());
        }
        if !more.is_empty() {
            let text = self.options.name(&more.join("; "));
            self.line(&format!("           {text}"));
        }
    }

    fn gain(&mut self, gain: &GainChange) {
        let (word, role) = if gain.is_as_predicted {
            ("as predicted", Role::Good)
        } else {
            ("otherwise   ", Role::Mixed)
        };
        let thread = gain.comm.as_deref().unwrap_or("a thread");
        let text = format!(
            "{} {thread}, by {}: predicted {:.2} times as fast ({:.2} to {:.2}, {}), real {:.2}",
            gain.finding,
            gain.word,
            gain.predicted,
            gain.predicted_low,
            gain.predicted_high,
            gain.grade.name(),
            gain.real
        );
        let text = self.options.name(&text);
        let word = self.options.paint(role, word);
        self.line(&format!("  {word}  {text}"));
    }

    fn pair(&mut self, pair: &PairChange) {
        let side = |side: &Option<super::PairSide>| {
            side.as_ref().map_or("not seen".to_owned(), |side| {
                let share = side.share_of_load.map_or("unknown".to_owned(), percent);
                let hint = if side.hint { ", hint" } else { "" };
                format!("{} {share} of the loads{hint}", side.id)
            })
        };
        let name = pair
            .object
            .clone()
            .unwrap_or_else(|| "memory without a name".to_owned());
        let field = pair.field.clone().unwrap_or_default();
        let field = if field == name { String::new() } else { field };
        let place = pair.after.as_ref().or(pair.before.as_ref());
        let place = place.map_or(String::new(), |side| {
            format!("  load {}, store {}", side.load, side.store)
        });
        let text = format!(
            "{name}{field}  {} -> {}{place}",
            side(&pair.before),
            side(&pair.after)
        );
        let text = self.options.name(&text);
        let change = self.change(pair.change);
        self.line(&format!("  {change}  {text}"));
    }

    fn object(&mut self, object: &ObjectChange) {
        let share = |share: Option<f64>| share.map_or("not seen".to_owned(), percent);
        let name = object
            .name
            .clone()
            .or_else(|| object.type_name.clone())
            .unwrap_or_default();
        let text = format!(
            "{name}  {} -> {}",
            share(object.before_share),
            share(object.after_share)
        );
        let text = self.options.name(&text);
        self.line(&format!("  {text}"));
    }
}
