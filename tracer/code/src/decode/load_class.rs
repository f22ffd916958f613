//! What a load loads into: general registers, or those of floating-point and vector arithmetic.

use iced_x86::{Decoder, DecoderOptions, InstructionInfoFactory, OpAccess, Register};

/// Where a load's value goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LoadedInto {
    /// General registers, flags, memory, or the instruction pointer.
    General,
    /// A vector register (xmm, ymm, zmm, mm) or the x87 stack.
    FloatingPoint,
}

/// Where the instruction at the start of `bytes` puts what it reads from memory. An instruction that writes any vector
/// or x87 register is taken for a floating-point load, also where it moves integers (`movdqa`); one that only compares
/// with such a register writes flags, and is none. `None` where the bytes are no instruction, or one that reads no
/// memory.
pub fn loaded_into(bytes: &[u8]) -> Option<LoadedInto> {
    let instruction = Decoder::new(64, bytes, DecoderOptions::NONE).decode();
    if instruction.is_invalid() {
        return None;
    }
    let mut factory = InstructionInfoFactory::new();
    let info = factory.info(&instruction);
    let reads = |access| {
        matches!(
            access,
            OpAccess::Read | OpAccess::CondRead | OpAccess::ReadWrite | OpAccess::ReadCondWrite
        )
    };
    if !info.used_memory().iter().any(|used| reads(used.access())) {
        return None;
    }
    let writes = |access| {
        matches!(
            access,
            OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite
        )
    };
    let mut written = info
        .used_registers()
        .iter()
        .filter(|used| writes(used.access()));
    let floating_point = written.any(|used| is_floating_point(used.register()))
        // The crate lists no register for a push on the x87 stack.
        || instruction.fpu_stack_increment_info().increment() < 0;
    Some(if floating_point {
        LoadedInto::FloatingPoint
    } else {
        LoadedInto::General
    })
}

fn is_floating_point(register: Register) -> bool {
    register.is_vector_register() || register.is_mm() || register.is_st()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_is_of_the_class_of_what_it_writes() {
        // Bytes as GNU as writes them.
        let general: [(&str, &[u8]); 8] = [
            ("mov 8(%rbx),%rax", &[0x48, 0x8b, 0x43, 0x08]),
            ("movzbl (%rdi),%eax", &[0x0f, 0xb6, 0x07]),
            ("cmpl $0,(%rdi)", &[0x83, 0x3f, 0x00]),
            ("pop %rax", &[0x58]),
            ("ret", &[0xc3]),
            ("lock xadd %eax,(%rdi)", &[0xf0, 0x0f, 0xc1, 0x07]),
            ("cvttsd2si (%rdi),%eax", &[0xf2, 0x0f, 0x2c, 0x07]),
            ("ucomisd (%rdi),%xmm0", &[0x66, 0x0f, 0x2e, 0x07]),
        ];
        for (text, bytes) in general {
            assert_eq!(loaded_into(bytes), Some(LoadedInto::General), "{text}");
        }
        let floating: [(&str, &[u8]); 8] = [
            ("movsd (%rdi),%xmm0", &[0xf2, 0x0f, 0x10, 0x07]),
            ("addsd (%rdi),%xmm0", &[0xf2, 0x0f, 0x58, 0x07]),
            ("movdqa (%rdi),%xmm1", &[0x66, 0x0f, 0x6f, 0x0f]),
            ("vmovupd (%rdi),%ymm0", &[0xc5, 0xfd, 0x10, 0x07]),
            (
                "vmovupd (%rdi),%zmm0",
                &[0x62, 0xf1, 0xfd, 0x48, 0x10, 0x07],
            ),
            ("movq (%rdi),%mm0", &[0x0f, 0x6f, 0x07]),
            ("fldl (%rdi)", &[0xdd, 0x07]),
            ("faddl (%rdi)", &[0xdc, 0x07]),
        ];
        for (text, bytes) in floating {
            assert_eq!(
                loaded_into(bytes),
                Some(LoadedInto::FloatingPoint),
                "{text}"
            );
        }
    }

    #[test]
    fn what_reads_no_memory_or_is_no_instruction_is_no_load() {
        let none: [(&str, &[u8]); 5] = [
            ("mov %rax,(%rbx)", &[0x48, 0x89, 0x03]),
            ("movsd %xmm0,(%rdi)", &[0xf2, 0x0f, 0x11, 0x07]),
            ("add %rax,%rbx", &[0x48, 0x01, 0xc3]),
            ("nothing", &[]),
            ("the start of one", &[0x48, 0x8b]),
        ];
        for (text, bytes) in none {
            assert_eq!(loaded_into(bytes), None, "{text}");
        }
    }
}
