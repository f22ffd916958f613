//! What source files contained when they were compiled.

use std::{cell::RefCell, collections::HashMap};

use crate::{
    cli::{session_code::InFile, source_files::SourceFiles},
    hint::{
        digest::{digits, is_same},
        file::HintedCode,
    },
};

/// Digests of the files of one module, by their paths.
type OfModule = HashMap<String, Option<String>>;

/// Digests of source files.
pub(super) struct Digests {
    /// Of each module, what its line tables say.
    in_tables: RefCell<HashMap<String, OfModule>>,
    /// Absent where there is no current directory, which paths are seen from.
    files: Option<SourceFiles>,
}

impl Digests {
    pub(super) fn new() -> Digests {
        Digests {
            in_tables: RefCell::default(),
            files: SourceFiles::new(false).ok(),
        }
    }

    /// The digest of the file of `code`, which line tables name `path`: by the debug information, else of the file itself
    /// if nothing speaks against its being what was compiled.
    pub(super) fn of(&self, found: &InFile, path: &str, code: &HintedCode) -> Option<String> {
        let mut tables = self.in_tables.borrow_mut();
        let of_module = tables.entry(found.file()).or_insert_with(|| {
            let files = found.module.elf.source_files().into_iter();
            files
                .map(|file| (file.path.to_string(), file.md5.map(digits)))
                .collect()
        });
        let files = self.files.as_ref();
        let Some(Some(md5)) = of_module.get(path) else {
            return files?.md5(code);
        };
        // In the usual order of its bytes, where the file tells.
        let now = files.and_then(|files| files.md5_now(path));
        now.filter(|now| is_same(now, md5)).or(Some(md5.clone()))
    }
}
