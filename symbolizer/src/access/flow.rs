//! Forward data flow over the blocks of one function: what each register and stack slot holds at each instruction.
//!
//! Invariant: a value is told only if it holds on every path that leads to the instruction.

use super::{
    facts::{Fact, Facts},
    globals::{Linked, Word, segment_size},
    types::Types,
    value::{Address, Root, Value, common},
};
use crate::{
    Module, Untraced,
    dwarf::View,
    locals::{Locals, Register},
    machine_code::{
        Blocks, Effect, Index, Instruction, Memory, Next, REGISTERS, Segment, Source, is_preserved,
    },
};

const RAX: Register = Register(0);
pub(super) const RSP: Register = Register(7);
/// Instructions followed for one function, all rounds together, per instruction of it.
const MOST_ROUNDS: usize = 64;
/// Stack slots kept.
const MOST_SLOTS: usize = 512;

/// Registers and stack slots at one point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct State {
    pub(super) registers: [Value; REGISTERS],
    /// By offset from the canonical frame address, sorted; 8 bytes each.
    slots: Vec<(i64, Value)>,
}

impl State {
    fn unknown() -> State {
        State {
            registers: [Value::COMPUTED; REGISTERS],
            slots: Vec::new(),
        }
    }

    pub(super) fn register(&self, register: Register) -> Value {
        self.registers
            .get(usize::from(register.0))
            .copied()
            .unwrap_or(Value::COMPUTED)
    }

    fn set(&mut self, register: Register, value: Value) {
        if let Some(place) = self.registers.get_mut(usize::from(register.0)) {
            *place = value;
        }
    }

    /// A register's offset from the canonical frame address.
    pub(super) fn frame(&self, register: Register) -> Option<i64> {
        match self.register(register) {
            Value::Address(Address {
                root: Root::Frame,
                offset,
                stride: 0,
            }) => Some(offset),
            _ => None,
        }
    }

    fn slot(&self, offset: i64) -> Option<Value> {
        let at = self
            .slots
            .binary_search_by_key(&offset, |slot| slot.0)
            .ok()?;
        self.slots.get(at).map(|slot| slot.1)
    }

    fn store(&mut self, offset: i64, size: u32, value: Value) {
        let end = offset.saturating_add(i64::from(size));
        self.slots
            .retain(|&(slot, _)| slot >= end || slot.saturating_add(8) <= offset);
        if size == 8 && self.slots.len() < MOST_SLOTS {
            let at = self.slots.partition_point(|slot| slot.0 < offset);
            self.slots.insert(at, (offset, value));
        }
    }
}

/// One function's analysis.
pub(super) struct Flow<'m> {
    pub(super) module: &'m Module,
    pub(super) view: View<'m>,
    pub(super) linked: &'m Linked,
    pub(super) locals: &'m Locals,
    pub(super) types: Types,
    pub(super) facts: Facts,
    /// Addresses of the frame from this offset on are known outside of the function's own stack pointer.
    escaped: Option<i64>,
}

impl<'m> Flow<'m> {
    pub(super) fn new(
        module: &'m Module,
        view: View<'m>,
        linked: &'m Linked,
        locals: &'m Locals,
        types: Types,
        facts: Facts,
    ) -> Self {
        Flow {
            module,
            view,
            linked,
            locals,
            types,
            facts,
            escaped: None,
        }
    }

    /// The state at the start of each block. Nothing where it does not come to rest.
    pub(super) fn run(
        &mut self,
        instructions: &[Instruction],
        blocks: &Blocks,
    ) -> Option<Vec<Option<State>>> {
        let mut budget = instructions.len().saturating_mul(MOST_ROUNDS) + 4096;
        loop {
            let escaped = self.escaped;
            let states = self.round(instructions, blocks, &mut budget)?;
            if escaped == self.escaped {
                return Some(states);
            }
        }
    }

    fn round(
        &mut self,
        instructions: &[Instruction],
        blocks: &Blocks,
        budget: &mut usize,
    ) -> Option<Vec<Option<State>>> {
        let count = blocks.0.len();
        let mut states: Vec<Option<State>> = vec![None; count];
        let mut queued = vec![false; count];
        let mut queue = std::collections::BTreeSet::new();
        for (number, block) in blocks.0.iter().enumerate() {
            if block.is_entry {
                let mut state = State::unknown();
                self.anchor(&mut state, instructions.get(block.first)?.address);
                states[number] = Some(state);
                queue.insert(number);
                queued[number] = true;
            }
        }
        while let Some(number) = queue.pop_first() {
            queued[number] = false;
            let block = &blocks.0[number];
            let Some(mut state) = states[number].clone() else {
                continue;
            };
            for index in block.first..=block.last {
                *budget = budget.checked_sub(1)?;
                self.tell(&mut state, index);
                self.step(&mut state, &instructions[index]);
            }
            for &successor in &block.successors {
                let successor = successor as usize;
                let changed = match &mut states[successor] {
                    Some(known) => self.meet_states(
                        known,
                        &state,
                        instructions[blocks.0[successor].first].address,
                    ),
                    unreached @ None => {
                        *unreached = Some(state.clone());
                        true
                    }
                };
                if changed && !queued[successor] {
                    queued[successor] = true;
                    queue.insert(successor);
                }
            }
        }
        Some(states)
    }

    /// The register that call frame information counts from.
    fn anchor(&self, state: &mut State, address: u64) {
        if let Some((register, offset)) = self.module.cfa(address) {
            let value = Address::new(Root::Frame, offset.wrapping_neg());
            state.set(register, Value::Address(value));
        }
    }

    /// What debug info says before an instruction.
    pub(super) fn tell(&mut self, state: &mut State, index: usize) {
        let facts: Vec<Fact> = self.facts.news(index).collect();
        for fact in facts {
            let known = state.register(fact.register);
            if fact.in_memory
                && matches!(
                    known,
                    Value::Address(Address {
                        root: Root::Frame,
                        ..
                    })
                )
            {
                continue;
            }
            let value = if fact.weak {
                match known {
                    Value::Unknown(_) => fact.value,
                    known => known,
                }
            } else {
                self.combine(known, fact.value)
            };
            state.set(fact.register, value);
        }
    }

    /// What flow has derived and what debug info tells, of one value.
    fn combine(&mut self, known: Value, told: Value) -> Value {
        let (Value::Address(address), Value::Address(stated)) = (known, told) else {
            return match (known, told) {
                (Value::Unknown(Untraced::Computed), Value::Unknown(_)) => told,
                (Value::Unknown(_), _) => told,
                (Value::Constant(_) | Value::Integer(_), Value::Address(_)) => told,
                _ => known,
            };
        };
        let (Root::Pointer(target), Root::Pointer(name)) = (address.root, stated.root) else {
            return known;
        };
        let distance = address.offset.wrapping_sub(stated.offset);
        let size_of = |types: &Types, id| types.get(id).and_then(|ty| ty.size).unwrap_or(0);
        let is_bytes = |types: &Types, id| size_of(types, id) == 1;
        if target.ty == name.ty {
            let size = size_of(&self.types, target.ty).max(1) as i64;
            return if distance % size == 0 || address.stride != 0 {
                told
            } else {
                Value::Unknown(Untraced::Conflict)
            };
        }
        if is_bytes(&self.types, name.ty) && !is_bytes(&self.types, target.ty) {
            return known;
        }
        let size = size_of(&self.types, target.ty) as i64;
        if is_bytes(&self.types, target.ty)
            || !(0..size.max(1)).contains(&address.offset)
            || self.types.holds(&self.view, target.ty, distance, name.ty)
            || self
                .types
                .holds(&self.view, name.ty, distance.wrapping_neg(), target.ty)
        {
            return told;
        }
        Value::Unknown(Untraced::Conflict)
    }

    /// One instruction.
    pub(super) fn step(&mut self, state: &mut State, instruction: &Instruction) {
        let address = instruction.address;
        let mut sets: Vec<(Register, Value)> = Vec::new();
        let mut stores: Vec<(Memory, Value)> = Vec::new();
        for effect in &instruction.effects {
            match *effect {
                Effect::Set { to, value } => {
                    let value = self.evaluate(state, value, address);
                    if let Value::Address(found) = value {
                        self.types.note_walk(&found);
                        if found.root == Root::Frame && to != RSP && to != Register(6) {
                            self.escape(found.offset);
                        }
                    }
                    sets.push((to, value));
                }
                Effect::Swap(a, b) => {
                    sets.push((a, state.register(b)));
                    sets.push((b, state.register(a)));
                }
                Effect::Store { to, value } => {
                    stores.push((to, self.evaluate(state, value, address)));
                }
            }
        }
        for (memory, value) in stores {
            match self.address(state, &memory) {
                Ok(place) if place.root == Root::Frame && place.stride == 0 => {
                    state.store(place.offset, memory.size, value);
                }
                Ok(place) if place.root == Root::Frame => state.slots.clear(),
                Ok(Address {
                    root: Root::Global | Root::Thread,
                    ..
                }) => {}
                _ => self.forget_escaped(state),
            }
        }
        for (to, value) in sets {
            state.set(to, value);
        }
        if let Next::Call { target } = instruction.next {
            let result = target.map_or(Value::Unknown(Untraced::CallResult), |target| {
                self.result_of(target)
            });
            for number in 0..REGISTERS as u8 {
                if !is_preserved(Register(number)) {
                    state.set(Register(number), Value::COMPUTED);
                }
            }
            state.set(RAX, result);
            self.forget_escaped(state);
        }
        if state.frame(RSP).is_none() {
            self.anchor(state, instruction.end());
        }
    }

    fn escape(&mut self, offset: i64) {
        self.escaped = Some(self.escaped.map_or(offset, |known| known.min(offset)));
    }

    fn forget_escaped(&self, state: &mut State) {
        if let Some(escaped) = self.escaped {
            state
                .slots
                .retain(|&(slot, _)| slot.saturating_add(8) <= escaped);
        }
    }

    fn result_of(&mut self, target: u64) -> Value {
        let Some(ty) = self.module.return_type(target) else {
            return Value::Unknown(Untraced::CallResult);
        };
        // Larger results are in memory, or in more registers.
        if self
            .view
            .size(ty)
            .ok()
            .flatten()
            .is_none_or(|size| size > 8)
        {
            return Value::Unknown(Untraced::CallResult);
        }
        let symbol = self.module.function(target).and_then(|found| found.symbol);
        let name = symbol.map_or_else(|| "?".into(), |symbol| crate::demangle(&symbol));
        let name = name.split('(').next().unwrap_or("?");
        self.types.value(&self.view, ty, &format!("{name}()"))
    }

    fn evaluate(&mut self, state: &State, source: Source, address: u64) -> Value {
        match source {
            Source::Copy(from) => state.register(from),
            Source::Constant(value) => Value::Constant(value),
            Source::Add(a, b) => self.add(state.register(a), state.register(b), 1),
            Source::Subtract(a, b) => match (state.register(a), state.register(b)) {
                (value, Value::Constant(by)) => value.offset((by as i64).wrapping_neg()),
                (Value::Address(from), Value::Integer(multiple)) => {
                    Value::Address(from.walking(multiple))
                }
                (a, b) => match (a.multiple(), b.multiple()) {
                    (Some(a), Some(b)) => Value::Integer(common(a, b).max(1)),
                    _ => Value::COMPUTED,
                },
            },
            Source::Offset(from, by) => match state.register(from) {
                // The address of a table, in a file that is not moved.
                Value::Integer(multiple) if self.is_fixed(by) => {
                    Value::Address(Address::new(Root::Global, by).walking(multiple))
                }
                value => value.offset(by),
            },
            Source::Address(memory) => match self.address(state, &memory) {
                Ok(found) => Value::Address(found),
                Err(_) => self.sum(state, &memory),
            },
            Source::Load(memory) => self.load(state, &memory, address),
            Source::AddLoad(to, memory) => {
                let loaded = self.load(state, &memory, address);
                self.add(state.register(to), loaded, 1)
            }
            Source::Shift(from, count) => match state.register(from).multiple() {
                Some(multiple) => {
                    Value::Integer(multiple.checked_shl(count.into()).unwrap_or(0).max(1))
                }
                None if count > 0 => Value::Integer(1 << count.min(62)),
                None => Value::COMPUTED,
            },
            Source::Multiply(from, factor) => match state.register(from).multiple() {
                Some(multiple) => Value::Integer(multiple.wrapping_mul(factor).max(1)),
                None if factor > 1 => Value::Integer(factor),
                None => Value::COMPUTED,
            },
            Source::And(from, mask) => match state.register(from) {
                Value::Address(_) | Value::Unknown(_) if mask >> 32 != 0 => Value::COMPUTED,
                _ => Value::Integer(1 << mask.trailing_zeros().min(62)),
            },
            Source::Walk(from, by) => match state.register(from) {
                Value::Address(found) => Value::Address(found.walking(by)),
                Value::Unknown(reason) => Value::Unknown(reason),
                _ => Value::INTEGER,
            },
            Source::Either(a, b) => {
                let (a, b) = (state.register(a), state.register(b));
                self.meet(a, b, address)
            }
            Source::EitherLoad(to, memory) => {
                let loaded = self.load(state, &memory, address);
                self.meet(state.register(to), loaded, address)
            }
            Source::Narrow(from) => match state.register(from) {
                value @ (Value::Integer(_) | Value::Constant(_)) => value,
                _ => Value::INTEGER,
            },
            Source::NarrowAddress(memory) => match self.sum(state, &memory) {
                value @ (Value::Integer(_) | Value::Constant(_)) => value,
                _ => Value::INTEGER,
            },
            Source::Mixed(from) => match state.register(from).multiple() {
                Some(_) => Value::INTEGER,
                None => Value::COMPUTED,
            },
            Source::Integer => Value::INTEGER,
            Source::Unknown => Value::COMPUTED,
        }
    }

    /// `a + b * scale`.
    fn add(&self, a: Value, b: Value, scale: u64) -> Value {
        match (a, b) {
            (value, Value::Constant(by)) => value.offset(by.wrapping_mul(scale) as i64),
            (Value::Constant(by), value) if scale == 1 => self.on_constant(value, by as i64),
            (Value::Address(from), Value::Integer(multiple)) => {
                Value::Address(from.walking(multiple.wrapping_mul(scale)))
            }
            (Value::Integer(multiple), Value::Address(from)) if scale == 1 => {
                Value::Address(from.walking(multiple))
            }
            // What is scaled is an index, wherever it comes from.
            (Value::Address(from), Value::Unknown(_)) if scale > 1 => {
                Value::Address(from.walking(scale))
            }
            (a, b) => match (a.multiple(), b.multiple()) {
                (Some(a), Some(b)) => Value::Integer(common(a, b.wrapping_mul(scale)).max(1)),
                (Some(a), None) if scale > 1 => Value::Integer(common(a, scale).max(1)),
                _ => Value::COMPUTED,
            },
        }
    }

    fn on_constant(&self, value: Value, by: i64) -> Value {
        match value {
            Value::Integer(multiple) if self.is_fixed(by) => {
                Value::Address(Address::new(Root::Global, by).walking(multiple))
            }
            value => value.offset(by),
        }
    }

    /// Whether a constant is an address: the file is loaded where it was linked, and has that address.
    fn is_fixed(&self, constant: i64) -> bool {
        let memory = self.module.memory();
        memory.start >= 1 << 16 && memory.contains(&(constant as u64))
    }

    /// The sum of an operand's registers, be it an address or not.
    fn sum(&self, state: &State, memory: &Memory) -> Value {
        if memory.absolute || memory.segment != Segment::Flat {
            return Value::COMPUTED;
        }
        let base = memory
            .base
            .map_or(Value::Constant(0), |base| state.register(base));
        let sum = match memory.index {
            Some(Index::Register(index)) => {
                let index = state.register(index);
                let scale = u64::from(memory.scale);
                match (base, index) {
                    (Value::Constant(by), index) if scale > 1 => {
                        let multiple = index.multiple().unwrap_or(1).wrapping_mul(scale);
                        self.on_constant(Value::Integer(multiple), by as i64)
                    }
                    (base, index) => self.add(base, index, scale),
                }
            }
            Some(Index::Lanes) => self.add(base, Value::INTEGER, memory.scale.into()),
            None => base,
        };
        if memory.displacement == 0 {
            return sum;
        }
        match sum {
            Value::Integer(_) => self.on_constant(sum, memory.displacement),
            sum => sum.offset(memory.displacement),
        }
    }

    /// The place of a memory operand.
    pub(super) fn address(&self, state: &State, memory: &Memory) -> Result<Address, Untraced> {
        match memory.segment {
            Segment::Other => return Err(Untraced::Computed),
            Segment::Thread => {
                let flat = Memory {
                    segment: Segment::Flat,
                    ..*memory
                };
                if memory.base.is_none() && memory.index.is_none() {
                    return Ok(Address::new(Root::Thread, memory.displacement));
                }
                return match self.sum(state, &flat) {
                    Value::Constant(offset) => Ok(Address::new(Root::Thread, offset as i64)),
                    _ => Err(Untraced::Computed),
                };
            }
            Segment::Flat => {}
        }
        if memory.absolute {
            return Ok(Address::new(Root::Global, memory.displacement));
        }
        match self.sum(state, memory) {
            Value::Address(found) => Ok(found),
            Value::Constant(value) if self.is_fixed(value as i64) => {
                Ok(Address::new(Root::Global, value as i64))
            }
            Value::Unknown(reason) => Err(reason),
            Value::Constant(_) | Value::Integer(_) => {
                // Say why the pointer is not known, not that the index is a number.
                let base = memory.base.map(|base| state.register(base));
                match base {
                    Some(Value::Unknown(reason)) => Err(reason),
                    _ => Err(Untraced::Untyped),
                }
            }
        }
    }

    /// What a load of 8 bytes gives.
    fn load(&mut self, state: &State, memory: &Memory, at: u64) -> Value {
        let found = match self.address(state, memory) {
            Ok(found) => found,
            Err(reason) => return Value::Unknown(reason),
        };
        match found.root {
            Root::Pointer(_) => self.types.load(&self.view, found),
            Root::Frame => {
                let slot = (found.stride == 0)
                    .then(|| state.slot(found.offset))
                    .flatten();
                let told = self.frame_object(state, found, at);
                let told = told.map(|found| self.types.load(&self.view, found));
                match (slot, told) {
                    (Some(slot), Some(told)) => self.combine(slot, told),
                    (Some(value), None) | (None, Some(value)) => value,
                    (None, None) => Value::Unknown(Untraced::Spill),
                }
            }
            Root::Global => {
                if found.stride == 0 {
                    match self.linked.word(found.offset as u64) {
                        Some(Word::Address(svma)) => {
                            return Value::Address(Address::new(Root::Global, svma as i64));
                        }
                        Some(Word::ThreadOffset(offset)) => return Value::Constant(offset as u64),
                        None => {}
                    }
                }
                match self.global_object(found) {
                    Ok(found) => self.types.load(&self.view, found),
                    Err(reason) => Value::Unknown(reason),
                }
            }
            Root::Thread => {
                if found.offset == 0 && found.stride == 0 {
                    // The thread's block starts with its own address.
                    return Value::Address(Address::new(Root::Thread, 0));
                }
                match self.thread_object(found) {
                    Ok(found) => self.types.load(&self.view, found),
                    Err(reason) => Value::Unknown(reason),
                }
            }
        }
    }

    /// A place in the frame as a place in a variable.
    pub(super) fn frame_object(
        &mut self,
        state: &State,
        address: Address,
        at: u64,
    ) -> Option<Address> {
        let frame = |register| state.frame(register);
        let (variable, within) = self.facts.variable_at(address.offset, at, frame)?;
        let local = self.locals.variables.get(variable as usize)?;
        let name = local.name.as_deref().unwrap_or("?");
        let target = self.types.object(&self.view, local.ty?, name)?;
        Some(Address {
            root: Root::Pointer(target),
            offset: within as i64,
            stride: address.stride,
        })
    }

    /// A global place as a place in a variable.
    pub(super) fn global_object(&mut self, address: Address) -> Result<Address, Untraced> {
        let object = self.module.object(address.offset as u64);
        self.object(object, address, address.offset as u64)
    }

    /// A thread-local place as a place in a variable.
    pub(super) fn thread_object(&mut self, address: Address) -> Result<Address, Untraced> {
        let offset = self.thread_offset(address).ok_or(Untraced::Computed)?;
        let object = self.module.thread_local_object(offset);
        self.object(object, address, offset)
    }

    /// The offset in the module's thread-local segment.
    pub(super) fn thread_offset(&self, address: Address) -> Option<u64> {
        let size = segment_size(self.module.image())?;
        u64::try_from(address.offset.wrapping_add(size)).ok()
    }

    fn object(
        &mut self,
        object: Result<crate::Object, crate::Missing>,
        address: Address,
        at: u64,
    ) -> Result<Address, Untraced> {
        let object = object.map_err(|_| Untraced::Untyped)?;
        let ty = object.ty.ok_or(Untraced::Untyped)?;
        let target = self.types.object(&self.view, ty.0, &object.name);
        Ok(Address {
            root: Root::Pointer(target.ok_or(Untraced::Untyped)?),
            offset: at.wrapping_sub(object.address) as i64,
            stride: address.stride,
        })
    }

    /// What holds on both of two paths. Whether the first state changed.
    fn meet_states(&mut self, known: &mut State, other: &State, at: u64) -> bool {
        let before = known.clone();
        for (place, value) in known.registers.iter_mut().zip(other.registers) {
            *place = self.meet(*place, value, at);
        }
        let old = std::mem::take(&mut known.slots);
        for (offset, value) in old {
            if let Some(other) = other.slot(offset) {
                let value = self.meet(value, other, at);
                known.slots.push((offset, value));
            }
        }
        if known.frame(RSP).is_none() {
            self.anchor(known, at);
        }
        *known != before
    }

    fn meet(&mut self, a: Value, b: Value, at: u64) -> Value {
        if a == b {
            return a;
        }
        match (a, b) {
            (Value::Address(a), Value::Address(b)) => self.meet_addresses(a, b, at),
            // No pointer: it is not followed on that path.
            (address @ Value::Address(_), Value::Constant(0..=4095))
            | (Value::Constant(0..=4095), address @ Value::Address(_)) => address,
            (Value::Unknown(reason), _) | (_, Value::Unknown(reason)) => Value::Unknown(reason),
            (a, b) => match (a.multiple(), b.multiple()) {
                (Some(a), Some(b)) => Value::Integer(common(a, b).max(1)),
                _ => Value::Unknown(Untraced::Conflict),
            },
        }
    }

    fn meet_addresses(&mut self, a: Address, b: Address, at: u64) -> Value {
        let conflict = Value::Unknown(Untraced::Conflict);
        let distance = a.offset.abs_diff(b.offset);
        let same = |root| {
            let stride = common(common(a.stride, b.stride), distance);
            Value::Address(Address {
                root,
                offset: a.offset,
                stride,
            })
        };
        match (a.root, b.root) {
            (Root::Pointer(first), Root::Pointer(second)) => {
                if first.ty == second.ty && first.reference == second.reference {
                    if first.name == second.name {
                        return same(a.root);
                    }
                    let name = self.types.anonymous(first.ty);
                    return same(Root::Pointer(super::value::Target { name, ..first }));
                }
                self.meet_parts(a, b).unwrap_or(conflict)
            }
            (Root::Frame, Root::Frame) => {
                let variable = |offset| self.facts.variable_at(offset, at, |_| None);
                match (variable(a.offset), variable(b.offset)) {
                    (Some((first, _)), Some((second, _))) if first == second => same(a.root),
                    _ => self.meet_parts(a, b).unwrap_or(conflict),
                }
            }
            (Root::Global, Root::Global) => {
                let first = self.module.object(a.offset as u64);
                let second = self.module.object(b.offset as u64);
                match (first, second) {
                    (Ok(first), Ok(second)) if first.address == second.address => same(a.root),
                    _ => self.meet_parts(a, b).unwrap_or(conflict),
                }
            }
            _ => self.meet_parts(a, b).unwrap_or(conflict),
        }
    }

    /// Parts of different objects that have one type.
    fn meet_parts(&mut self, a: Address, b: Address) -> Option<Value> {
        let (a, b) = (self.as_pointed(a)?, self.as_pointed(b)?);
        let (Root::Pointer(first), Root::Pointer(second)) = (a.root, b.root) else {
            return None;
        };
        let ty = if b.offset == 0 && self.types.holds(&self.view, first.ty, a.offset, second.ty) {
            second.ty
        } else if a.offset == 0 && self.types.holds(&self.view, second.ty, b.offset, first.ty) {
            first.ty
        } else {
            return None;
        };
        let name = self.types.anonymous(ty);
        let target = super::value::Target {
            ty,
            name,
            reference: false,
        };
        Some(Value::Address(Address {
            root: Root::Pointer(target),
            offset: 0,
            stride: common(a.stride, b.stride),
        }))
    }

    fn as_pointed(&mut self, address: Address) -> Option<Address> {
        match address.root {
            Root::Pointer(_) => Some(address),
            Root::Global => self.global_object(address).ok(),
            Root::Thread => self.thread_object(address).ok(),
            Root::Frame => None,
        }
    }
}
