//! Data by instruction where no debug info says where variables are: from the prototypes of functions and the members of
//! types alone, as a kernel describes itself.
//!
//! The pointers that a function is given are in registers when it is entered (System V psABI x86-64, figure 3.4), and
//! lead to others:
//!
//! ```text
//!   fput(struct file *file)    %rdi  struct file                  lock xadd %rax, 0x38(%rdi)   struct file + 0x38
//!   mov 0x20(%rdi), %rbx       %rbx  what the member points to    incl (%rbx)                  that + 0
//! ```
//!
//! Invariant: as for data by debug info, a type is told only if it holds on every path to the instruction.

use std::collections::BTreeSet;

use super::{
    Operand, Untraced,
    state::State,
    value::{Address, NameId, Root, Target, TypeId, Value, common},
};
use crate::{
    locals::Register,
    machine_code::{
        Blocks, Effect, Index, Instruction, Memory, Next, REGISTERS, Segment, Source, Table,
        decode, is_preserved,
    },
};

/// Instructions of a function that are followed.
const MOST_INSTRUCTIONS: usize = 20_000;
/// Instructions followed for one function, all rounds together, per instruction of it.
const MOST_ROUNDS: usize = 64;
/// Where the first six integers and pointers are passed: rdi, rsi, rdx, rcx, r8, r9.
const PARAMETERS: [Register; 6] = [
    Register(5),
    Register(4),
    Register(1),
    Register(2),
    Register(8),
    Register(9),
];
const RAX: Register = Register(0);
const RSP: Register = Register(7);
/// Numbers that functions return in the place of pointers: none, and errors (`IS_ERR`, include/linux/err.h).
const LARGEST_ERROR: u64 = 4095;

/// Types, by numbers that mean something to who describes them. All addresses are as they are in the code.
pub trait Prototypes {
    /// What each of the first parameters of the function that starts at an address points to; `None` for one that is no
    /// pointer, or to nothing known. Nothing after a parameter that is not in one register.
    fn parameters(&self, function: u64) -> Vec<Option<u32>>;
    /// Whether the function changes no register: what tracers have called at the start of another.
    fn keeps_registers(&self, function: u64) -> bool;
    /// What the pointer that the function returns points to.
    fn result(&self, function: u64) -> Option<u32>;
    /// What the pointer at an offset of an object of a type points to; nothing where something else may be there.
    fn pointer_at(&self, ty: u32, offset: u64) -> Option<u32>;
    /// Bytes of an object of a type.
    fn size(&self, ty: u32) -> Option<u64>;
    /// The type of the variable that covers an address, and its first address.
    fn variable(&self, address: u64) -> Option<(u32, u64)>;
    /// The same of an offset in the block that each CPU has.
    fn of_processor(&self, offset: u64) -> Option<(u32, u64)>;
}

/// What a memory operand reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reached {
    /// The type of the object.
    pub ty: u32,
    /// Bytes from its start to the first accessed one.
    pub offset: u64,
    /// Bytes that the operand reads or writes.
    pub size: u64,
    /// Bytes from one object to the next, where it is one of several.
    pub stride: Option<u64>,
}

/// A function, followed once.
#[derive(Debug)]
pub struct Prototyped {
    places: Vec<(u64, Memory, Result<Reached, Untraced>)>,
    addresses: Vec<u64>,
}

impl Prototyped {
    /// Follows the function whose code, of x86-64, lies at `start`.
    pub fn new(code: &[u8], start: u64, types: &dyn Prototypes) -> Result<Prototyped, Untraced> {
        let instructions = decode(code, start, MOST_INSTRUCTIONS + 1);
        if instructions.is_empty() {
            return Err(Untraced::Undecodable);
        }
        if instructions.len() > MOST_INSTRUCTIONS {
            return Err(Untraced::TooLarge);
        }
        // The tables of jumps are not at hand: such a jump may lead anywhere.
        let blocks = Blocks::new(&instructions, |_| Table::NotUnderstood);
        let flow = Flow { start, types };
        let states = flow.run(&instructions, &blocks).ok_or(Untraced::TooLarge)?;
        let mut places = Vec::new();
        for (block, state) in blocks.0.iter().zip(states) {
            let Some(mut state) = state else { continue };
            for (_, instruction) in block.instructions(&instructions) {
                for memory in &instruction.operands {
                    let reached = flow.reached(&state, memory);
                    places.push((instruction.address, *memory, reached));
                }
                flow.step(&mut state, instruction);
            }
        }
        places.sort_by_key(|(address, ..)| *address);
        Ok(Prototyped {
            places,
            addresses: instructions.iter().map(|found| found.address).collect(),
        })
    }

    /// What the memory operand of the instruction at an address stands for.
    pub fn access(&self, address: u64, operand: Operand) -> Result<Reached, Untraced> {
        if self.addresses.binary_search(&address).is_err() {
            return Err(Untraced::Undecodable);
        }
        let first = self.places.partition_point(|(at, ..)| *at < address);
        let wanted = |memory: &Memory| match operand {
            Operand::Load => memory.read,
            Operand::Store => memory.write,
        };
        let of_it = self.places[first..].iter();
        let mut of_it = of_it.take_while(|(at, ..)| *at == address);
        let found = of_it.find(|(_, memory, _)| wanted(memory));
        found.map_or(Err(Untraced::NoMemoryOperand), |(.., reached)| *reached)
    }
}

/// The analysis of one function.
struct Flow<'t> {
    start: u64,
    types: &'t dyn Prototypes,
}

fn pointer(to: u32) -> Value {
    let target = Target {
        ty: TypeId(to),
        name: NameId(0),
        reference: false,
        aside: false,
    };
    Value::Address(Address::new(Root::Pointer(target), 0))
}

fn is_no_pointer(value: Value) -> bool {
    matches!(value, Value::Constant(number)
        if number <= LARGEST_ERROR || number.wrapping_neg() <= LARGEST_ERROR)
}

impl Flow<'_> {
    /// The state at the start of each block. Nothing where it does not come to rest.
    fn run(&self, instructions: &[Instruction], blocks: &Blocks) -> Option<Vec<Option<State>>> {
        let mut budget = instructions.len().saturating_mul(MOST_ROUNDS) + 4096;
        let mut states: Vec<Option<State>> = vec![None; blocks.0.len()];
        let mut queue = BTreeSet::new();
        for (number, block) in blocks.0.iter().enumerate() {
            // What fills the room before the target of a jump is never executed.
            let mut all = block.instructions(instructions);
            let is_filling =
                all.all(|(_, found)| found.effects.is_empty() && found.next == Next::Following);
            if block.is_entry && (number == 0 || !is_filling) {
                states[number] = Some(self.entered(number == 0));
                queue.insert(number);
            }
        }
        while let Some(number) = queue.pop_first() {
            let block = &blocks.0[number];
            let Some(mut state) = states[number].clone() else {
                continue;
            };
            for (_, instruction) in block.instructions(instructions) {
                budget = budget.checked_sub(1)?;
                self.step(&mut state, instruction);
            }
            for &successor in &block.successors {
                let successor = successor as usize;
                let changed = match &mut states[successor] {
                    Some(known) => self.meet_states(known, &state),
                    unreached @ None => {
                        *unreached = Some(state.clone());
                        true
                    }
                };
                if changed {
                    queue.insert(successor);
                }
            }
        }
        Some(states)
    }

    /// What is known where the function begins, or where it is not known from where control comes.
    fn entered(&self, is_start: bool) -> State {
        let mut state = State::unknown();
        if is_start {
            state.set(RSP, Value::Address(Address::new(Root::Frame, 0)));
            let parameters = self.types.parameters(self.start);
            for (register, target) in PARAMETERS.into_iter().zip(parameters) {
                if let Some(target) = target {
                    state.set(register, pointer(target));
                }
            }
        }
        state
    }

    fn step(&self, state: &mut State, instruction: &Instruction) {
        let mut sets: Vec<(Register, Value)> = Vec::new();
        let mut stores: Vec<(Memory, Value)> = Vec::new();
        for effect in &instruction.effects {
            match *effect {
                Effect::Set { to, value } => sets.push((to, self.evaluate(state, value))),
                Effect::Swap(a, b) => {
                    sets.push((a, state.register(b)));
                    sets.push((b, state.register(a)));
                }
                Effect::Store { to, value } => stores.push((to, self.evaluate(state, value))),
            }
        }
        for (memory, value) in stores {
            match self.address(state, &memory) {
                Some(place) if place.root == Root::Frame => {
                    state.store(place.offset, memory.size, value);
                }
                Some(_) => {}
                // It may be into the frame.
                None => state.slots.clear(),
            }
        }
        for (to, value) in sets {
            state.set(to, value);
        }
        if let Next::Call { target } = instruction.next
            && !target.is_some_and(|target| self.types.keeps_registers(target))
        {
            for number in 0..REGISTERS as u8 {
                if !is_preserved(Register(number)) {
                    state.set(Register(number), Value::COMPUTED);
                }
            }
            let result = target.and_then(|target| self.types.result(target));
            let result = result.map_or(Value::Unknown(Untraced::CallResult), pointer);
            state.set(RAX, result);
            // It may have been given an address of the frame.
            state.slots.clear();
        }
    }

    fn evaluate(&self, state: &State, source: Source) -> Value {
        match source {
            Source::Copy(from) => state.register(from),
            Source::Constant(value) => Value::Constant(value),
            Source::Add(a, b) => self.add(state.register(a), state.register(b), 1),
            Source::Offset(from, by) => state.register(from).offset(by),
            Source::Address(memory) => match self.address(state, &memory) {
                Some(found) => Value::Address(found),
                None => Value::COMPUTED,
            },
            Source::Load(memory) => self.load(state, &memory),
            Source::AddLoad(to, memory) => {
                let loaded = self.load(state, &memory);
                self.add(state.register(to), loaded, 1)
            }
            Source::Shift(from, count) if count < 63 => state
                .register(from)
                .scaled(1 << count)
                .unwrap_or(Value::integer(1 << count, 0)),
            Source::Multiply(from, factor) => state.register(from).multiplied(factor),
            Source::Either(a, b) => self.meet(state.register(a), state.register(b)),
            Source::EitherLoad(to, memory) => {
                let loaded = self.load(state, &memory);
                self.meet(state.register(to), loaded)
            }
            Source::Narrow(from) | Source::Mixed(from) => match state.register(from) {
                value @ (Value::Integer { .. } | Value::Constant(_)) => value,
                _ => Value::INTEGER,
            },
            Source::Integer | Source::NarrowAddress(_) => Value::INTEGER,
            // Bits of a pointer that say something else are taken off: what is left may be of another type.
            Source::And(..)
            | Source::Subtract(..)
            | Source::Walk(..)
            | Source::Shift(..)
            | Source::Unknown => Value::COMPUTED,
        }
    }

    /// `a + b * scale`.
    fn add(&self, a: Value, b: Value, scale: u64) -> Value {
        let b = match b.scaled(scale) {
            Some(index) => index,
            None if scale > 1 => Value::integer(scale, 0),
            None => b,
        };
        match (a, b) {
            (Value::Address(from), index) | (index, Value::Address(from)) => {
                let moved = index.parts().and_then(|index| self.walk(from, index));
                moved.map_or(Value::COMPUTED, Value::Address)
            }
            (a, b) => match (a.parts(), b.parts()) {
                (Some(a), Some(b)) => Value::integer(common(a.0, b.0), a.1.wrapping_add(b.1)),
                _ => Value::COMPUTED,
            },
        }
    }

    /// So many bytes on, and some multiple of others: to another of several objects, or it is not known where.
    fn walk(&self, from: Address, (multiple, offset): (u64, i64)) -> Option<Address> {
        let moved = from.moved(offset);
        if multiple == 0 {
            return Some(moved);
        }
        let Root::Pointer(target) = from.root else {
            return None;
        };
        let size = self.types.size(target.ty.0).filter(|&size| size > 0)?;
        multiple.is_multiple_of(size).then_some(Address {
            elements: true,
            ..moved
        })
    }

    /// The place of a memory operand.
    fn address(&self, state: &State, memory: &Memory) -> Option<Address> {
        let plain = memory.base.is_none() && memory.index.is_none();
        match memory.segment {
            Segment::Processor if plain => {
                return Some(Address::new(Root::Thread, memory.displacement));
            }
            Segment::Flat if memory.absolute => {
                return Some(Address::new(Root::Global, memory.displacement));
            }
            Segment::Flat => {}
            _ => return None,
        }
        let base = memory
            .base
            .map_or(Value::Constant(0), |base| state.register(base));
        let sum = match memory.index {
            Some(Index::Register(index)) => {
                self.add(base, state.register(index), u64::from(memory.scale))
            }
            Some(Index::Lanes) => return None,
            None => base,
        };
        match sum.offset(memory.displacement) {
            Value::Address(found) => Some(found),
            _ => None,
        }
    }

    /// A place as one in an object with a type; its size and whether it is one of several.
    fn object(&self, address: Address) -> Option<(u32, u64)> {
        let (ty, offset) = match address.root {
            Root::Pointer(target) => (target.ty.0, address.offset),
            Root::Global | Root::Thread => {
                let at = address.offset as u64;
                let (ty, start) = match address.root {
                    Root::Global => self.types.variable(at),
                    _ => self.types.of_processor(at),
                }?;
                (ty, at.wrapping_sub(start) as i64)
            }
            Root::Frame => return None,
        };
        let size = self.types.size(ty)?;
        let offset = if address.elements && size > 0 {
            offset.rem_euclid(size as i64)
        } else {
            offset
        };
        let offset = u64::try_from(offset).ok().filter(|&offset| offset < size)?;
        Some((ty, offset))
    }

    /// What a load of 8 bytes gives.
    fn load(&self, state: &State, memory: &Memory) -> Value {
        let Some(place) = self.address(state, memory) else {
            return Value::COMPUTED;
        };
        if place.root == Root::Frame {
            return state.slot(place.offset).unwrap_or(Value::COMPUTED);
        }
        let target = self
            .object(place)
            .and_then(|(ty, offset)| self.types.pointer_at(ty, offset));
        target.map_or(Value::Unknown(Untraced::Untyped), pointer)
    }

    fn reached(&self, state: &State, memory: &Memory) -> Result<Reached, Untraced> {
        let Some(place) = self.address(state, memory) else {
            let base = memory.base.map(|base| state.register(base));
            return Err(match base {
                Some(Value::Unknown(reason)) => reason,
                _ => Untraced::Computed,
            });
        };
        if place.root == Root::Frame {
            return Err(Untraced::Spill);
        }
        let (ty, offset) = self.object(place).ok_or(Untraced::OutsideType)?;
        let size = u64::from(memory.size);
        let whole = self.types.size(ty).ok_or(Untraced::DeclarationOnly)?;
        if size == 0 || memory.string || offset.checked_add(size).is_none_or(|end| end > whole) {
            return Err(Untraced::OutsideType);
        }
        Ok(Reached {
            ty,
            offset,
            size,
            stride: place.elements.then_some(whole),
        })
    }

    fn meet_states(&self, known: &mut State, other: &State) -> bool {
        let before = known.clone();
        for (place, value) in known.registers.iter_mut().zip(other.registers) {
            *place = self.meet(*place, value);
        }
        let old = std::mem::take(&mut known.slots);
        for (offset, value) in old {
            if let Some(other) = other.slot(offset) {
                known.slots.push((offset, self.meet(value, other)));
            }
        }
        *known != before
    }

    fn meet(&self, a: Value, b: Value) -> Value {
        if a == b {
            return a;
        }
        match (a, b) {
            // It is not followed on that path.
            (address @ Value::Address(_), number) if is_no_pointer(number) => address,
            (number, address @ Value::Address(_)) if is_no_pointer(number) => address,
            (Value::Address(a), Value::Address(b)) if a.root == b.root => {
                let distance = a.offset.abs_diff(b.offset);
                let either = Address {
                    elements: a.elements || b.elements,
                    ..a
                };
                let walked = self.walk(either, (distance, 0));
                walked.map_or(Value::Unknown(Untraced::Conflict), Value::Address)
            }
            (Value::Address(_), _) | (_, Value::Address(_)) => Value::Unknown(Untraced::Conflict),
            (Value::Unknown(reason), _) | (_, Value::Unknown(reason)) => Value::Unknown(reason),
            (a, b) => Value::either_integer(a, b).unwrap_or(Value::Unknown(Untraced::Conflict)),
        }
    }
}
