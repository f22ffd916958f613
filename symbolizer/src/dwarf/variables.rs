//! The variables with a fixed address, found by one pass over all entries.

use gimli::{AttributeValue, Operation};

use super::{Die, RawUnit, Value, View};
use crate::{language::Language, missing::Missing};

/// Variables in the order of their address.
pub(crate) struct Variables {
    /// By svma.
    pub(crate) globals: Box<[Variable]>,
    /// By offset in the thread-local segment.
    pub(crate) thread_locals: Box<[Variable]>,
}

/// A variable's address and definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Variable {
    pub(crate) address: u64,
    pub(crate) die: Die,
}

enum Place {
    Global(u64),
    ThreadLocal(u64),
}

impl Variables {
    /// Finds all of them. Damaged units contribute what comes before the damage.
    pub(crate) fn read(view: &View<'_>) -> Result<Variables, Missing> {
        let (mut globals, mut thread_locals) = (Vec::new(), Vec::new());
        for unit in 0..view.info.units.len() {
            let mut add = |offset: u32, place| {
                let die = Die { unit, offset };
                match place {
                    Place::Global(address) if view.info.is_loaded(address) => {
                        globals.push(Variable { address, die });
                    }
                    Place::Global(_) => {}
                    Place::ThreadLocal(address) => thread_locals.push(Variable { address, die }),
                }
            };
            match read_unit(view, unit, &mut add) {
                // Only an exhausted budget ends the pass: the next unit may be sound.
                Err(missing) if view.info.budget.charge(1).is_err() => return Err(missing),
                _ => {}
            }
        }
        globals.sort_unstable();
        thread_locals.sort_unstable();
        Ok(Variables {
            globals: globals.into(),
            thread_locals: thread_locals.into(),
        })
    }
}

fn read_unit(view: &View<'_>, index: u32, add: &mut impl FnMut(u32, Place)) -> Result<(), Missing> {
    let unit = view.unit(index)?;
    let language = view.info.units.get(index).and_then(|unit| unit.language);
    let mut entries = unit.entries_raw(None)?;
    let mut steps = 0u64;
    while !entries.is_empty() {
        steps += 1;
        if steps.is_multiple_of(1024) {
            view.info.budget.charge(256)?;
        }
        let offset = entries.next_offset();
        let Some(abbreviation) = entries.read_abbreviation()? else {
            continue;
        };
        let attributes = abbreviation.attributes();
        let has = |name| {
            attributes
                .iter()
                .any(|specification| specification.name() == name)
        };
        if abbreviation.tag() == gimli::DW_TAG_variable && has(gimli::DW_AT_location) {
            let mut location = None;
            for &specification in attributes {
                let attribute = entries.read_attribute(specification)?;
                if attribute.name() == gimli::DW_AT_location {
                    location = Some(attribute.value());
                }
            }
            if let Some(place) = location.and_then(|location| place(view, &unit, location)) {
                add(offset.0 as u32, place);
            }
        } else if abbreviation.has_children()
            && holds_no_variables(abbreviation.tag(), language)
            && has(gimli::DW_AT_sibling)
        {
            let mut sibling = None;
            for &specification in attributes {
                let attribute = entries.read_attribute(specification)?;
                if attribute.name() == gimli::DW_AT_sibling {
                    sibling = Some(attribute.value());
                }
            }
            // Only ever forwards: a reference backwards would go round for ever.
            if let Some(AttributeValue::UnitRef(next)) = sibling
                && next.0 > entries.next_offset().0
            {
                entries = unit.entries_raw(Some(next))?;
            }
        } else {
            entries.skip_attributes(attributes)?;
        }
    }
    Ok(())
}

/// Types of C hold no functions and so no variables; a class of C++ may.
fn holds_no_variables(tag: gimli::DwTag, language: Option<Language>) -> bool {
    match tag {
        gimli::DW_TAG_enumeration_type
        | gimli::DW_TAG_array_type
        | gimli::DW_TAG_subroutine_type => true,
        gimli::DW_TAG_structure_type | gimli::DW_TAG_union_type => language == Some(Language::C),
        _ => false,
    }
}

/// An address, or an offset handed to the thread-local lookup (DWARF 5, section 2.5.1.3).
fn place<'a>(view: &View<'a>, unit: &RawUnit<'a>, location: Value<'a>) -> Option<Place> {
    let AttributeValue::Exprloc(expression) = location else {
        return None;
    };
    let mut operations = expression.operations(unit.encoding());
    let indexed = |index| view.raw.address(unit, index).ok();
    let (mut value, is_address) = match operations.next().ok()?? {
        Operation::Address { address } => (address, true),
        Operation::AddressIndex { index } => (indexed(index)?, true),
        Operation::UnsignedConstant { value } => (value, false),
        Operation::SignedConstant { value } => (value as u64, false),
        Operation::ConstantIndex { index } => (indexed(index)?, false),
        _ => return None,
    };
    loop {
        match operations.next().ok()? {
            None if is_address => return Some(Place::Global(value)),
            Some(Operation::PlusConstant { value: more }) => value = value.checked_add(more)?,
            Some(Operation::TLS) => return Some(Place::ThreadLocal(value)),
            _ => return None,
        }
    }
}
