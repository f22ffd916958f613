//! Printed forms of a hints file, besides its JSON: as compilers print, as SARIF, and as edits of the source.

mod clang_tidy;
mod diff;
mod edits;
mod sarif;
mod text;

#[cfg(test)]
mod tests;

use std::rc::Rc;

use crate::hint::file::{HintedCode, LoadHint, StoreKind};

pub use clang_tidy::render as render_clang_tidy;
pub use diff::render as render_diff;
pub use edits::{Edits, FileEdits, LineEdit, Omitted, edits, omitted_lines};
pub use sarif::render as render_sarif;
pub use text::render as render_text;

/// Source files, which the caller reads.
pub trait Sources {
    /// The text of a file, by its name in the debug information; or why there is none.
    fn text(&self, file: &str) -> Result<Rc<str>, String>;
    /// Why the file may not be what the code was compiled from; `None` where nothing speaks against it.
    fn changed(&self, code: &HintedCode) -> Option<String>;
    /// The file's path from the current directory; `None` where it is not below it.
    fn relative(&self, file: &str) -> Option<String>;
    /// The file's whole path.
    fn absolute(&self, file: &str) -> String;
    /// The current directory.
    fn directory(&self) -> String;
}

/// Short where it can be: from the current directory, else as the debug information has it.
fn shown(file: &str, sources: &dyn Sources) -> String {
    sources.relative(file).unwrap_or_else(|| file.to_owned())
}

/// `a.c:7:14`, or the module and the address where the source is not known.
fn place(code: &HintedCode, sources: &dyn Sources) -> String {
    if let Some(file) = &code.file {
        let file = shown(file, sources);
        return match (code.line, code.column) {
            (Some(line), Some(column)) => format!("{file}:{line}:{column}"),
            (Some(line), None) => format!("{file}:{line}"),
            _ => file,
        };
    }
    match (&code.module, &code.offset) {
        (Some(module), Some(offset)) => format!("{module}+{offset}"),
        (Some(module), None) => format!("{module} at {}", code.ip),
        (None, _) => code.ip.clone(),
    }
}

/// What the load reads, for people: `stats.hits`.
fn memory(hint: &LoadHint) -> Option<String> {
    match (&hint.object, &hint.field) {
        (Some(object), Some(field)) if is_part(field) => Some(format!("{object}{field}")),
        // The object has no name but its type, and the field is what the source writes for it.
        (Some(_), Some(field)) => Some(field.clone()),
        (Some(name), None) | (None, Some(name)) => Some(name.clone()),
        (None, None) => None,
    }
}

/// Whether a field is written behind its object, as `.hits` and `[3]` are, and `*lock` and `node->count` are not.
fn is_part(field: &str) -> bool {
    field.starts_with(['.', '['])
}

/// The kind of the store that follows most often.
pub fn store_kind(hint: &LoadHint) -> StoreKind {
    let most = hint.stores.iter().max_by_key(|store| store.count);
    most.map_or(StoreKind::Unknown, |store| store.kind)
}

/// Whether the CPU waits for the store's upgrade, since nothing hides it.
fn waits(kind: StoreKind) -> bool {
    matches!(
        kind,
        StoreKind::Atomic | StoreKind::CompareAndSwap | StoreKind::Fenced
    )
}

/// A kind of store in words.
fn store_words(kind: StoreKind) -> &'static str {
    match kind {
        StoreKind::Plain => "a store",
        StoreKind::ReadModifyWrite => "a read-modify-write",
        StoreKind::Atomic => "an atomic read-modify-write",
        StoreKind::CompareAndSwap => "a compare-and-swap",
        StoreKind::Fenced => "a store with a fence behind it",
        StoreKind::Unknown => "a store of unknown kind",
    }
}
