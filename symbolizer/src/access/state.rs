//! What registers and stack slots hold at one point of a function.

use super::value::{Address, Root, Value};
use crate::{locals::Register, machine_code::REGISTERS};

/// Stack slots kept.
const MOST_SLOTS: usize = 512;

/// Registers and stack slots at one point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct State {
    pub(super) registers: [Value; REGISTERS],
    /// By offset from the canonical frame address, sorted; 8 bytes each.
    pub(super) slots: Vec<(i64, Value)>,
}

impl State {
    pub(super) fn unknown() -> State {
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

    pub(super) fn set(&mut self, register: Register, value: Value) {
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
                ..
            }) => Some(offset),
            _ => None,
        }
    }

    pub(super) fn slot(&self, offset: i64) -> Option<Value> {
        let at = self
            .slots
            .binary_search_by_key(&offset, |slot| slot.0)
            .ok()?;
        self.slots.get(at).map(|slot| slot.1)
    }

    pub(super) fn store(&mut self, offset: i64, size: u32, value: Value) {
        let end = offset.saturating_add(i64::from(size));
        self.slots
            .retain(|&(slot, _)| slot >= end || slot.saturating_add(8) <= offset);
        if size == 8 && self.slots.len() < MOST_SLOTS {
            let at = self.slots.partition_point(|slot| slot.0 < offset);
            self.slots.insert(at, (offset, value));
        }
    }
}
