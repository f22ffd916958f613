//! Which way a conditional jump goes, judged by the values of the registers that were compared.
//!
//! The flags are not in a sample, but a comparison of two known registers can be done again. That
//! tells which of two paths led to the ip, and which of two the code will take.

use iced_x86::{ConditionCode, Instruction, Mnemonic, OpKind, Register};

use super::registers::{Gpr, Known, RegisterSet};

/// How far before the jump its comparison is looked for, instructions.
const MAX_DISTANCE: usize = 8;

/// A comparison of registers and the condition that is jumped on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Condition {
    code: ConditionCode,
    kind: Kind,
    left: Gpr,
    right: Right,
    bits: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Flags of `left - right`.
    Compare,
    /// Flags of `left & right`.
    Test,
    /// Zero and sign flag of `left` as it is now: it holds the result of an addition or the like.
    Result,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Right {
    Register(Gpr),
    Immediate(u64),
}

impl Condition {
    /// The condition of a block's last jump; `written(n)` is what `block[n]` changes.
    pub(super) fn of(
        block: &[Instruction],
        written: impl Fn(usize) -> RegisterSet,
    ) -> Option<Condition> {
        let (jump, before) = block.split_last()?;
        if !jump.is_jcc_short_or_near() {
            return None;
        }
        let distance = before
            .iter()
            .rev()
            .take(MAX_DISTANCE)
            .position(|instruction| {
                // A callee leaves the flags as it likes.
                instruction.rflags_modified() != 0 || instruction.mnemonic() == Mnemonic::Call
            })?;
        let setter = before.len() - 1 - distance;
        let condition = comparison(&before[setter], jump.condition_code())?;
        let changed = (setter + 1..before.len())
            .fold(RegisterSet::NONE, |all, number| all.union(written(number)));
        let right = match condition.right {
            Right::Register(right) => right,
            Right::Immediate(_) => condition.left,
        };
        (!changed.contains(condition.left) && !changed.contains(right)).then_some(condition)
    }

    /// Whether the jump is taken; `None` when a compared register is not known.
    pub(super) fn taken(&self, known: &Known) -> Option<bool> {
        let unused = 64 - u32::from(self.bits);
        let cut = |value: u64| value << unused >> unused;
        let left = cut(known.get(self.left)?);
        let right = cut(match self.right {
            Right::Register(right) => known.get(right)?,
            Right::Immediate(value) => value,
        });
        let negative = |value: u64| value << unused >> 63 != 0;
        let result = match self.kind {
            Kind::Compare => cut(left.wrapping_sub(right)),
            Kind::Test => left & right,
            Kind::Result => left,
        };
        let (zero, sign) = (result == 0, negative(result));
        // Signed and unsigned "less"; a logical result has neither carry nor overflow.
        let (below, less) = match self.kind {
            Kind::Compare => (
                left < right,
                (left << unused).cast_signed() < (right << unused).cast_signed(),
            ),
            Kind::Test => (false, sign),
            Kind::Result => (false, false),
        };
        let arithmetic = self.kind != Kind::Result;
        match self.code {
            ConditionCode::e => Some(zero),
            ConditionCode::ne => Some(!zero),
            ConditionCode::s => Some(sign),
            ConditionCode::ns => Some(!sign),
            ConditionCode::b if arithmetic => Some(below),
            ConditionCode::ae if arithmetic => Some(!below),
            ConditionCode::be if arithmetic => Some(below || zero),
            ConditionCode::a if arithmetic => Some(!below && !zero),
            ConditionCode::l if arithmetic => Some(less),
            ConditionCode::ge if arithmetic => Some(!less),
            ConditionCode::le if arithmetic => Some(less || zero),
            ConditionCode::g if arithmetic => Some(!less && !zero),
            _ => None,
        }
    }
}

/// The comparison that `setter` makes for a jump on `code`, if it is one of registers and constants.
fn comparison(setter: &Instruction, code: ConditionCode) -> Option<Condition> {
    let left = setter.op0_register();
    let high = matches!(
        left,
        Register::AH | Register::BH | Register::CH | Register::DH
    );
    if setter.op0_kind() != OpKind::Register || high {
        return None;
    }
    let kind = match setter.mnemonic() {
        Mnemonic::Cmp => Kind::Compare,
        Mnemonic::Test => Kind::Test,
        Mnemonic::Add
        | Mnemonic::Sub
        | Mnemonic::Inc
        | Mnemonic::Dec
        | Mnemonic::And
        | Mnemonic::Or
        | Mnemonic::Xor => Kind::Result,
        _ => return None,
    };
    let right = match (kind, setter.op1_kind()) {
        (Kind::Result, _) => Right::Immediate(0),
        (_, OpKind::Register) => {
            let right = setter.op1_register();
            let high = matches!(
                right,
                Register::AH | Register::BH | Register::CH | Register::DH
            );
            Right::Register(Gpr::of(right).filter(|_| !high)?)
        }
        (_, OpKind::Memory) => return None,
        _ => Right::Immediate(setter.immediate(1)),
    };
    Some(Condition {
        code,
        kind,
        left: Gpr::of(left)?,
        right,
        bits: left.size() as u8 * 8,
    })
}

/// Whether `first` and the jump after it become one instruction that retires as a whole, so that no
/// sample falls between them (Intel optimization manual 3.4.2.2; AMD fuses `cmp` and `test` in all
/// forms). Writes to memory do not fuse.
pub(super) fn fuses(first: &Instruction, jump: &Instruction) -> bool {
    if !jump.is_jcc_short_or_near() {
        return false;
    }
    let code = jump.condition_code();
    let carry_or_order = !matches!(
        code,
        ConditionCode::s
            | ConditionCode::ns
            | ConditionCode::p
            | ConditionCode::np
            | ConditionCode::o
            | ConditionCode::no
    );
    let into_register = first.op0_kind() == OpKind::Register;
    match first.mnemonic() {
        Mnemonic::Test => true,
        Mnemonic::And => into_register,
        Mnemonic::Cmp => carry_or_order,
        Mnemonic::Add | Mnemonic::Sub => into_register && carry_or_order,
        Mnemonic::Inc | Mnemonic::Dec => {
            let carry = matches!(
                code,
                ConditionCode::b | ConditionCode::ae | ConditionCode::be | ConditionCode::a
            );
            into_register && carry_or_order && !carry
        }
        _ => false,
    }
}
