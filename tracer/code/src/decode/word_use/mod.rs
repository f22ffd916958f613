//! What an instruction does with the word of memory that it accesses: takes a lock, counts, moves an index; pure, x86-64.
//!
//! The instruction alone does not tell a lock from an index that is moved by compare-and-swap: what it compares with and
//! what it writes does. `values` looks back for what a register holds, `outcome` looks ahead for what becomes of a result.
//! Both see one function, and what they cannot tell is said to be unknown.

mod code;
mod outcome;
#[cfg(test)]
mod tests;
mod values;

use iced_x86::{Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register};

use self::{code::FunctionText, values::Values};
use super::function::CallConvention;

/// What an instruction does with its word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WordUse {
    /// Only reads it.
    Read(Outcome),
    /// Only writes it.
    Write(Written),
    /// Adds to it in one instruction, with a lock or without: the constant, where it is one.
    Add {
        /// What is added, where it is a constant; negative where it is subtracted.
        step: Option<i64>,
        /// What becomes of the value.
        outcome: Outcome,
    },
    /// Sets, clears or changes bits of it in one instruction.
    Bits(Outcome),
    /// Writes it and gets what was there.
    Exchange {
        /// What is written.
        new: Written,
        /// What becomes of the value that was there.
        outcome: Outcome,
    },
    /// Writes it if it still is what is expected.
    CompareAndSwap {
        /// What it must be.
        expected: Written,
        /// What is written.
        new: Written,
    },
}

/// A value that is written, or compared with before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// Always the same.
    Constant(i64),
    /// One of a few constants.
    Choice,
    /// What the same word held, plus this; `None` where it was calculated from it otherwise.
    Advanced(Option<i64>),
    /// Read from where the word pointed to: the next node of a list.
    Followed,
    /// Something else, or not known.
    Other,
}

/// What becomes of a value that an instruction read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing looks at it.
    Unused,
    /// Compared for equality with a constant, or its bits tested.
    Tested,
    /// Compared for equality with what the same word holds at another time.
    Again,
    /// Compared for equality with what another word holds: whose turn it is.
    Turn,
    /// Used in some other way.
    Used,
    /// Handed to a caller, or lost from sight.
    Unknown,
}

/// What the instruction at `ip` does with the word that its one memory operand names, where `bytes` is the function from
/// `start` on (addresses of the file). `None` where there is no such instruction or operand, or where it moves whole blocks.
pub fn word_use(start: u64, bytes: &[u8], ip: u64, convention: CallConvention) -> Option<WordUse> {
    let code = FunctionText::decode(start, bytes, ip, convention)?;
    let at = code.at(ip)?;
    let instruction = *code.instruction(at);
    let memory = (0..instruction.op_count())
        .filter(|&operand| instruction.op_kind(operand) == OpKind::Memory)
        .collect::<Vec<u32>>();
    let &[memory] = memory.as_slice() else {
        return None;
    };
    let values = Values::of_word(&code, at);
    let written = |operand| values.written(values.operand(&instruction, operand, at), &instruction);
    let read = |register| outcome::of_register(&code, &values, at, register);
    let flags = || outcome::of_flags(&code, at);
    Some(match (instruction.mnemonic(), memory) {
        (Mnemonic::Xchg, operand) => {
            let other = 1 - operand;
            WordUse::Exchange {
                new: written(other),
                outcome: read(instruction.op_register(other)),
            }
        }
        (Mnemonic::Xadd, _) => WordUse::Add {
            step: constant(written(1)),
            outcome: read(instruction.op1_register()),
        },
        (Mnemonic::Cmpxchg, _) => WordUse::CompareAndSwap {
            expected: values.written(values.accumulator(at), &instruction),
            new: written(1),
        },
        (Mnemonic::Cmpxchg8b | Mnemonic::Cmpxchg16b, _) => WordUse::CompareAndSwap {
            expected: values.written(values.accumulator(at), &instruction),
            new: values.written(values.register(Register::RBX, at), &instruction),
        },
        (Mnemonic::Inc, _) => WordUse::Add {
            step: Some(1),
            outcome: flags(),
        },
        (Mnemonic::Dec, _) => WordUse::Add {
            step: Some(-1),
            outcome: flags(),
        },
        (Mnemonic::Add, 0) => WordUse::Add {
            step: constant(written(1)),
            outcome: flags(),
        },
        (Mnemonic::Sub, 0) => WordUse::Add {
            step: constant(written(1)).map(i64::wrapping_neg),
            outcome: flags(),
        },
        (Mnemonic::And | Mnemonic::Or | Mnemonic::Xor, 0)
        | (Mnemonic::Bts | Mnemonic::Btr | Mnemonic::Btc, _) => WordUse::Bits(flags()),
        (Mnemonic::Cmp, operand) => WordUse::Read(outcome::of_comparison(
            &code,
            at,
            &values.operand(&instruction, 1 - operand, at),
            &values,
        )),
        (Mnemonic::Test | Mnemonic::Bt, _) => WordUse::Read(flags().as_test()),
        (Mnemonic::Mov | Mnemonic::Movnti, 0) => WordUse::Write(written(1)),
        (Mnemonic::Mov | Mnemonic::Movzx | Mnemonic::Movsx | Mnemonic::Movsxd, _) => {
            WordUse::Read(read(instruction.op0_register()))
        }
        _ => by_direction(&instruction)?,
    })
}

/// The constant that is written, where it is one.
fn constant(written: Written) -> Option<i64> {
    match written {
        Written::Constant(value) => Some(value),
        _ => None,
    }
}

/// What is left to say of an instruction that is none of those above.
fn by_direction(instruction: &Instruction) -> Option<WordUse> {
    if instruction.is_string_instruction() {
        return None;
    }
    let mut factory = InstructionInfoFactory::new();
    let [memory] = factory.info(instruction).used_memory() else {
        return None;
    };
    match memory.access() {
        OpAccess::Read | OpAccess::CondRead => Some(WordUse::Read(Outcome::Used)),
        OpAccess::Write if code::sets_by_condition(instruction) => {
            Some(WordUse::Write(Written::Choice))
        }
        OpAccess::Write | OpAccess::CondWrite => Some(WordUse::Write(Written::Other)),
        _ => None,
    }
}

impl Outcome {
    /// Of flags that are those of a test, whatever condition looks at them.
    fn as_test(self) -> Outcome {
        match self {
            Outcome::Used => Outcome::Tested,
            other => other,
        }
    }

    /// Of two ways on: what is known of one of them counts.
    fn or(self, other: Outcome) -> Outcome {
        let rank = |outcome| match outcome {
            Outcome::Unused => 0,
            Outcome::Unknown => 1,
            Outcome::Tested => 2,
            Outcome::Turn => 3,
            Outcome::Again => 4,
            Outcome::Used => 5,
        };
        if rank(other) > rank(self) {
            other
        } else {
            self
        }
    }
}
