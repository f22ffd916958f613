//! Assembly text and hints to text with prefetches.

use std::collections::HashSet;

use super::{
    choose::{Candidate, Choice, How, Refusal, choose},
    compared::{Compared, compared},
    functions::Functions,
    instruction::Processor,
    placing::Placing,
    unit::{self, Found, Unit},
    wanted::{Place, Wanted, WantedLoads},
};
use crate::hint::{file::HintFile, repeated::Repeated};

/// A prefetch that stands in front of a hinted load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    /// Index of the hint in its file.
    pub hint: usize,
    /// Source file, as the unit writes it.
    pub file: String,
    /// Source line.
    pub line: u32,
    /// Column, where the unit has it.
    pub column: Option<u32>,
    /// Symbol whose code it is in, as the assembler has it.
    pub function: Option<String>,
    /// What was inserted: `prefetchw 8(%rdi)`.
    pub instruction: String,
    /// How the load was recognised.
    pub how: How,
    /// It stood there before.
    pub already: bool,
    /// Before the innermost loop that the load is in.
    pub before_loop: bool,
}

/// Why a unit is left as it is, whatever the hints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unread {
    /// Intel syntax, or names of registers without their sigil.
    OtherSyntax,
    /// Code without source lines.
    NoLines,
}

impl Unread {
    /// The reason as a sentence without its full stop.
    pub fn phrase(self) -> &'static str {
        match self {
            Unread::OtherSyntax => {
                "its assembly is not in the AT&T syntax with %registers (-masm=att)"
            }
            Unread::NoLines => "it has no source lines: compile with -g",
        }
    }
}

/// What became of a unit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rewritten {
    /// The new text; `None` where nothing is to be inserted.
    pub text: Option<Vec<u8>>,
    /// Name of the source file that the unit was made of.
    pub unit: Option<String>,
    /// The prefetches, in the order of the text.
    pub placed: Vec<Placement>,
    /// Hints that this unit should have had a load for, and has none.
    pub refused: Vec<(usize, Refusal)>,
    /// Why the unit was not looked at.
    pub unread: Option<Unread>,
    /// Source files, as the unit writes them, that may be others than the hints', and why; a sentence each, without
    /// its full stop.
    pub doubts: Vec<String>,
    /// A hint, or a load to leave alone, is of the very file that the unit was made of.
    pub is_named: bool,
    /// Where the hints have files of the base name of the unit's and none of them is it: those, beside it.
    pub namesakes: Vec<Compared>,
}

/// Inserts a prefetch for ownership in front of each load that `hints` names. Lines are only ever added.
pub fn rewrite(text: &[u8], hints: &HintFile, place: &Place<'_>) -> Rewritten {
    let processor = Processor::of(text);
    let whole = String::from_utf8_lossy(text);
    let wanted = WantedLoads::new(hints, processor, place.maps);
    let unit = unit::read(text, &wanted, processor, place);
    let mut out = Rewritten {
        unit: unit.name.clone(),
        doubts: unit.doubts.clone(),
        is_named: !unit.of_main_file.is_empty(),
        namesakes: unit.stranger.as_ref().map_or_else(Vec::new, |main| {
            compared(&wanted.sources, std::slice::from_ref(main), &HashSet::new())
        }),
        ..Rewritten::default()
    };
    if unit.other_syntax {
        out.unread = Some(Unread::OtherSyntax);
        return out;
    }
    if !unit.has_lines {
        out.unread = unit.has_code.then_some(Unread::NoLines);
        return out;
    }
    let mut placed: Vec<(usize, Placement)> = Vec::new();
    let mut functions = None;
    for (number, load) in wanted.all.iter().enumerate() {
        let Some(hint) = load.hint else { continue };
        let chosen = match choice(number, load, &wanted, &unit) {
            Some(Ok(chosen)) => chosen,
            Some(Err(refusal)) => {
                out.refused.push((hint, refusal));
                continue;
            }
            None => continue,
        };
        let repeated = Repeated::of(&hints.hints[hint]).filter(|_| !place.everywhere);
        let before = placed.len();
        for (index, how) in chosen {
            let Some(found) = unit.found.get(index) else {
                continue;
            };
            let Ok(load) = &found.candidate.load else {
                continue;
            };
            let new = placement(hint, found, &load.text, how, processor);
            let placing = repeated.map_or(Placing::InFront, |repeated| {
                let functions = functions.get_or_insert_with(|| Functions::read(&whole, processor));
                functions.placing(found.at, &load.operand, repeated)
            });
            match placing {
                Placing::InFront => placed.push((found.at, new)),
                Placing::BeforeLoop(lines) => {
                    placed.extend(lines.into_iter().map(|(line, already)| {
                        let new = Placement {
                            before_loop: true,
                            already,
                            ..new.clone()
                        };
                        (line, new)
                    }));
                }
                Placing::LeftOut => {}
            }
        }
        if let Some(repeated) = repeated.filter(|_| placed.len() == before) {
            out.refused.push((hint, Refusal::Repeats(repeated)));
        }
    }
    placed.sort_by_key(|(at, placement)| (*at, placement.hint));
    out.text = insert(text, &placed);
    out.placed = placed.into_iter().map(|(_, placement)| placement).collect();
    out
}

/// `None` where the unit has nothing to do with the hint.
fn choice(number: usize, load: &Wanted, wanted: &WantedLoads, unit: &Unit) -> Option<Choice> {
    let Some(indices) = unit.of_wanted.get(&number) else {
        if unit.with_code.contains(&number) {
            return Some(Err(Refusal::NoLoad));
        }
        return unit
            .of_main_file
            .contains(&number)
            .then_some(Err(Refusal::NoCode));
    };
    let candidates: Vec<(usize, &Candidate)> = indices
        .iter()
        .filter_map(|index| Some((*index, &unit.found.get(*index)?.candidate)))
        .collect();
    let sure = !unit.unsure.contains(&number);
    Some(choose(load, &wanted.left_beside(load), &candidates, sure))
}

fn placement(
    hint: usize,
    found: &Found,
    operand: &str,
    how: How,
    processor: Processor,
) -> Placement {
    Placement {
        hint,
        file: found.file.clone(),
        line: found.line,
        column: found.candidate.column,
        function: found.function.clone(),
        instruction: processor.prefetch(operand),
        how,
        already: found.fetched,
        before_loop: false,
    }
}

/// The text with the prefetches in front of their lines.
fn insert(text: &[u8], placed: &[(usize, Placement)]) -> Option<Vec<u8>> {
    let mut new = placed
        .iter()
        .filter(|(_, placement)| !placement.already)
        .peekable();
    new.peek()?;
    let mut out = Vec::with_capacity(text.len() + 32 * placed.len());
    for (at, line) in text.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let mut here: Vec<&str> = Vec::new();
        while let Some((_, placement)) = new.next_if(|(place, _)| *place == at) {
            // Two hints may mean one load.
            if !here.contains(&&*placement.instruction) {
                here.push(&placement.instruction);
                out.extend_from_slice(format!("\t{}\n", placement.instruction).as_bytes());
            }
        }
        out.extend_from_slice(line);
    }
    Some(out)
}
