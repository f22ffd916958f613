//! Which [`Effect`] an x86-64 instruction has; what is not listed here only clobbers.

use iced_x86::{Instruction, Mnemonic, OpKind, Register};

use super::{
    effect::{Compute, Effect, Function, Linear, Load, Repeat, Strings},
    registers::Gpr,
};

/// The instruction's effect on general registers.
pub(super) fn effect(instruction: &Instruction) -> Effect {
    if instruction.is_string_instruction() {
        return strings(instruction);
    }
    stack(instruction)
        .or_else(|| linear(instruction))
        .map(Effect::Linear)
        .or_else(|| compute(instruction).map(Effect::Compute))
        .or_else(|| swap(instruction))
        .or_else(|| load(instruction).map(Effect::Load))
        .unwrap_or(Effect::Nothing)
}

/// A whole 32- or 64-bit register, and whether it is the 32-bit one.
fn whole(register: Register) -> Option<(Gpr, bool)> {
    let narrow = register.is_gpr32();
    (narrow || register.is_gpr64())
        .then(|| Gpr::of(register))
        .flatten()
        .map(|gpr| (gpr, narrow))
}

/// The string instructions with 64-bit pointers.
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
        element: instruction.memory_size().size() as u8,
        source,
        destination,
        repeat: match (repeated, conditional) {
            (false, _) => Repeat::Once,
            (true, false) => Repeat::Count,
            (true, true) => Repeat::Condition,
        },
        count: None,
    })
}

/// Instructions that move the stack pointer by a constant.
fn stack(instruction: &Instruction) -> Option<Linear> {
    match instruction.mnemonic() {
        Mnemonic::Leave => Some(Linear::offset(Gpr::RSP, Gpr::RBP, 8)),
        Mnemonic::Enter if instruction.immediate8_2nd() == 0 => {
            Some(Linear::offset(Gpr::RBP, Gpr::RSP, 8u64.wrapping_neg()))
        }
        Mnemonic::Enter | Mnemonic::Call => None,
        Mnemonic::Pop if Gpr::of(instruction.op0_register()) == Some(Gpr::RSP) => None,
        _ if instruction.is_stack_instruction() => {
            let moved = i64::from(instruction.stack_pointer_increment()) as u64;
            Some(Linear::offset(Gpr::RSP, Gpr::RSP, moved))
        }
        _ => None,
    }
}

/// Sums of registers and constants into a whole register. 8- and 16-bit results are not followed: they
/// leave the rest of the register, and addresses are not made of them.
fn linear(instruction: &Instruction) -> Option<Linear> {
    let (to, narrow) = whole(instruction.op0_register())?;
    if instruction.op0_kind() != OpKind::Register {
        return None;
    }
    let other = match instruction.op1_kind() {
        OpKind::Register => whole(instruction.op1_register()),
        _ => None,
    };
    let immediate = instruction.try_immediate(1).ok();
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

/// What scales, masks or widens an index on its way into an address.
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
    let immediate = instruction.try_immediate(1).ok();
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
            Function::Multiply(instruction.try_immediate(2).ok()?)
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

/// `xchg` of whole registers; the 32-bit form also clears the upper halves and is left as unknown.
fn swap(instruction: &Instruction) -> Option<Effect> {
    let registers = instruction.mnemonic() == Mnemonic::Xchg
        && instruction.op0_kind() == OpKind::Register
        && instruction.op1_kind() == OpKind::Register;
    let (a, narrow) = whole(instruction.op0_register())?;
    let (b, _) = whole(instruction.op1_register())?;
    (registers && !narrow).then_some(Effect::Swap(a, b))
}

/// Loads of a whole register from a written operand.
fn load(instruction: &Instruction) -> Option<Load> {
    let signed = match instruction.mnemonic() {
        Mnemonic::Mov | Mnemonic::Movzx => false,
        Mnemonic::Movsx | Mnemonic::Movsxd => true,
        _ => return None,
    };
    if instruction.op0_kind() != OpKind::Register || instruction.op1_kind() != OpKind::Memory {
        return None;
    }
    let (to, narrow) = whole(instruction.op0_register())?;
    Some(Load {
        to,
        bytes: u8::try_from(instruction.memory_size().size()).ok()?,
        signed,
        narrow,
    })
}
