//! What is looked for: the loads of a hints file, by source line.

use std::collections::{BTreeMap, HashMap};

use super::{
    files::same_file,
    instruction::{Does, Processor},
    operand::Operand,
};
use crate::hint::file::{CallPlace, HintFile, HintedCode};

/// A load to look for.
#[derive(Debug, Clone)]
pub(super) struct Wanted {
    /// Index of the hint in the file; `None` of a load that the file says to leave alone.
    pub(super) hint: Option<usize>,
    pub(super) file: String,
    pub(super) line: u32,
    pub(super) column: Option<u32>,
    pub(super) inlined_at: Vec<CallPlace>,
    pub(super) operand: Option<Operand>,
    pub(super) width: Option<u8>,
}

/// The loads of a hints file for one processor.
#[derive(Debug)]
pub(super) struct WantedLoads {
    pub(super) all: Vec<Wanted>,
    /// Their indices by file, as the hints name it, and by line.
    files: BTreeMap<String, HashMap<u32, Vec<usize>>>,
}

impl WantedLoads {
    pub(super) fn new(file: &HintFile, processor: Processor) -> WantedLoads {
        let hints = file
            .hints
            .iter()
            .enumerate()
            .map(|(index, hint)| (Some(index), &hint.load));
        let left = file.left.iter().map(|left| (None, &left.load));
        let all: Vec<Wanted> = hints
            .chain(left)
            .filter_map(|(hint, load)| wanted(hint, load, processor))
            .collect();
        let mut files: BTreeMap<String, HashMap<u32, Vec<usize>>> = BTreeMap::new();
        for (index, wanted) in all.iter().enumerate() {
            let lines = files.entry(wanted.file.clone()).or_default();
            lines.entry(wanted.line).or_default().push(index);
        }
        WantedLoads { all, files }
    }

    /// The loads to leave alone at the line of a hint.
    pub(super) fn left_beside(&self, hint: &Wanted) -> Vec<&Wanted> {
        let beside = |wanted: &&Wanted| {
            wanted.hint.is_none() && wanted.line == hint.line && same_file(&wanted.file, &hint.file)
        };
        self.all.iter().filter(beside).collect()
    }

    /// By line, those of one file.
    pub(super) fn of_file(&self, path: &str) -> HashMap<u32, Vec<usize>> {
        let mut by_line: HashMap<u32, Vec<usize>> = HashMap::new();
        for (_, lines) in self.files.iter().filter(|(file, _)| same_file(file, path)) {
            for (line, indices) in lines {
                by_line.entry(*line).or_default().extend(indices);
            }
        }
        by_line
    }
}

fn wanted(hint: Option<usize>, load: &HintedCode, processor: Processor) -> Option<Wanted> {
    let instruction = load.instruction.as_deref();
    let (of_instruction, width) = match instruction.map(|text| processor.does(text)) {
        Some(Does::Loads { operand, width, .. }) => (Some(operand), width),
        _ => (None, None),
    };
    let operand = load
        .operand
        .as_deref()
        .and_then(|text| processor.operand(text));
    Some(Wanted {
        hint,
        file: load.file.clone()?,
        line: load.line.filter(|line| *line != 0)?,
        column: load.column.filter(|column| *column != 0),
        inlined_at: load.inlined_at.clone(),
        operand: operand.or(of_instruction),
        width,
    })
}
