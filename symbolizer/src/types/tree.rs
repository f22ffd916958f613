//! A type as its declaration nests it: members within members, bases, bit-fields, and the holes between them.
//!
//! [`super::Layout`] is the same flattened, which is what moving members needs; this is what a reader needs to see
//! where the bytes went.

use std::sync::Arc;

use super::{DEEPEST, Shape, holes::Holes, members::FieldMember};
use crate::{
    dwarf::{Die, View},
    language::Language,
    missing::Missing,
};

/// Parts in one tree. Types may share members, so that the tree of a small file may be endless.
const MOST_PARTS: usize = 1 << 14;
/// Bytes of names in one tree.
const MOST_TEXT: usize = 4 << 20;

/// A type and what it consists of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeTree {
    /// As the source names it.
    pub type_name: String,
    /// What kind of type.
    pub kind: TypeKind,
    /// Bytes; absent for an array without a bound.
    pub size: Option<u64>,
    /// Bytes; as [`super::Layout::alignment`]. Only the whole type has it.
    pub alignment: Option<u64>,
    /// Source language.
    pub language: Option<Language>,
    /// Where the type is declared.
    pub file: Option<Arc<str>>,
    /// Line in `file`.
    pub line: Option<u32>,
    /// In the order of their offset; of a union and of the variants of an enumeration in that of the source. Of an
    /// array the element, once.
    pub parts: Vec<Part>,
    /// Bits that no part has, ascending; of an array none.
    pub holes: Vec<Hole>,
    /// Some base class is virtual. Where it lies is known at run time only, so `holes` is empty.
    pub has_virtual_base: bool,
    /// Parts are missing, because there are too many or they nest too deeply.
    pub is_cut: bool,
}

/// What kind of type a tree describes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TypeKind {
    /// Nothing inside, or nothing that its users would name: a number, a pointer, a mutex.
    Scalar,
    /// Members side by side.
    Structure,
    /// Members in the same place.
    Union,
    /// Variants in the same place, and what tells them apart.
    Variants,
    /// Elements in a row.
    Array {
        /// Elements of each dimension, outermost first; absent for `[]`.
        dimensions: Vec<Option<u64>>,
        /// Bytes from one element to the next.
        stride: u64,
    },
}

/// One member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// What it is to the type around it.
    pub role: Role,
    /// Without a dot; empty for bases, elements and anonymous members.
    pub name: String,
    /// First byte from the start of the type around it.
    pub offset: u64,
    /// Of a bit-field: its first bit from the start of the type around it, and how many.
    pub bits: Option<(u64, u64)>,
    /// Bytes of alignment that the source states for the member.
    pub alignment: Option<u64>,
    /// Its type, and what that consists of.
    pub tree: TypeTree,
}

impl Part {
    /// Bytes; those touched by a bit-field; absent for an array without a bound.
    pub fn size(&self) -> Option<u64> {
        match self.bits {
            Some((first, count)) => Some((first % 8).checked_add(count)?.div_ceil(8)),
            None => self.tree.size,
        }
    }
}

/// What a part is to the type around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A member, with or without a name.
    Member,
    /// A base class.
    Base,
    /// The payload of one variant.
    Variant,
    /// An element of an array.
    Element,
}

/// Bits that nothing has: the compiler's padding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hole {
    /// First bit from the start of the type.
    pub first_bit: u64,
    /// How many.
    pub bits: u64,
}

impl View<'_> {
    /// The tree of a type.
    pub(crate) fn type_tree(&self, ty: Die) -> Result<TypeTree, Missing> {
        let mut reader = Reader {
            view: self,
            parts: 0,
            text: 0,
            is_cut: false,
        };
        let mut tree = reader.tree(ty, &[], 0)?;
        tree.alignment = self.alignment_of(ty);
        tree.is_cut = reader.is_cut;
        Ok(tree)
    }
}

/// Bits of a type that belong to what is around it: first, and one past the last.
type Taken = (u64, u64);

struct Reader<'v, 'a> {
    view: &'v View<'a>,
    parts: usize,
    text: usize,
    is_cut: bool,
}

impl Reader<'_, '_> {
    /// Whether one more part may be added.
    fn may_add(&mut self) -> bool {
        self.parts += 1;
        let may = self.parts <= MOST_PARTS && self.text <= MOST_TEXT;
        self.is_cut |= !may;
        may
    }

    fn tree(&mut self, ty: Die, taken: &[Taken], depth: usize) -> Result<TypeTree, Missing> {
        let (die, entry) = self.view.peel(ty)?;
        let type_name = self.view.type_name(Some(ty));
        self.text += type_name.len();
        let (file, line) = self.view.declared_at(die, &entry);
        let mut tree = TypeTree {
            type_name,
            kind: TypeKind::Scalar,
            size: self.view.size(die)?,
            alignment: None,
            language: self.view.language_of(die),
            file,
            line,
            parts: Vec::new(),
            holes: Vec::new(),
            has_virtual_base: false,
            is_cut: false,
        };
        if self.view.is_opaque(ty)? {
            return Ok(tree);
        }
        if depth > DEEPEST {
            self.is_cut = true;
            return Ok(tree);
        }
        match self.view.shape(die, &entry)? {
            Shape::Scalar => {}
            Shape::Array(array) => {
                tree.kind = TypeKind::Array {
                    dimensions: array.dimensions.clone(),
                    stride: array.stride,
                };
                if self.may_add() {
                    tree.parts.push(Part {
                        role: Role::Element,
                        name: String::new(),
                        offset: 0,
                        bits: None,
                        alignment: None,
                        tree: self.inner(array.element, Some(array.stride), &[], depth),
                    });
                }
            }
            shape @ (Shape::Structure | Shape::Union) => {
                let members = self.view.members(die)?;
                if let Some(only) = self.view.wrapped(&entry, &members)? {
                    // Of `AtomicU64` and `CachePadded<T>` the reader knows what they wrap, not their private member.
                    let inner = self.inner(only.ty, only.bit_size.map(|bits| bits / 8), &[], depth);
                    return Ok(wrapping(tree, only.offset(), inner));
                }
                tree.has_virtual_base = self.view.has_virtual_base(die, 0)?;
                tree.kind = match shape {
                    Shape::Union => TypeKind::Union,
                    _ if members.variants.is_empty() => TypeKind::Structure,
                    _ => TypeKind::Variants,
                };
                let side_by_side = tree.kind == TypeKind::Structure;
                for (index, field) in members.fields.iter().enumerate() {
                    let others = if side_by_side {
                        taken_of(field, index, &members.fields)
                    } else {
                        Vec::new()
                    };
                    self.add(&mut tree.parts, field, Role::Member, &others, depth);
                }
                for payload in &members.variants {
                    for field in payload {
                        // Each variant's type spans the whole, with the discriminant in it.
                        let others = taken_of(field, usize::MAX, &members.fields);
                        self.add(&mut tree.parts, field, Role::Variant, &others, depth);
                    }
                }
                // Inside of a variant is where an enumeration's holes are.
                if tree.kind != TypeKind::Variants && !tree.has_virtual_base && !self.is_cut {
                    tree.holes = Holes::of(tree.size, &tree.parts, taken);
                }
            }
        }
        Ok(tree)
    }

    fn add(
        &mut self,
        parts: &mut Vec<Part>,
        field: &FieldMember,
        role: Role,
        taken: &[Taken],
        depth: usize,
    ) {
        if !self.may_add() {
            return;
        }
        let name = field.label.trim_start_matches('.').to_owned();
        self.text += name.len();
        let size = field.bit_size.map(|bits| bits / 8);
        parts.push(Part {
            role: if field.is_base { Role::Base } else { role },
            name,
            offset: field.offset(),
            bits: field
                .bit_size
                .filter(|_| field.is_bit_field)
                .map(|bits| (field.bit_offset, bits)),
            alignment: field.alignment,
            tree: self.inner(field.ty, size, taken, depth),
        });
    }

    /// The tree of a part; where its type cannot be read, what the part itself tells.
    fn inner(&mut self, ty: Die, size: Option<u64>, taken: &[Taken], depth: usize) -> TypeTree {
        let found = self.tree(ty, taken, depth + 1);
        self.is_cut |= found == Err(Missing::TooDeep);
        found.unwrap_or_else(|_| TypeTree {
            type_name: self.view.type_name(Some(ty)),
            kind: TypeKind::Scalar,
            size,
            alignment: None,
            language: self.view.language_of(ty),
            file: None,
            line: None,
            parts: Vec::new(),
            holes: Vec::new(),
            has_virtual_base: false,
            is_cut: false,
        })
    }
}

/// A wrapper with the inside of what it wraps: nothing where that is a number.
fn wrapping(mut wrapper: TypeTree, offset: u64, inner: TypeTree) -> TypeTree {
    wrapper.parts = inner.parts;
    for part in &mut wrapper.parts {
        part.offset = part.offset.saturating_add(offset);
        part.bits = part
            .bits
            .and_then(|(first, count)| Some((first.checked_add(offset.checked_mul(8)?)?, count)));
    }
    wrapper.kind = inner.kind;
    wrapper.has_virtual_base = inner.has_virtual_base;
    let whole = match wrapper.kind {
        TypeKind::Structure | TypeKind::Union => !wrapper.has_virtual_base,
        _ => false,
    };
    if whole && offset == 0 {
        wrapper.holes = inner.holes;
        // What the wrapper adds behind is all that it adds.
        if let (Some(outer), Some(size)) = (wrapper.size, inner.size)
            && outer > size
        {
            wrapper.holes.push(Hole {
                first_bit: size.saturating_mul(8),
                bits: (outer - size).saturating_mul(8),
            });
        }
    }
    wrapper
}

/// The bits of a member that its neighbours have: of a base class the end, where C++ puts the next member into the
/// base's padding (Itanium C++ ABI, section 2.4), of a variant the discriminant. Relative to the member.
fn taken_of(field: &FieldMember, index: usize, fields: &[FieldMember]) -> Vec<Taken> {
    let (Some(bits), false) = (field.bit_size, field.is_bit_field) else {
        return Vec::new();
    };
    let end = field.bit_offset.saturating_add(bits);
    let from = if index == usize::MAX { 0 } else { index + 1 };
    let others = fields[from.min(fields.len())..].iter();
    others
        // In order of their place: what follows is beyond as well.
        .take_while(|other| other.bit_offset < end)
        .filter_map(|other| {
            let stop = other.bit_offset.checked_add(other.bit_size?)?.min(end);
            let start = other.bit_offset.max(field.bit_offset);
            (start < stop).then(|| (start - field.bit_offset, stop - field.bit_offset))
        })
        .take(64)
        .collect()
}

impl TypeTree {
    /// Elements in all dimensions of an array together.
    pub fn count(&self) -> Option<u64> {
        match &self.kind {
            TypeKind::Array { dimensions, .. } => dimensions
                .iter()
                .try_fold(1u64, |count, one| count.checked_mul((*one)?)),
            _ => None,
        }
    }
}
