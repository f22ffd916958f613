//! x86-64 to the neutral form: control flow and memory operands. What becomes of registers is in [`super::x86_effects`].

use iced_x86::{
    Decoder, DecoderOptions, FlowControl, InstructionInfoFactory, Mnemonic, OpAccess, OpKind,
    Register as Iced, UsedMemory,
};

use super::{Effect, Index, Instruction, Memory, Next, Register, Segment, Source, x86_effects};

/// Decodes `code`, which lies at `start`. Stops at the first byte sequence that is no instruction, and after `most`
/// instructions.
pub(crate) fn decode(code: &[u8], start: u64, most: usize) -> Vec<Instruction> {
    let mut decoder = Decoder::with_ip(64, code, start, DecoderOptions::NONE);
    let mut factory = InstructionInfoFactory::new();
    let mut list = Vec::new();
    while decoder.can_decode() && list.len() < most {
        let instruction = decoder.decode();
        if instruction.is_invalid() {
            break;
        }
        list.push(lower(&instruction, &mut factory));
    }
    list
}

/// One instruction in the neutral form.
pub(super) fn lower(
    instruction: &iced_x86::Instruction,
    factory: &mut InstructionInfoFactory,
) -> Instruction {
    let info = factory.info(instruction);
    let string = instruction.is_string_instruction();
    let mut operands: Vec<Memory> = info
        .used_memory()
        .iter()
        .filter_map(|used| memory(used, string))
        .collect();
    // What the instruction spells out comes before the stack that it implies.
    if instruction.is_stack_instruction() {
        let explicit =
            (0..instruction.op_count()).any(|index| instruction.op_kind(index) == OpKind::Memory);
        let implied = |memory: &Memory| {
            memory.base == of(Iced::RSP) && (!explicit || !spelled(instruction, memory))
        };
        operands.sort_by_key(implied);
    }
    let mut effects = x86_effects::effects(instruction, &operands);
    for used in info.used_registers() {
        let written = matches!(
            used.access(),
            OpAccess::Write | OpAccess::ReadWrite | OpAccess::CondWrite | OpAccess::ReadCondWrite
        );
        let Some(to) = of(used.register()).filter(|_| written) else {
            continue;
        };
        if effects.iter().any(|effect| match *effect {
            Effect::Set { to: other, .. } => other == to,
            Effect::Swap(a, b) => a == to || b == to,
            Effect::Store { .. } => false,
        }) {
            continue;
        }
        let value = match used.register().size() {
            8 => Source::Unknown,
            4 => Source::Integer,
            _ => Source::Mixed(to),
        };
        effects.push(Effect::Set { to, value });
    }
    // A store whose value is not followed is a store all the same.
    for operand in operands.iter().filter(|operand| operand.write) {
        let told = |effect: &Effect| matches!(effect, Effect::Store { to, .. } if to == operand);
        if !effects.iter().any(told) {
            effects.push(Effect::Store {
                to: *operand,
                value: Source::Unknown,
            });
        }
    }
    Instruction {
        address: instruction.ip(),
        length: instruction.len() as u8,
        next: next(instruction),
        operands: operands.into(),
        effects: effects.into(),
    }
}

/// Whether a memory operand is the one that the instruction names.
fn spelled(instruction: &iced_x86::Instruction, memory: &Memory) -> bool {
    memory.displacement as u64 == instruction.memory_displacement64()
        && memory.base == of(instruction.memory_base())
        && memory.read != (instruction.mnemonic() == Mnemonic::Pop)
}

/// The general register any part of which is named, by its DWARF number (System V psABI x86-64, figure 3.36).
pub(super) fn of(register: Iced) -> Option<Register> {
    /// rax rcx rdx rbx rsp rbp rsi rdi, in the order of their encoding.
    const DWARF: [u8; 8] = [0, 2, 1, 3, 7, 6, 4, 5];
    let full = register.full_register();
    if !full.is_gpr64() {
        return None;
    }
    let number = full.number();
    Some(Register(DWARF.get(number).copied().unwrap_or(number as u8)))
}

fn memory(used: &UsedMemory, string: bool) -> Option<Memory> {
    let (read, write) = match used.access() {
        OpAccess::Read | OpAccess::CondRead => (true, false),
        OpAccess::Write | OpAccess::CondWrite => (false, true),
        OpAccess::ReadWrite | OpAccess::ReadCondWrite => (true, true),
        OpAccess::None | OpAccess::NoMemAccess => return None,
    };
    let narrow = used.base().is_gpr32() || used.index().is_gpr32();
    let index = if used.index().is_vector_register() {
        Some(Index::Lanes)
    } else {
        of(used.index()).map(Index::Register)
    };
    let segment = match used.segment() {
        _ if narrow => Segment::Other,
        Iced::FS => Segment::Thread,
        Iced::GS => Segment::Processor,
        _ => Segment::Flat,
    };
    Some(Memory {
        base: of(used.base()),
        index,
        scale: used.scale() as u8,
        displacement: used.displacement() as i64,
        absolute: used.base() == Iced::None && index.is_none() && segment == Segment::Flat,
        segment,
        size: used.memory_size().size() as u32,
        read,
        write,
        string,
    })
}

fn next(instruction: &iced_x86::Instruction) -> Next {
    let target = || match instruction.op0_kind() {
        OpKind::NearBranch64 => Some(instruction.near_branch64()),
        _ => None,
    };
    match instruction.flow_control() {
        FlowControl::UnconditionalBranch => match target() {
            Some(target) => Next::Branch {
                target,
                conditional: false,
            },
            None => Next::Indirect,
        },
        FlowControl::ConditionalBranch | FlowControl::XbeginXabortXend => match target() {
            Some(target) => Next::Branch {
                target,
                conditional: true,
            },
            None => Next::Following,
        },
        FlowControl::IndirectBranch => Next::Indirect,
        FlowControl::Call => Next::Call { target: target() },
        FlowControl::IndirectCall => Next::Call { target: None },
        FlowControl::Return | FlowControl::Exception => Next::Stop,
        // A system call, or an interrupt: comes back.
        FlowControl::Interrupt if instruction.mnemonic() == Mnemonic::Int3 => Next::Stop,
        FlowControl::Interrupt | FlowControl::Next => Next::Following,
    }
}
