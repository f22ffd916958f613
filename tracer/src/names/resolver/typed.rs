//! Types of memory without a name, asked of the instructions that access it.

use std::{collections::HashMap, sync::Arc};

use symbolizer::{Accessed, Coverage as Answers, Operand, Storage, Untraced};

use super::{Resolved, Resolver, source_path};
use crate::{
    access::{LineKey, LineSize, Op, SpaceId},
    module::LoadedModule,
    names::{
        AccessedBy, Coverage, ObjectKind, ObjectName,
        by_instruction::{self, Told},
    },
};

/// Where an instruction is asked for: its space, address and operand.
type Asked = (SpaceId, u64, Operand);
/// What an instruction told, and the module that its types are of.
type Source = Arc<(Arc<LoadedModule>, Accessed)>;

/// Answers of instructions so far.
#[derive(Default)]
pub(super) struct Instructions {
    answers: HashMap<Asked, Option<Source>>,
    counts: Answers,
}

impl Instructions {
    pub(super) fn coverage(&self) -> Coverage {
        let reasons = Untraced::ALL.iter().zip(self.counts.untraced);
        Coverage {
            named: self.counts.named,
            untraced: reasons
                .filter(|(_, n)| *n > 0)
                .map(|(reason, n)| ((reason.name(), reason.to_string()), n))
                .collect(),
        }
    }
}

/// A part of the line that an instruction named itself: offset, size, path.
pub(in crate::names) type Part = (u8, u8, String);

impl Resolver<'_> {
    /// The objects on a line that the instructions tell of, besides those in `known`.
    pub(super) fn typed_objects(
        &self,
        key: LineKey,
        size: LineSize,
        by: &[AccessedBy],
        known: &[Resolved],
        kind: ObjectKind,
    ) -> Vec<Resolved> {
        let first = key.0.position();
        let mut told: Vec<Told> = Vec::new();
        let mut sources: Vec<(Source, AccessedBy)> = Vec::new();
        for site in by.iter().filter(|site| site.op.touches()) {
            let position = first + u64::from(site.offset);
            let is_known = |object: &Resolved| {
                object.name.start.is_some_and(|start| start <= position)
                    && object.name.end().is_some_and(|end| position < end)
            };
            if known.iter().any(is_known) {
                continue;
            }
            let Some(source) = self.accessed(site) else {
                continue;
            };
            if let Some(one) = tell(&source, site, position, size) {
                told.push(one);
                sources.push((source, *site));
            }
        }
        let (objects, contradicted) = by_instruction::objects(&told);
        if contradicted > 0 {
            let counts = &mut self.instructions.borrow_mut().counts;
            for _ in 0..contradicted {
                counts.count(Err(Untraced::Conflict));
            }
        }
        let mut out = Vec::new();
        for object in objects {
            let (source, _) = &sources[object.told];
            let (module, accessed) = &**source;
            let end = object
                .start
                .and_then(|start| start.checked_add(object.size));
            let inside = |one: &Told| match (object.start, end) {
                (Some(start), Some(end)) => start <= one.position && one.position < end,
                _ => one.start.is_none() && one.type_name == told[object.told].type_name,
            };
            let parts: Vec<Part> = told
                .iter()
                .zip(&sources)
                .filter(|(one, _)| inside(one))
                .filter(|(one, _)| {
                    // A pointer to a part names it less well than the type of the whole does.
                    (one.start, one.type_size) == (object.start, object.size)
                })
                .map(|(one, (_, site))| (site.offset, site.size, one.path.clone()))
                .collect();
            let shape = module.elf.layout(accessed.ty).ok();
            out.push(Resolved {
                name: ObjectName {
                    kind,
                    name: told[object.told].variable.clone(),
                    type_name: Some(accessed.type_name.clone()),
                    file: shape
                        .as_ref()
                        .and_then(|shape| shape.file.as_deref())
                        .map(source_path),
                    line: shape.as_ref().and_then(|shape| shape.line),
                    start: object.start,
                    size: object.start.map(|_| object.size),
                    thread: None,
                    language: None,
                    layout: object
                        .start
                        .and_then(|_| super::object_layout(&module.elf, shape?)),
                    allocation: None,
                },
                typed: Some((module.clone(), accessed.ty)),
                stride: None,
                parts,
                kernel_type: None,
            });
        }
        out
    }

    /// What the operand of an instruction stands for; the reason is counted once.
    fn accessed(&self, site: &AccessedBy) -> Option<Source> {
        let operand = if site.op == Op::Store {
            Operand::Store
        } else {
            Operand::Load
        };
        let asked = (site.space, site.ip, operand);
        if let Some(known) = self.instructions.borrow().answers.get(&asked) {
            return known.clone();
        }
        let answer = self.ask(site, operand);
        let mut instructions = self.instructions.borrow_mut();
        let counted = answer.as_ref().map(|(_, accessed)| accessed);
        instructions.counts.count(counted.map_err(|reason| *reason));
        let answer = answer.ok().map(Arc::new);
        instructions.answers.insert(asked, answer.clone());
        answer
    }

    fn ask(
        &self,
        site: &AccessedBy,
        operand: Operand,
    ) -> Result<(Arc<LoadedModule>, Accessed), Untraced> {
        let (module, svma) = if site.kernel {
            let (vmlinux, bias) = self.modules.vmlinux().ok_or(Untraced::NoDebugInfo)?;
            (vmlinux.clone(), site.ip.wrapping_sub(bias))
        } else {
            self.code_module(site.space, site.ip)
                .ok_or(Untraced::NoFunction)?
        };
        let accessed = module.elf.access(svma, operand)?;
        Ok((module, accessed))
    }

    /// The module that an instruction is in, and its address there.
    fn code_module(&self, space: SpaceId, ip: u64) -> Option<(Arc<LoadedModule>, u64)> {
        let mapping = self.spaces.mapping(space, ip)?;
        let module = self.modules.open(self.spaces.pid(space)?, mapping).ok()?;
        let svma = module.svma(mapping, ip)?;
        Some((module, svma))
    }
}

/// One instruction's word on the bytes at `position`.
fn tell(
    source: &(Arc<LoadedModule>, Accessed),
    site: &AccessedBy,
    position: u64,
    line: LineSize,
) -> Option<Told> {
    let (module, accessed) = source;
    let size = u64::from(site.size);
    // The rest of an access that began on the line before: where it began is not known here.
    if site.offset == 0 && size < accessed.size {
        return None;
    }
    // Likewise it may end on the next line, but begins here.
    debug_assert!(u64::from(site.offset) + size <= line.bytes());
    let whole = module.elf.layout(accessed.ty).ok().and_then(|l| l.size);
    let reached = accessed.offset.checked_add(accessed.size)?;
    let type_size = whole.unwrap_or(reached).max(reached);
    // An index over whole objects: this is one of them, wherever the array starts.
    let is_exact = accessed.stride.is_none_or(|stride| {
        let size = whole.filter(|&size| size > 0 && accessed.offset < size);
        size.is_some_and(|size| stride.is_multiple_of(size))
    });
    let start = if is_exact {
        Some(position.checked_sub(accessed.offset)?)
    } else {
        None
    };
    let path = if accessed.field.path.is_empty() {
        accessed.expression.clone()
    } else {
        accessed.field.path.clone()
    };
    let variable = || {
        let end = accessed.expression.find(['.', '[']);
        accessed.expression[..end.unwrap_or(accessed.expression.len())].to_owned()
    };
    Some(Told {
        type_name: accessed.type_name.clone(),
        type_size,
        start,
        position,
        size,
        path,
        variable: (accessed.storage == Storage::Frame).then(variable),
        count: site.count,
    })
}
