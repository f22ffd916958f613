//! What debug info says about registers and stack slots, instruction by instruction.

use std::collections::HashMap;

use super::{
    flow::UNNAMED,
    types::{Kind, Name, Types},
    value::{Address, Root, TypeId, Value},
};
use crate::{
    dwarf::{Die, View},
    locals::{Base, Locals, Place, Register},
    machine_code::{Instruction, Memory, REGISTERS},
    spans::{Span, Spans},
};

/// Facts looked at in one function.
const MOST_FACTS: usize = 1 << 20;

/// Variables looked at for the reason why an operand has no name.
const MOST_POINTERS: usize = 64;

/// A pointer of the source that no register holds as it is, for `start..end`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unplaced {
    pub(super) start: u64,
    pub(super) end: u64,
    /// What it points to, if that has a type.
    pub(super) target: Option<TypeId>,
}

/// The pointers that debug info has no place for, or one that is not followed: the compiler has something else from
/// which they could be computed.
pub(super) fn unplaced(view: &View<'_>, types: &mut Types, locals: &Locals) -> Vec<Unplaced> {
    let mut has_home = vec![false; locals.variables.len()];
    let type_of = |variable: u32| locals.variables.get(variable as usize)?.ty;
    let mut ranges: Vec<(u64, u64, Option<Die>)> = Vec::new();
    for home in &locals.homes {
        if let Some(has_home) = has_home.get_mut(home.variable as usize) {
            *has_home = true;
        }
        let is_computed = match home.place {
            Place::Complex | Place::EntryValue => true,
            Place::Value { offset, .. } => offset != 0,
            _ => false,
        };
        if is_computed {
            ranges.push((home.start, home.end, type_of(home.variable)));
        }
    }
    let without = has_home
        .iter()
        .enumerate()
        .filter(|(_, has_home)| !**has_home);
    ranges.extend(without.map(|(variable, _)| (0, u64::MAX, type_of(variable as u32))));
    let dropped = locals.dropped.iter();
    ranges.extend(dropped.map(|ty| (0, u64::MAX, Some(*ty))));
    let mut found = Vec::new();
    for (start, end, ty) in ranges {
        let Some(Ok((_, entry))) = ty.map(|ty| view.peel(ty)) else {
            continue;
        };
        if entry.tag == gimli::DW_TAG_pointer_type {
            let target = entry.ty.and_then(|target| types.of(view, target));
            found.push(Unplaced { start, end, target });
        }
    }
    found
}

/// A register holds what a variable tells, for `start..end`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fact {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) register: Register,
    pub(super) value: Value,
    /// The place is told only for later; the register has not changed since.
    pub(super) weak: bool,
    /// The register holds no value of the source but what one is computed from.
    derived: bool,
    /// The variable lies where the register points to, unless that is the frame.
    pub(super) in_memory: bool,
}

/// A variable in the frame, for `start..end`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) variable: u32,
    /// First byte of the variable that is there, and where.
    pub(super) part: u64,
    pub(super) offset: i64,
}

/// All facts of one function.
pub(super) struct Facts {
    /// By register, in the order of their start; what is told directly after what is derived.
    registers: Vec<Vec<Fact>>,
    /// Variables in memory by what their place counts from.
    frames: HashMap<Base, Spans<u32>>,
    slots: Vec<Slot>,
    /// Pointers of which only the value at the function's entry is told, by where that is so.
    at_entry: Spans<TypeId>,
    /// For each instruction, the facts that are new there.
    news: Vec<Vec<(u8, u32)>>,
}

/// Offsets are signed, spans are not.
const MIDDLE: u64 = 1 << 63;

impl Facts {
    pub(super) fn new(
        view: &View<'_>,
        types: &mut Types,
        locals: &Locals,
        instructions: &[Instruction],
        leads: impl Fn(usize) -> bool,
    ) -> Facts {
        let mut facts = Facts {
            registers: vec![Vec::new(); REGISTERS],
            frames: HashMap::new(),
            slots: Vec::new(),
            at_entry: Spans::new(Vec::new()),
            news: vec![Vec::new(); instructions.len()],
        };
        let whole = locals
            .homes
            .iter()
            .map(|home| (home.start, home.end, home.variable, 0, None, home.place));
        let pieces = locals.pieces.iter().map(|piece| {
            let (start, end) = (piece.start, piece.end);
            (
                start,
                end,
                piece.variable,
                piece.offset,
                Some(piece.size),
                piece.place,
            )
        });
        let mut spans: HashMap<Base, Vec<Span<u32>>> = HashMap::new();
        let mut at_entry = Vec::new();
        for (start, end, variable, part, part_size, place) in whole.chain(pieces) {
            let Some(local) = locals.variables.get(variable as usize) else {
                continue;
            };
            let Some(ty) = local.ty else { continue };
            let name = Name::local(local.name.as_deref().unwrap_or(UNNAMED));
            let fact = |register, value| Fact {
                start,
                end,
                register,
                value,
                weak: false,
                derived: false,
                in_memory: false,
            };
            match place {
                Place::Register(register) => {
                    let value = types.value_at(view, ty, part, name, 0);
                    facts.add(fact(register, value));
                }
                Place::Value {
                    base: Base::Register(register),
                    offset,
                } => {
                    if let Value::Address(address) = types.value_at(view, ty, part, name, 0) {
                        let derived = offset != 0;
                        let mut address = address.moved(offset.wrapping_neg());
                        if let Root::Pointer(target) = &mut address.root {
                            target.aside = derived;
                        }
                        let value = Value::Address(address);
                        facts.add(Fact {
                            derived,
                            ..fact(register, value)
                        });
                    }
                }
                // A part of another object, which says more than the parameter it was inlined for. (An object passed
                // by reference is at the register itself, and a frame is counted from rbp or rsp.)
                Place::Memory {
                    base: Base::Register(crate::locals::Register(register)),
                    offset,
                } if offset != 0 && !matches!(register, 6 | 7) => {}
                Place::Memory { base, offset } => {
                    let size = part_size
                        .or_else(|| view.size(ty).ok().flatten())
                        .unwrap_or(1)
                        .min(1 << 40);
                    let at = MIDDLE.wrapping_add_signed(offset);
                    spans.entry(base).or_default().push(Span {
                        start: at,
                        end: at.saturating_add(size),
                        value: facts.slots.len() as u32,
                    });
                    facts.slots.push(Slot {
                        start,
                        end,
                        variable,
                        part,
                        offset,
                    });
                    if let Base::Register(register) = base
                        && part == 0
                        && let Some(target) = types.object(view, ty, name)
                        // A number or pointer that lies in some object has a name there.
                        && types.get(target.ty).is_some_and(|ty| ty.kind == Kind::Aggregate)
                    {
                        let address = Address::new(Root::Pointer(target), offset.wrapping_neg());
                        facts.add(Fact {
                            in_memory: true,
                            derived: true,
                            ..fact(register, Value::Address(address))
                        });
                    }
                }
                Place::EntryValue => {
                    if let Value::Address(address) = types.value_at(view, ty, part, name, 0)
                        && let Root::Pointer(target) = address.root
                    {
                        at_entry.push(Span {
                            start,
                            end,
                            value: target.ty,
                        });
                    }
                }
                _ => {}
            }
        }
        facts.at_entry = Spans::new(at_entry);
        facts.frames = spans
            .into_iter()
            .map(|(base, spans)| (base, Spans::new(spans)))
            .collect();
        facts.extend_backwards(instructions, &leads);
        for list in &mut facts.registers {
            list.sort_by_key(|fact| (!fact.derived, fact.start));
        }
        facts.note_news(instructions, leads);
        facts
    }

    fn add(&mut self, fact: Fact) {
        if let Some(list) = self.registers.get_mut(usize::from(fact.register.0)) {
            list.push(fact);
        }
    }

    /// A register that is not written between an instruction and the start of a fact holds the same value there.
    fn extend_backwards(&mut self, instructions: &[Instruction], leads: &impl Fn(usize) -> bool) {
        for list in &mut self.registers {
            let mut more = Vec::new();
            for fact in list.iter() {
                if fact.in_memory || fact.derived || !matches!(fact.value, Value::Address(_)) {
                    continue;
                }
                let first = instructions.partition_point(|found| found.address < fact.start);
                let mut at = first;
                while at > 0
                    && at < instructions.len()
                    && first - at < 64
                    && !leads(at)
                    && !instructions[at - 1].writes(fact.register)
                {
                    at -= 1;
                }
                if at < first && at < instructions.len() {
                    more.push(Fact {
                        start: instructions[at].address,
                        end: fact.start,
                        weak: true,
                        ..*fact
                    });
                }
            }
            list.extend(more);
        }
    }

    /// A fact is new where it starts, at the start of a block, and after the register was written.
    fn note_news(&mut self, instructions: &[Instruction], leads: impl Fn(usize) -> bool) {
        let mut budget = MOST_FACTS;
        for (number, list) in self.registers.iter().enumerate() {
            let register = Register(number as u8);
            for (index, fact) in list.iter().enumerate() {
                let first = instructions.partition_point(|found| found.address < fact.start);
                for (at, instruction) in instructions.iter().enumerate().skip(first) {
                    if instruction.address >= fact.end || budget == 0 {
                        break;
                    }
                    budget -= 1;
                    let is_new = at == first || leads(at) || instructions[at - 1].writes(register);
                    if is_new {
                        self.news[at].push((register.0, index as u32));
                    }
                }
            }
        }
    }

    /// What is new before an instruction.
    pub(super) fn news(&self, index: usize) -> impl Iterator<Item = Fact> {
        let news = self.news.get(index).map_or(&[][..], |news| news);
        news.iter().filter_map(|&(register, fact)| {
            self.registers
                .get(usize::from(register))?
                .get(fact as usize)
                .copied()
        })
    }

    /// All that is told of a register at an address, the last told first.
    pub(super) fn of(&self, register: Register, address: u64) -> impl Iterator<Item = Fact> {
        let list = self
            .registers
            .get(usize::from(register.0))
            .map_or(&[][..], |list| list);
        list.iter()
            .rev()
            .filter(move |fact| (fact.start..fact.end).contains(&address))
            .copied()
    }

    /// Whether the source's pointer for a memory operand may be one that is told of only as it was at the function's
    /// entry: what it points to has the operand's bytes.
    pub(super) fn is_lost(&self, types: &Types, memory: &Memory, address: u64) -> bool {
        let reached = u64::try_from(memory.displacement)
            .ok()
            .and_then(|start| start.checked_add(u64::from(memory.size)));
        reached.is_some_and(|reached| {
            let mut pointers = self.at_entry.covering(address).take(MOST_POINTERS);
            pointers.any(|span| {
                let size = types.get(span.value).and_then(|ty| ty.size);
                size.is_some_and(|size| reached <= size)
            })
        })
    }

    /// The variable at an offset from the canonical frame address, and the offset in it. `frame` gives a register's own
    /// offset from it.
    pub(super) fn variable_at(
        &self,
        offset: i64,
        address: u64,
        frame: impl Fn(Register) -> Option<i64>,
    ) -> Option<(u32, u64)> {
        let mut best: Option<(u64, Slot, u64)> = None;
        for (base, spans) in &self.frames {
            let origin = match base {
                Base::Cfa => 0,
                Base::Register(register) => match frame(*register) {
                    Some(origin) => origin,
                    None => continue,
                },
            };
            let Some(relative) = offset.checked_sub(origin) else {
                continue;
            };
            for span in spans.covering(MIDDLE.wrapping_add_signed(relative)) {
                let Some(slot) = self.slots.get(span.value as usize) else {
                    continue;
                };
                if !(slot.start..slot.end).contains(&address) {
                    continue;
                }
                // The narrowest scope is the innermost.
                let length = slot.end - slot.start;
                if best.as_ref().is_none_or(|(known, ..)| length < *known) {
                    let within = relative.wrapping_sub(slot.offset) as u64;
                    best = Some((length, *slot, within));
                }
            }
        }
        best.map(|(_, slot, within)| (slot.variable, slot.part.wrapping_add(within)))
    }
}
