//! The shapes of types as layout advice needs them.

use std::sync::Arc;

use symbolizer::{FieldKind, Layout, Module, TypeRef};

use super::Resolved;
use crate::{
    module::LoadedModule,
    names::{
        ElementLayout, MemberLayout, ObjectKind, ObjectLayout, ObjectName,
        heap::is_runtime_file,
        source::{Author, author, source_path},
    },
};

impl Resolved {
    /// An object of a type at `start`, where that is known.
    pub(in crate::names) fn of_type(
        module: &Arc<LoadedModule>,
        ty: TypeRef,
        type_name: &str,
        kind: ObjectKind,
        start: Option<u64>,
    ) -> Resolved {
        let shape = module.elf.layout(ty).ok();
        let file = shape.as_ref().and_then(|shape| shape.file.as_deref());
        let name = ObjectName {
            kind,
            type_name: Some(type_name.to_owned()),
            file: file.map(source_path),
            line: shape.as_ref().and_then(|shape| shape.line),
            start,
            alignment: shape.as_ref().and_then(|shape| shape.alignment),
            layout: start.and_then(|_| {
                let layout = object_layout(&module.elf, shape?)?;
                // What a library of the system describes is its own, wherever it was compiled.
                let author = if is_runtime_file(&module.path) {
                    Author::Language
                } else {
                    layout.author
                };
                Some(ObjectLayout { author, ..layout })
            }),
            ..ObjectName::default()
        };
        Resolved {
            typed: Some((module.clone(), ty)),
            ..Resolved::untyped(name)
        }
    }
}

/// Whether so many bytes from `inside` an object of a type on are whole members of it.
pub(in crate::names) fn has_members(module: &Module, ty: TypeRef, inside: u64, size: u64) -> bool {
    module.field(ty, inside, size).is_ok_and(|field| {
        (field.member_offset, field.member_size) == (inside, size)
            && field.kind != FieldKind::Padding
    })
}

/// The shape of a type: of an array, with the members of its element.
pub fn layout(module: &Module, ty: TypeRef) -> Option<ObjectLayout> {
    object_layout(module, module.layout(ty).ok()?)
}

/// As [`layout`], of a type whose own layout is known.
pub(super) fn object_layout(module: &Module, whole: Layout) -> Option<ObjectLayout> {
    let mut members = whole.members;
    let mut file = whole.file;
    let mut element = None;
    if let Some((array, count)) = whole.element.and_then(|array| Some((array, array.count?))) {
        let of_element = module.layout(array.ty).ok();
        element = Some(ElementLayout {
            type_name: of_element.as_ref().map(|layout| layout.type_name.clone()),
            stride: array.stride,
            count,
        });
        (members, file) = of_element.map_or_else(Default::default, |of| (of.members, of.file));
    }
    let members = members
        .into_iter()
        .filter_map(|member| {
            Some(MemberLayout {
                name: member.path.trim_start_matches('.').to_owned(),
                offset: member.offset,
                size: member.size?,
                type_name: Some(member.type_name),
                alignment: member.alignment,
                is_bit_field: member.bits.is_some(),
                is_inner: member.is_inner,
            })
        })
        .collect();
    Some(ObjectLayout {
        size: whole.size?,
        element,
        members,
        author: file.map_or_else(Author::default, |file| author(&file)),
    })
}
