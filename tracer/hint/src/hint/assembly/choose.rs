//! Which of the loads at a source line a hint means. The same rules for assembly text and for machine code.

use super::{instruction::Kept, operand::Operand, wanted::Wanted};
use crate::hint::repeated::Repeated;

/// An instruction that reads memory at a hint's line.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    /// Which function's copy of the code.
    pub(super) function: u32,
    /// Which stretch of code of the very same place.
    pub(super) run: u32,
    pub(super) column: Option<u32>,
    pub(super) load: Result<Load, Kept>,
}

/// One that may get a prefetch.
#[derive(Debug, Clone)]
pub(super) struct Load {
    /// The operand as the code writes it.
    pub(super) text: String,
    pub(super) operand: Operand,
    pub(super) width: Option<u8>,
}

/// How a load was recognised, most certain first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum How {
    /// By place and operand.
    SameOperand,
    /// By place and the form of the operand, which is in other registers.
    OtherRegisters,
    /// It is the only load of its place.
    OnlyLoad,
}

/// Why a hint was placed nowhere, though the unit has code of its line or its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// The unit has no code of that line, and is made of that file.
    NoCode,
    /// Code, but no load.
    NoLoad,
    /// Loads that are not to be touched, for these reasons.
    Kept(Vec<Kept>),
    /// Loads in other columns only, and none with the hint's operand.
    OtherColumn(Vec<u32>),
    /// These operands, and nothing tells which one is meant.
    Ambiguous(Vec<String>),
    /// In a loop, where a prefetch for each execution is waste, and none can stand before it.
    Repeats(Repeated),
    /// Only what is not meant: spilled values on the stack, and loads that the hints leave alone.
    NotMeant(Vec<String>),
}

impl Refusal {
    /// The reason as a sentence without its full stop.
    pub fn phrase(&self) -> String {
        match self {
            Refusal::NoCode => "no code at that line; the source may have changed since".to_owned(),
            Refusal::NoLoad => "no load at that line; the source may have changed since".to_owned(),
            Refusal::Kept(kinds) => {
                let phrases: Vec<_> = kinds.iter().map(|kind| kind.phrase()).collect();
                format!("the instruction there {}", phrases.join(", or "))
            }
            Refusal::OtherColumn(columns) => {
                let columns: Vec<_> = columns.iter().map(ToString::to_string).collect();
                format!(
                    "loads in column {} only; the source may have changed since",
                    columns.join(", ")
                )
            }
            Refusal::Ambiguous(operands) => {
                format!(
                    "several loads there and none has its operand: {}",
                    operands.join(", ")
                )
            }
            Refusal::Repeats(repeated) => repeated.phrase(),
            Refusal::NotMeant(operands) => format!("another load there: {}", operands.join(", ")),
        }
    }
}

/// What became of a hint: the candidates that it means, or why none.
pub(super) type Choice = Result<Vec<(usize, How)>, Refusal>;

/// Chooses among all candidates at the hint's line in one unit. `left` are loads of that line to leave alone. Where
/// the file is not `sure` to be the hint's, no load is taken for being the only one.
pub(super) fn choose(
    hint: &Wanted,
    left: &[&Wanted],
    candidates: &[(usize, &Candidate)],
    sure: bool,
) -> Choice {
    let loads: Vec<Seen> = candidates
        .iter()
        .filter_map(|(index, candidate)| Seen::new(*index, candidate, hint, left))
        .collect();
    if loads.is_empty() {
        let mut kinds: Vec<Kept> = candidates
            .iter()
            .filter_map(|(_, seen)| seen.load.as_ref().err().copied())
            .collect();
        kinds.sort_unstable();
        kinds.dedup();
        return Err(if kinds.is_empty() {
            Refusal::NoLoad
        } else {
            Refusal::Kept(kinds)
        });
    }
    let tells_columns =
        hint.column.is_some() && loads.iter().any(|seen| seen.candidate.column.is_some());
    let in_column = |column: Option<u32>| -> Vec<&Seen> {
        let there = |seen: &&Seen| seen.candidate.column == column;
        loads.iter().filter(there).collect()
    };
    let (loads_there, by) = match (tells_columns, in_column(hint.column)) {
        (false, _) => (loads.iter().collect(), By::Line),
        (true, there) if !there.is_empty() => (there, By::Column),
        // Compilers do not agree on columns; the operand may tell which one is meant.
        (true, _) => match distinct(
            loads
                .iter()
                .filter(|seen| seen.same)
                .map(|seen| seen.candidate.column),
        )[..]
        {
            [column @ Some(_)] => (in_column(column), By::Column),
            _ => (loads.iter().collect(), By::OtherColumn),
        },
    };
    let mut chosen = Vec::new();
    let mut unclear = Vec::new();
    for of_function in loads_there.chunk_by(|a, b| a.candidate.function == b.candidate.function) {
        of_one_function(of_function, by, sure, &mut chosen, &mut unclear);
    }
    if !chosen.is_empty() {
        chosen.sort_unstable();
        return Ok(chosen);
    }
    let texts = |seen: &[&Seen]| distinct(seen.iter().map(|seen| seen.load.text.clone()));
    Err(match by {
        _ if !unclear.is_empty() => Refusal::Ambiguous(texts(&unclear)),
        By::OtherColumn => Refusal::OtherColumn(distinct(
            loads.iter().filter_map(|seen| seen.candidate.column),
        )),
        _ => Refusal::NotMeant(texts(&loads_there)),
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    Column,
    OtherColumn,
    Line,
}

/// A load, held against the hint.
#[derive(Clone, Copy)]
struct Seen<'c> {
    index: usize,
    candidate: &'c Candidate,
    load: &'c Load,
    same: bool,
    alike: bool,
    /// May be meant though its operand is another.
    eligible: bool,
}

impl<'c> Seen<'c> {
    fn new(
        index: usize,
        candidate: &'c Candidate,
        hint: &Wanted,
        left: &[&Wanted],
    ) -> Option<Seen<'c>> {
        let load = candidate.load.as_ref().ok()?;
        let same_width = |wanted: &Wanted| match (wanted.width, load.width) {
            (Some(one), Some(other)) => one == other,
            _ => true,
        };
        let is = |wanted: &Wanted| wanted.operand.as_ref() == Some(&load.operand);
        let like = |wanted: &Wanted| {
            wanted
                .operand
                .as_ref()
                .is_some_and(|operand| operand.has_shape_of(&load.operand))
        };
        let there = |wanted: &&&Wanted| {
            wanted.column.is_none()
                || candidate.column.is_none()
                || wanted.column == candidate.column
        };
        let same = is(hint);
        let left_alone = !same && left.iter().filter(there).any(|left| is(left));
        let of_stack = load.operand.is_of_the_stack()
            && !hint.operand.as_ref().is_some_and(Operand::is_of_the_stack);
        let alike = !same && !left_alone && like(hint) && same_width(hint);
        let left_alike = !alike
            && left
                .iter()
                .filter(there)
                .any(|left| like(left) && same_width(left));
        Some(Seen {
            index,
            candidate,
            load,
            same,
            alike,
            eligible: !left_alone && !left_alike && !of_stack,
        })
    }
}

fn of_one_function<'s, 'c>(
    loads: &[&'s Seen<'c>],
    by: By,
    sure: bool,
    chosen: &mut Vec<(usize, How)>,
    unclear: &mut Vec<&'s Seen<'c>>,
) {
    let same = loads
        .iter()
        .filter(|seen| seen.same)
        .map(|seen| (seen.index, How::SameOperand));
    let before = chosen.len();
    chosen.extend(same);
    let alike: Vec<&Seen> = loads.iter().copied().filter(|seen| seen.alike).collect();
    if by == By::Column {
        chosen.extend(alike.iter().map(|seen| (seen.index, How::OtherRegisters)));
    } else if chosen.len() == before {
        // Without its column, `a->x + b->x` is told apart by registers alone.
        let places = distinct(alike.iter().map(|seen| seen.candidate.column));
        let operands = distinct(alike.iter().map(|seen| &seen.load.operand));
        if operands.len() < 2 || places.len() < 2 && places != [None] {
            chosen.extend(alike.iter().map(|seen| (seen.index, How::OtherRegisters)));
        } else {
            unclear.extend(alike);
            return;
        }
    }
    if !sure || by == By::OtherColumn || by == By::Line && chosen.len() > before {
        return;
    }
    // What is chosen already brings the line of its neighbours.
    let meant: Vec<&Operand> = loads
        .iter()
        .filter(|seen| seen.same || seen.alike)
        .map(|seen| &seen.load.operand)
        .collect();
    let may_be = |seen: &&Seen| {
        seen.eligible
            && !meant
                .iter()
                .any(|operand| seen.load.operand.is_beside(operand))
    };
    let mut only = |loads: &[&'s Seen<'c>]| {
        let eligible: Vec<&Seen> = loads.iter().copied().filter(may_be).collect();
        match eligible[..] {
            [] => {}
            [one] => chosen.push((one.index, How::OnlyLoad)),
            _ => unclear.extend(eligible),
        }
    };
    if by == By::Column {
        for run in loads.chunk_by(|a, b| a.candidate.run == b.candidate.run) {
            if !run.iter().any(|seen| seen.same || seen.alike) {
                only(run);
            }
        }
    } else {
        only(loads);
    }
}

/// Each once, in the order of their first appearance.
fn distinct<T: PartialEq>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut seen = Vec::new();
    for item in items {
        if !seen.contains(&item) {
            seen.push(item);
        }
    }
    seen
}
