//! What was done with a unit, in lines for people; and a build's units, summed up.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{
    choose::{How, Refusal},
    compared::Compared,
    rewrite::{Placement, Rewritten},
};
use crate::{
    hint::file::{HintFile, HintedCode, LoadHint},
    printable::printable,
};

/// One unit of a build, as a line of JSON in a log.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnitRecord {
    /// Where the assembler ran.
    pub directory: String,
    /// Source file, as the unit names it.
    pub unit: Option<String>,
    /// What was assembled to.
    pub output: Option<String>,
    /// Why the unit was assembled unchanged, where that was not for want of hints.
    pub unchanged: Option<String>,
    /// Prefetches that were placed: id of the hint, and where.
    pub placed: Vec<(String, String)>,
    /// Hints that the unit should have had a load for: id, and why it has none.
    pub refused: Vec<(String, String)>,
    /// Hints whose loads here are better without a prefetch: id, and why.
    #[serde(default)]
    pub left_out: Vec<(String, String)>,
}

/// `worker.c:31:9`, as far as it is known.
pub fn place(file: &str, line: Option<u32>, column: Option<u32>) -> String {
    let number = |number: Option<u32>| {
        number
            .map(|number| format!(":{number}"))
            .unwrap_or_default()
    };
    format!("{file}{}{}", number(line), number(line.and(column)))
}

/// Where a hint's load stands in the source, or its address.
pub fn hinted_place(load: &HintedCode) -> String {
    match &load.file {
        Some(file) => place(file, load.line, load.column),
        None => format!(
            "{} at {}",
            load.module.as_deref().unwrap_or("code"),
            load.offset.as_ref().unwrap_or(&load.ip)
        ),
    }
}

fn id(hints: &HintFile, hint: usize) -> &str {
    hints.hints.get(hint).map_or("", |hint| &hint.id)
}

fn sentence(placement: &Placement) -> String {
    let place = place(&placement.file, Some(placement.line), placement.column);
    let how = match placement.how {
        How::SameOperand => "",
        How::OtherRegisters => ", other registers",
        How::OnlyLoad => ", the only load there",
    };
    let how = if placement.before_loop {
        ", before the loop"
    } else {
        how
    };
    let already = if placement.already {
        ", there already"
    } else {
        ""
    };
    format!("{place}: {}{how}{already}", placement.instruction)
}

/// The unit's prefetches, each with the number of its copies, and what could not be placed; a line each.
pub fn lines(rewritten: &Rewritten, hints: &HintFile) -> Vec<String> {
    let mut counted: Vec<(String, &str, usize)> = Vec::new();
    for placement in &rewritten.placed {
        let (text, id) = (sentence(placement), id(hints, placement.hint));
        match counted
            .iter_mut()
            .find(|(known, of, _)| *known == text && *of == id)
        {
            Some((.., count)) => *count += 1,
            None => counted.push((text, id, 1)),
        }
    }
    let copies = |count: usize| {
        if count > 1 {
            format!(", {count} copies")
        } else {
            String::new()
        }
    };
    let placed = counted
        .iter()
        .map(|(text, id, count)| format!("{text}{} ({id})", copies(*count)));
    let refused = rewritten.refused.iter().filter_map(|(hint, refusal)| {
        let hint = hints.hints.get(*hint)?;
        Some(format!(
            "{}: no prefetch: {} ({})",
            hinted_place(&hint.load),
            refusal.phrase(),
            hint.id
        ))
    });
    let mut lines: Vec<String> = placed.chain(refused).collect();
    let unit = rewritten.unit.as_deref().unwrap_or("this unit");
    if let Some(unread) = rewritten.unread
        && rewritten.is_named
    {
        lines.push(format!("{unit}: no prefetch: {}", unread.phrase()));
    }
    lines.extend(rewritten.doubts.iter().cloned());
    if rewritten.placed.is_empty() && lines.is_empty() {
        let namesakes = rewritten.namesakes.iter();
        let paths: Vec<String> = namesakes
            .filter(|file| !file.built.is_empty())
            .map(Compared::phrase)
            .collect();
        if !paths.is_empty() {
            lines.push(format!(
                "{unit}: no prefetch: the hints are of {}",
                paths.join("; ")
            ));
        }
    }
    lines
}

/// A record of what was done with a unit.
pub fn record(rewritten: &Rewritten, hints: &HintFile) -> UnitRecord {
    let placed = rewritten
        .placed
        .iter()
        .map(|placement| (id(hints, placement.hint).to_owned(), sentence(placement)));
    let refused = |left_out: bool| {
        let of_kind = (rewritten.refused.iter())
            .filter(move |(_, refusal)| matches!(refusal, Refusal::Repeats(_)) == left_out);
        of_kind.map(|(hint, refusal)| (id(hints, *hint).to_owned(), refusal.phrase()))
    };
    UnitRecord {
        unit: rewritten.unit.clone(),
        unchanged: rewritten.unread.map(|unread| unread.phrase().to_owned()),
        placed: placed.collect(),
        refused: refused(false).collect(),
        left_out: refused(true).collect(),
        ..UnitRecord::default()
    }
}

/// What a build's log says of each hint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// The sentence for people.
    pub text: String,
    /// Hints that no unit had a place for.
    pub missing: usize,
}

/// Sums a log up. Of a unit that was assembled several times to one place, the last time counts.
pub fn summary(log: &str, hints: &HintFile) -> Summary {
    let mut units: BTreeMap<(String, Option<String>, Option<String>), UnitRecord> = BTreeMap::new();
    let mut damaged = 0;
    for line in log.lines().filter(|line| !line.trim().is_empty()) {
        match serde_json::from_str::<UnitRecord>(line) {
            Ok(record) => {
                let key = (
                    record.directory.clone(),
                    record.unit.clone(),
                    record.output.clone(),
                );
                units.insert(key, record);
            }
            Err(_) => damaged += 1,
        }
    }
    let mut lines = vec![format!("{} of the build", count(units.len(), "unit"))];
    let mut unchanged: BTreeMap<&str, usize> = BTreeMap::new();
    for reason in units
        .values()
        .filter_map(|record| record.unchanged.as_deref())
    {
        *unchanged.entry(reason).or_default() += 1;
    }
    lines.extend(
        unchanged
            .iter()
            .map(|(reason, units)| format!("{} unchanged: {reason}", count(*units, "unit"))),
    );
    if damaged > 0 {
        lines.push(format!(
            "{} of the log cannot be read",
            count(damaged, "line")
        ));
    }
    let (mut missing, mut left_out) = (0, 0);
    for hint in &hints.hints {
        let (text, fate) = of_hint(hint, units.values());
        missing += usize::from(fate == Fate::Missing);
        left_out += usize::from(fate == Fate::LeftOut);
        lines.push(text);
    }
    lines.push(match missing {
        0 if left_out > 0 => format!(
            "every hint was placed but {left_out} of {}, better left out",
            count(hints.hints.len(), "hint")
        ),
        0 => "every hint was placed".to_owned(),
        missing => format!(
            "{} of {} placed nowhere",
            missing,
            count(hints.hints.len(), "hint")
        ),
    });
    Summary {
        text: (lines.iter()).fold(String::new(), |text, line| {
            text + &printable(line, false) + "\n"
        }),
        missing,
    }
}

/// What became of a hint in a build.
#[derive(PartialEq, Eq)]
enum Fate {
    Placed,
    LeftOut,
    Missing,
}

fn of_hint<'u>(hint: &LoadHint, units: impl Iterator<Item = &'u UnitRecord>) -> (String, Fate) {
    let (mut places, mut in_units) = (0, 0);
    let mut left_out: Option<&str> = None;
    let mut reasons: Vec<&str> = Vec::new();
    for unit in units {
        let here = unit.placed.iter().filter(|(id, _)| *id == hint.id).count();
        places += here;
        in_units += usize::from(here > 0);
        for (_, reason) in unit.refused.iter().filter(|(id, _)| *id == hint.id) {
            if !reasons.contains(&reason.as_str()) {
                reasons.push(reason);
            }
        }
        let left = unit.left_out.iter().find(|(id, _)| *id == hint.id);
        left_out = left_out.or(left.map(|(_, reason)| reason.as_str()));
    }
    let at = format!("{} {}", hint.id, hinted_place(&hint.load));
    if places > 0 {
        return (
            format!(
                "{at}: {} in {}",
                count(places, "prefetch"),
                count(in_units, "unit")
            ),
            Fate::Placed,
        );
    }
    if let Some(reason) = left_out {
        return (format!("{at}: left out: {reason}"), Fate::LeftOut);
    }
    let why = match (
        hint.load.file.is_some() && hint.load.line.is_some(),
        reasons.is_empty(),
    ) {
        (false, _) => {
            "the hint names no source line; record a program that was compiled with -g".to_owned()
        }
        (true, true) => "no unit has code of that line".to_owned(),
        (true, false) => reasons.join("; "),
    };
    (format!("{at}: placed nowhere: {why}"), Fate::Missing)
}

fn count(number: usize, noun: &str) -> String {
    let plural = match noun.strip_suffix("ch") {
        _ if number == 1 => noun.to_owned(),
        Some(_) => format!("{noun}es"),
        None => format!("{noun}s"),
    };
    format!("{number} {plural}")
}
