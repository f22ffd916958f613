//! Forward data flow over the blocks of one function: what each register and stack slot holds at each instruction.
//!
//! Invariant: a value is told only if it holds on every path that leads to the instruction.

use std::collections::{BTreeSet, HashMap};

use super::{
    facts::{Fact, Facts},
    globals::Linked,
    state::State,
    types::Types,
    value::{Address, Root, Target, Value},
};
use crate::{
    Module, Untraced,
    dwarf::View,
    locals::{Locals, Register},
    machine_code::{Blocks, Effect, Instruction, Memory, Next, REGISTERS, Source, is_preserved},
};

const RAX: Register = Register(0);
pub(super) const RSP: Register = Register(7);
/// Instructions followed for one function, all rounds together, per instruction of it.
const MOST_ROUNDS: usize = 64;
/// Instructions in which parameters are stored.
const MOST_PROLOGUE: usize = 64;
/// A variable that the compiler made.
pub(super) const UNNAMED: &str = "(unnamed)";

/// One function's analysis.
pub(super) struct Flow<'m> {
    pub(super) module: &'m Module,
    pub(super) view: View<'m>,
    pub(super) linked: &'m Linked,
    pub(super) locals: &'m Locals,
    pub(super) types: Types,
    pub(super) facts: Facts,
    /// Addresses of the frame from this offset on are known outside of the function's own stack pointer.
    pub(super) escaped: Option<i64>,
    /// Variables by their address, and whether that is thread-local.
    pub(super) objects: HashMap<(u64, bool), Result<(Target, u64), Untraced>>,
    /// What calls give back, by their target.
    pub(super) results: HashMap<u64, Value>,
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
            objects: HashMap::new(),
            results: HashMap::new(),
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
        let mut queue = BTreeSet::new();
        for (number, block) in blocks.0.iter().enumerate() {
            if block.is_entry {
                let mut state = State::unknown();
                self.anchor(&mut state, instructions.get(block.first)?.address);
                if number == 0 {
                    self.tell_result(&mut state, instructions[0].address);
                    self.tell_parameters(&mut state, &instructions[..=block.last]);
                }
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
            for (index, instruction) in block.instructions(instructions) {
                *budget = budget.checked_sub(1)?;
                self.tell(&mut state, index);
                self.step(&mut state, instruction);
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
    pub(super) fn anchor(&self, state: &mut State, address: u64) {
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
                    let mut stored = self.evaluate(state, value, address);
                    // What is stored into a variable is the variable's value.
                    if let (Source::Copy(from), Value::Unknown(_)) = (value, stored)
                        && let told @ Value::Address(_) = self.variable_value(state, &to, address)
                    {
                        stored = told;
                        state.set(from, told);
                    }
                    stores.push((to, stored));
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

    /// Without optimisation, parameters are told of only once they are stored: what the first block stores into a
    /// variable unchanged is what the register held at the entry.
    fn tell_parameters(&mut self, state: &mut State, instructions: &[Instruction]) {
        let mut now = state.clone();
        let mut written = [false; REGISTERS];
        for instruction in instructions.iter().take(MOST_PROLOGUE) {
            if instruction.next != Next::Following {
                break;
            }
            for effect in &instruction.effects {
                if let Effect::Store {
                    to,
                    value: Source::Copy(from),
                } = effect
                    && written.get(usize::from(from.0)) == Some(&false)
                    && let told @ Value::Address(_) =
                        self.variable_value(&now, to, instruction.end())
                    && matches!(state.register(*from), Value::Unknown(_))
                {
                    state.set(*from, told);
                }
            }
            for (number, written) in written.iter_mut().enumerate() {
                *written |= instruction.writes(Register(number as u8));
            }
            self.step(&mut now, instruction);
        }
    }

    /// Where the function is to write what it returns, unless debug info says that the register holds a parameter.
    fn tell_result(&mut self, state: &mut State, start: u64) {
        /// The first argument's register: rdi.
        const FIRST: Register = Register(5);
        if self.facts.of(FIRST, start).next().is_none()
            && let Some(ty) = self.module.return_type(start)
            && let Some(result) = self.result_in_memory(ty)
        {
            state.set(FIRST, result);
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
}
