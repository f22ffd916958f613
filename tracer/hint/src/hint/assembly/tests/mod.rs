mod a64;
mod instructions;
mod placing;
mod properties;
mod repeating;
mod telling;

use super::{NoTree, Place, Rewritten, rewrite};
use crate::hint::file::{Expected, HintFile, HintedCode, LeftLoad, LoadClass, LoadHint};

/// A load at `/src/t.c` or another file, by line, column (0 for none) and instruction ("" for none).
pub(super) fn load(file: &str, line: u32, column: u32, instruction: &str) -> HintedCode {
    let operand = instruction.split_once(' ').map(|(_, operands)| operands);
    let memory = operand.map(|operands| match operands.rfind(')') {
        Some(end) => operands[..=end]
            .rsplit(", ")
            .next()
            .unwrap_or("")
            .to_owned(),
        None => operands.split(", ").next().unwrap_or("").to_owned(),
    });
    HintedCode {
        ip: "0x401136".to_owned(),
        file: Some(file.to_owned()),
        line: Some(line),
        column: (column > 0).then_some(column),
        instruction: (!instruction.is_empty()).then(|| instruction.to_owned()),
        operand: memory.filter(|memory| !memory.starts_with(['%', '$'])),
        ..HintedCode::default()
    }
}

/// A file of hints `H1`, .. and of loads to leave.
pub(super) fn file(hints: Vec<HintedCode>, left: Vec<HintedCode>) -> HintFile {
    let hint = |(number, load): (usize, HintedCode)| LoadHint {
        class: LoadClass::Integer,
        ..LoadHint::new(format!("H{}", number + 1), load)
    };
    let left_load = |load: HintedCode| LeftLoad {
        load,
        class: LoadClass::Integer,
        expected: Expected::default(),
        reason: "costs-more-than-it-saves".to_owned(),
        text: String::new(),
    };
    HintFile {
        hints: hints.into_iter().enumerate().map(hint).collect(),
        left: left.into_iter().map(left_load).collect(),
        ..HintFile::default()
    }
}

/// One hint on a text of `/src`.
pub(super) fn with_one(text: &str, hint: HintedCode) -> Rewritten {
    rewritten_in_src(text.as_bytes(), &file(vec![hint], Vec::new()))
}

/// A text of `/src` with hints.
pub(super) fn rewritten_in_src(text: &[u8], hints: &HintFile) -> Rewritten {
    rewrite(text, hints, &PLACE)
}

/// `/src`, of which no file is known.
pub(super) const PLACE: Place<'static> = Place {
    directory: "/src",
    maps: &[],
    tree: &NoTree,
    everywhere: false,
};

/// The prefetches of a rewritten text, each with the line that follows it.
pub(super) fn prefetches(rewritten: &Rewritten) -> Vec<String> {
    let text = String::from_utf8(rewritten.text.clone().unwrap_or_default()).unwrap();
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    lines
        .windows(2)
        .filter(|pair| pair[0].starts_with("prefetchw") || pair[0].starts_with("prf"))
        .map(|pair| format!("{} | {}", pair[0], pair[1]))
        .collect()
}

/// A unit of `t.c` with these lines in a function.
pub(super) fn unit(body: &str) -> String {
    format!("\t.file \"t.c\"\n\t.text\n\t.file 1 \"t.c\"\nf:\n{body}\tret\n")
}
