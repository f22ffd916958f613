//! The edits that a hints file asks for in C and C++ source, and the hints that get none, with the reason.

use std::collections::{BTreeMap, BTreeSet};

use super::{Sources, is_part, memory, place};
use crate::{
    hint::{
        edit::{self, Insertion, Wanted},
        file::{HintFile, LoadHint},
        repeated::Repeated,
    },
    printable::is_hostile,
};

/// Most headers that are read to learn of bit-fields.
const MOST_HEADERS: usize = 200;

/// What to write where.
#[derive(Debug, Default)]
pub struct Edits {
    /// By file, in the order of their names.
    pub files: Vec<FileEdits>,
    /// Hints without an edit.
    pub omitted: Vec<Omitted>,
}

/// Edits of one file.
#[derive(Debug)]
pub struct FileEdits {
    /// Name in the debug information.
    pub file: String,
    /// Its text now.
    pub text: std::rc::Rc<str>,
    /// By line; the lines to add before each are together.
    pub edits: Vec<LineEdit>,
}

/// What is added before one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineEdit {
    /// Line, from 1.
    pub line: u32,
    /// Offset of the line's first byte.
    pub offset: usize,
    /// Lines, with their ends.
    pub text: String,
    /// Ids of the hints.
    pub hints: Vec<String>,
}

/// A hint without an edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Omitted {
    /// Its id.
    pub id: String,
    /// Where its load is.
    pub place: String,
    /// Why the load gets no edit.
    pub reason: String,
}

/// Finds the edits.
pub fn edits(file: &HintFile, sources: &dyn Sources) -> Edits {
    let mut out = Edits::default();
    let mut by_file: BTreeMap<&str, BTreeMap<u32, LineEdit>> = BTreeMap::new();
    let mut bit_fields: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for hint in &file.hints {
        match one(hint, sources, &mut bit_fields) {
            Ok((name, made)) => add(by_file.entry(name).or_default(), &hint.id, &made),
            Err(reason) => out.omitted.push(Omitted {
                id: hint.id.clone(),
                place: place(&hint.load, sources),
                reason,
            }),
        }
    }
    for (name, lines) in by_file {
        if let Ok(text) = sources.text(name) {
            out.files.push(FileEdits {
                file: name.to_owned(),
                text,
                edits: lines.into_values().collect(),
            });
        }
    }
    out
}

/// The hints without an edit, a line each, with names as they are; empty where all have one.
pub fn omitted_lines(edits: &Edits) -> Vec<String> {
    let mut out: Vec<String> = (edits.omitted.iter())
        .map(|Omitted { id, place, reason }| format!("{place}: {id} is left out: {reason}"))
        .collect();
    let written: usize = edits
        .files
        .iter()
        .flat_map(|file| &file.edits)
        .map(|edit| edit.hints.len())
        .sum();
    if !edits.omitted.is_empty() {
        let all = written + edits.omitted.len();
        out.push(format!(
            "cohtrace: {written} of {all} load hints could be written into the source"
        ));
    }
    out
}

/// The edit of one hint alone.
pub(super) fn of_hint(hint: &LoadHint, sources: &dyn Sources) -> Option<Insertion> {
    one(hint, sources, &mut BTreeMap::new())
        .ok()
        .map(|(_, made)| made)
}

fn one<'a>(
    hint: &'a LoadHint,
    sources: &dyn Sources,
    bit_fields: &mut BTreeMap<&'a str, BTreeSet<String>>,
) -> Result<(&'a str, Insertion), String> {
    let load = &hint.load;
    let (Some(name), Some(line)) = (load.file.as_deref(), load.line) else {
        return Err("the program has no line numbers for it; build it with -g".to_owned());
    };
    if !edit::is_c(name) {
        return Err(if is_rust(name) {
            "Rust has no stable prefetch for writing; --format text has the asm! to put there by hand".to_owned()
        } else {
            "only C and C++ are edited".to_owned()
        });
    }
    if name.chars().any(is_hostile) {
        return Err("the name of its file has control characters".to_owned());
    }
    let text = sources.text(name)?;
    if let Some(why) = sources.changed(load) {
        return Err(why);
    }
    let bit_fields = bit_fields
        .entry(name)
        .or_insert_with(|| all_bit_fields(name, &text, sources));
    let wanted = Wanted {
        line,
        column: load.column.filter(|column| *column > 0),
        // Of memory that only an expression names, the object is a type.
        object: hint
            .object
            .as_deref()
            .filter(|_| hint.field.as_deref().is_none_or(is_part)),
        field: hint.field.as_deref(),
    };
    let made = edit::insertion(&text, wanted, bit_fields).map_err(|refused| {
        let memory = memory(hint).map_or(String::new(), |memory| format!(" ({memory} is read)"));
        format!("{refused}{memory}")
    })?;
    if let Some(repeated) = Repeated::of(hint).filter(|repeated| !repeated.pays)
        && edit::in_loop(&text, made.offset)
    {
        return Err(format!(
            "{}; where its address stays the same, write it before the loop",
            repeated.phrase()
        ));
    }
    Ok((name, made))
}

/// Whether the file is Rust by its name.
pub(super) fn is_rust(name: &str) -> bool {
    std::path::Path::new(name)
        .extension()
        .is_some_and(|extension| extension == "rs")
}

/// The file's bit-fields, and those of the files that it includes by names in quotes, as far as they are there.
fn all_bit_fields(name: &str, text: &str, sources: &dyn Sources) -> BTreeSet<String> {
    let mut names = edit::bit_fields(text);
    let mut seen = BTreeSet::new();
    let mut waiting = vec![(name.to_owned(), edit::includes(text))];
    while let Some((from, includes)) = waiting.pop() {
        let directory = from.rsplit_once('/').map(|(directory, _)| directory);
        for include in includes {
            let path = match directory {
                Some(directory) if !include.starts_with('/') => format!("{directory}/{include}"),
                _ => include,
            };
            if seen.len() >= MOST_HEADERS || !seen.insert(path.clone()) {
                continue;
            }
            if let Ok(text) = sources.text(&path) {
                names.extend(edit::bit_fields(&text));
                waiting.push((path, edit::includes(&text)));
            }
        }
    }
    names
}

fn add(lines: &mut BTreeMap<u32, LineEdit>, id: &str, made: &Insertion) {
    let edit = lines.entry(made.line).or_insert_with(|| LineEdit {
        line: made.line,
        offset: made.offset,
        text: String::new(),
        hints: Vec::new(),
    });
    edit.hints.push(id.to_owned());
    // Copies of inlined code ask for the same line.
    if !edit
        .text
        .split_inclusive('\n')
        .any(|line| line == made.text)
    {
        edit.text.push_str(&made.text);
    }
}
