//! What a register or stack slot holds before an instruction, as an expression of constants, of what was loaded, and of what
//! cannot be followed.
//!
//! Looks back instruction by instruction and, where ways meet, along all of them; a loop that changes nothing adds nothing.
//! Memory is followed where it is a slot of the stack, or within one block. Other stores are taken to leave it alone: this
//! names the role of a word and proves no address.

use std::cell::{Cell, RefCell};

use iced_x86::{Instruction, Mnemonic, OpKind, Register};

use super::{
    Written,
    code::{FunctionText, moves_by_condition, sets_by_condition},
};
use crate::decode::registers::Gpr;

/// Instructions looked at for one question.
const MOST_STEPS: u32 = 4_000;
/// Ways and registers followed at once.
const DEEPEST: usize = 48;

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Expr {
    Constant(i64),
    /// 0 or 1.
    Choice,
    /// Read from memory.
    Load(Box<Place>),
    /// The value and this.
    Plus(Box<Expr>, i64),
    /// Calculated from these in another way.
    From(Vec<Expr>),
    /// Made by this instruction, in a way that is not followed.
    Made(usize),
    /// What a location holds where a block begins that several ways lead to, or an unseen one.
    Entering(u32, Location),
}

/// An address.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Place {
    base: Option<Expr>,
    index: Option<(Expr, u32)>,
    displacement: i64,
    segment: Register,
}

/// What holds a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Location {
    Register(Gpr),
    /// The operand as it is written, which is the same place while its registers stay.
    Memory {
        base: Register,
        index: Register,
        scale: u32,
        displacement: i64,
        segment: Register,
    },
}

/// A location where a block begins, and what it may hold there.
type Meeting = ((u32, Location), Vec<Expr>);

/// Values of one function, asked for the sake of one of its instructions' word.
pub(super) struct Values<'c> {
    code: &'c FunctionText,
    /// Where the word is.
    word: Option<Place>,
    /// Looked at so far.
    steps: Cell<u32>,
    /// Questions within questions.
    depth: Cell<usize>,
    /// Blocks and locations that are being asked for.
    open: RefCell<Vec<(u32, Location)>>,
    /// What was found where several values meet.
    meeting: RefCell<Vec<Meeting>>,
}

impl<'c> Values<'c> {
    /// For the word that the instruction's memory operand names.
    pub(super) fn of_word(code: &'c FunctionText, at: usize) -> Values<'c> {
        let mut values = Values {
            code,
            word: None,
            steps: Cell::new(0),
            depth: Cell::new(0),
            open: RefCell::default(),
            meeting: RefCell::default(),
        };
        values.word = Some(values.place(code.instruction(at), at));
        values.steps.set(0);
        values
    }

    /// What an operand of the instruction stands for before it.
    pub(super) fn operand(&self, instruction: &Instruction, operand: u32, at: usize) -> Expr {
        match instruction.op_kind(operand) {
            OpKind::Register => self.register(instruction.op_register(operand), at),
            OpKind::Memory => self.loaded(instruction, at),
            _ => match instruction.try_immediate(operand) {
                Ok(value) => Expr::Constant(value.cast_signed()),
                Err(_) => Expr::Made(at),
            },
        }
    }

    /// What a register holds before the instruction.
    pub(super) fn register(&self, register: Register, at: usize) -> Expr {
        match Gpr::of(register) {
            // The high bytes of the first four.
            Some(_) if is_high(register) => Expr::Made(at),
            Some(gpr) => self.before(Location::Register(gpr), at),
            None => Expr::Made(at),
        }
    }

    /// What a compare-and-swap compares with.
    pub(super) fn accumulator(&self, at: usize) -> Expr {
        self.before(Location::Register(Gpr::RAX), at)
    }

    /// Whether a value was read from the word.
    pub(super) fn is_word(&self, value: &Expr) -> bool {
        matches!(value, Expr::Load(place) if Some(&**place) == self.word.as_ref())
    }

    /// What a value that the instruction writes to the word, or compares it with, is to it.
    pub(super) fn written(&self, value: Expr, instruction: &Instruction) -> Written {
        let bits = u32::try_from(instruction.memory_size().size() * 8).unwrap_or(64);
        let mut all = Vec::new();
        if !self.flatten(value, &mut Vec::new(), &mut all) {
            return Written::Other;
        }
        let narrow = |value: i64| {
            let unused = 64u32.saturating_sub(bits.clamp(8, 64));
            value << unused >> unused
        };
        let kinds: Vec<Written> = all
            .iter()
            .map(|value| match value {
                Expr::Constant(value) => Written::Constant(narrow(*value)),
                other => self.relation(other),
            })
            .collect();
        let mut kinds = kinds.into_iter();
        let Some(first) = kinds.next() else {
            return Written::Other;
        };
        kinds.fold(first, meet)
    }

    /// What a value that is no constant is to the word.
    fn relation(&self, value: &Expr) -> Written {
        match value {
            Expr::Constant(value) => Written::Constant(*value),
            Expr::Choice => Written::Choice,
            Expr::Load(_) if self.is_word(value) => Written::Advanced(Some(0)),
            Expr::Load(place) => match &place.base {
                Some(base) if self.is_from_word(base, 0) => Written::Followed,
                _ => Written::Other,
            },
            Expr::Plus(base, step) if self.is_word(base) => Written::Advanced(Some(*step)),
            Expr::Plus(..) | Expr::From(_) if self.is_from_word(value, 0) => {
                Written::Advanced(None)
            }
            _ => Written::Other,
        }
    }

    /// Whether the word's own value is among what a value was calculated from.
    fn is_from_word(&self, value: &Expr, depth: usize) -> bool {
        if depth > DEEPEST || !self.step() {
            return false;
        }
        let next = depth + 1;
        match value {
            Expr::Load(_) => self.is_word(value),
            Expr::Plus(base, _) => self.is_from_word(base, next),
            Expr::From(parts) => parts.iter().any(|part| self.is_from_word(part, next)),
            Expr::Entering(block, location) => {
                let met = self.met(*block, *location);
                !met.is_empty() && met.iter().all(|value| self.is_from_word(value, next))
            }
            _ => false,
        }
    }

    /// Counts; `false` when it has been enough.
    fn step(&self) -> bool {
        self.steps.set(self.steps.get() + 1);
        self.steps.get() <= MOST_STEPS
    }

    fn met(&self, block: u32, location: Location) -> Vec<Expr> {
        let meeting = self.meeting.borrow();
        let found = meeting.iter().find(|(at, _)| *at == (block, location));
        found.map_or_else(Vec::new, |(_, values)| values.clone())
    }

    /// All values that it may be, where several meet. `open` are the meetings that are being looked into, with what had been
    /// added to the value there: coming back with the same, the way round added nothing. `false` where not all of
    /// its values are known: in the middle of a question about such a meeting, or when there are too many.
    fn flatten(
        &self,
        value: Expr,
        open: &mut Vec<((u32, Location), i64)>,
        out: &mut Vec<Expr>,
    ) -> bool {
        let (base, step) = match value {
            Expr::Plus(base, step) => (*base, step),
            other => (other, 0),
        };
        let mut add = |value: Expr| {
            if !out.contains(&value) {
                out.push(value);
            }
        };
        let Expr::Entering(block, location) = base else {
            add(plus(base, step));
            return true;
        };
        let at = (block, location);
        if self.open.borrow().contains(&at) || !self.step() {
            return false;
        }
        match open.iter().find(|(open, _)| *open == at) {
            Some((_, before)) if *before == step => return true,
            // A value that changes with each turn of a loop is none that can be told.
            Some(_) => {
                add(Expr::Made(self.code.steps(block).start));
                return true;
            }
            None => {}
        }
        let met = self.met(block, location);
        if met.is_empty() || open.len() > DEEPEST {
            add(plus(Expr::Entering(block, location), step));
            return true;
        }
        open.push((at, step));
        let mut is_whole = true;
        for value in met {
            is_whole &= self.flatten(plus(value, step), open, out);
        }
        open.pop();
        is_whole
    }

    /// What a location holds before an instruction.
    fn before(&self, location: Location, at: usize) -> Expr {
        if self.depth.get() > DEEPEST {
            return Expr::Made(at);
        }
        self.depth.set(self.depth.get() + 1);
        let value = self.within(location, self.code.block_of(at), at);
        self.depth.set(self.depth.get() - 1);
        let mut all = Vec::new();
        let is_whole = self.flatten(value.clone(), &mut Vec::new(), &mut all);
        match all.as_slice() {
            [one] if is_whole => one.clone(),
            _ => value,
        }
    }

    /// What a location holds before an instruction of a block.
    fn within(&self, location: Location, block: u32, at: usize) -> Expr {
        for n in (self.code.steps(block).start..at).rev() {
            if !self.step() {
                return Expr::Made(n);
            }
            if let Some(value) = self.made(location, n) {
                return value;
            }
        }
        self.entering(location, block)
    }

    /// What a location holds where a block begins.
    fn entering(&self, location: Location, block: u32) -> Expr {
        let itself = Expr::Entering(block, location);
        let is_open = self.open.borrow().contains(&(block, location));
        if is_open || self.open.borrow().len() > DEEPEST {
            return itself;
        }
        let (from, unseen) = self.code.entries(block);
        if unseen && from.is_empty() {
            return itself;
        }
        self.open.borrow_mut().push((block, location));
        let mut values: Vec<Expr> = Vec::new();
        for block in from {
            let value = self.within(location, block, self.code.steps(block).end);
            if value != itself && !values.contains(&value) {
                values.push(value);
            }
        }
        self.open.borrow_mut().pop();
        if unseen {
            values.push(Expr::Made(self.code.steps(block).start));
        }
        let one = match values.as_slice() {
            // It may go round a loop that this is in.
            [Expr::Entering(block, location)]
                if self.open.borrow().contains(&(*block, *location)) =>
            {
                None
            }
            [one] => Some(one.clone()),
            _ => None,
        };
        let mut meeting = self.meeting.borrow_mut();
        meeting.retain(|(at, _)| *at != (block, location));
        meeting.push(((block, location), values));
        one.unwrap_or(itself)
    }

    /// What an instruction leaves in a location; `None` where it does not touch it.
    fn made(&self, location: Location, at: usize) -> Option<Expr> {
        let instruction = self.code.instruction(at);
        match location {
            Location::Register(gpr) => {
                let writes = self.code.written(at).contains(gpr);
                writes.then(|| self.in_register(gpr, instruction, at))
            }
            Location::Memory { base, index, .. } => {
                if written_memory(instruction).is_some_and(|written| written == location) {
                    return Some(match instruction.mnemonic() {
                        Mnemonic::Mov => self.operand(instruction, 1, at),
                        _ => Expr::Made(at),
                    });
                }
                let moves = |register| {
                    Gpr::of(register).is_some_and(|gpr| self.code.written(at).contains(gpr))
                };
                (moves(base) || moves(index)).then_some(Expr::Made(at))
            }
        }
    }

    /// What an instruction that writes a register leaves in it.
    fn in_register(&self, gpr: Gpr, instruction: &Instruction, at: usize) -> Expr {
        let is_first = instruction.op0_kind() == OpKind::Register
            && Gpr::of(instruction.op0_register()) == Some(gpr)
            && !is_high(instruction.op0_register());
        let is_second = instruction.op1_kind() == OpKind::Register
            && Gpr::of(instruction.op1_register()) == Some(gpr);
        let has_memory = instruction.op0_kind() == OpKind::Memory;
        let same_registers = instruction.op1_kind() == OpKind::Register
            && instruction.op0_register() == instruction.op1_register();
        let first = || self.operand(instruction, 0, at);
        let second = || self.operand(instruction, 1, at);
        match instruction.mnemonic() {
            Mnemonic::Mov | Mnemonic::Movzx | Mnemonic::Movsx | Mnemonic::Movsxd if is_first => {
                second()
            }
            Mnemonic::Xor | Mnemonic::Sub if is_first && same_registers => Expr::Constant(0),
            Mnemonic::Lea if is_first => self.address(instruction, at),
            Mnemonic::Inc if is_first => plus(first(), 1),
            Mnemonic::Dec if is_first => plus(first(), -1),
            Mnemonic::Add | Mnemonic::Sub if is_first => match (first(), second()) {
                (first, Expr::Constant(step)) => {
                    let is_add = instruction.mnemonic() == Mnemonic::Add;
                    plus(first, if is_add { step } else { step.wrapping_neg() })
                }
                (Expr::Constant(step), second) if instruction.mnemonic() == Mnemonic::Add => {
                    plus(second, step)
                }
                (first, second) => Expr::From(vec![first, second]),
            },
            Mnemonic::And
            | Mnemonic::Or
            | Mnemonic::Xor
            | Mnemonic::Shl
            | Mnemonic::Shr
            | Mnemonic::Sar
                if is_first =>
            {
                Expr::From(vec![first(), second()])
            }
            Mnemonic::Imul if is_first && instruction.op_count() > 1 => {
                Expr::From(vec![first(), second()])
            }
            // The old value comes back; for a compare-and-swap that succeeds it is what was expected.
            Mnemonic::Xadd if is_second && has_memory => self.loaded(instruction, at),
            Mnemonic::Cmpxchg if gpr == Gpr::RAX && has_memory => self.loaded(instruction, at),
            Mnemonic::Xchg if has_memory => self.loaded(instruction, at),
            Mnemonic::Xchg if instruction.op1_kind() == OpKind::Memory => {
                self.loaded(instruction, at)
            }
            Mnemonic::Xchg if is_first => second(),
            Mnemonic::Xchg => first(),
            _ if is_first && sets_by_condition(instruction) => Expr::Choice,
            _ if is_first && moves_by_condition(instruction) => Expr::From(vec![first(), second()]),
            _ => Expr::Made(at),
        }
    }

    /// What an instruction's memory operand holds, unless it is the word: a slot of the stack may say more.
    fn loaded(&self, instruction: &Instruction, at: usize) -> Expr {
        let place = self.place(instruction, at);
        if Some(&place) == self.word.as_ref() {
            return Expr::Load(Box::new(place));
        }
        let location = memory(instruction);
        let on_stack = matches!(
            location,
            Location::Memory {
                base: Register::RBP | Register::RSP,
                index: Register::None,
                segment: Register::None,
                ..
            }
        );
        if on_stack {
            return match self.before(location, at) {
                Expr::Entering(..) => Expr::Load(Box::new(place)),
                value => value,
            };
        }
        let start = self.code.steps(self.code.block_of(at)).start;
        let stored = (start..at).rev().find_map(|n| self.made(location, n));
        match stored {
            None | Some(Expr::Made(_)) => Expr::Load(Box::new(place)),
            Some(value) => value,
        }
    }

    /// The address of an instruction's memory operand.
    pub(super) fn place(&self, instruction: &Instruction, at: usize) -> Place {
        let segment = match instruction.segment_prefix() {
            segment @ (Register::FS | Register::GS) => segment,
            _ => Register::None,
        };
        let displacement = instruction.memory_displacement64().cast_signed();
        let register = |register| match register {
            Register::None | Register::RIP | Register::EIP => None,
            register => Some(self.register(register, at)),
        };
        let index = register(instruction.memory_index());
        let mut place = Place {
            base: register(instruction.memory_base()),
            index: index.map(|index| (index, instruction.memory_index_scale())),
            displacement,
            segment,
        };
        match place.base.take() {
            Some(Expr::Constant(base)) => place.displacement = displacement.wrapping_add(base),
            Some(Expr::Plus(base, step)) => {
                place.displacement = displacement.wrapping_add(step);
                place.base = Some(*base);
            }
            other => place.base = other,
        }
        place
    }

    /// The value of `lea`.
    fn address(&self, instruction: &Instruction, at: usize) -> Expr {
        let place = self.place(instruction, at);
        match (place.base, place.index) {
            (Some(base), None) => plus(base, place.displacement),
            (None, None) => Expr::Constant(place.displacement),
            (base, Some((index, scale))) => {
                let index = if scale == 1 && base.is_none() {
                    return plus(index, place.displacement);
                } else {
                    index
                };
                Expr::From(base.into_iter().chain([index]).collect())
            }
        }
    }
}

fn plus(value: Expr, step: i64) -> Expr {
    match value {
        Expr::Constant(value) => Expr::Constant(value.wrapping_add(step)),
        Expr::Plus(base, before) => plus(*base, before.wrapping_add(step)),
        value if step == 0 => value,
        value => Expr::Plus(Box::new(value), step),
    }
}

/// Of values that come by different ways.
fn meet(a: Written, b: Written) -> Written {
    use Written::{Advanced, Choice, Constant, Followed};
    match (a, b) {
        (a, b) if a == b => a,
        (Constant(_) | Choice, Constant(_) | Choice) => Choice,
        // Advanced, and begun again where it is at its end.
        (Advanced(_), Advanced(_) | Constant(_)) | (Constant(_), Advanced(_)) => Advanced(None),
        (Followed, Constant(_)) | (Constant(_), Followed) => Followed,
        _ => Written::Other,
    }
}

fn is_high(register: Register) -> bool {
    matches!(
        register,
        Register::AH | Register::BH | Register::CH | Register::DH
    )
}

/// The memory operand of an instruction as it is written.
fn memory(instruction: &Instruction) -> Location {
    Location::Memory {
        base: instruction.memory_base(),
        index: instruction.memory_index(),
        scale: instruction.memory_index_scale(),
        displacement: instruction.memory_displacement64().cast_signed(),
        segment: match instruction.segment_prefix() {
            segment @ (Register::FS | Register::GS) => segment,
            _ => Register::None,
        },
    }
}

/// The memory operand of an instruction that comes first, which is what instructions write.
fn written_memory(instruction: &Instruction) -> Option<Location> {
    let writes = instruction.op0_kind() == OpKind::Memory
        && !matches!(
            instruction.mnemonic(),
            Mnemonic::Cmp | Mnemonic::Test | Mnemonic::Bt
        );
    writes.then(|| memory(instruction))
}
