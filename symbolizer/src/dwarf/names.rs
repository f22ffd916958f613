//! Names of entries as the source writes them, with their namespaces and types in front.

use std::collections::HashSet;

use super::{Die, Value, View};
use crate::{demangle, language::Language, missing::Missing};

/// References followed from an entry to the one that has the name.
const MOST_HOPS: usize = 16;
/// Enclosing scopes named in front of a name.
const MOST_SCOPES: usize = 64;

/// The attributes that lead to a name.
#[derive(Default)]
struct Naming<'a> {
    tag: Option<gimli::DwTag>,
    name: Option<Value<'a>>,
    linkage: Option<Value<'a>>,
    origin: Option<Die>,
}

impl<'a> View<'a> {
    fn naming(&self, die: Die) -> Result<Naming<'a>, Missing> {
        let unit = self.unit(die.unit)?;
        let mut entries = unit.entries_raw(Some(die.unit_offset()))?;
        let mut naming = Naming::default();
        let Some(abbreviation) = entries.read_abbreviation()? else {
            return Err(Missing::Malformed);
        };
        naming.tag = Some(abbreviation.tag());
        for &specification in abbreviation.attributes() {
            let attribute = entries.read_attribute(specification)?;
            match attribute.name() {
                gimli::DW_AT_name => naming.name = Some(attribute.value()),
                gimli::DW_AT_linkage_name | gimli::DW_AT_MIPS_linkage_name => {
                    naming.linkage = Some(attribute.value());
                }
                gimli::DW_AT_abstract_origin | gimli::DW_AT_specification => {
                    naming.origin = self.target(die.unit, attribute.value());
                }
                _ => {}
            }
        }
        Ok(naming)
    }

    fn text_in(&self, unit: u32, value: Option<Value<'a>>) -> Option<&'a [u8]> {
        let opened = self.unit(unit).ok()?;
        self.text(&opened, value?)
    }

    /// The demangled linkage name of a function, or its plain name with its scopes in front.
    pub(crate) fn function_name(&self, die: Die) -> Option<String> {
        let mut at = die;
        let mut seen = HashSet::new();
        let mut plain = None;
        while seen.len() < MOST_HOPS && seen.insert(at) {
            let naming = self.naming(at).ok()?;
            if let Some(linkage) = self.text_in(at.unit, naming.linkage) {
                return Some(demangle(&String::from_utf8_lossy(linkage)));
            }
            if plain.is_none() && naming.name.is_some() {
                plain = Some(at);
            }
            match naming.origin {
                Some(origin) => at = origin,
                None => break,
            }
        }
        // The last entry of the chain is the declaration, which sits in the scope of the source.
        plain.and_then(|_| self.qualified_name(at))
    }

    /// The entry's own name with the names of its namespaces, types and functions in front.
    pub(crate) fn qualified_name(&self, die: Die) -> Option<String> {
        let own = self.plain_name(die)?;
        let language = self.info.units.get(die.unit).and_then(|unit| unit.language);
        if language == Some(Language::C) {
            // C has no namespaces; a static variable of a function still belongs to it.
            let scopes = self.scopes(die).unwrap_or_default();
            let function = scopes
                .iter()
                .rev()
                .find(|scope| scope.tag == gimli::DW_TAG_subprogram);
            return Some(
                match function.and_then(|scope| self.plain_name(scope.die)) {
                    Some(function) => format!("{function}::{own}"),
                    None => own,
                },
            );
        }
        let mut parts = Vec::new();
        for scope in self.scopes(die).unwrap_or_default() {
            match scope.tag {
                gimli::DW_TAG_namespace => parts.push(
                    self.plain_name(scope.die)
                        .unwrap_or_else(|| "(anonymous namespace)".into()),
                ),
                gimli::DW_TAG_structure_type
                | gimli::DW_TAG_class_type
                | gimli::DW_TAG_union_type
                | gimli::DW_TAG_enumeration_type
                | gimli::DW_TAG_subprogram => parts.extend(self.plain_name(scope.die)),
                _ => {}
            }
        }
        parts.push(own);
        Some(parts.join("::"))
    }

    /// `DW_AT_name` of the entry or of the one it refers to.
    pub(crate) fn plain_name(&self, die: Die) -> Option<String> {
        let mut at = die;
        for _ in 0..MOST_HOPS {
            let naming = self.naming(at).ok()?;
            if let Some(name) = self.text_in(at.unit, naming.name) {
                return Some(String::from_utf8_lossy(name).into_owned());
            }
            at = naming.origin?;
        }
        None
    }

    /// The entries around an entry, outermost first, without the unit itself.
    pub(crate) fn scopes(&self, die: Die) -> Result<Vec<Scope>, Missing> {
        let unit = self.unit(die.unit)?;
        let mut entries = unit.entries_raw(None)?;
        let mut open: Vec<(isize, Scope)> = Vec::new();
        while !entries.is_empty() {
            let depth = entries.next_depth();
            let offset = entries.next_offset().0;
            if offset >= die.offset as usize {
                break;
            }
            let Some(abbreviation) = entries.read_abbreviation()? else {
                continue;
            };
            entries.skip_attributes(abbreviation.attributes())?;
            while open.last().is_some_and(|(scope, _)| *scope >= depth) {
                open.pop();
            }
            if abbreviation.has_children() {
                let die = Die {
                    unit: die.unit,
                    offset: offset as u32,
                };
                open.push((
                    depth,
                    Scope {
                        die,
                        tag: abbreviation.tag(),
                    },
                ));
            }
        }
        let depth = entries.next_depth();
        Ok(open
            .into_iter()
            .filter(|(scope, _)| *scope < depth)
            .map(|(_, scope)| scope)
            .filter(|scope| !is_unit(scope.tag))
            .take(MOST_SCOPES)
            .collect())
    }
}

/// An entry that encloses others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scope {
    pub(crate) die: Die,
    pub(crate) tag: gimli::DwTag,
}

fn is_unit(tag: gimli::DwTag) -> bool {
    matches!(
        tag,
        gimli::DW_TAG_compile_unit | gimli::DW_TAG_partial_unit | gimli::DW_TAG_type_unit
    )
}
