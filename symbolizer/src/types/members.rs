//! The members of a structure, union or enumeration with payload, as DWARF lists them.

use super::{DEEPEST, Shape};
use crate::{
    dwarf::{Die, Entry, View},
    language::Language,
    missing::Missing,
    walk,
};

/// Members kept of one structure. Generated code reaches some thousands.
const MOST_MEMBERS: usize = 1 << 16;
/// Variants kept of one enumeration.
const MOST_VARIANTS: usize = 1 << 12;

/// What a structure consists of.
pub(crate) type Members = walk::Members<Die>;
/// One member.
pub(crate) type FieldMember = walk::Member<Die>;

impl Members {
    /// Decodes the direct members.
    pub(crate) fn read(view: &View<'_>, die: Die) -> Result<Members, Missing> {
        let mut members = Members {
            fields: Vec::new(),
            variants: Vec::new(),
            has_virtual_base: false,
        };
        let language = view.language_of(die);
        let mut variant_part = None;
        view.children(die, |at, entry| {
            match entry.tag {
                gimli::DW_TAG_variant_part => variant_part = Some(at),
                gimli::DW_TAG_inheritance if entry.computed_place => {
                    members.has_virtual_base = true;
                }
                gimli::DW_TAG_member | gimli::DW_TAG_inheritance
                    if members.fields.len() < MOST_MEMBERS =>
                {
                    members.fields.extend(member(view, &entry, language));
                }
                _ => {}
            }
            Ok(())
        })?;
        if let Some(part) = variant_part {
            members.read_variants(view, part, language)?;
        }
        // Stable: members of a union, and bases without data, stay in the order of the source.
        members.fields.sort_by_key(|member| member.bit_offset);
        members.end_at_next();
        Ok(members)
    }

    /// A member of a type whose size is not known ends where the next one starts, at the latest.
    fn end_at_next(&mut self) {
        let mut next = None;
        for member in self.fields.iter_mut().rev() {
            if member.bit_size.is_none() {
                member.bit_size = next
                    .and_then(|next: u64| next.checked_sub(member.bit_offset))
                    .filter(|&size| size > 0);
            }
            next = Some(member.bit_offset);
        }
    }

    /// A discriminant, which Rust gives no name, and the variants.
    fn read_variants(
        &mut self,
        view: &View<'_>,
        part: Die,
        language: Option<Language>,
    ) -> Result<(), Missing> {
        let mut variants = Vec::new();
        view.children(part, |at, entry| {
            match entry.tag {
                gimli::DW_TAG_member => {
                    if let Some(mut discriminant) = member(view, &entry, language) {
                        discriminant.label = ".discriminant".into();
                        self.fields.push(discriminant);
                    }
                }
                gimli::DW_TAG_variant if variants.len() < MOST_VARIANTS => variants.push(at),
                _ => {}
            }
            Ok(())
        })?;
        for variant in variants {
            let mut payload = Vec::new();
            view.children(variant, |_, entry| {
                if entry.tag == gimli::DW_TAG_member && payload.len() < MOST_MEMBERS {
                    payload.extend(member(view, &entry, language));
                }
                Ok(())
            })?;
            self.variants.push(payload);
        }
        Ok(())
    }
}

/// Static members and virtual bases have no place in the object.
fn member(view: &View<'_>, entry: &Entry<'_>, language: Option<Language>) -> Option<FieldMember> {
    if entry.computed_place || entry.is_external || entry.is_declaration {
        return None;
    }
    let ty = entry.ty?;
    let size = view.size(ty).ok().flatten();
    let start = entry.member_offset.unwrap_or(0).checked_mul(8)?;
    let bit_offset = match (entry.data_bit_offset, entry.old_bit_offset, entry.bit_size) {
        (Some(offset), _, _) => start.checked_add(offset)?,
        // DWARF 2 and 3 count from the most significant bit of the storage unit.
        (None, Some(offset), Some(bits)) => {
            let storage = entry.byte_size.or(size)?.checked_mul(8)?;
            start
                .checked_add(storage)?
                .checked_sub(offset.checked_add(bits)?)?
        }
        _ => start,
    };
    Some(FieldMember {
        label: if entry.tag == gimli::DW_TAG_inheritance {
            String::new()
        } else {
            label(entry.name, language)
        },
        bit_offset,
        bit_size: match entry.bit_size {
            Some(bits) => Some(bits),
            None => match size {
                Some(bytes) => Some(bytes.checked_mul(8)?),
                None => None,
            },
        },
        is_bit_field: entry.bit_size.is_some(),
        is_base: entry.tag == gimli::DW_TAG_inheritance,
        ty,
        alignment: entry.alignment,
    })
}

/// How a path names the member.
fn label(name: Option<&[u8]>, language: Option<Language>) -> String {
    let Some(name) = name else {
        return String::new();
    };
    let name = String::from_utf8_lossy(name);
    match language {
        // Members of tuples are numbered: `__0` in debug info, `.0` in the source.
        Some(Language::Rust)
            if name.strip_prefix("__").is_some_and(|rest| {
                !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit())
            }) =>
        {
            format!(".{}", &name[2..])
        }
        // `_vptr.Base` (gcc) and `_vptr$Base` (clang) are no member the source could name.
        _ if name.starts_with("_vptr.") || name.starts_with("_vptr$") => ".vptr".into(),
        _ => format!(".{name}"),
    }
}

impl View<'_> {
    /// Whether members of the class, or of one it is made from, have no fixed place. Then what looks like a hole
    /// may be theirs.
    pub(crate) fn has_virtual_base(&self, die: Die, depth: usize) -> Result<bool, Missing> {
        if depth > DEEPEST {
            return Err(Missing::TooDeep);
        }
        let (die, entry) = self.peel(die)?;
        if !matches!(self.shape(die, &entry)?, Shape::Structure) {
            return Ok(false);
        }
        let members = self.members(die)?;
        if members.has_virtual_base {
            return Ok(true);
        }
        let mut bases = members
            .fields
            .iter()
            .filter(|member| member.label.is_empty());
        bases.try_fold(false, |found, base| {
            Ok(found || self.has_virtual_base(base.ty, depth + 1)?)
        })
    }
}
