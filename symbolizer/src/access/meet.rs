//! What holds on both of two paths, and what holds when debug info and data flow each say something.

use super::{
    flow::{Flow, RSP},
    state::State,
    types::Types,
    value::{Address, Root, Target, Value, common},
};
use crate::Untraced;

impl Flow<'_> {
    /// What flow has derived and what debug info tells, of one value.
    pub(super) fn combine(&mut self, known: Value, told: Value) -> Value {
        let (Value::Address(address), Value::Address(stated)) = (known, told) else {
            return match (known, told) {
                (Value::Unknown(_), _)
                | (Value::Constant(_) | Value::Integer { .. }, Value::Address(_)) => told,
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
            return if distance % size == 0 || address.stride != 0 || address.elements {
                told
            } else {
                Value::Unknown(Untraced::Conflict)
            };
        }
        if is_bytes(&self.types, name.ty) && !is_bytes(&self.types, target.ty) {
            return known;
        }
        if is_bytes(&self.types, target.ty) {
            return told;
        }
        // Of an object and a part of it, the object says more: what is inlined has names for the part only.
        if self
            .types
            .holds(&self.view, name.ty, distance.wrapping_neg(), target.ty)
        {
            return told;
        }
        if self.types.holds(&self.view, target.ty, distance, name.ty) {
            return known;
        }
        let size = size_of(&self.types, target.ty) as i64;
        if (0..size.max(1)).contains(&address.offset) {
            return Value::Unknown(Untraced::Conflict);
        }
        told
    }

    /// What holds on both of two paths. Whether the first state changed.
    pub(super) fn meet_states(&mut self, known: &mut State, other: &State, at: u64) -> bool {
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

    pub(super) fn meet(&mut self, a: Value, b: Value, at: u64) -> Value {
        if a == b {
            return a;
        }
        match (a, b) {
            (Value::Address(a), Value::Address(b)) => self.meet_addresses(a, b, at),
            // No pointer: it is not followed on that path.
            (address @ Value::Address(_), Value::Constant(0..=4095))
            | (Value::Constant(0..=4095), address @ Value::Address(_)) => address,
            (Value::Unknown(reason), _) | (_, Value::Unknown(reason)) => Value::Unknown(reason),
            (a, b) => Value::either_integer(a, b).unwrap_or(Value::Unknown(Untraced::Conflict)),
        }
    }

    pub(super) fn meet_addresses(&mut self, a: Address, b: Address, at: u64) -> Value {
        let conflict = Value::Unknown(Untraced::Conflict);
        let distance = a.offset.abs_diff(b.offset);
        let same = |types: &Types, root| {
            let either = Address {
                root,
                offset: a.offset,
                stride: common(a.stride, b.stride),
                elements: a.elements || b.elements,
            };
            Value::Address(types.walk(either, (distance, 0)))
        };
        match (a.root, b.root) {
            (Root::Pointer(first), Root::Pointer(second)) => {
                if first.ty == second.ty && first.reference == second.reference {
                    let aside = first.aside || second.aside;
                    let first = Target { aside, ..first };
                    if first.name == second.name {
                        return same(&self.types, Root::Pointer(first));
                    }
                    let name = self.types.anonymous(first.ty);
                    return same(&self.types, Root::Pointer(Target { name, ..first }));
                }
                self.meet_parts(a, b).unwrap_or(conflict)
            }
            (Root::Frame, Root::Frame) => {
                let variable = |offset| self.facts.variable_at(offset, at, |_| None);
                match (variable(a.offset), variable(b.offset)) {
                    (Some((first, _)), Some((second, _))) if first == second => {
                        same(&self.types, a.root)
                    }
                    _ => self.meet_parts(a, b).unwrap_or(conflict),
                }
            }
            (Root::Global, Root::Global) => {
                let first = self.known_object(a.offset as u64, false);
                let second = self.known_object(b.offset as u64, false);
                match (first, second) {
                    (Ok((_, first)), Ok((_, second))) if first == second => {
                        same(&self.types, a.root)
                    }
                    _ => self.meet_parts(a, b).unwrap_or(conflict),
                }
            }
            _ => self.meet_parts(a, b).unwrap_or(conflict),
        }
    }

    /// Parts of different objects that have one type.
    pub(super) fn meet_parts(&mut self, a: Address, b: Address) -> Option<Value> {
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
        // A place that moves within its object stays of that type only from element to element.
        let size = self.types.get(ty).and_then(|ty| ty.size).unwrap_or(0);
        let stride = common(a.stride, b.stride);
        if stride != 0 && (size == 0 || !stride.is_multiple_of(size)) {
            return None;
        }
        let name = self.types.anonymous(ty);
        let target = Target {
            ty,
            name,
            reference: false,
            aside: first.aside || second.aside,
        };
        Some(Value::Address(Address {
            root: Root::Pointer(target),
            offset: 0,
            stride: 0,
            elements: stride != 0,
        }))
    }

    pub(super) fn as_pointed(&mut self, address: Address) -> Option<Address> {
        match address.root {
            Root::Pointer(_) => Some(address),
            Root::Global => self.global_object(address).ok(),
            Root::Thread => self.thread_object(address).ok(),
            Root::Frame => None,
        }
    }
}
