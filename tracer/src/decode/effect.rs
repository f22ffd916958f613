//! What instructions do to general registers, and how to follow it forwards and undo it backwards.
//!
//! Invariant: every value in a [`Known`] is the register's true value at that point; what cannot be
//! told is forgotten, never guessed.

use iced_x86::{Instruction, Mnemonic, OpKind, Register};

use super::{
    instruction::Step,
    registers::{Gpr, Known, RegisterSet},
};

/// How a new register value follows from old ones. Registers that change in any other way are
/// [`Step::clobbered`]; those are lost after the effect (`pop %rax`: first rsp moves, then rax is lost).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    Nothing,
    Linear(Linear),
    Compute(Compute),
    /// `xchg` of two 64-bit registers.
    Swap(Gpr, Gpr),
    Strings(Strings),
}

/// `to = base ± (index << shift) + displacement`: `mov`, `lea`, `add`, `sub`, `inc`, `dec`, `push`, ..
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Linear {
    pub(super) to: Gpr,
    pub(super) base: Option<Gpr>,
    pub(super) index: Option<Gpr>,
    pub(super) shift: u8,
    pub(super) subtract: bool,
    /// A 32-bit result, zero-extended: the old upper half is lost.
    pub(super) narrow: bool,
    /// The displacement is an address in the file: add the load bias.
    pub(super) relative: bool,
    pub(super) displacement: u64,
}

/// `to = function(from)` for the index arithmetic that compilers emit; forwards only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Compute {
    to: Gpr,
    from: Gpr,
    function: Function,
    narrow: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Function {
    And(u64),
    ShiftLeft(u8),
    ShiftRight(u8),
    Multiply(u64),
    ZeroExtend(u8),
    SignExtend(u8),
}

/// A string instruction. The direction flag is taken as clear, which both the System V ABI and the
/// kernel require outside of short asm sequences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Strings {
    element: u8,
    source: bool,
    destination: bool,
    repeat: Repeat,
    /// The constant that rcx was set to for it.
    count: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Repeat {
    Once,
    /// `rep`: exactly rcx times.
    Count,
    /// `repe`/`repne` of a comparison: at most rcx times.
    Condition,
}

impl Effect {
    /// The effect, with the registers it accounts for.
    pub(super) fn of(instruction: &Instruction) -> (Effect, RegisterSet) {
        let effect = effect(instruction);
        let accounted = match effect {
            Effect::Nothing => RegisterSet::NONE,
            Effect::Linear(Linear { to, .. }) | Effect::Compute(Compute { to, .. }) => {
                RegisterSet::NONE.with(to)
            }
            Effect::Swap(a, b) => RegisterSet::NONE.with(a).with(b),
            Effect::Strings(_) => RegisterSet::NONE
                .with(Gpr::RSI)
                .with(Gpr::RDI)
                .with(Gpr::RCX),
        };
        (effect, accounted)
    }

    /// The constant this puts into `register`, if it is one.
    pub(super) fn constant(&self, register: Gpr) -> Option<u64> {
        match self {
            Effect::Linear(Linear {
                to,
                base: None,
                index: None,
                relative: false,
                displacement,
                ..
            }) if *to == register => Some(*displacement),
            _ => None,
        }
    }
}

impl Effect {
    /// The same effect, of a string instruction that starts with this count.
    pub(super) fn counting(self, count: Option<u64>) -> Effect {
        match self {
            Effect::Strings(strings) => Effect::Strings(Strings { count, ..strings }),
            other => other,
        }
    }

    /// Whether a repeated string instruction that is about to run with this rcx has begun already.
    /// An interrupt in the middle leaves the ip at the instruction and rcx at the rest. Only a constant
    /// count can tell the beginning from the middle; without one the middle is taken, since that is
    /// where nearly all of its time goes.
    pub(super) fn has_begun(&self, rcx: u64) -> bool {
        match self {
            Effect::Strings(strings) if strings.repeat != Repeat::Once => {
                rcx != 0 && strings.count != Some(rcx)
            }
            _ => false,
        }
    }
}

impl Known {
    /// From before the instruction to after it.
    pub(super) fn forward(&mut self, step: &Step, bias: u64) {
        match step.effect {
            Effect::Nothing => {}
            Effect::Linear(linear) => self.put(linear.to, linear.value(self, bias)),
            Effect::Compute(compute) => {
                let value = self.get(compute.from).map(|from| compute.value(from));
                self.put(compute.to, value);
            }
            Effect::Swap(a, b) => self.swap(a, b),
            Effect::Strings(strings) => strings.forward(self),
        }
        self.forget(step.clobbered);
    }

    /// From after the instruction to before it.
    pub(super) fn back(&mut self, step: &Step, bias: u64) {
        self.forget(step.clobbered);
        match step.effect {
            Effect::Nothing => {}
            Effect::Linear(linear) => linear.back(self, bias),
            Effect::Compute(compute) => self.put(compute.to, None),
            Effect::Swap(a, b) => self.swap(a, b),
            Effect::Strings(strings) => strings.back(self),
        }
    }

    fn swap(&mut self, a: Gpr, b: Gpr) {
        let (old_a, old_b) = (self.get(a), self.get(b));
        self.put(a, old_b);
        self.put(b, old_a);
    }
}

impl Linear {
    fn constant(to: Gpr, value: u64) -> Linear {
        Linear {
            to,
            base: None,
            index: None,
            shift: 0,
            subtract: false,
            narrow: false,
            relative: false,
            displacement: value,
        }
    }

    fn offset(to: Gpr, base: Gpr, displacement: u64) -> Linear {
        Linear {
            base: Some(base),
            ..Linear::constant(to, displacement)
        }
    }

    fn addend(&self, bias: u64) -> u64 {
        if self.relative {
            self.displacement.wrapping_add(bias)
        } else {
            self.displacement
        }
    }

    /// The index's share of the sum; zero without one.
    fn scaled(&self, known: &Known) -> Option<u64> {
        let Some(index) = self.index else {
            return Some(0);
        };
        let scaled = known.get(index)? << self.shift;
        Some(if self.subtract {
            scaled.wrapping_neg()
        } else {
            scaled
        })
    }

    fn value(&self, known: &Known, bias: u64) -> Option<u64> {
        let base = match self.base {
            Some(base) => known.get(base)?,
            None => 0,
        };
        let sum = base
            .wrapping_add(self.scaled(known)?)
            .wrapping_add(self.addend(bias));
        Some(if self.narrow { sum & 0xffff_ffff } else { sum })
    }

    /// Solves the equation for the one register in it that is not known before the instruction.
    fn back(&self, known: &mut Known, bias: u64) {
        let after = known.get(self.to);
        known.put(self.to, None);
        let Some(after) = after.filter(|_| !self.narrow) else {
            return;
        };
        let rest = after.wrapping_sub(self.addend(bias));
        match (self.base, self.index) {
            // `lea (%rax,%rax,2)` has one unknown twice: not worth a division.
            (Some(base), Some(index)) if base == index => {}
            (Some(base), _) if known.get(base).is_none() => {
                if let Some(scaled) = self.scaled(known) {
                    known.set(base, rest.wrapping_sub(scaled));
                }
            }
            (base, Some(index))
                if known.get(index).is_none() && self.shift == 0 && !self.subtract =>
            {
                let base = base.map_or(Some(0), |base| known.get(base));
                if let Some(base) = base {
                    known.set(index, rest.wrapping_sub(base));
                }
            }
            _ => {}
        }
    }
}

impl Compute {
    fn value(&self, from: u64) -> u64 {
        let from = if self.narrow {
            from & 0xffff_ffff
        } else {
            from
        };
        let result = match self.function {
            Function::And(mask) => from & mask,
            Function::ShiftLeft(by) => from << by,
            Function::ShiftRight(by) => from >> by,
            Function::Multiply(by) => from.wrapping_mul(by),
            Function::ZeroExtend(bits) => from & (u64::MAX >> (64 - u32::from(bits))),
            Function::SignExtend(bits) => {
                let unused = 64 - u32::from(bits);
                ((from << unused).cast_signed() >> unused) as u64
            }
        };
        if self.narrow {
            result & 0xffff_ffff
        } else {
            result
        }
    }
}

impl Strings {
    fn pointers(self) -> impl Iterator<Item = Gpr> {
        let source = self.source.then_some(Gpr::RSI);
        source
            .into_iter()
            .chain(self.destination.then_some(Gpr::RDI))
    }

    fn forward(self, known: &mut Known) {
        let moved = match self.repeat {
            Repeat::Once => Some(u64::from(self.element)),
            Repeat::Count => known
                .get(Gpr::RCX)
                .map(|count| count.wrapping_mul(u64::from(self.element))),
            Repeat::Condition => None,
        };
        for pointer in self.pointers() {
            let value = known.get(pointer).zip(moved);
            known.put(pointer, value.map(|(at, moved)| at.wrapping_add(moved)));
        }
        match self.repeat {
            Repeat::Once => {}
            Repeat::Count => known.set(Gpr::RCX, 0),
            Repeat::Condition => known.put(Gpr::RCX, None),
        }
    }

    fn back(self, known: &mut Known) {
        let moved = match self.repeat {
            Repeat::Once => Some(u64::from(self.element)),
            Repeat::Count | Repeat::Condition => {
                known.put(Gpr::RCX, None);
                None
            }
        };
        for pointer in self.pointers() {
            let value = known.get(pointer).zip(moved);
            known.put(pointer, value.map(|(at, moved)| at.wrapping_sub(moved)));
        }
    }
}

/// A whole 32- or 64-bit register, and whether it is the 32-bit one.
fn whole(register: Register) -> Option<(Gpr, bool)> {
    let narrow = register.is_gpr32();
    (narrow || register.is_gpr64())
        .then(|| Gpr::of(register))
        .flatten()
        .map(|gpr| (gpr, narrow))
}

fn is_immediate(kind: OpKind) -> bool {
    matches!(
        kind,
        OpKind::Immediate8
            | OpKind::Immediate32
            | OpKind::Immediate64
            | OpKind::Immediate8to32
            | OpKind::Immediate8to64
            | OpKind::Immediate32to64
    )
}

fn effect(instruction: &Instruction) -> Effect {
    if instruction.is_string_instruction() {
        return strings(instruction);
    }
    stack(instruction)
        .or_else(|| linear(instruction))
        .map(Effect::Linear)
        .or_else(|| compute(instruction).map(Effect::Compute))
        .or_else(|| swap(instruction))
        .unwrap_or(Effect::Nothing)
}

fn strings(instruction: &Instruction) -> Effect {
    let (source, destination, conditional) = match instruction.mnemonic() {
        Mnemonic::Movsb | Mnemonic::Movsw | Mnemonic::Movsd | Mnemonic::Movsq => {
            (true, true, false)
        }
        Mnemonic::Stosb | Mnemonic::Stosw | Mnemonic::Stosd | Mnemonic::Stosq => {
            (false, true, false)
        }
        Mnemonic::Lodsb | Mnemonic::Lodsw | Mnemonic::Lodsd | Mnemonic::Lodsq => {
            (true, false, false)
        }
        Mnemonic::Cmpsb | Mnemonic::Cmpsw | Mnemonic::Cmpsd | Mnemonic::Cmpsq => (true, true, true),
        Mnemonic::Scasb | Mnemonic::Scasw | Mnemonic::Scasd | Mnemonic::Scasq => {
            (false, true, true)
        }
        _ => return Effect::Nothing,
    };
    let wide = instruction.op_kinds().all(|kind| {
        matches!(
            kind,
            OpKind::MemorySegRSI | OpKind::MemoryESRDI | OpKind::Register
        )
    });
    if !wide {
        return Effect::Nothing;
    }
    let repeated = instruction.has_rep_prefix() || instruction.has_repne_prefix();
    Effect::Strings(Strings {
        count: None,
        element: instruction.memory_size().size() as u8,
        source,
        destination,
        repeat: match (repeated, conditional) {
            (false, _) => Repeat::Once,
            (true, false) => Repeat::Count,
            (true, true) => Repeat::Condition,
        },
    })
}

/// Instructions that move the stack pointer by a constant.
fn stack(instruction: &Instruction) -> Option<Linear> {
    match instruction.mnemonic() {
        Mnemonic::Leave => Some(Linear::offset(Gpr::RSP, Gpr::RBP, 8)),
        Mnemonic::Enter | Mnemonic::Call => None,
        Mnemonic::Pop if Gpr::of(instruction.op0_register()) == Some(Gpr::RSP) => None,
        _ if instruction.is_stack_instruction() => {
            let moved = i64::from(instruction.stack_pointer_increment()) as u64;
            Some(Linear::offset(Gpr::RSP, Gpr::RSP, moved))
        }
        _ => None,
    }
}

fn linear(instruction: &Instruction) -> Option<Linear> {
    let (to, narrow) = whole(instruction.op0_register())?;
    if instruction.op0_kind() != OpKind::Register {
        return None;
    }
    let other = match instruction.op1_kind() {
        OpKind::Register => whole(instruction.op1_register()),
        _ => None,
    };
    let immediate = (instruction.op_count() > 1 && is_immediate(instruction.op1_kind()))
        .then(|| instruction.immediate(1));
    let same = other.is_some_and(|(other, _)| other == to);
    let linear = match instruction.mnemonic() {
        Mnemonic::Mov => match (other, immediate) {
            (Some((from, _)), _) => Linear::offset(to, from, 0),
            (None, Some(value)) => Linear::constant(to, value),
            (None, None) => return None,
        },
        Mnemonic::Lea => address(instruction, to)?,
        Mnemonic::Xor | Mnemonic::Sub if same => Linear::constant(to, 0),
        Mnemonic::Add | Mnemonic::Sub => {
            let subtract = instruction.mnemonic() == Mnemonic::Sub;
            match (other, immediate) {
                (Some((index, _)), _) => Linear {
                    index: Some(index),
                    subtract,
                    ..Linear::offset(to, to, 0)
                },
                (None, Some(value)) if subtract => Linear::offset(to, to, value.wrapping_neg()),
                (None, Some(value)) => Linear::offset(to, to, value),
                (None, None) => return None,
            }
        }
        Mnemonic::Inc => Linear::offset(to, to, 1),
        Mnemonic::Dec => Linear::offset(to, to, u64::MAX),
        _ => return None,
    };
    let linear = Linear { narrow, ..linear };
    // A constant is stored as it will read, so that no one has to mind the width again.
    Some(match linear.base.or(linear.index) {
        None if narrow && !linear.relative => Linear {
            displacement: linear.displacement & 0xffff_ffff,
            ..linear
        },
        _ => linear,
    })
}

/// The sum that `lea` computes.
fn address(instruction: &Instruction, to: Gpr) -> Option<Linear> {
    let base = instruction.memory_base();
    let index = instruction.memory_index();
    // With an address-size prefix the sum is cut before it is stored.
    if base.is_gpr32() || index.is_gpr32() || base == Register::EIP {
        return None;
    }
    Some(Linear {
        base: Gpr::of(base),
        index: Gpr::of(index),
        shift: instruction.memory_index_scale().trailing_zeros() as u8 & 3,
        relative: base == Register::RIP,
        ..Linear::constant(to, instruction.memory_displacement64())
    })
}

fn compute(instruction: &Instruction) -> Option<Compute> {
    if instruction.mnemonic() == Mnemonic::Cdqe {
        return Some(Compute {
            to: Gpr::RAX,
            from: Gpr::RAX,
            function: Function::SignExtend(32),
            narrow: false,
        });
    }
    let (to, narrow) = whole(instruction.op0_register())?;
    if instruction.op0_kind() != OpKind::Register || instruction.op_count() < 2 {
        return None;
    }
    let second = instruction.op1_kind();
    let immediate = is_immediate(second).then(|| instruction.immediate(1));
    // Shift counts are taken modulo the operand's width.
    let count = immediate.map(|count| count as u8 & if narrow { 31 } else { 63 });
    let mut from = to;
    let function = match instruction.mnemonic() {
        Mnemonic::And => Function::And(immediate?),
        Mnemonic::Shl | Mnemonic::Sal => Function::ShiftLeft(count?),
        Mnemonic::Shr => Function::ShiftRight(count?),
        Mnemonic::Imul => {
            from = whole(instruction.op1_register())
                .filter(|_| second == OpKind::Register)?
                .0;
            let third = instruction.op_count() == 3 && is_immediate(instruction.op2_kind());
            Function::Multiply(third.then(|| instruction.immediate(2))?)
        }
        Mnemonic::Movzx | Mnemonic::Movsx | Mnemonic::Movsxd => {
            let register = instruction.op1_register();
            // ah, ch, dh and bh are not the low bits of their register.
            let high = matches!(
                register,
                Register::AH | Register::CH | Register::DH | Register::BH
            );
            from = Gpr::of(register).filter(|_| second == OpKind::Register && !high)?;
            let bits = register.size() as u8 * 8;
            if instruction.mnemonic() == Mnemonic::Movzx {
                Function::ZeroExtend(bits)
            } else {
                Function::SignExtend(bits)
            }
        }
        _ => return None,
    };
    Some(Compute {
        to,
        from,
        function,
        narrow,
    })
}

fn swap(instruction: &Instruction) -> Option<Effect> {
    let registers = instruction.mnemonic() == Mnemonic::Xchg
        && instruction.op0_kind() == OpKind::Register
        && instruction.op1_kind() == OpKind::Register;
    let (a, narrow) = whole(instruction.op0_register())?;
    let (b, _) = whole(instruction.op1_register())?;
    (registers && !narrow).then_some(Effect::Swap(a, b))
}
