//! The whole of a type: size, alignment, members. What layout advice is made of.

use std::sync::Arc;

use super::{DEEPEST, Shape, TypeRef};
use crate::{
    dwarf::{Die, Entry, View},
    missing::Missing,
};

/// Members looked at for one type.
const MOST_MEMBERS: usize = 1 << 16;

/// How the objects of a type are laid out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// As the source names it.
    pub type_name: String,
    /// Bytes; absent for an array without a bound.
    pub size: Option<u64>,
    /// Bytes; stated by the compiler, or derived from the members where they agree with it.
    pub alignment: Option<u64>,
    /// In the order of their offset. Base classes and anonymous members appear as their members.
    pub members: Vec<Member>,
    /// What an array consists of.
    pub element: Option<Element>,
    /// Where the type is declared.
    pub file: Option<Arc<str>>,
    /// Line in `file`.
    pub line: Option<u32>,
}

/// One member of a structure, union or variant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// As [`crate::FieldPath`] writes it: `.hits`.
    pub path: String,
    /// First byte from the start of the object.
    pub offset: u64,
    /// Bytes; those touched by a bit-field; absent for an array without a bound.
    pub size: Option<u64>,
    /// As the source names it.
    pub type_name: String,
    /// The member's type.
    pub ty: TypeRef,
    /// Of a bit-field: first bit from the start of the object, and number of bits.
    pub bits: Option<(u64, u64)>,
    /// Bytes; as [`Layout::alignment`].
    pub alignment: Option<u64>,
    /// It is a member of a base class, of an anonymous member or of a variant, and not declared in the type itself.
    pub is_inner: bool,
}

/// The elements of an array; those of all dimensions together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Element {
    /// The element's type.
    pub ty: TypeRef,
    /// How many; absent for `[]`.
    pub count: Option<u64>,
    /// Bytes from one to the next.
    pub stride: u64,
}

impl View<'_> {
    /// Gathers the layout of a type.
    pub(crate) fn layout(&self, ty: Die) -> Result<Layout, Missing> {
        let (die, entry) = self.peel(ty)?;
        let (file, line) = self.declared_at(die, &entry);
        let mut reader = Reader {
            view: self,
            steps: 0,
        };
        let mut layout = Layout {
            type_name: self.type_name(Some(ty)),
            size: self.size(die)?,
            alignment: self.alignment_of(ty),
            members: Vec::new(),
            element: None,
            file,
            line,
        };
        match self.shape(die, &entry)? {
            Shape::Scalar => {}
            Shape::Array(array) => {
                layout.element = Some(Element {
                    ty: TypeRef(array.element),
                    count: array.count(),
                    stride: array.stride,
                });
            }
            Shape::Structure | Shape::Union => {
                reader.list_members(die, "", 0, 0, &mut layout.members)?;
                layout.members.sort_by_key(|member| member.offset);
                // Counted apart, so that types whose members take long to align still have members.
                let mut aligner = Reader {
                    view: self,
                    steps: 0,
                };
                for member in &mut layout.members {
                    member.alignment = (member.alignment)
                        .or_else(|| self.stated_alignment(member.ty.0))
                        .or_else(|| aligner.natural_alignment(member.ty.0, 0));
                }
            }
        }
        Ok(layout)
    }

    /// As stated, or as the ABI gives it.
    pub(super) fn alignment_of(&self, ty: Die) -> Option<u64> {
        let mut reader = Reader {
            view: self,
            steps: 0,
        };
        self.stated_alignment(ty)
            .or_else(|| reader.natural_alignment(ty, 0))
    }

    /// `alignas` and `#[repr(align)]`, on the type or on a typedef of it.
    fn stated_alignment(&self, ty: Die) -> Option<u64> {
        let mut at = ty;
        for _ in 0..DEEPEST {
            let entry = self.entry(at).ok()?;
            if entry.alignment.is_some() {
                return entry.alignment;
            }
            at = match entry.tag {
                gimli::DW_TAG_typedef
                | gimli::DW_TAG_const_type
                | gimli::DW_TAG_volatile_type
                | gimli::DW_TAG_atomic_type => entry.ty?,
                _ => entry.signature?,
            };
        }
        None
    }
}

/// One question's walk. Types may share members, so that their tree is far larger than the file: steps are counted.
struct Reader<'v, 'a> {
    view: &'v View<'a>,
    steps: usize,
}

impl Reader<'_, '_> {
    /// Counts a member; nothing when there were too many or they nest too deeply.
    fn step(&mut self, depth: usize) -> Option<()> {
        self.steps += 1;
        (self.steps <= MOST_MEMBERS && depth <= DEEPEST).then_some(())
    }

    /// Adds the members of a structure that starts at `base`, their paths after `prefix`.
    fn list_members(
        &mut self,
        die: Die,
        prefix: &str,
        base: u64,
        depth: usize,
        list: &mut Vec<Member>,
    ) -> Result<(), Missing> {
        let members = self.view.members(die)?;
        let payloads = members.variants.iter().flatten();
        let fields = members.fields.iter().map(|member| (member, false));
        for (member, is_payload) in fields.chain(payloads.map(|member| (member, true))) {
            self.step(depth).ok_or(Missing::TooDeep)?;
            let Some(offset) = base.checked_add(member.offset()) else {
                continue;
            };
            let path = format!("{prefix}{}", member.label);
            // A base class, an anonymous member, the payload of a variant: what counts is inside.
            if member.label.is_empty() || is_payload {
                let (inner, entry) = self.view.peel(member.ty)?;
                if is_aggregate(&entry) {
                    self.list_members(inner, &path, offset, depth + 1, list)?;
                    continue;
                }
            }
            list.push(Member {
                path,
                offset,
                size: match (member.is_bit_field, member.bit_size) {
                    (true, Some(_)) => Some(member.end() - member.offset()),
                    (_, size) => size.map(|bits| bits / 8),
                },
                type_name: self.view.type_name(Some(member.ty)),
                ty: TypeRef(member.ty),
                bits: member
                    .bit_size
                    .filter(|_| member.is_bit_field)
                    .and_then(|bits| {
                        Some((base.checked_mul(8)?.checked_add(member.bit_offset)?, bits))
                    }),
                alignment: member.alignment,
                is_inner: depth > 0,
            });
        }
        Ok(())
    }

    /// The alignment the ABI gives to a type (System V psABI, section 3.1.2). `None` if the layout contradicts it:
    /// then the type is packed, or aligned by an attribute that is not in the debug info.
    fn natural_alignment(&mut self, die: Die, depth: usize) -> Option<u64> {
        self.step(depth)?;
        let (die, entry) = self.view.peel(die).ok()?;
        if entry.alignment.is_some() {
            return entry.alignment;
        }
        match self.view.shape(die, &entry).ok()? {
            Shape::Array(array) => self.natural_alignment(array.element, depth + 1),
            Shape::Scalar => self
                .view
                .size(die)
                .ok()?
                .map(|size| {
                    let of_words = entry.tag == gimli::DW_TAG_ptr_to_member_type;
                    match size {
                        _ if entry.is_complex => size / 2,
                        16 if of_words => 8,
                        _ => size,
                    }
                })
                .filter(|size| size.is_power_of_two() && *size <= 16),
            Shape::Structure | Shape::Union => {
                let members = self.view.members(die).ok()?;
                let mut alignment = 1;
                for member in members
                    .fields
                    .iter()
                    .chain(members.variants.iter().flatten())
                {
                    let inner = match member.alignment {
                        Some(stated) => stated,
                        None => self.natural_alignment(member.ty, depth + 1)?,
                    };
                    if !member.is_bit_field && !member.offset().is_multiple_of(inner.max(1)) {
                        return None;
                    }
                    alignment = alignment.max(inner);
                }
                let size = self.view.size(die).ok()??;
                size.is_multiple_of(alignment).then_some(alignment)
            }
        }
    }
}

/// Whether the type has members of its own.
fn is_aggregate(entry: &Entry<'_>) -> bool {
    matches!(
        entry.tag,
        gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type | gimli::DW_TAG_union_type
    )
}
