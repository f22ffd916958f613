//! Types of memory without a name, asked of the instructions that access it.

use std::{collections::HashMap, sync::Arc};

use symbolizer::{Coverage as Answers, Operand, Untraced};

use super::{Resolved, Resolver, meaning::Meaning};
use crate::{
    access::{LineKey, LineSize, Op, SpaceId},
    module::LoadedModule,
    names::{
        AccessedBy, Coverage, ObjectKind,
        by_instruction::{self, Strength, Told},
    },
};

/// Where an instruction is asked for: its space, address and operand.
type Asked = (SpaceId, u64, Operand);
/// What an instruction told.
type Source = Arc<Meaning>;

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

/// How glibc's allocator sees memory, whatever the program has there: from 16 bytes before it.
const BOOKKEEPING: &str = "struct malloc_chunk";

/// A part of the line that an instruction named itself: offset, size, path.
pub(in crate::names) type Part = (u8, u8, String);

/// Leaves out what the allocator tells, where somebody else tells something: its chunks hold what the program has, and are
/// no objects of it.
fn without_bookkeeping(told: &mut Vec<Told>, sources: &mut Vec<(Source, AccessedBy)>) {
    let is_own = |one: &Told| one.type_name != BOOKKEEPING;
    if told.iter().any(is_own) && !told.iter().all(is_own) {
        let mut keep = told.iter().map(is_own).collect::<Vec<bool>>().into_iter();
        sources.retain(|_| keep.next().unwrap_or(true));
        told.retain(is_own);
    }
}

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
            debug_assert!(u64::from(site.offset) + u64::from(site.size) <= size.bytes());
            if let Some(one) = source.tell(self.modules, site, position) {
                told.push(one);
                sources.push((source, *site));
            }
        }
        without_bookkeeping(&mut told, &mut sources);
        let fits = |outer: usize, inner: usize| {
            let source = &sources[outer].0;
            let (outer, inner) = (&told[outer], &told[inner]);
            // A number behind a pointer may be any part of an object.
            let is_number = !inner.path.starts_with(['.', '[']);
            if is_number && outer.strength != Strength::Several {
                return true;
            }
            let inside = outer
                .start
                .and_then(|start| inner.position.checked_sub(start));
            inside.is_some_and(|inside| source.has_members(self.modules, inside, inner.size))
        };
        let (objects, contradicted) = by_instruction::objects(&told, fits);
        if contradicted > 0 && !self.asides.get() {
            let counts = &mut self.instructions.borrow_mut().counts;
            for _ in 0..contradicted {
                counts.count(Err(Untraced::Conflict));
            }
        }
        let mut out = Vec::new();
        for object in objects {
            let (source, _) = &sources[object.told];
            let end = object
                .start
                .and_then(|start| start.checked_add(object.size));
            let inside = |one: &Told| match (object.start, end) {
                (Some(start), Some(end)) => start <= one.position && one.position < end,
                _ => one.start.is_none() && one.type_name == told[object.told].type_name,
            };
            // A pointer to a part names it less well than the type of the whole does.
            let of_it = |one: &Told| {
                inside(one) && (one.start, one.type_size) == (object.start, object.size)
            };
            let parts: Vec<Part> = told
                .iter()
                .zip(&sources)
                .filter(|(one, _)| of_it(one))
                .map(|(one, (_, site))| (site.offset, site.size, one.path.clone()))
                .collect();
            let mut resolved = source.object(self.modules, kind, object.start);
            resolved.name.name.clone_from(&told[object.told].variable);
            resolved.name.called = by_instruction::called(told.iter().filter(|one| of_it(one)));
            resolved.name.size = object.start.map(|_| object.size);
            resolved.parts = parts;
            resolved.concluded = object.strength == Strength::Concluded;
            out.push(resolved);
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
        instructions
            .counts
            .count(answer.as_ref().map(|_| ()).map_err(|reason| *reason));
        let answer = answer.ok().map(Arc::new);
        instructions.answers.insert(asked, answer.clone());
        answer
    }

    fn ask(&self, site: &AccessedBy, operand: Operand) -> Result<Meaning, Untraced> {
        if site.kernel && self.modules.vmlinux().is_none() {
            return self.kernel_reached(site.ip, operand).map(Meaning::OfKernel);
        }
        let (module, svma) = self
            .code_module(site.space, site.ip, site.kernel)
            .ok_or(Untraced::NoFunction)?;
        let accessed = module.elf.access(svma, operand)?;
        Ok(Meaning::Described(module, accessed))
    }

    /// The module that an instruction is in, and its address there.
    pub(in crate::names) fn code_module(
        &self,
        space: SpaceId,
        ip: u64,
        kernel: bool,
    ) -> Option<(Arc<LoadedModule>, u64)> {
        if kernel {
            let (vmlinux, bias) = self.modules.vmlinux()?;
            return Some((vmlinux.clone(), ip.wrapping_sub(bias)));
        }
        let mapping = self.spaces.mapping(space, ip)?;
        let module = self
            .modules
            .open_to_name(self.spaces.pid(space)?, mapping)
            .ok()?;
        let svma = module.svma(mapping, ip)?;
        Some((module, svma))
    }
}
