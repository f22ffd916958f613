//! What is looked for: the loads of a hints file, by source line.

use std::collections::HashMap;

use super::{
    instruction::{Does, Processor},
    operand::Operand,
    path::PathMap,
    sources::{Built, Same, Sources, Tree},
};
use crate::hint::file::{CallPlace, HintFile, HintedCode};

/// Where a build is, and what is known of its files.
#[derive(Clone, Copy)]
pub struct Place<'a> {
    /// Where the compiler runs: it stands in front of relative paths, unless the code says otherwise.
    pub directory: &'a str,
    /// What else the hints' paths begin with there.
    pub maps: &'a [PathMap],
    /// The files of this machine.
    pub tree: &'a dyn Tree,
    /// A prefetch in front of each load, where it is repeated for one line too.
    pub everywhere: bool,
}

/// A load to look for.
#[derive(Debug, Clone)]
pub(super) struct Wanted {
    /// Index of the hint in the file; `None` of a load that the file says to leave alone.
    pub(super) hint: Option<usize>,
    /// Number of its source file.
    pub(super) file: usize,
    /// Path of that, as the hint names it.
    pub(super) path: String,
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
    pub(super) sources: Sources,
    /// Their indices by file and line.
    files: HashMap<usize, HashMap<u32, Vec<usize>>>,
}

/// What is wanted in one file of a build: by line, indices and how sure it is that it is their file.
pub(super) type InFile = HashMap<u32, Vec<(usize, Same)>>;

impl WantedLoads {
    pub(super) fn new(file: &HintFile, processor: Processor, maps: &[PathMap]) -> WantedLoads {
        let sources = Sources::new(file, maps);
        let hints = file
            .hints
            .iter()
            .enumerate()
            .map(|(index, hint)| (Some(index), &hint.load));
        let left = file.left.iter().map(|left| (None, &left.load));
        let all: Vec<Wanted> = hints
            .chain(left)
            .filter_map(|(hint, load)| wanted(hint, load, processor, &sources))
            .collect();
        let mut files: HashMap<usize, HashMap<u32, Vec<usize>>> = HashMap::new();
        for (index, wanted) in all.iter().enumerate() {
            let lines = files.entry(wanted.file).or_default();
            lines.entry(wanted.line).or_default().push(index);
        }
        WantedLoads {
            all,
            sources,
            files,
        }
    }

    /// The loads to leave alone at the line of a hint.
    pub(super) fn left_beside(&self, hint: &Wanted) -> Vec<&Wanted> {
        let beside = |wanted: &&Wanted| {
            wanted.hint.is_none() && wanted.line == hint.line && wanted.file == hint.file
        };
        self.all.iter().filter(beside).collect()
    }

    /// What is wanted in a file of a build, which has `beside` too.
    pub(super) fn of_file(&self, built: &Built, beside: &[Built], tree: &dyn Tree) -> InFile {
        let mut by_line = InFile::new();
        for (file, same) in self.sources.of(built, beside, tree) {
            for (line, indices) in self.files.get(&file).into_iter().flatten() {
                let of_line = by_line.entry(*line).or_default();
                of_line.extend(indices.iter().map(|index| (*index, same)));
            }
        }
        by_line
    }
}

fn wanted(
    hint: Option<usize>,
    load: &HintedCode,
    processor: Processor,
    sources: &Sources,
) -> Option<Wanted> {
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
        file: sources.number(load.file.as_deref()?)?,
        path: load.file.clone()?,
        line: load.line.filter(|line| *line != 0)?,
        column: load.column.filter(|column| *column != 0),
        inlined_at: load.inlined_at.clone(),
        operand: operand.or(of_instruction),
        width,
    })
}
