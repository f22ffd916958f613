//! Pointers in objects: what a variable, or a member of one, leads to.

use super::{DEEPEST, TypeRef};
use crate::dwarf::{Die, View};

/// A pointer in an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pointer {
    /// From the object to the pointer, as the source has it: `.head`, empty where the object is the pointer. Library types
    /// that own what they point to, and wrappers of one member, are left out, as the source does.
    pub path: String,
    /// Type of what it points to.
    pub target: TypeRef,
    /// It cannot point to a row of objects: a reference.
    pub is_reference: bool,
}

impl View<'_> {
    /// The pointer at an offset of an object of a type.
    pub(crate) fn pointer(&self, ty: Die, offset: u64) -> Option<Pointer> {
        let (mut ty, mut offset, mut path) = (ty, offset, String::new());
        for _ in 0..DEEPEST {
            let (peeled, entry) = self.peel(ty).ok()?;
            let is_reference = match entry.tag {
                gimli::DW_TAG_pointer_type => false,
                gimli::DW_TAG_reference_type | gimli::DW_TAG_rvalue_reference_type => true,
                _ => {
                    if let Some(owned) = self.owned_pointer(peeled, offset) {
                        (ty, offset) = (owned, 0);
                        continue;
                    }
                    let field = self.field(peeled, offset, 8).ok()?;
                    // A number is its own only part.
                    let TypeRef(inner) = field.ty.filter(|inner| inner.0 != peeled)?;
                    path.push_str(&field.path);
                    (ty, offset) = (inner, offset.checked_sub(field.member_offset)?);
                    continue;
                }
            };
            return (offset == 0).then_some(Pointer {
                path,
                target: TypeRef(entry.ty?),
                is_reference,
            });
        }
        None
    }
}
