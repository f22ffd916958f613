//! Machine code to memory operands, from the registers of one sample; pure, x86-64.
//!
//! A [`FunctionCode`] is decoded once and asked per sample: [`FunctionCode::harvest`] names the
//! instruction the CPU was waiting for (the predecessor of the sampled ip in execution order) and
//! every memory operand around it whose address the sampled registers prove.
//! `flow`, `loops` and `cycles` know blocks and edges only; everything about x86 is in the other files. Start
//! reading at `harvest`. [`trap`] answers another question: which access a data breakpoint trapped. [`loaded_into`],
//! [`store_kind`], [`word_use`] and [`assembly`] say what an instruction is, without any register.

mod around;
mod assembly;
mod branch;
mod control;
mod cycles;
mod effect;
mod emulated;
mod fetched;
mod flow;
mod function;
mod harvest;
mod instruction;
mod load_class;
mod loops;
mod operand;
mod pieces;
mod real;
mod recall;
mod registers;
mod rejoin;
mod semantics;
mod settled;
mod single;
mod spin;
mod store_kind;
mod suspects;
#[cfg(test)]
mod tests;
pub mod trap;
mod waited;
mod walk;
mod word_use;

pub use around::{Around, Goes, RegisterBits, Spot, Told, around_told};
pub use assembly::{Assembly, Reference, Symbol, assembly};
pub use control::is_branch;
pub use emulated::{Emulated, emulated};
pub use fetched::{Before, CodeOperand, CodeRead, fetches, reads};
pub use function::{CallConvention, FunctionCode};
pub use load_class::{LoadedInto, loaded_into};
pub use pieces::known_instructions;
pub use real::{RealOperation, real_operation};
pub use recall::Memory;
pub use single::{LONGEST_INSTRUCTION, SingleAccess, single_access};
pub use store_kind::{StoreKind, store_kind};
pub use word_use::{Outcome, WordUse, Written, word_use};

use crate::{
    access::{Basis, Op, Wait},
    event::Unresolved,
};

/// The registers of one sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registers {
    /// General registers in encoding order: rax rcx rdx rbx rsp rbp rsi rdi r8..r15.
    pub gpr: [u64; 16],
    /// Address of the instruction that would have run next.
    pub ip: u64,
    /// Base of the fs segment, where known (the thread pointer in user mode).
    pub fs_base: Option<u64>,
    /// Base of the gs segment, where known.
    pub gs_base: Option<u64>,
}

/// One memory operand with its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touch {
    /// Run-time address of the accessing instruction.
    pub ip: u64,
    /// Virtual address of the first byte.
    pub addr: u64,
    /// Bytes, 1 to 64: larger and unsized operands (fxsave, xsave) count with their first 64.
    pub size: u16,
    /// Direction.
    pub op: Op,
    /// A lock prefix, or `xchg` with memory, which locks by itself.
    pub locked: bool,
    /// How certain it is.
    pub basis: Basis,
    /// Its place, from 1, among those that the CPU may have waited for instead of the stalled one; 0 for none of them.
    /// What they are depends on [`Harvest::wait`].
    pub suspect: u8,
}

/// Whether the sample's cost has an owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stall {
    /// Exactly one of the touches has [`Basis::Stalled`].
    Attributed,
    /// None has, for this reason.
    Unresolved(Unresolved),
}

/// What a sample gave, besides its touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Harvest {
    /// Owner of the sample's cost, as far as code alone tells.
    pub stall: Stall,
    /// What the CPU stood at, and so who the suspects are. At an instruction: the accesses before it, the nearest
    /// first, since instructions retire in order and several at once. At a full barrier: its own operand, and the
    /// stores since the barrier before, the nearest first. In a loop that waits: what it reads again and again, the
    /// last before it goes back first.
    pub wait: Wait,
    /// The loop, of a sample in one that waits.
    pub spin: Option<SpinLoop>,
    /// Run-time address of the instruction that was waited for, where its operand's address is lost.
    pub lost: Option<u64>,
    /// Operands that were looked at and whose address the registers do not tell.
    pub operands_unknown: u32,
}

/// A loop that waits, as a sample met it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpinLoop {
    /// Run-time address of the instruction that reads the word tested last: the same for all samples in the loop.
    pub ip: u64,
    /// The registers do not tell the addresses of all words that it reads.
    pub incomplete: bool,
}

impl Harvest {
    /// That of a sample without a touch.
    pub fn unresolved(reason: Unresolved) -> Harvest {
        Harvest {
            stall: Stall::Unresolved(reason),
            wait: Wait::AtInstruction,
            spin: None,
            lost: None,
            operands_unknown: 0,
        }
    }
}
