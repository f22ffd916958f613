//! An object of a line, and what it takes to name its parts.

use std::sync::Arc;

use symbolizer::{Missing, Object, TypeRef};

use super::{shape::object_layout, typed::Part};
use crate::{
    module::LoadedModule,
    names::{ObjectKind, ObjectName, language::language, source::source_path},
};

/// An object with what it takes to name its parts.
pub(in crate::names) struct Resolved {
    pub(in crate::names) name: ObjectName,
    pub(in crate::names) typed: Option<(Arc<LoadedModule>, TypeRef)>,
    /// Bytes from one to the next, where the object is an array of `typed`.
    pub(in crate::names) stride: Option<u64>,
    /// Parts that the accessing instructions named.
    pub(in crate::names) parts: Vec<Part>,
    /// Its type in [`ModuleStore::kernel_types`], where nothing else tells one.
    pub(in crate::names) kernel_type: Option<u32>,
    /// Its type follows from nothing but a constant index ([`symbolizer::Accessed::concluded`]).
    pub(in crate::names) concluded: bool,
    /// Of a variable without a type: its module, its address there, and why.
    pub(in crate::names) untyped: Option<(Arc<LoadedModule>, u64, Missing)>,
}

impl Resolved {
    /// An object without a type.
    pub(in crate::names) fn untyped(name: ObjectName) -> Resolved {
        Resolved {
            name,
            typed: None,
            stride: None,
            parts: Vec::new(),
            kernel_type: None,
            concluded: false,
            untyped: None,
        }
    }

    /// All that is known of a variable that starts at a position.
    pub(super) fn variable(
        module: &Arc<LoadedModule>,
        object: Object,
        start: Option<u64>,
    ) -> Resolved {
        let untyped = object
            .missing
            .filter(|_| object.ty.is_none())
            .map(|reason| (module.clone(), object.address, reason));
        let layout = object.ty.and_then(|ty| module.elf.layout(ty).ok());
        let of_type = layout.as_ref().and_then(|layout| layout.alignment);
        let name = ObjectName {
            kind: ObjectKind::Global,
            name: Some(object.name),
            called: None,
            is_reached: false,
            thread: None,
            type_name: object.type_name,
            file: object.file.as_deref().map(source_path),
            line: object.line,
            start,
            size: object.size,
            language: object.language.and_then(language),
            alignment: object.alignment.max(of_type),
            layout: layout.and_then(|layout| object_layout(&module.elf, layout)),
            allocation: None,
        };
        Resolved {
            typed: object.ty.map(|ty| (module.clone(), ty)),
            untyped,
            ..Resolved::untyped(name)
        }
    }
}
