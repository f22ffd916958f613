//! Abbreviation tables, parsed when the first entry below a root is read. Large programs have thousands of them,
//! and to find the unit of an address takes only the declarations of the roots, which come first.

use std::sync::{Arc, OnceLock};

use gimli::{Abbreviations, DebugAbbrev, DebugAbbrevOffset, DwTag, Reader};

use super::{Raw, Slice};
use crate::missing::Missing;

/// One table: where it starts, and where it ends at the latest.
pub(super) struct Table {
    at: DebugAbbrevOffset<usize>,
    end: usize,
    parsed: OnceLock<Result<Arc<Abbreviations>, Missing>>,
    /// The code of the root that was asked for first, and a table with its declaration alone. Units that share a table
    /// have the same root, as a rule: another one takes the whole table, so that no table is searched often.
    root: OnceLock<(u64, Option<Arc<Abbreviations>>)>,
    /// The same of what the first entry below the root is.
    child: OnceLock<(u64, Option<DwTag>)>,
}

impl Table {
    pub(super) fn new(at: DebugAbbrevOffset<usize>, end: usize) -> Table {
        Table {
            at,
            end,
            parsed: OnceLock::new(),
            root: OnceLock::new(),
            child: OnceLock::new(),
        }
    }

    pub(super) fn parsed(abbreviations: Arc<Abbreviations>) -> Table {
        Table {
            at: DebugAbbrevOffset(0),
            end: 0,
            parsed: OnceLock::from(Ok(abbreviations)),
            root: OnceLock::new(),
            child: OnceLock::new(),
        }
    }

    /// All declarations. `raw` has the sections of the file that the table is in.
    pub(super) fn all(&self, raw: &Raw<'_>) -> Result<Arc<Abbreviations>, Missing> {
        let parse = || {
            let section = gimli::Section::reader(&raw.debug_abbrev).slice();
            let slice = &section[..section.len().min(self.end)];
            let table = DebugAbbrev::new(slice, gimli::LittleEndian).abbreviations(self.at)?;
            Ok(Arc::new(table))
        };
        self.parsed.get_or_init(parse).clone()
    }

    /// Enough of the table for a root entry of this code.
    pub(super) fn of_root(&self, raw: &Raw<'_>, code: u64) -> Option<Arc<Abbreviations>> {
        if self.parsed.get().is_none() {
            let (found, only) = self.root.get_or_init(|| (code, self.only(raw, code)));
            if *found == code {
                return only.clone();
            }
        }
        self.all(raw).ok()
    }

    /// A table with one declaration.
    fn only(&self, raw: &Raw<'_>, code: u64) -> Option<Arc<Abbreviations>> {
        let (mut declaration, _) = self.find(raw, code)?;
        // The end of a table.
        declaration.push(0);
        let table = DebugAbbrev::new(&declaration, gimli::LittleEndian);
        table.abbreviations(DebugAbbrevOffset(0)).ok().map(Arc::new)
    }

    /// The tag that the code of the first entry below a root stands for.
    pub(super) fn tag_of_child(&self, raw: &Raw<'_>, code: u64) -> Option<DwTag> {
        if self.parsed.get().is_none() {
            let tag = || self.find(raw, code).map(|(_, tag)| tag);
            let (found, tag) = self.child.get_or_init(|| (code, tag()));
            if *found == code {
                return *tag;
            }
        }
        Some(self.all(raw).ok()?.get(code)?.tag())
    }

    /// The bytes of a declaration, and its tag (DWARF 5, section 7.5.3).
    fn find(&self, raw: &Raw<'_>, wanted: u64) -> Option<(Vec<u8>, DwTag)> {
        let section = gimli::Section::reader(&raw.debug_abbrev).slice();
        let table = section.get(self.at.0..section.len().min(self.end))?;
        let mut input = Slice::new(table, gimli::LittleEndian);
        loop {
            let start = input.slice();
            let code = input.read_uleb128().ok().filter(|&code| code != 0)?;
            let tag = DwTag(input.read_uleb128_u16().ok()?);
            let _has_children = input.read_u8().ok()?;
            loop {
                let name = input.read_uleb128().ok()?;
                let form = input.read_uleb128().ok()?;
                if form == u64::from(gimli::DW_FORM_implicit_const.0) {
                    input.read_sleb128().ok()?;
                }
                if (name, form) == (0, 0) {
                    break;
                }
            }
            if code == wanted {
                let length = start.len() - input.len();
                return Some((start.get(..length)?.to_vec(), tag));
            }
        }
    }
}
