//! Abbreviation tables, parsed when the first entry below a root is read. Large programs have thousands of them,
//! and to find the unit of an address takes only the declarations of the roots, which come first.

use std::sync::{Arc, OnceLock};

use gimli::{Abbreviations, DebugAbbrev, DebugAbbrevOffset, DwTag, Reader};

use super::{Raw, Slice};
use crate::missing::Missing;

/// Declarations looked at one by one before the whole table is parsed.
const MOST_LOOKED_AT: usize = 8;

/// One table: where it starts, and where it ends at the latest.
pub(super) struct Table {
    at: DebugAbbrevOffset<usize>,
    end: usize,
    parsed: OnceLock<Result<Arc<Abbreviations>, Missing>>,
}

impl Table {
    pub(super) fn new(at: DebugAbbrevOffset<usize>, end: usize) -> Table {
        Table {
            at,
            end,
            parsed: OnceLock::new(),
        }
    }

    pub(super) fn parsed(abbreviations: Arc<Abbreviations>) -> Table {
        Table {
            at: DebugAbbrevOffset(0),
            end: 0,
            parsed: OnceLock::from(Ok(abbreviations)),
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

    /// A table with the declaration of this code alone, if it is among the first ones.
    pub(super) fn only(&self, raw: &Raw<'_>, code: u64) -> Option<Arc<Abbreviations>> {
        if let Some(Ok(all)) = self.parsed.get() {
            return Some(Arc::clone(all));
        }
        let (mut declaration, _) = self.find(raw, code)?;
        // The end of a table.
        declaration.push(0);
        let table = DebugAbbrev::new(&declaration, gimli::LittleEndian);
        table.abbreviations(DebugAbbrevOffset(0)).ok().map(Arc::new)
    }

    /// The tag that a code stands for, if its declaration is among the first ones.
    pub(super) fn tag(&self, raw: &Raw<'_>, code: u64) -> Option<DwTag> {
        if let Some(Ok(all)) = self.parsed.get() {
            return Some(all.get(code)?.tag());
        }
        Some(self.find(raw, code)?.1)
    }

    /// The bytes of a declaration, and its tag (DWARF 5, section 7.5.3).
    fn find(&self, raw: &Raw<'_>, wanted: u64) -> Option<(Vec<u8>, DwTag)> {
        let section = gimli::Section::reader(&raw.debug_abbrev).slice();
        let table = section.get(self.at.0..section.len().min(self.end))?;
        let mut input = Slice::new(table, gimli::LittleEndian);
        for _ in 0..MOST_LOOKED_AT {
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
        None
    }
}
