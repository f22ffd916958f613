//! Edits as a unified diff, for `patch -p1` and `git apply`.

use super::{
    Edits, Sources,
    edits::{FileEdits, LineEdit},
};

/// Lines of context around a change.
const CONTEXT: usize = 3;

/// The diff; empty where nothing is to be changed. Paths are from the current directory; those of files elsewhere
/// are from the root.
pub fn render(edits: &Edits, sources: &dyn Sources) -> String {
    let mut out = String::new();
    for file in &edits.files {
        let path = sources
            .relative(&file.file)
            .unwrap_or_else(|| sources.absolute(&file.file));
        let path = path.trim_start_matches('/');
        // A tab ends the name, so that one with spaces is read whole.
        let tab = if path.contains(' ') { "\t" } else { "" };
        out.push_str(&format!("--- a/{path}{tab}\n+++ b/{path}{tab}\n"));
        hunks(file, &mut out);
    }
    out
}

fn hunks(file: &FileEdits, out: &mut String) {
    let lines: Vec<&str> = file.text.split_inclusive('\n').collect();
    let mut added = 0;
    let mut rest = file.edits.as_slice();
    while let Some(first) = rest.first() {
        // Changes whose contexts touch are one hunk.
        let together = rest
            .windows(2)
            .take_while(|two| (two[1].line - two[0].line) as usize <= 2 * CONTEXT);
        let (group, after) = rest.split_at(together.count() + 1);
        rest = after;
        let from = (first.line as usize - 1).saturating_sub(CONTEXT);
        let last = group.last().map_or(0, |edit| edit.line as usize);
        let to = (last - 1 + CONTEXT).min(lines.len());
        let new: usize = group.iter().map(lines_of).sum();
        let (old_count, new_count) = (to - from, to - from + new);
        out.push_str(&format!(
            "@@ -{},{old_count} +{},{new_count} @@\n",
            from + 1,
            from + 1 + added
        ));
        for (n, line) in lines.iter().enumerate().take(to).skip(from) {
            for edit in group.iter().filter(|edit| edit.line as usize == n + 1) {
                for line in edit.text.split_inclusive('\n') {
                    out.push('+');
                    out.push_str(line);
                }
            }
            out.push(' ');
            out.push_str(line);
            if !line.ends_with('\n') {
                out.push_str("\n\\ No newline at end of file\n");
            }
        }
        added += new;
    }
}

fn lines_of(edit: &LineEdit) -> usize {
    edit.text.matches('\n').count()
}
