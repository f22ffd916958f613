//! Types: what a type really is, how large it is, where it is defined.

mod beside;
mod definitions;
mod descend;
mod field;
mod holes;
mod layout;
mod members;
mod names;
mod pointer;
mod tree;
mod wrappers;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

pub(crate) use beside::Side;
pub use field::{FieldKind, FieldPath};
pub use layout::{Element, Layout, Member};
pub use pointer::Pointer;
pub use tree::{Hole, Part, Role, TypeKind, TypeTree};

use crate::{
    dwarf::{Die, Entry, View},
    language::Language,
    missing::Missing,
};
use definitions::Definitions;
use members::Members;

/// A type of one module. Means nothing to another module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TypeRef(pub(crate) Die);

/// Longest chain of typedefs and qualifiers, and deepest nesting of types in types, that is followed.
const DEEPEST: usize = 64;
/// Structures whose members are kept decoded.
const MOST_KEPT: usize = 4096;

/// What is kept about types between questions.
#[derive(Default)]
pub(crate) struct TypeCache {
    definitions: OnceLock<Definitions>,
    members: Mutex<HashMap<Die, Arc<Members>>>,
    /// Structures and unions of the units that were asked for.
    structures: Mutex<HashMap<u32, Arc<[u32]>>>,
    /// Whether only objects of its kind lie beside one of a type, as a unit tells.
    beside: Mutex<HashMap<(Die, u32, Side), bool>>,
}

/// What kind of thing a type is once typedefs and qualifiers are taken off.
#[derive(Clone)]
pub(crate) enum Shape {
    /// A number, pointer, enumeration: nothing inside.
    Scalar,
    /// Members side by side.
    Structure,
    /// Members in the same place.
    Union,
    /// Elements in a row.
    Array(Array),
}

/// An array type; all its dimensions.
pub(crate) type Array = crate::walk::Array<Die>;

impl<'a> View<'a> {
    /// The language of the unit that holds an entry.
    pub(crate) fn language_of(&self, die: Die) -> Option<Language> {
        self.info.units.get(die.unit)?.language
    }

    /// Takes off typedefs and qualifiers, and goes from declarations to definitions.
    pub(crate) fn peel(&self, die: Die) -> Result<(Die, Entry<'a>), Missing> {
        let mut at = die;
        for _ in 0..DEEPEST {
            let entry = self.entry(at)?;
            at = match entry.tag {
                gimli::DW_TAG_typedef
                | gimli::DW_TAG_const_type
                | gimli::DW_TAG_volatile_type
                | gimli::DW_TAG_restrict_type
                | gimli::DW_TAG_atomic_type
                | gimli::DW_TAG_immutable_type
                | gimli::DW_TAG_packed_type
                | gimli::DW_TAG_shared_type
                | gimli::DW_TAG_template_alias => entry.ty.ok_or(Missing::NoType)?,
                _ => match entry.signature {
                    Some(definition) => definition,
                    None if entry.is_declaration => self.definition_of(at, &entry)?,
                    None => return Ok((at, entry)),
                },
            };
        }
        Err(Missing::TooDeep)
    }

    /// What the type is. `entry` is peeled.
    pub(crate) fn shape(&self, die: Die, entry: &Entry<'a>) -> Result<Shape, Missing> {
        self.shape_at(die, entry, 0)
    }

    /// As [`View::shape`], inside of `depth` other arrays.
    fn shape_at(&self, die: Die, entry: &Entry<'a>, depth: usize) -> Result<Shape, Missing> {
        Ok(match entry.tag {
            gimli::DW_TAG_structure_type
            | gimli::DW_TAG_class_type
            | gimli::DW_TAG_interface_type
            | gimli::DW_TAG_variant_part => Shape::Structure,
            gimli::DW_TAG_union_type => Shape::Union,
            gimli::DW_TAG_array_type => {
                let element = entry.ty.ok_or(Missing::NoType)?;
                let stride = self.size_at(element, depth + 1)?.unwrap_or(0);
                let mut dimensions = Vec::new();
                self.children(die, |_, child| {
                    if child.tag == gimli::DW_TAG_subrange_type && dimensions.len() < DEEPEST {
                        dimensions.push(child.count);
                    }
                    Ok(())
                })?;
                if dimensions.is_empty() {
                    dimensions.push(None);
                }
                Shape::Array(Array {
                    element,
                    stride,
                    dimensions,
                })
            }
            _ => Shape::Scalar,
        })
    }

    /// Bytes of an object of the type; `None` for `[]`, `void` and functions.
    pub(crate) fn size(&self, die: Die) -> Result<Option<u64>, Missing> {
        self.size_at(die, 0)
    }

    /// As [`View::size`], inside of `depth` other arrays.
    fn size_at(&self, die: Die, depth: usize) -> Result<Option<u64>, Missing> {
        if depth > DEEPEST {
            return Err(Missing::TooDeep);
        }
        let (die, entry) = self.peel(die)?;
        if entry.byte_size.is_some() {
            return Ok(entry.byte_size);
        }
        match entry.tag {
            gimli::DW_TAG_pointer_type
            | gimli::DW_TAG_reference_type
            | gimli::DW_TAG_rvalue_reference_type => Ok(Some(8)),
            // An offset; of a function its address and what to add to the object's (Itanium C++ ABI, section 2.3).
            gimli::DW_TAG_ptr_to_member_type => {
                let target = entry.ty.and_then(|target| self.entry(target).ok());
                let is_function =
                    target.is_some_and(|target| target.tag == gimli::DW_TAG_subroutine_type);
                Ok(Some(if is_function { 16 } else { 8 }))
            }
            gimli::DW_TAG_enumeration_type => match entry.ty {
                Some(underlying) => self.size_at(underlying, depth + 1),
                None => Ok(None),
            },
            gimli::DW_TAG_array_type => match self.shape_at(die, &entry, depth)? {
                Shape::Array(array) => Ok(array
                    .count()
                    .and_then(|count| count.checked_mul(array.stride))),
                _ => Ok(None),
            },
            _ => Ok(None),
        }
    }

    /// The members of a structure or union, decoded once. `die` is peeled.
    pub(crate) fn members(&self, die: Die) -> Result<Arc<Members>, Missing> {
        let kept = &self.info.types.members;
        if let Some(found) = kept
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&die)
        {
            return Ok(Arc::clone(found));
        }
        let members = Arc::new(Members::read(self, die)?);
        if self.is_exhausted() {
            // Sizes may be missing.
            return Err(Missing::TooDeep);
        }
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < MOST_KEPT {
            kept.insert(die, Arc::clone(&members));
        }
        Ok(members)
    }

    /// File and line where an entry is declared.
    pub(crate) fn declared_at(
        &self,
        die: Die,
        entry: &Entry<'a>,
    ) -> (Option<Arc<str>>, Option<u32>) {
        let file = entry.decl_file.and_then(|file| {
            let unit = self.info.units.get(die.unit)?;
            self.files(unit).ok()?.path(file)
        });
        (file, entry.decl_line)
    }
}

#[cfg(test)]
mod tests {
    use super::Array;
    use crate::dwarf::Die;

    #[test]
    fn subscripts_follow_row_major_order() {
        let element = Die { unit: 0, offset: 0 };
        let array = |dimensions: &[Option<u64>]| Array {
            element,
            stride: 4,
            dimensions: dimensions.to_vec(),
        };
        assert_eq!(array(&[Some(8)]).subscripts(7), "[7]");
        assert_eq!(array(&[Some(2), Some(3)]).subscripts(4), "[1][1]");
        assert_eq!(array(&[None, Some(3), Some(5)]).subscripts(31), "[2][0][1]");
        assert_eq!(array(&[None]).count(), None);
        assert_eq!(array(&[Some(2), Some(3)]).count(), Some(6));
        assert_eq!(array(&[Some(u64::MAX), Some(3)]).count(), None);
    }
}
