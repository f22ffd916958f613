//! Names of functions and variables as the source writes them, with their namespaces and types in front.

use super::{Die, View, entry::Entry};
use crate::{demangle, language::Language};

/// References followed from an entry to the one that has the name, and out of a function into its scope.
const MOST_HOPS: usize = 16;
/// Parts of one name.
const MOST_PARTS: usize = 64;

impl<'a> View<'a> {
    /// The entry and the ones it refers to for what it does not say itself: a definition, then its declaration.
    pub(crate) fn chain(&self, die: Die) -> Vec<(Die, Entry<'a>)> {
        let mut chain: Vec<(Die, Entry<'a>)> = Vec::new();
        let mut next = Some(die);
        while let Some(at) = next
            && chain.len() < MOST_HOPS
            && chain.iter().all(|(seen, _)| *seen != at)
            && let Ok(entry) = self.entry(at)
        {
            next = entry.origin;
            chain.push((at, entry));
        }
        chain
    }

    /// The demangled linkage name of a function, or its plain name with its scopes in front.
    pub(crate) fn function_name(&self, die: Die) -> Option<String> {
        if let Some(name) = self.linkage_name(die) {
            return Some(name);
        }
        self.qualified(&self.chain(die))
    }

    /// The demangled `DW_AT_linkage_name` of an entry or of one that it refers to. Most functions have one, and to
    /// find it takes less than reading all that the entries say.
    fn linkage_name(&self, die: Die) -> Option<String> {
        let mut at = die;
        for _ in 0..MOST_HOPS {
            self.step().ok()?;
            let unit = self.unit(at.unit).ok()?;
            let mut entries = unit.entries_raw(Some(at.unit_offset())).ok()?;
            let abbreviation = entries.read_abbreviation().ok()??;
            let mut origin = None;
            for &specification in abbreviation.attributes() {
                let attribute = entries.read_attribute(specification).ok()?;
                match attribute.name() {
                    gimli::DW_AT_linkage_name | gimli::DW_AT_MIPS_linkage_name => {
                        let text = self.text(&unit, attribute.value())?;
                        return Some(demangle(&String::from_utf8_lossy(text)));
                    }
                    gimli::DW_AT_specification | gimli::DW_AT_abstract_origin => {
                        origin = self.target(at.unit, attribute.value());
                    }
                    _ => {}
                }
            }
            at = origin?;
        }
        None
    }

    /// The name of a variable, type or function with the names of its namespaces, types and functions in front.
    pub(crate) fn qualified_name(&self, die: Die) -> Option<String> {
        self.qualified(&self.chain(die))
    }

    /// Follows the scopes outwards from the last entry of the chain.
    fn qualified(&self, chain: &[(Die, Entry<'a>)]) -> Option<String> {
        let mut parts = vec![plain(chain)?];
        // The last entry of the chain is the declaration, which sits in the scope the source gave it.
        let mut at = chain.last()?.0;
        let language = self.info.units.get(at.unit).and_then(|unit| unit.language);
        for _ in 0..MOST_HOPS {
            let mut outer = None;
            for scope in self.scopes(at) {
                let around = self.chain(Die {
                    unit: at.unit,
                    offset: scope.offset,
                });
                let name = plain(&around);
                if scope.tag == gimli::DW_TAG_subprogram {
                    parts.extend(name);
                    // The body of a member function is outside of its class: its declaration is inside.
                    if around.len() > 1 {
                        outer = around.last().map(|(die, _)| *die);
                        break;
                    }
                } else if language == Some(Language::C) {
                    // C has no scopes but functions.
                } else if scope.tag == gimli::DW_TAG_namespace {
                    parts.push(name.unwrap_or_else(|| "(anonymous namespace)".into()));
                } else {
                    parts.extend(name);
                }
            }
            match outer {
                Some(declaration) if parts.len() < MOST_PARTS => at = declaration,
                _ => break,
            }
        }
        parts.reverse();
        Some(parts.join("::"))
    }
}

/// `DW_AT_name` of the first entry that has one.
fn plain(chain: &[(Die, Entry<'_>)]) -> Option<String> {
    let name = chain.iter().find_map(|(_, entry)| entry.name)?;
    Some(String::from_utf8_lossy(name).into_owned())
}
