//! From an offset in an object to the member path, as the source would write the access.

use super::{Shape, TypeRef};
use crate::{
    dwarf::{Die, View},
    missing::Missing,
    walk::{Found, Parts, Types, members_at},
};

/// What the accessed bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FieldKind {
    /// One member, or one of several that share the place.
    Member,
    /// Several members side by side.
    Members,
    /// No member: the compiler's padding.
    Padding,
}

/// A place in an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldPath {
    /// `.hits`, `[3].hits`, `.a and .b`, `.a to .z`, `.i or .f` (a union), `between .misses and .total`
    /// (padding). Empty for an object without parts.
    pub path: String,
    /// What `path` is.
    pub kind: FieldKind,
    /// First byte of the member, members or padding in the object.
    pub member_offset: u64,
    /// Bytes of it.
    pub member_size: u64,
    /// The member's type; absent for several members and for padding.
    pub type_name: Option<String>,
    /// The member's type; absent for several members and for padding.
    pub ty: Option<TypeRef>,
}

impl Types for View<'_> {
    type Type = Die;

    fn parts(&self, ty: Die, opened: bool) -> Result<(Option<u64>, Parts<Die>), Missing> {
        let (die, entry) = self.peel(ty)?;
        let size = self.size(die)?;
        if !opened && self.is_opaque(ty)? {
            return Ok((size, Parts::Nothing));
        }
        let shape = self.shape(die, &entry)?;
        let is_union = matches!(shape, Shape::Union);
        let parts = match shape {
            Shape::Scalar => Parts::Nothing,
            Shape::Array(array) => Parts::Elements(array),
            Shape::Structure | Shape::Union => {
                let members = self.members(die)?;
                match self.wrapped(&entry, &members)? {
                    Some(only) => Parts::Wrapped(only.clone()),
                    None if is_union => Parts::Union(members),
                    None => Parts::Structure(members),
                }
            }
        };
        Ok((size, parts))
    }

    fn has_virtual_base(&self, ty: Die) -> Result<bool, Missing> {
        View::has_virtual_base(self, ty, 0)
    }
}

impl View<'_> {
    /// The members at `offset..offset + size` of an object of a type.
    pub(crate) fn field(&self, ty: Die, offset: u64, size: u64) -> Result<FieldPath, Missing> {
        let found = members_at(self, ty, offset, size, false)?;
        let only = match &found {
            Found::Leaves(leaves) => <&[_; 1]>::try_from(&leaves[..]).ok(),
            Found::Hole(_) => None,
        };
        let ty = only.and_then(|[leaf]| leaf.ty);
        let bytes = found.bytes();
        Ok(FieldPath {
            path: found.path(),
            kind: match found {
                Found::Hole(_) => FieldKind::Padding,
                Found::Leaves(_) if only.is_some() => FieldKind::Member,
                Found::Leaves(_) => FieldKind::Members,
            },
            member_offset: bytes.start,
            member_size: bytes.end.saturating_sub(bytes.start),
            type_name: ty.map(|ty| self.type_name(Some(ty))),
            ty: ty.map(TypeRef),
        })
    }

    /// The pointer at an offset of a library's owning pointer, which stands for it in the source (`owner->hits`);
    /// nothing where the type is another, or something else is there.
    pub(crate) fn owned_pointer(&self, ty: Die, offset: u64) -> Option<Die> {
        if !self.is_owning_pointer(ty) {
            return None;
        }
        match members_at(self, ty, offset, 8, true) {
            Ok(Found::Leaves(leaves)) => match &leaves[..] {
                [only] if (only.offset, only.end) == (offset, offset + 8) => only.ty,
                _ => None,
            },
            _ => None,
        }
    }
}
