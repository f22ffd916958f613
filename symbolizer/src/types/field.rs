//! From an offset in an object to the member path, as the source would write the access.

use super::{
    TypeRef,
    walk::{Found, Leaf, Place, Walker, Window, path_of},
};
use crate::{
    dwarf::{Die, View},
    missing::Missing,
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

impl View<'_> {
    /// The members at `offset..offset + size` of an object of a type.
    pub(crate) fn field(&self, ty: Die, offset: u64, size: u64) -> Result<FieldPath, Missing> {
        let end = offset
            .checked_add(size.max(1))
            .ok_or(Missing::OutOfBounds)?;
        let mut walker = Walker::new(self);
        let place = Place::whole(ty);
        let found = walker.walk(place, Window { start: offset, end }, 0)?;
        match found {
            Found::Leaves(leaves) => Ok(self.describe(&leaves)),
            Found::Hole {
                before,
                after,
                start,
                end,
            } => Ok(FieldPath {
                path: match (before, after) {
                    (Some(before), Some(after)) => format!("between {before} and {after}"),
                    (Some(before), None) => format!("after {before}"),
                    (None, Some(after)) => format!("before {after}"),
                    (None, None) => "padding".into(),
                },
                kind: FieldKind::Padding,
                member_offset: start,
                member_size: end.saturating_sub(start),
                type_name: None,
                ty: None,
            }),
        }
    }

    /// The pointer at an offset of a library's owning pointer, which stands for it in the source (`owner->hits`);
    /// nothing where the type is another, or something else is there.
    pub(crate) fn owned_pointer(&self, ty: Die, offset: u64) -> Option<Die> {
        if !self.is_owning_pointer(ty) {
            return None;
        }
        let window = Window {
            start: offset,
            end: offset.checked_add(8)?,
        };
        match Walker::opening(self).walk(Place::whole(ty), window, 0) {
            Ok(Found::Leaves(leaves)) => match &leaves[..] {
                [only] if (only.offset, only.end) == (window.start, window.end) => only.ty,
                _ => None,
            },
            _ => None,
        }
    }

    fn describe(&self, leaves: &[Leaf]) -> FieldPath {
        let first = leaves.iter().map(|leaf| leaf.offset).min().unwrap_or(0);
        let end = leaves.iter().map(|leaf| leaf.end).max().unwrap_or(0);
        let only = leaves.len() == 1;
        let ty = leaves.first().and_then(|leaf| leaf.ty).filter(|_| only);
        FieldPath {
            path: path_of(leaves),
            kind: if only {
                FieldKind::Member
            } else {
                FieldKind::Members
            },
            member_offset: first,
            member_size: end.saturating_sub(first),
            type_name: ty.map(|ty| self.type_name(Some(ty))),
            ty: ty.map(TypeRef),
        }
    }
}
