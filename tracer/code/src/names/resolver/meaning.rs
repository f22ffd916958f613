//! What an instruction's operand stands for, by whichever description of types there is.

use std::sync::Arc;

use symbolizer::{Accessed, FieldKind, Reached, Storage};

use super::{Resolved, shape::has_members};
use crate::{
    machine::btf::{Btf, KernelTypes},
    module::{LoadedModule, ModuleStore},
    names::{
        AccessedBy, Language, ObjectKind, ObjectName,
        by_instruction::{Strength, Told},
        kernel,
        nameless::is_nameless,
    },
};

/// What an operand stands for.
pub(super) enum Meaning {
    /// By debug info.
    Described(Arc<LoadedModule>, Accessed),
    /// By the kernel's own description of itself.
    OfKernel(Reached),
}

/// How much of an object's type an access tells of, and where.
struct Extent {
    /// Bytes of the type, where it says.
    whole: Option<u64>,
    offset: u64,
    size: u64,
    stride: Option<u64>,
}

impl Meaning {
    /// The kernel's types, which it described itself when this was found.
    fn kernel(modules: &ModuleStore) -> Option<&Btf<'static>> {
        modules.kernel_types().map(KernelTypes::btf)
    }

    fn extent(&self, modules: &ModuleStore) -> Extent {
        match self {
            Meaning::Described(module, accessed) => Extent {
                whole: module.elf.layout(accessed.ty).ok().and_then(|l| l.size),
                offset: accessed.offset,
                size: accessed.size,
                stride: accessed.stride,
            },
            Meaning::OfKernel(reached) => Extent {
                whole: Self::kernel(modules).and_then(|btf| btf.size(reached.ty)),
                offset: reached.offset,
                size: reached.size,
                stride: reached.stride,
            },
        }
    }

    /// One instruction's word on the bytes at `position`.
    pub(super) fn tell(
        &self,
        modules: &ModuleStore,
        site: &AccessedBy,
        position: u64,
    ) -> Option<Told> {
        let size = u64::from(site.size);
        let extent = self.extent(modules);
        // The rest of an access that began on the line before: where it began is not known here. Likewise it may end on
        // the next line, but begins here.
        if site.offset == 0 && size < extent.size {
            return None;
        }
        let reached = extent.offset.checked_add(extent.size)?;
        let type_size = extent.whole.unwrap_or(reached).max(reached);
        // An index over whole objects: this is one of them, wherever the array starts.
        let is_exact = extent.stride.is_none_or(|stride| {
            let size = extent
                .whole
                .filter(|&size| size > 0 && extent.offset < size);
            size.is_some_and(|size| stride.is_multiple_of(size))
        });
        let start = if is_exact {
            Some(position.checked_sub(extent.offset)?)
        } else {
            None
        };
        let told = Told {
            type_name: String::new(),
            type_size,
            start,
            position,
            size,
            path: String::new(),
            variable: None,
            called: None,
            strength: Strength::Member,
            count: site.count,
        };
        Some(match self {
            Meaning::Described(_, accessed) => {
                let path = if accessed.field.path.is_empty() {
                    &accessed.expression
                } else {
                    &accessed.field.path
                };
                let is_local = accessed.storage == Storage::Frame;
                // A type without a name says little where the variable that leads to it is not said.
                let is_called = accessed.everywhere || is_nameless(&accessed.type_name);
                Told {
                    type_name: accessed.type_name.clone(),
                    path: path.clone(),
                    variable: is_local.then(|| accessed.object.clone()),
                    called: (is_called && !is_local).then(|| accessed.object.clone()),
                    strength: match accessed.field.kind {
                        _ if accessed.concluded => Strength::Concluded,
                        FieldKind::Member => Strength::Member,
                        FieldKind::Members | FieldKind::Padding => Strength::Several,
                    },
                    ..told
                }
            }
            Meaning::OfKernel(reached) => {
                let btf = Self::kernel(modules)?;
                let path = btf.field(reached.ty, reached.offset, reached.size)?;
                Told {
                    type_name: btf.type_name(reached.ty),
                    strength: if path.contains(' ') {
                        Strength::Several
                    } else {
                        Strength::Member
                    },
                    path,
                    ..told
                }
            }
        })
    }

    /// Whether so many bytes from `inside` the object on are whole members of its type.
    pub(super) fn has_members(&self, modules: &ModuleStore, inside: u64, size: u64) -> bool {
        match self {
            Meaning::Described(module, accessed) => {
                has_members(&module.elf, accessed.ty, inside, size)
            }
            Meaning::OfKernel(reached) => {
                Self::kernel(modules).is_some_and(|btf| btf.is_whole(reached.ty, inside, size))
            }
        }
    }

    /// An object of such a type at `start`, where that is known.
    pub(super) fn object(
        &self,
        modules: &ModuleStore,
        kind: ObjectKind,
        start: Option<u64>,
    ) -> Resolved {
        match self {
            Meaning::Described(module, accessed) => {
                // The frames of coroutines lie in memory that was allocated for them.
                let kind = match (accessed.storage, kind) {
                    (Storage::Frame, ObjectKind::Heap) => ObjectKind::Stack,
                    _ => kind,
                };
                Resolved::of_type(module, accessed.ty, &accessed.type_name, kind, start)
            }
            Meaning::OfKernel(reached) => {
                let btf = Self::kernel(modules);
                let name = ObjectName {
                    kind,
                    type_name: btf.map(|btf| btf.type_name(reached.ty)),
                    language: Some(Language::C),
                    start,
                    layout: start.and_then(|_| kernel::layout(btf?, reached.ty)),
                    ..ObjectName::default()
                };
                Resolved {
                    kernel_type: start.map(|_| reached.ty),
                    ..Resolved::untyped(name)
                }
            }
        }
    }
}
