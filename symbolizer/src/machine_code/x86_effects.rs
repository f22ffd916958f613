//! What x86-64 instructions do to general registers and memory. What is not listed here is lost, never guessed.

use iced_x86::{ConditionCode, FlowControl, Instruction, Mnemonic, OpKind, Register as Iced};

use super::{Effect, Memory, Register, Source, x86::of};

const RSP: Register = Register(7);
const RBP: Register = Register(6);

/// The effects that are followed. Registers that change in any other way are the caller's to forget.
pub(super) fn effects(instruction: &Instruction, operands: &[Memory]) -> Vec<Effect> {
    if instruction.is_string_instruction() {
        return strings(instruction);
    }
    let set = |to, value| vec![Effect::Set { to, value }];
    let moved = |by: i64| Effect::Set {
        to: RSP,
        value: Source::Offset(RSP, by),
    };
    let by = i64::from(instruction.stack_pointer_increment());
    let read = operands.iter().find(|operand| operand.read).copied();
    let write = operands.iter().find(|operand| operand.write).copied();
    let wide = |operand: Option<Memory>| operand.filter(|operand| operand.size == 8);
    match instruction.mnemonic() {
        Mnemonic::Push => {
            let value = match instruction.op0_kind() {
                OpKind::Register => {
                    whole(instruction.op0_register()).map_or(Source::Unknown, Source::Copy)
                }
                OpKind::Memory => wide(read).map_or(Source::Unknown, Source::Load),
                _ => Source::Integer,
            };
            let store = write.map(|to| Effect::Store { to, value });
            return store.into_iter().chain([moved(by)]).collect();
        }
        Mnemonic::Pop => {
            let value = wide(read).map_or(Source::Unknown, Source::Load);
            let target = match instruction.op0_kind() {
                OpKind::Register => {
                    whole(instruction.op0_register()).map(|to| Effect::Set { to, value })
                }
                _ => write.map(|to| Effect::Store { to, value }),
            };
            // `pop %rsp` ends with what was popped.
            let pointer = (whole(instruction.op0_register()) != Some(RSP)).then(|| moved(by));
            return pointer.into_iter().chain(target).collect();
        }
        Mnemonic::Leave => {
            let saved = wide(read).map_or(Source::Unknown, Source::Load);
            let pointer = Effect::Set {
                to: RSP,
                value: Source::Offset(RBP, 8),
            };
            return [pointer].into_iter().chain(set(RBP, saved)).collect();
        }
        // The callee takes its return address off again.
        Mnemonic::Call => return set(RSP, Source::Copy(RSP)),
        Mnemonic::Enter => return Vec::new(),
        _ if instruction.is_stack_instruction() => return vec![moved(by)],
        Mnemonic::Mov | Mnemonic::Movnti if instruction.op0_kind() == OpKind::Memory => {
            let Some(to) = write else { return Vec::new() };
            let value = match instruction.op1_kind() {
                OpKind::Register if to.size == 8 => {
                    whole(instruction.op1_register()).map_or(Source::Unknown, Source::Copy)
                }
                OpKind::Register => Source::Integer,
                _ => Source::Constant(instruction.immediate(1)),
            };
            return vec![Effect::Store { to, value }];
        }
        Mnemonic::Xchg => return exchange(instruction, read),
        Mnemonic::Xadd => {
            let (Some(memory), Some(to)) = (wide(read), whole(instruction.op1_register())) else {
                return Vec::new();
            };
            return set(to, Source::Load(memory));
        }
        Mnemonic::Cmpxchg => {
            // rax is what it was, or what was in memory.
            let rax = Register(0);
            return match wide(read) {
                Some(memory) => set(rax, Source::EitherLoad(rax, memory)),
                None => Vec::new(),
            };
        }
        _ => {}
    }
    let Some(to) = of(instruction.op0_register()) else {
        return match instruction.mnemonic() {
            Mnemonic::Cdqe => set(Register(0), Source::Narrow(Register(0))),
            Mnemonic::Cqo => set(Register(1), Source::Integer),
            _ => Vec::new(),
        };
    };
    if instruction.op0_kind() != OpKind::Register {
        return Vec::new();
    }
    match instruction.op0_register().size() {
        8 => wide_result(instruction, to, read).map_or_else(Vec::new, |value| set(to, value)),
        4 => narrow_result(instruction, to).map_or_else(Vec::new, |value| set(to, value)),
        _ => Vec::new(),
    }
}

fn whole(register: Iced) -> Option<Register> {
    register.is_gpr64().then(|| of(register)).flatten()
}

/// A result of 64 bits in `to`.
fn wide_result(instruction: &Instruction, to: Register, read: Option<Memory>) -> Option<Source> {
    let second = instruction.op1_kind();
    let register = (second == OpKind::Register)
        .then(|| of(instruction.op1_register()))
        .flatten();
    let wide_register = register.filter(|_| instruction.op1_register().is_gpr64());
    let immediate = instruction.try_immediate(1).ok();
    let load = read.filter(|memory| second == OpKind::Memory && memory.size == 8);
    Some(match instruction.mnemonic() {
        Mnemonic::Mov => match (wide_register, immediate, load) {
            (Some(from), ..) => Source::Copy(from),
            (_, Some(value), _) => Source::Constant(value),
            (_, _, Some(memory)) => Source::Load(memory),
            _ => return None,
        },
        Mnemonic::Lea => Source::Address(address(instruction)?),
        Mnemonic::Xor | Mnemonic::Sub if wide_register == Some(to) => Source::Constant(0),
        Mnemonic::Add => match (wide_register, immediate, load) {
            (Some(other), ..) => Source::Add(to, other),
            (_, Some(value), _) => Source::Offset(to, value as i64),
            (_, _, Some(memory)) => Source::AddLoad(to, memory),
            _ => return None,
        },
        Mnemonic::Sub => match (wide_register, immediate) {
            (Some(other), _) => Source::Subtract(to, other),
            (_, Some(value)) => Source::Offset(to, (value as i64).wrapping_neg()),
            _ => return None,
        },
        Mnemonic::Inc => Source::Offset(to, 1),
        Mnemonic::Dec => Source::Offset(to, -1),
        Mnemonic::And => match immediate {
            Some(mask) => Source::And(to, mask),
            None => Source::Mixed(to),
        },
        Mnemonic::Shl | Mnemonic::Sal => match immediate {
            Some(count) => Source::Shift(to, count as u8 & 63),
            None => Source::Mixed(to),
        },
        Mnemonic::Imul if instruction.op_count() == 3 => {
            let factor = instruction.immediate(2);
            match register {
                Some(from) => Source::Multiply(from, factor),
                // An integer from memory, times a constant: a product is no address.
                None => Source::Integer,
            }
        }
        Mnemonic::Imul if instruction.op_count() == 2 => match wide_register {
            Some(other) => Source::Multiply(other, 1),
            None => Source::Integer,
        },
        Mnemonic::Movsxd => match register {
            Some(from) => Source::Narrow(from),
            None => Source::Integer,
        },
        Mnemonic::Movzx
        | Mnemonic::Movsx
        | Mnemonic::Tzcnt
        | Mnemonic::Lzcnt
        | Mnemonic::Popcnt
        | Mnemonic::Bsf
        | Mnemonic::Bsr
        | Mnemonic::Cvttsd2si
        | Mnemonic::Cvttss2si
        | Mnemonic::Shr
        | Mnemonic::Sar
        | Mnemonic::Sarx
        | Mnemonic::Shrx => Source::Integer,
        Mnemonic::Neg | Mnemonic::Not | Mnemonic::Or | Mnemonic::Xor => Source::Mixed(to),
        _ if is_conditional_move(instruction) => match (wide_register, load) {
            (Some(from), _) => Source::Either(to, from),
            (_, Some(memory)) => Source::EitherLoad(to, memory),
            _ => return None,
        },
        _ => return None,
    })
}

/// A result of 32 bits in `to`, zero-extended.
fn narrow_result(instruction: &Instruction, to: Register) -> Option<Source> {
    let second = instruction.op1_kind();
    let register = (second == OpKind::Register && instruction.op1_register().is_gpr32())
        .then(|| of(instruction.op1_register()))
        .flatten();
    let immediate = instruction.try_immediate(1).ok();
    let immediate = immediate.map(|value| value & 0xffff_ffff);
    Some(match (instruction.mnemonic(), register, immediate) {
        (Mnemonic::Mov, Some(from), _) => Source::Narrow(from),
        (Mnemonic::Mov, _, Some(value)) => Source::Constant(value),
        (Mnemonic::Xor | Mnemonic::Sub, Some(from), _) if from == to => Source::Constant(0),
        (Mnemonic::Lea, ..) => Source::NarrowAddress(address(instruction)?),
        (Mnemonic::Shl | Mnemonic::Sal, _, Some(count)) => Source::Shift(to, count as u8 & 31),
        (Mnemonic::And, _, Some(mask)) => Source::And(to, mask),
        (Mnemonic::Imul, Some(from), _) if instruction.op_count() == 3 => {
            Source::Multiply(from, instruction.immediate(2) & 0xffff_ffff)
        }
        _ => return None,
    })
}

/// The operand of `lea`.
fn address(instruction: &Instruction) -> Option<Memory> {
    let (base, index) = (instruction.memory_base(), instruction.memory_index());
    if base.is_gpr32() || index.is_gpr32() || base == Iced::EIP {
        return None;
    }
    Some(Memory {
        base: of(base),
        index: of(index).map(super::Index::Register),
        scale: instruction.memory_index_scale() as u8,
        displacement: instruction.memory_displacement64() as i64,
        absolute: of(base).is_none() && index == Iced::None,
        segment: super::Segment::Flat,
        size: 0,
        read: false,
        write: false,
        string: false,
    })
}

fn exchange(instruction: &Instruction, memory: Option<Memory>) -> Vec<Effect> {
    let (first, second) = (
        whole(instruction.op0_register()),
        whole(instruction.op1_register()),
    );
    match (first, second, memory) {
        (Some(a), Some(b), None) => vec![Effect::Swap(a, b)],
        (a, b, Some(memory)) if memory.size == 8 => {
            let Some(to) = a.or(b) else { return Vec::new() };
            vec![
                Effect::Store {
                    to: memory,
                    value: Source::Copy(to),
                },
                Effect::Set {
                    to,
                    value: Source::Load(memory),
                },
            ]
        }
        _ => Vec::new(),
    }
}

/// The pointers of string instructions move on.
fn strings(instruction: &Instruction) -> Vec<Effect> {
    let element = instruction.memory_size().size() as u64;
    let repeated = instruction.has_rep_prefix() || instruction.has_repne_prefix();
    let mut effects = Vec::new();
    for (kind, register) in [
        (OpKind::MemorySegRSI, Register(4)),
        (OpKind::MemoryESRDI, Register(5)),
    ] {
        if instruction.op_kinds().any(|operand| operand == kind) {
            effects.push(Effect::Set {
                to: register,
                value: Source::Walk(register, element),
            });
        }
    }
    if repeated {
        effects.push(Effect::Set {
            to: Register(2),
            value: Source::Integer,
        });
    }
    effects
}

fn is_conditional_move(instruction: &Instruction) -> bool {
    instruction.condition_code() != ConditionCode::None
        && instruction.op_count() == 2
        && instruction.flow_control() == FlowControl::Next
}
