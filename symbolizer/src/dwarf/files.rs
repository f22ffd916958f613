//! The file names of a line table, and the digests of their contents.

use std::{collections::BTreeMap, sync::Arc};

use gimli::{AttributeValue, DebugLineOffset, IncompleteLineProgram};

use super::{DebugInfo, RawUnit, Slice, Unit, View, line_header};
use crate::{kept::Sizeable, missing::Missing};

/// Longest path that is built from one part (Linux: PATH_MAX).
const LONGEST_PATH: usize = 4096;

/// A source file, as a line table names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// Path as frames have it: absolute if the compiler recorded its directory.
    pub path: Arc<str>,
    /// MD5 digest of the text that was compiled (DWARF 5, section 6.2.4.1, `DW_LNCT_MD5`).
    pub md5: Option<[u8; 16]>,
}

/// Paths by the index that line tables, `DW_AT_call_file` and `DW_AT_decl_file` use.
pub(crate) struct Files {
    paths: Box<[Arc<str>]>,
    /// By the same index; empty where the table has none.
    md5: Box<[[u8; 16]]>,
}

impl Sizeable for Files {
    fn bytes(&self) -> usize {
        // Each path has two counters before its text.
        let text: usize = self.paths.iter().map(|path| path.len() + 16).sum();
        size_of_val(&*self.paths) + size_of_val(&*self.md5) + text
    }
}

impl DebugInfo {
    /// The files of all line tables, each once, in the order of their paths. Of a file that tables have different
    /// digests of, there is none. Tables that cannot be read are left out.
    pub(crate) fn source_files(&self) -> Vec<SourceFile> {
        let view = self.view();
        let mut found: BTreeMap<Arc<str>, Digests> = BTreeMap::new();
        for number in self.units.own.numbers() {
            let files = self.units.get(number).map(|unit| view.files(unit));
            let Some(Ok(files)) = files else { continue };
            let named = files.paths.iter().enumerate();
            for (index, path) in named.filter(|(_, path)| !path.is_empty()) {
                let known = found.entry(Arc::clone(path)).or_default();
                // Tools that have no digest of a file in a table with digests write zeros.
                match files.md5.get(index).filter(|md5| **md5 != [0; 16]) {
                    Some(md5) if known.md5.is_some_and(|known| known != *md5) => {
                        known.differ = true;
                    }
                    Some(md5) => known.md5 = Some(*md5),
                    None => {}
                }
            }
            self.trim();
        }
        let file = |(path, known): (Arc<str>, Digests)| SourceFile {
            path,
            md5: known.md5.filter(|_| !known.differ),
        };
        found.into_iter().map(file).collect()
    }
}

/// What line tables say of one file's contents.
#[derive(Default)]
struct Digests {
    md5: Option<[u8; 16]>,
    differ: bool,
}

impl Files {
    /// The path with the directories the file records; absent for the placeholder of DWARF 4.
    pub(crate) fn path(&self, index: u64) -> Option<Arc<str>> {
        let path = self.paths.get(usize::try_from(index).ok()?)?;
        (!path.is_empty()).then(|| Arc::clone(path))
    }

    /// Decodes the directory and file lists, not the rows.
    pub(crate) fn read(
        view: &View<'_>,
        opened: &RawUnit<'_>,
        unit: &Unit,
        offset: DebugLineOffset<usize>,
    ) -> Result<Files, Missing> {
        let program = program(opened, offset)?;
        let header = program.header();
        let entries = header.file_names();
        let mut paths = Vec::with_capacity(entries.len() + 1);
        // Before DWARF 5 files are counted from 1.
        if header.version() <= 4 {
            paths.push(Arc::from(""));
        }
        for entry in entries {
            let mut path = String::new();
            push(&mut path, &unit.directory);
            // Before DWARF 5 directory 0 is the unit's own, and is not in the table.
            if (header.version() >= 5 || entry.directory_index() != 0)
                && let Some(directory) = entry.directory(header)
            {
                push(&mut path, &text(opened, directory));
            }
            push(&mut path, &text(opened, entry.path_name()));
            view.charge(1 + path.len() as u64 / 8)?;
            paths.push(Arc::from(path));
        }
        let md5 = if header.file_has_md5() {
            entries.iter().map(|entry| *entry.md5()).collect()
        } else {
            Box::default()
        };
        Ok(Files {
            paths: paths.into(),
            md5,
        })
    }
}

/// The line number program at an offset, its header checked and read.
pub(crate) fn program<'a>(
    opened: &RawUnit<'a>,
    offset: DebugLineOffset<usize>,
) -> Result<IncompleteLineProgram<Slice<'a>>, Missing> {
    let section = gimli::Section::reader(&opened.raw.debug_line).slice();
    line_header::check(section.get(offset.0..).ok_or(Missing::Malformed)?)?;
    Ok(opened
        .raw
        .debug_line
        .program(offset, opened.header.address_size(), None, None)?)
}

/// The text of a directory or file name.
fn text<'a>(opened: &RawUnit<'a>, value: AttributeValue<Slice<'a>>) -> std::borrow::Cow<'a, str> {
    // Indexed strings need the unit's base, which the line table does not state.
    let text = match value {
        AttributeValue::DebugStrOffsetsIndex(index) => {
            let base = opened.str_offsets_base;
            let offset =
                opened
                    .raw
                    .debug_str_offsets
                    .get_str_offset(opened.header.format(), base, index);
            offset.and_then(|offset| opened.raw.string(offset))
        }
        other => opened.raw.attr_line_string(other),
    };
    let text = text.map_or(&[][..], |text| text.slice());
    String::from_utf8_lossy(&text[..text.len().min(LONGEST_PATH)])
}

/// Appends a path: an absolute one replaces what is there.
fn push(path: &mut String, part: &str) {
    if part.starts_with('/') {
        path.clear();
    } else if !path.is_empty() && !path.ends_with('/') && !part.is_empty() {
        path.push('/');
    }
    if path.len() + part.len() <= 2 * LONGEST_PATH {
        path.push_str(part);
    }
}

#[cfg(test)]
mod tests {
    use super::push;

    #[test]
    fn relative_parts_append_and_absolute_ones_replace() {
        let join = |parts: &[&str]| {
            let mut path = String::new();
            for part in parts {
                push(&mut path, part);
            }
            path
        };
        assert_eq!(join(&["/src", "lib", "a.c"]), "/src/lib/a.c");
        assert_eq!(
            join(&["/src", "/usr/include", "stdio.h"]),
            "/usr/include/stdio.h"
        );
        assert_eq!(join(&["", "a.c"]), "a.c");
        assert_eq!(join(&["/src/", "", "a.c"]), "/src/a.c");
    }
}
