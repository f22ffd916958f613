//! The values that instructions compute and load.

use super::{
    flow::Flow,
    globals::Word,
    state::State,
    types::Name,
    value::{Address, Root, Value, common},
};
use crate::{
    Untraced,
    dwarf::Die,
    machine_code::{Index, Memory, Segment, Source},
};

impl Flow<'_> {
    pub(super) fn read_result(&mut self, target: u64) -> Value {
        let Some(ty) = self.module.return_type(target) else {
            return Value::Unknown(Untraced::CallResult);
        };
        if let Some(result) = self.result_in_memory(ty) {
            return result;
        }
        // Others are in more registers.
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
        let name = format!("{name}()");
        self.types.value(&self.view, ty, Name::local(&name))
    }

    pub(super) fn result_of(&mut self, target: u64) -> Value {
        if let Some(known) = self.results.get(&target) {
            return *known;
        }
        let result = self.read_result(target);
        self.results.insert(target, result);
        result
    }

    /// A structure that is returned in memory: the caller passes its address first (System V psABI x86-64, section
    /// 3.2.3; Rust does the same), and the function returns it.
    pub(super) fn result_in_memory(&mut self, ty: Die) -> Option<Value> {
        let (peeled, entry) = self.view.peel(ty).ok()?;
        let is_structure = matches!(
            entry.tag,
            gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type | gimli::DW_TAG_union_type
        );
        if !is_structure || self.view.size(peeled).ok()?? <= 16 {
            return None;
        }
        let target = self.types.object(&self.view, ty, Name::local("(result)"))?;
        Some(Value::Address(Address::new(Root::Pointer(target), 0)))
    }

    /// The value that a variable in the frame will have once this operand is stored.
    pub(super) fn variable_value(&mut self, state: &State, to: &Memory, at: u64) -> Value {
        match self.address(state, to) {
            Ok(place) if place.root == Root::Frame && place.stride == 0 && to.size == 8 => self
                .frame_object(state, place, at)
                .map_or(Value::COMPUTED, |found| self.types.load(&self.view, found)),
            _ => Value::COMPUTED,
        }
    }

    pub(super) fn evaluate(&mut self, state: &State, source: Source, address: u64) -> Value {
        match source {
            Source::Copy(from) => state.register(from),
            Source::Constant(value) => Value::Constant(value),
            Source::Add(a, b) => self.add(state.register(a), state.register(b), 1),
            Source::Subtract(a, b) => match (state.register(a), state.register(b)) {
                (value, Value::Constant(by)) => value.offset((by as i64).wrapping_neg()),
                (Value::Address(from), Value::Integer { multiple, offset }) => {
                    Value::Address(self.types.walk(from, (multiple, offset.wrapping_neg())))
                }
                (a, b) => match (a.parts(), b.parts()) {
                    (Some(a), Some(b)) => Value::integer(common(a.0, b.0), a.1.wrapping_sub(b.1)),
                    _ => Value::COMPUTED,
                },
            },
            Source::Offset(from, by) => match state.register(from) {
                // The address of a table, in a file that is not moved.
                value @ Value::Integer { .. } => self.on_constant(value, by),
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
            // What is scaled is no address.
            Source::Shift(from, count) if count < 63 => state
                .register(from)
                .scaled(1 << count)
                .unwrap_or(Value::integer(1 << count, 0)),
            Source::Multiply(from, factor) => state.register(from).multiplied(factor),
            Source::And(from, mask) => match state.register(from) {
                Value::Address(_) | Value::Unknown(_) if mask >> 32 != 0 => Value::COMPUTED,
                _ => Value::integer(1 << mask.trailing_zeros().min(62), 0),
            },
            Source::Walk(from, by) => match state.register(from) {
                Value::Address(found) => Value::Address(self.types.walk(found, (by, 0))),
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
                value @ (Value::Integer { .. } | Value::Constant(_)) => value,
                _ => Value::INTEGER,
            },
            Source::NarrowAddress(memory) => match self.sum(state, &memory) {
                value @ (Value::Integer { .. } | Value::Constant(_)) => value,
                _ => Value::INTEGER,
            },
            Source::Mixed(from) => match state.register(from).parts() {
                Some(_) => Value::INTEGER,
                None => Value::COMPUTED,
            },
            Source::Integer | Source::Shift(..) => Value::INTEGER,
            Source::Unknown => Value::COMPUTED,
        }
    }

    /// `a + b * scale`.
    pub(super) fn add(&self, a: Value, b: Value, scale: u64) -> Value {
        // What is scaled is an index, wherever it comes from.
        let b = match b.scaled(scale) {
            Some(index) => index,
            None if scale > 1 => Value::integer(scale, 0),
            None => b,
        };
        match (a, b) {
            (Value::Address(from), index) | (index, Value::Address(from)) => match index.parts() {
                Some(index) => Value::Address(self.types.walk(from, index)),
                None => Value::COMPUTED,
            },
            (Value::Constant(by), value) | (value, Value::Constant(by)) => {
                self.on_constant(value, by as i64)
            }
            (a, b) => match (a.parts(), b.parts()) {
                (Some(a), Some(b)) => Value::integer(common(a.0, b.0), a.1.wrapping_add(b.1)),
                _ => Value::COMPUTED,
            },
        }
    }

    pub(super) fn on_constant(&self, value: Value, by: i64) -> Value {
        match value {
            Value::Integer { multiple, offset } if self.is_fixed(by) => Value::Address(
                self.types
                    .walk(Address::new(Root::Global, by), (multiple, offset)),
            ),
            value => value.offset(by),
        }
    }

    /// Whether a constant is an address: the file is loaded where it was linked, and has that address.
    pub(super) fn is_fixed(&self, constant: i64) -> bool {
        let memory = self.module.memory();
        memory.start >= 1 << 16 && memory.contains(&(constant as u64))
    }

    /// The sum of an operand's registers, be it an address or not.
    pub(super) fn sum(&self, state: &State, memory: &Memory) -> Value {
        if memory.absolute || memory.segment != Segment::Flat {
            return Value::COMPUTED;
        }
        let base = memory
            .base
            .map_or(Value::Constant(0), |base| state.register(base));
        let scale = u64::from(memory.scale);
        let sum = match memory.index {
            Some(Index::Register(index)) => self.add(base, state.register(index), scale),
            Some(Index::Lanes) => self.add(base, Value::INTEGER, scale),
            None => base,
        };
        if memory.displacement == 0 {
            return sum;
        }
        match sum {
            Value::Integer { .. } => self.on_constant(sum, memory.displacement),
            sum => sum.offset(memory.displacement),
        }
    }

    /// The place of a memory operand.
    pub(super) fn address(&self, state: &State, memory: &Memory) -> Result<Address, Untraced> {
        match memory.segment {
            Segment::Processor | Segment::Other => return Err(Untraced::Computed),
            Segment::Thread => {
                let flat = Memory {
                    segment: Segment::Flat,
                    ..*memory
                };
                if memory.base.is_none() && memory.index.is_none() {
                    return Ok(Address::new(Root::Thread, memory.displacement));
                }
                return match self.sum(state, &flat) {
                    Value::Address(_) | Value::Unknown(_) => Err(Untraced::Computed),
                    value => match value.parts() {
                        Some(index) => Ok(self.types.walk(Address::new(Root::Thread, 0), index)),
                        None => Err(Untraced::Computed),
                    },
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
            Value::Constant(_) | Value::Integer { .. } => {
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
    pub(super) fn load(&mut self, state: &State, memory: &Memory, at: u64) -> Value {
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
}
