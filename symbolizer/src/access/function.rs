//! One function, followed once: for each memory operand the objects it may stand for.

use std::sync::OnceLock;

use super::{
    Accessed, Operand, Storage, Untraced,
    facts::Facts,
    flow::Flow,
    globals::Linked,
    state::State,
    types::Types,
    value::{Address, Root, Value, common},
};
use crate::{
    FieldKind, FieldPath, Function, Module, TypeRef,
    dwarf::View,
    image::Image,
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
        if !is_x86(module.image()) {
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
        let mut types = Types::default();
        let mut leads = vec![false; instructions.len()];
        for block in &blocks.0 {
            leads[block.first] = true;
        }
        let facts = Facts::new(&view, &mut types, &locals, &instructions, |index| {
            leads.get(index).copied().unwrap_or(false)
        });
        let flow = Flow::new(module, view, linked, &locals, types, facts);
        Followed::gather(flow, &instructions, &blocks)
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
        for (number, candidate) in found.iter().enumerate() {
            match self.name(view, *candidate, &place.memory) {
                Ok(accessed) => return Ok(accessed),
                Err(reason) if number == 0 => problem = reason,
                Err(_) => {}
            }
        }
        Err(problem)
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
        let mut part = self.types.part(
            view,
            target.ty,
            candidate.address,
            memory.size,
            !target.reference,
        )?;
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
        Ok(Accessed {
            expression: self.types.expression(target, &part),
            ty: TypeRef(ty.die),
            type_name: ty.name.to_string(),
            offset: part.offset,
            size: u64::from(memory.size),
            stride,
            field: part.field,
            storage: candidate.storage,
        })
    }
}

/// Whether the code is x86-64, the only one that is read: `e_machine` of the ELF header (gABI, figure 4-3).
fn is_x86(image: &Image) -> bool {
    image.data().get(18..20) == Some(&object::elf::EM_X86_64.0.to_le_bytes()[..])
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
        _ => Ok(found.into()),
    }
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
