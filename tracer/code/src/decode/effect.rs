//! What instructions do to general registers, and how to follow it forwards and undo it backwards.
//!
//! Invariant: every value in a [`Known`] is the register's true value at that point; what cannot be
//! told is forgotten, never guessed.

use super::{
    instruction::Step,
    recall::Memory,
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
    /// Its value is in memory: the register is lost, forwards and backwards.
    Load(Load),
}

/// `to` = so many bytes of memory, zero- or sign-extended; the step's only operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Load {
    pub(super) to: Gpr,
    pub(super) bytes: u8,
    pub(super) signed: bool,
    /// The register's lower 32 bits; the upper ones are cleared.
    pub(super) narrow: bool,
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
    pub(super) to: Gpr,
    pub(super) from: Gpr,
    pub(super) function: Function,
    pub(super) narrow: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
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
    /// Size of an element in bytes.
    pub(super) element: u8,
    /// It reads through rsi.
    pub(super) source: bool,
    /// It reads or writes through rdi.
    pub(super) destination: bool,
    pub(super) repeat: Repeat,
    /// The constant that rcx was set to for it.
    pub(super) count: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repeat {
    Once,
    /// `rep`: exactly rcx times.
    Count,
    /// `repe`/`repne` of a comparison: at most rcx times.
    Condition,
}

impl Effect {
    /// The registers whose new value it tells.
    pub(super) fn accounts_for(&self) -> RegisterSet {
        match *self {
            Effect::Nothing | Effect::Load(_) => RegisterSet::NONE,
            Effect::Linear(Linear { to, .. }) | Effect::Compute(Compute { to, .. }) => {
                RegisterSet::NONE.with(to)
            }
            Effect::Swap(a, b) => RegisterSet::NONE.with(a).with(b),
            Effect::Strings(_) => RegisterSet::NONE
                .with(Gpr::RSI)
                .with(Gpr::RDI)
                .with(Gpr::RCX),
        }
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

    /// The same effect, of a string instruction that starts with this count.
    pub(super) fn counting(self, count: Option<u64>) -> Effect {
        match self {
            Effect::Strings(strings) => Effect::Strings(Strings { count, ..strings }),
            other => other,
        }
    }

    /// Bytes from the first to the last of `elements`; `None` where a comparison may end before.
    pub(super) fn last_of(&self, elements: u64) -> Option<u64> {
        match self {
            Effect::Strings(strings) if strings.repeat == Repeat::Count => {
                let distance = elements.wrapping_sub(1);
                Some(distance.wrapping_mul(u64::from(strings.element)))
            }
            _ => None,
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
            Effect::Nothing | Effect::Load(_) => {}
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
            Effect::Nothing | Effect::Load(_) => {}
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
    /// `to = value`.
    pub(super) fn constant(to: Gpr, value: u64) -> Linear {
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

    /// `to = base + displacement`, 64 bits wide.
    pub(super) fn offset(to: Gpr, base: Gpr, displacement: u64) -> Linear {
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

impl Load {
    /// What it loads from `addr`, if there is memory.
    pub(super) fn read(self, addr: u64, memory: &mut dyn Memory) -> Option<u64> {
        let mut buffer = [0; 8];
        let bytes = buffer.get_mut(..usize::from(self.bytes))?;
        if !memory.read(addr, bytes) {
            return None;
        }
        let unused = 64 - 8 * u32::from(self.bytes);
        let value = u64::from_le_bytes(buffer);
        let value = if self.signed {
            ((value << unused).cast_signed() >> unused) as u64
        } else {
            value
        };
        Some(if self.narrow {
            value & 0xffff_ffff
        } else {
            value
        })
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
