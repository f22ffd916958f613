//! From a type that a unit only declares to the one that another unit defines.

use std::{
    collections::{HashMap, hash_map::DefaultHasher},
    hash::{Hash, Hasher},
};

use crate::{
    dwarf::{Die, Entry, View},
    missing::Missing,
};

/// Definitions kept of one name. The one-definition rule makes them alike; different scopes may share a name.
const MOST_OF_ONE_NAME: usize = 8;

/// All named complete types, by the hash of their plain name. Built when a declaration is first met.
#[derive(Default)]
pub(crate) struct Definitions(HashMap<u64, Vec<Die>>);

impl View<'_> {
    /// The definition of a declared type: one of the same name in the same scopes.
    pub(crate) fn definition_of(&self, die: Die, entry: &Entry<'_>) -> Result<Die, Missing> {
        let name = entry.name.ok_or(Missing::DeclarationOnly)?;
        let all = self
            .info
            .types
            .definitions
            .get_or_init(|| self.find_definitions());
        let candidates = all.0.get(&hash(name)).map_or(&[][..], Vec::as_slice);
        // `a::Node` and `b::Node` share the plain name.
        let wanted = self.qualified_name(die);
        let same = |candidate: &&Die| {
            self.entry(**candidate)
                .is_ok_and(|found| found.name == Some(name))
                && self.qualified_name(**candidate) == wanted
        };
        candidates
            .iter()
            .find(same)
            .copied()
            .ok_or(Missing::DeclarationOnly)
    }

    /// Reads every unit once. Nothing but the place of each named type is kept.
    fn find_definitions(&self) -> Definitions {
        let mut all = Definitions::default();
        for unit in self.all_units() {
            // What was found in a damaged unit before the damage is kept.
            if self.find_in_unit(unit, &mut all).is_err() && self.info.budget.charge(1).is_err() {
                break;
            }
        }
        all
    }

    /// The named complete types of one unit.
    fn find_in_unit(&self, index: u32, all: &mut Definitions) -> Result<(), Missing> {
        let unit = self.unit(index)?;
        let mut entries = unit.entries_raw(None)?;
        let mut steps = 0u64;
        while !entries.is_empty() {
            steps += 1;
            if steps.is_multiple_of(1024) {
                self.info.budget.charge(256)?;
            }
            let offset = entries.next_offset().0 as u32;
            let Some(abbreviation) = entries.read_abbreviation()? else {
                continue;
            };
            let attributes = abbreviation.attributes();
            let has = |name| attributes.iter().any(|attribute| attribute.name() == name);
            if !is_definable(abbreviation.tag())
                || !has(gimli::DW_AT_name)
                || has(gimli::DW_AT_declaration)
            {
                entries.skip_attributes(attributes)?;
                continue;
            }
            for &specification in attributes {
                let attribute = entries.read_attribute(specification)?;
                if attribute.name() == gimli::DW_AT_name
                    && let Some(name) = self.text(&unit, attribute.value())
                {
                    let found = all.0.entry(hash(name)).or_default();
                    if found.len() < MOST_OF_ONE_NAME {
                        found.push(Die {
                            unit: index,
                            offset,
                        });
                    }
                }
            }
        }
        Ok(())
    }
}

/// The types that can be declared without being defined.
fn is_definable(tag: gimli::DwTag) -> bool {
    matches!(
        tag,
        gimli::DW_TAG_structure_type
            | gimli::DW_TAG_class_type
            | gimli::DW_TAG_union_type
            | gimli::DW_TAG_enumeration_type
    )
}

fn hash(name: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    hasher.finish()
}
