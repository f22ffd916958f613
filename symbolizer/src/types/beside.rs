//! What may lie beside the object that a pointer points to: the next of an array, or the rest of something larger.
//!
//! `p[3].in` and `((struct larger *)p)->rest` are one and the same in machine code. A unit that casts a pointer has the
//! type that it casts to, as both GCC and clang describe the types of casts where they stand. So the first is meant where
//! no type of the unit could be meant by the second:
//!
//! ```text
//!   contains     struct larger { struct rec first; long rest; }
//!   continues    struct larger { long in; long out; long rest; }     beside struct rec { long in; long out; }
//!   precedes     struct header { long count; }; ((struct header *)p)[-1].count
//! ```

use std::sync::{Arc, PoisonError};

use super::{FieldKind, Shape, members::Members};
use crate::{
    dwarf::{Die, Entry, View},
    language::Language,
    missing::Missing,
};

/// Structures looked at in one unit; generated headers reach some thousand.
const MOST_STRUCTURES: usize = 1 << 14;
/// Answers that are kept.
const MOST_KEPT: usize = 1 << 12;
/// Units whose structures are kept listed.
const MOST_LISTS: usize = 64;

/// Where beside an object an access is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Side {
    /// Behind it.
    After,
    /// So many bytes before it, and so many bytes of it.
    Before { distance: u64, size: u64 },
}

/// A structure to be compared with others.
struct Wanted<'a> {
    die: Die,
    entry: Entry<'a>,
    size: u64,
    members: Arc<Members>,
}

impl Wanted<'_> {
    /// Whether a (peeled) type is this one, be it by the entry of another unit.
    fn is_by(&self, die: Die, entry: &Entry<'_>) -> bool {
        die == self.die
            || entry.name.is_some()
                && (entry.name, entry.byte_size) == (self.entry.name, self.entry.byte_size)
    }
}

impl<'a> View<'a> {
    /// Whether nothing but another object of the type can be meant beside one, as far as these units tell.
    pub(crate) fn has_like_beside(&self, ty: Die, units: &[u32], side: Side) -> bool {
        let Ok((die, _)) = self.peel(ty) else {
            return false;
        };
        units.iter().all(|&unit| {
            let kept = &self.info.types.beside;
            let key = (die, unit, side);
            let known = kept
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .get(&key)
                .copied();
            if let Some(known) = known {
                return known;
            }
            let answer = self.is_alone(die, unit, side).unwrap_or(false);
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            if kept.len() < MOST_KEPT {
                kept.insert(key, answer);
            }
            answer
        })
    }

    fn is_alone(&self, die: Die, unit: u32, side: Side) -> Result<bool, Missing> {
        let entry = self.entry(die)?;
        let members = self.members(die)?;
        let Some(size) = entry.byte_size.filter(|&size| size > 0) else {
            return Ok(false);
        };
        let is_structure = matches!(
            entry.tag,
            gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type
        );
        // What comes behind an array without a bound, or of one element, is as often more of it.
        let is_open = members.fields.last().is_none_or(|last| {
            last.bit_size.is_none()
                || self.peel(last.ty).is_ok_and(|(die, entry)| {
                    matches!(self.shape(die, &entry), Ok(Shape::Array(array))
                        if array.count().is_none_or(|count| count < 2))
                })
        });
        // C++ keeps the number of elements before an array.
        let is_hidden = side != Side::After && self.language_of(die) != Some(Language::C);
        if !is_structure
            || is_open
            || is_hidden
            || members.has_virtual_base
            || !members.variants.is_empty()
        {
            return Ok(false);
        }
        let wanted = Wanted {
            die,
            entry,
            size,
            members,
        };
        for &offset in &*self.structures(unit)? {
            let other = Die { unit, offset };
            if self.may_be_meant(other, &wanted, side)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether the other type, and not the wanted one, may be what lies there.
    fn may_be_meant(&self, other: Die, wanted: &Wanted<'a>, side: Side) -> Result<bool, Missing> {
        let (other, entry) = match self.peel(other) {
            Ok(found) => found,
            // Declared only: no code of the unit reaches into it.
            Err(Missing::DeclarationOnly) => return Ok(false),
            Err(reason) => return Err(reason),
        };
        if wanted.is_by(other, &entry) {
            return Ok(false);
        }
        let size = entry.byte_size.unwrap_or(u64::MAX);
        if let Side::Before {
            distance,
            size: accessed,
        } = side
            && let Some(start) = size.checked_sub(distance)
            && !self.is_of_system(other, &entry)
            && let Ok(field) = self.field(other, start, accessed)
            && field.kind == FieldKind::Member
            && (field.member_offset, field.member_size) == (start, accessed)
        {
            return Ok(true);
        }
        if size <= wanted.size {
            return Ok(false);
        }
        let members = self.members(other)?;
        let payloads = members.variants.iter().flatten();
        for member in members.fields.iter().chain(payloads) {
            if let Ok((die, entry)) = self.peel(member.ty)
                && wanted.is_by(die, &entry)
            {
                return Ok(true);
            }
        }
        // A larger one with the same members at its start, as C has it where nothing is inherited.
        let mut firsts = members.fields.iter().zip(&wanted.members.fields);
        let continues = members.fields.len() > wanted.members.fields.len()
            && firsts.all(|(a, b)| {
                (&a.label, a.bit_offset, a.bit_size) == (&b.label, b.bit_offset, b.bit_size)
            });
        Ok(continues)
    }

    fn is_of_system(&self, die: Die, entry: &Entry<'a>) -> bool {
        let (file, _) = self.declared_at(die, entry);
        file.is_some_and(|file| file.starts_with("/usr/"))
    }

    /// The structures and unions of a unit, by their offsets; an error where not all of them can be told.
    fn structures(&self, number: u32) -> Result<Arc<[u32]>, Missing> {
        let kept = &self.info.types.structures;
        let known = kept
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&number)
            .cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let unit = self.unit(number)?;
        let mut entries = unit.entries_raw(None)?;
        let mut found = Vec::new();
        let mut steps = 0u64;
        while !entries.is_empty() {
            steps += 1;
            if steps.is_multiple_of(1024) {
                self.info.budget.charge(256)?;
            }
            let is_root = steps == 1;
            let offset = entries.next_offset().0 as u32;
            let Some(abbreviation) = entries.read_abbreviation()? else {
                continue;
            };
            match abbreviation.tag() {
                gimli::DW_TAG_structure_type
                | gimli::DW_TAG_class_type
                | gimli::DW_TAG_union_type => found.push(offset),
                // Types elsewhere belong to it as well, or it is a part of some other.
                gimli::DW_TAG_imported_unit => return Err(Missing::TooDeep),
                tag if is_root && tag != gimli::DW_TAG_compile_unit => {
                    return Err(Missing::TooDeep);
                }
                _ => {}
            }
            if found.len() > MOST_STRUCTURES {
                return Err(Missing::TooDeep);
            }
            entries.skip_attributes(abbreviation.attributes())?;
        }
        let found: Arc<[u32]> = found.into();
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= MOST_LISTS {
            kept.clear();
        }
        kept.insert(number, Arc::clone(&found));
        Ok(found)
    }
}
