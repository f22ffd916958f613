//! Fixes as `clang-apply-replacements` reads them: the YAML that `clang-tidy --export-fixes` writes. Offsets are bytes.

use super::{Edits, Sources};
use crate::printable::is_hostile;

/// The file's text; it lists no fix where there is none.
pub fn render(edits: &Edits, sources: &dyn Sources) -> String {
    let main = edits.files.first().map(|file| sources.absolute(&file.file));
    let mut out = format!(
        "---\nMainSourceFile: {}\n",
        quoted(main.as_deref().unwrap_or_default())
    );
    if edits.files.is_empty() {
        out.push_str("Diagnostics: []\n...\n");
        return out;
    }
    out.push_str("Diagnostics:\n");
    for file in &edits.files {
        let path = quoted(&sources.absolute(&file.file));
        for edit in &file.edits {
            let message = format!(
                "load then store: fetch the line for ownership ({})",
                edit.hints.join(", ")
            );
            out.push_str(&format!(
                "  - DiagnosticName: cohtrace-load-hint\n    DiagnosticMessage:\n      Message: {message}\n      \
                 FilePath: {path}\n      FileOffset: {offset}\n      Replacements:\n        - FilePath: {path}\n          \
                 Offset: {offset}\n          Length: 0\n          ReplacementText: {text}\n    Level: Remark\n",
                message = quoted(&message),
                offset = edit.offset,
                text = quoted(&edit.text),
            ));
        }
    }
    out.push_str("...\n");
    out
}

/// A double-quoted scalar (YAML 1.2, 7.3.1): the only one that keeps line breaks as they are.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if is_hostile(c) && u32::from(c) > 0xffff => {
                out.push_str(&format!("\\U{:08x}", u32::from(c)));
            }
            c if is_hostile(c) => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
