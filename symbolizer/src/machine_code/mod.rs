//! An architecture-neutral intermediate form of machine code: control flow, memory operands, and what becomes of the
//! general registers.

mod blocks;
mod switch;
mod x86;
mod x86_effects;
#[cfg(test)]
mod x86_tests;

pub(crate) use blocks::Blocks;
pub(crate) use switch::{Table, table_of};
pub(crate) use x86::decode;

pub(crate) use crate::locals::Register;

/// Registers that are followed, by DWARF number.
pub(crate) const REGISTERS: usize = 16;

/// One instruction.
#[derive(Clone, Debug)]
pub(crate) struct Instruction {
    /// Svma.
    pub(crate) address: u64,
    pub(crate) length: u8,
    pub(crate) next: Next,
    /// Memory operands, those that the instruction names first.
    pub(crate) operands: Box<[Memory]>,
    /// All sources are read before anything is written.
    pub(crate) effects: Box<[Effect]>,
}

impl Instruction {
    pub(crate) fn end(&self) -> u64 {
        self.address.wrapping_add(u64::from(self.length))
    }

    /// Whether the instruction changes a register.
    pub(crate) fn writes(&self, register: Register) -> bool {
        matches!(self.next, Next::Call { .. }) && !is_preserved(register)
            || self.effects.iter().any(|effect| match *effect {
                Effect::Set { to, .. } => to == register,
                Effect::Swap(a, b) => a == register || b == register,
                Effect::Store { .. } => false,
            })
    }
}

/// What a called function gives back as it was (System V psABI x86-64, figure 3.4): rbx, rsp, rbp, r12 to r15.
pub(crate) fn is_preserved(register: Register) -> bool {
    matches!(register.0, 3 | 6 | 7 | 12..=15)
}

/// Where control goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    Following,
    Branch {
        target: u64,
        conditional: bool,
    },
    /// To an address from a register or from memory: a switch or a call in tail position.
    Indirect,
    /// Comes back. Without a target where it is computed.
    Call {
        target: Option<u64>,
    },
    /// Nowhere: a return, a trap.
    Stop,
}

/// What a memory operand's address starts from, apart from registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Segment {
    /// The address space itself.
    Flat,
    /// The thread's own block.
    Thread,
    /// The block of the CPU, as kernels use it.
    Processor,
    /// Something else, not followed.
    Other,
}

/// A register that is added to an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Index {
    Register(Register),
    /// Each lane of a vector.
    Lanes,
}

/// A memory operand: `base + index * scale + displacement`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts about one operand"
)]
pub(crate) struct Memory {
    pub(crate) base: Option<Register>,
    pub(crate) index: Option<Index>,
    pub(crate) scale: u8,
    /// With `absolute`, an svma.
    pub(crate) displacement: i64,
    /// Relative to the instruction: the displacement is where it is, wherever the file is loaded.
    pub(crate) absolute: bool,
    pub(crate) segment: Segment,
    /// Bytes.
    pub(crate) size: u32,
    pub(crate) read: bool,
    pub(crate) write: bool,
    /// A string instruction: what follows is accessed too.
    pub(crate) string: bool,
}

/// A change of the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    Set {
        to: Register,
        value: Source,
    },
    Swap(Register, Register),
    /// A store of this operand's size.
    Store {
        to: Memory,
        value: Source,
    },
}

/// How a value follows from the state before the instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Copy(Register),
    Constant(u64),
    /// `a + b` of whole registers.
    Add(Register, Register),
    /// `a - b` of whole registers.
    Subtract(Register, Register),
    Offset(Register, i64),
    /// The address of an operand.
    Address(Memory),
    /// A whole register's worth from memory.
    Load(Memory),
    /// A register plus a value from memory.
    AddLoad(Register, Memory),
    Shift(Register, u8),
    Multiply(Register, u64),
    And(Register, u64),
    /// The register moves on by a multiple of this.
    Walk(Register, u64),
    /// One of both: a conditional move.
    Either(Register, Register),
    EitherLoad(Register, Memory),
    /// The low half of a register: an integer, and a multiple of what the register is a multiple of.
    Narrow(Register),
    /// As [`Source::Address`], cut to 32 bits.
    NarrowAddress(Memory),
    /// An integer if the register holds one.
    Mixed(Register),
    /// Too narrow for an address.
    Integer,
    Unknown,
}
