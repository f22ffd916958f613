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
    /// Optimisers split variables: then only this part of it is here.
    pub(crate) piece: Option<Piece>,
}

/// A part of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Piece {
    /// First byte of the part in the variable.
    pub(crate) offset: u64,
    pub(crate) size: u64,
}

/// What a location expression stands for.
enum Place {
    Global(u64),
    ThreadLocal(u64),
}

impl Variables {
    /// Finds all of them. Damaged units contribute what comes before the damage.
    pub(crate) fn read(view: &View<'_>) -> Result<Variables, Missing> {
        let (mut globals, mut thread_locals) = (Vec::new(), Vec::new());
        for unit in view.described_units() {
            let mut add = |offset: u32, place, piece| {
                let die = Die { unit, offset };
                match place {
                    Place::Global(address) if view.info.is_loaded(address) => {
                        globals.push(Variable {
                            address,
                            die,
                            piece,
                        });
                    }
                    Place::Global(_) => {}
                    Place::ThreadLocal(address) => {
                        thread_locals.push(Variable {
                            address: view.info.thread_local_offset(address),
                            die,
                            piece,
                        });
                    }
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

/// The variables of one unit, handed over by the offset of their entry.
fn read_unit(
    view: &View<'_>,
    index: u32,
    add: &mut impl FnMut(u32, Place, Option<Piece>),
) -> Result<(), Missing> {
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
            if let Some(location) = location {
                // An expression that is not understood is no fixed place.
                let _ = places(&unit, location, |place, piece| {
                    add(offset.0 as u32, place, piece);
                });
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

/// An address, or an offset handed to the thread-local lookup (DWARF 5, section 2.5.1.3); or several of them, each
/// for a piece of the variable (section 2.6.1.2).
fn places<'a>(
    unit: &RawUnit<'a>,
    location: Value<'a>,
    mut found: impl FnMut(Place, Option<Piece>),
) -> Option<()> {
    let AttributeValue::Exprloc(expression) = location else {
        return None;
    };
    let mut operations = expression.operations(unit.encoding());
    let indexed = |index| unit.raw.address(unit, index).ok();
    let mut value = None;
    let mut is_address = false;
    let mut is_thread_local = false;
    let mut offset = 0u64;
    let place = |value, is_address, is_thread_local| match (value, is_address, is_thread_local) {
        (Some(value), _, true) => Some(Place::ThreadLocal(value)),
        (Some(value), true, false) => Some(Place::Global(value)),
        _ => None,
    };
    while let Some(operation) = operations.next().ok()? {
        match operation {
            Operation::Address { address } => (value, is_address) = (Some(address), true),
            Operation::AddressIndex { index } => {
                (value, is_address) = (Some(indexed(index)?), true);
            }
            Operation::UnsignedConstant { value: constant } => value = Some(constant),
            Operation::SignedConstant { value: constant } => value = Some(constant as u64),
            Operation::ConstantIndex { index } => value = Some(indexed(index)?),
            Operation::PlusConstant { value: more } => value = Some(value?.checked_add(more)?),
            Operation::TLS => is_thread_local = true,
            Operation::Piece {
                size_in_bits,
                bit_offset: None,
            } if size_in_bits % 8 == 0 => {
                let size = size_in_bits / 8;
                if let Some(place) = place(value, is_address, is_thread_local) {
                    found(place, Some(Piece { offset, size }));
                }
                offset = offset.checked_add(size)?;
                (value, is_address, is_thread_local) = (None, false, false);
            }
            _ => return None,
        }
    }
    if offset == 0 {
        found(place(value, is_address, is_thread_local)?, None);
    }
    Some(())
}
