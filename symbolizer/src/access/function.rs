//! One function, followed once: for each memory operand the objects it may stand for.

use std::{collections::BTreeSet, sync::OnceLock};

use super::{
    Accessed, Operand, Storage, Untraced,
    facts::{Facts, Unplaced, unplaced},
    flow::Flow,
    globals::Linked,
    parts::Part,
    state::State,
    types::{Kind, Scope, Types},
    value::{Address, Root, Value, common},
};
use crate::{
    FieldKind, FieldPath, Function, Language, Module, TypeRef,
    dwarf::{Die, View},
    locals::Locals,
    machine_code::{Blocks, Index, Instruction, Memory, decode, table_of},
};

/// Instructions of a function that are followed.
const MOST_INSTRUCTIONS: usize = 20_000;
/// Longest function, in bytes: no instruction has more than 15.
const LONGEST: u64 = 15 * MOST_INSTRUCTIONS as u64;

/// An object that an operand may stand for.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    address: Address,
    storage: Storage,
}

/// A memory operand and what it may stand for, the best first.
#[derive(Debug)]
struct Place {
    instruction: u64,
    memory: Memory,
    found: Result<Box<[Candidate]>, Untraced>,
    answer: OnceLock<Result<Box<Accessed>, Untraced>>,
}

/// What is kept of a function.
pub(super) struct Followed {
    types: Types,
    /// In the order of their instructions.
    places: Box<[Place]>,
    /// First bytes of the instructions.
    addresses: Box<[u64]>,
    /// Pointers that no register holds.
    unplaced: Box<[Unplaced]>,
}

impl Followed {
    /// Follows a function.
    pub(super) fn new(
        module: &Module,
        linked: &Linked,
        function: &Function,
        svma: u64,
    ) -> Result<Followed, Untraced> {
        let size = function
            .end
            .checked_sub(function.start)
            .ok_or(Untraced::NoFunction)?;
        if size > LONGEST {
            return Err(Untraced::TooLarge);
        }
        if !module.is_x86_64() {
            return Err(Untraced::Undecodable);
        }
        let locals = module.locals(svma)?;
        let view = module
            .debug_info()
            .map_err(|_| Untraced::NoDebugInfo)?
            .view();
        let code = module
            .code(function.start, function.end)
            .ok_or(Untraced::Undecodable)?;
        let instructions = decode(code, function.start, MOST_INSTRUCTIONS + 1);
        if instructions.is_empty() {
            return Err(Untraced::Undecodable);
        }
        if instructions.len() > MOST_INSTRUCTIONS {
            return Err(Untraced::TooLarge);
        }
        let table = |jump| {
            let read = |from| module.image().bytes_from(from);
            let holds = |target| module.image().is_executable(target);
            table_of(&instructions, jump, read, holds)
        };
        let blocks = Blocks::new(&instructions, table);
        let mut types = Types::new(units_of(&view, svma, &locals));
        let mut leads = vec![false; instructions.len()];
        for block in &blocks.0 {
            leads[block.first] = true;
        }
        let facts = Facts::new(&view, &mut types, &locals, &instructions, |index| {
            leads.get(index).copied().unwrap_or(false)
        });
        let unplaced = unplaced(&view, &mut types, &locals);
        let flow = Flow::new(module, view, linked, &locals, types, facts);
        let mut followed = Followed::gather(flow, &instructions, &blocks)?;
        followed.unplaced = unplaced.into();
        Ok(followed)
    }

    /// Runs the flow and notes what each operand is.
    fn gather(
        mut flow: Flow<'_>,
        instructions: &[Instruction],
        blocks: &Blocks,
    ) -> Result<Followed, Untraced> {
        let states = flow.run(instructions, blocks).ok_or(Untraced::TooLarge)?;
        let mut places = Vec::new();
        for (block, state) in blocks.0.iter().zip(states) {
            let Some(mut state) = state else { continue };
            for (index, instruction) in block.instructions(instructions) {
                flow.tell(&mut state, index);
                for memory in &instruction.operands {
                    let found = candidates(&mut flow, &state, memory, instruction.address);
                    places.push(Place {
                        instruction: instruction.address,
                        memory: *memory,
                        found,
                        answer: OnceLock::new(),
                    });
                }
                flow.step(&mut state, instruction);
            }
        }
        places.sort_by_key(|place| place.instruction);
        Ok(Followed {
            types: flow.types,
            places: places.into(),
            addresses: instructions
                .iter()
                .map(|instruction| instruction.address)
                .collect(),
            unplaced: Box::default(),
        })
    }

    /// What an operand stands for.
    pub(super) fn access(
        &self,
        view: &View<'_>,
        svma: u64,
        operand: Operand,
    ) -> Result<Accessed, Untraced> {
        if self.addresses.binary_search(&svma).is_err() {
            return Err(Untraced::Undecodable);
        }
        let first = self
            .places
            .partition_point(|place| place.instruction < svma);
        let wanted = |place: &&Place| match operand {
            Operand::Load => place.memory.read,
            Operand::Store => place.memory.write,
        };
        let place = self.places[first..]
            .iter()
            .take_while(|place| place.instruction == svma)
            .find(wanted)
            .ok_or(Untraced::NoMemoryOperand)?;
        let answer = place
            .answer
            .get_or_init(|| self.answer(view, place).map(Box::new));
        answer
            .as_ref()
            .map(|answer| (**answer).clone())
            .map_err(|reason| *reason)
    }

    fn answer(&self, view: &View<'_>, place: &Place) -> Result<Accessed, Untraced> {
        let found = place.found.as_ref().map_err(|reason| *reason)?;
        let mut problem = Untraced::Computed;
        let mut concluded: Option<Accessed> = None;
        for (number, candidate) in found.iter().enumerate() {
            match self.name(view, *candidate, &place.memory) {
                Ok(accessed) if accessed.concluded && self.may_be_unplaced(place, candidate) => {
                    problem = Untraced::OutsideType;
                }
                Ok(accessed) if accessed.concluded => {
                    let other = concluded.get_or_insert_with(|| accessed.clone());
                    if other.ty != accessed.ty {
                        problem = Untraced::Conflict;
                    }
                }
                Ok(accessed) => return Ok(accessed),
                Err(reason) if number == 0 => problem = reason,
                Err(_) => {}
            }
        }
        // Only if nothing is told.
        concluded
            .filter(|_| problem != Untraced::Conflict)
            .ok_or(problem)
    }

    /// Whether a pointer that no register holds, to something else, may be meant by an operand.
    fn may_be_unplaced(&self, place: &Place, candidate: &Candidate) -> bool {
        let Root::Pointer(known) = candidate.address.root else {
            return false;
        };
        let size = u64::from(place.memory.size);
        self.unplaced
            .iter()
            .filter(|pointer| (pointer.start..pointer.end).contains(&place.instruction))
            .filter(|pointer| pointer.target != Some(known.ty))
            .any(|pointer| {
                let target = pointer.target.and_then(|target| self.types.get(target));
                target.is_none_or(|ty| {
                    ty.kind != Kind::Scalar
                        || ty.size.is_none_or(|other| other == 1 || other == size)
                })
            })
    }

    fn name(
        &self,
        view: &View<'_>,
        candidate: Candidate,
        memory: &Memory,
    ) -> Result<Accessed, Untraced> {
        let Root::Pointer(target) = candidate.address.root else {
            return Err(Untraced::Computed);
        };
        let ty = self.types.get(target.ty).ok_or(Untraced::Untyped)?;
        let mut part = self
            .types
            .part(view, target, candidate.address, memory.size)?;
        // With both, what both are multiples of.
        let elements = ty.size.filter(|_| candidate.address.elements).unwrap_or(0);
        let stride = Some(common(candidate.address.stride, elements)).filter(|&stride| stride != 0);
        if memory.string
            && let Some(size) = ty.size
        {
            // The whole object, as far as the code says.
            part.field = FieldPath {
                path: String::new(),
                kind: FieldKind::Members,
                member_offset: 0,
                member_size: size,
                type_name: None,
                ty: None,
            };
        }
        let mut ty = (ty.die, ty.name.to_string(), ty.language);
        if let Some(value) = counted_value(view, ty.0, &mut part) {
            ty.1 = view.type_name(Some(value));
            ty.0 = value;
        }
        let (ty, type_name, language) = ty;
        let expression = self.types.expression(target, &part.field.path, part.outer);
        let whole = self.types.expression(target, "", part.outer);
        let object = match language {
            // It dereferences by itself where members are named.
            Some(Language::Rust) => whole.trim_start_matches('*').to_owned(),
            _ => whole,
        };
        Ok(Accessed {
            expression,
            object,
            everywhere: self.types.scope(target.name) == Scope::Program,
            ty: TypeRef(ty),
            type_name,
            offset: part.offset,
            size: u64::from(memory.size),
            stride,
            field: part.field,
            storage: candidate.storage,
            concluded: part.concluded,
        })
    }
}

/// The units that describe a function, and whose types its variables have.
fn units_of(view: &View<'_>, svma: u64, locals: &Locals) -> Box<[u32]> {
    let function = view
        .function_at(svma)
        .map(|(function, _)| view.chain(function));
    let chain = function.unwrap_or_default().into_iter();
    let variables = locals.variables.iter().filter_map(|local| local.ty);
    let all = chain.map(|(die, _)| die).chain(variables);
    let units: BTreeSet<u32> = all.map(|die| die.unit).collect();
    units.into_iter().collect()
}

/// The objects that an operand may stand for: as the flow has it, then as debug info tells of its registers.
fn candidates(
    flow: &mut Flow<'_>,
    state: &State,
    memory: &Memory,
    at: u64,
) -> Result<Box<[Candidate]>, Untraced> {
    let mut found = Vec::new();
    let first = flow.address(state, memory);
    let mut problem = None;
    match first {
        Ok(address) => {
            flow.types.note_walk(&address);
            match object(flow, state, address, at) {
                Ok(candidate) => found.push(candidate),
                Err(reason) => problem = Some(reason),
            }
        }
        // Contradictions are not settled by asking one side again.
        Err(Untraced::Conflict) => return Err(Untraced::Conflict),
        Err(reason) => problem = Some(reason),
    }
    let index = match memory.index {
        Some(Index::Register(index)) => Some(index),
        _ => None,
    };
    for register in [memory.base, index].into_iter().flatten() {
        let facts: Vec<_> = flow.facts.of(register, at).take(16).collect();
        for fact in facts {
            if !matches!(fact.value, Value::Address(_))
                || fact.in_memory && state.frame(register).is_some()
            {
                continue;
            }
            let mut told = state.clone();
            if let Some(place) = told.registers.get_mut(usize::from(register.0)) {
                *place = fact.value;
            }
            if let Ok(address) = flow.address(&told, memory)
                && let Ok(candidate) = object(flow, state, address, at)
            {
                found.push(candidate);
            }
        }
    }
    match (found.is_empty(), problem) {
        (true, None | Some(Untraced::Computed)) if flow.facts.is_lost(&flow.types, memory, at) => {
            Err(Untraced::EntryValue)
        }
        (true, Some(reason)) => Err(reason),
        (true, None) => Err(Untraced::Computed),
        _ => {
            largest_first(flow, &mut found);
            Ok(found.into())
        }
    }
}

/// Makes a part of what a counted pointer points to one of the value there, if it is; gives the value's type.
fn counted_value(view: &View<'_>, ty: Die, part: &mut Part) -> Option<Die> {
    let (label, offset, value) = view.counted(view.peel(ty).ok()?.0)?;
    let inside = part.offset.checked_sub(offset)?;
    let field = &mut part.field;
    let start = field.member_offset.checked_sub(offset)?;
    // Of several members, each is named in full.
    let mut path = String::with_capacity(field.path.len());
    for word in field.path.split_inclusive(' ') {
        path.push_str(word.strip_prefix(&*label).unwrap_or(word));
    }
    field.path = path;
    field.member_offset = start;
    part.offset = inside;
    Some(value)
}

/// Puts the largest of the objects that hold the first one before it: an inlined function has names for the part that
/// it was given, and those around it for the whole.
fn largest_first(flow: &mut Flow<'_>, found: &mut [Candidate]) {
    let mut best = 0;
    for other in 1..found.len() {
        let (inner, outer) = (found[best].address, found[other].address);
        if let (Root::Pointer(part), Root::Pointer(whole)) = (inner.root, outer.root)
            && part.ty != whole.ty
            && let distance = outer.offset.wrapping_sub(inner.offset)
            && flow.types.holds(&flow.view, whole.ty, distance, part.ty)
        {
            best = other;
        }
    }
    found[..=best].rotate_right(1);
}

/// An address as a place in an object of the source.
fn object(
    flow: &mut Flow<'_>,
    state: &State,
    address: Address,
    at: u64,
) -> Result<Candidate, Untraced> {
    let (address, storage) = match address.root {
        Root::Pointer(_) => (address, Storage::Pointed),
        Root::Frame => (
            flow.frame_object(state, address, at)
                .ok_or(Untraced::Spill)?,
            Storage::Frame,
        ),
        Root::Global => {
            let found = flow.global_object(address)?;
            let start = address.offset.wrapping_sub(found.offset) as u64;
            (found, Storage::Global(start))
        }
        Root::Thread => {
            let found = flow.thread_object(address)?;
            let offset = flow.thread_offset(address).ok_or(Untraced::Computed)?;
            (
                found,
                Storage::ThreadLocal(offset.wrapping_sub(found.offset as u64)),
            )
        }
    };
    Ok(Candidate { address, storage })
}
