//! What a load loads into; pure, x86-64.

use iced_x86::{CpuidFeature, Decoder, DecoderOptions, Instruction, MemorySize, OpKind, Register};

/// What a load loads into. The paper turns integer loads into loads with ownership, and puts one of its own before
/// floating-point loads (SWIFT, section 4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadClass {
    /// General registers, flags, or a branch.
    Integer,
    /// Vector, mask or x87 registers.
    FloatingPoint,
}

/// The class of the load at the start of `bytes`: floating-point where any register of the instruction is a vector, mask
/// or x87 one, or what is loaded is a floating-point number. What cannot be decoded counts as integer.
pub fn load_class(bytes: &[u8]) -> LoadClass {
    let instruction = Decoder::new(64, bytes, DecoderOptions::NONE).decode();
    let floating = !instruction.is_invalid()
        && (has_vector_register(&instruction)
            || is_float(instruction.memory_size())
            || instruction.cpuid_features().contains(&CpuidFeature::FPU));
    if floating {
        LoadClass::FloatingPoint
    } else {
        LoadClass::Integer
    }
}

fn has_vector_register(instruction: &Instruction) -> bool {
    let mut registers = (0..instruction.op_count())
        .filter(|at| instruction.op_kind(*at) == OpKind::Register)
        .map(|at| instruction.op_register(at));
    registers.any(|register: Register| {
        register.is_vector_register() || register.is_mm() || register.is_st() || register.is_k()
    })
}

fn is_float(size: MemorySize) -> bool {
    matches!(
        size.element_type(),
        MemorySize::Float16
            | MemorySize::Float32
            | MemorySize::Float64
            | MemorySize::Float80
            | MemorySize::BFloat16
    )
}

#[cfg(test)]
mod tests {
    use super::{LoadClass::*, *};

    // Bytes as GNU as writes them.
    #[test]
    fn the_registers_tell_the_class() {
        let integer: [&[u8]; 4] = [
            &[0x48, 0x8b, 0x43, 0x08], // movq 8(%rbx), %rax
            &[0x0f, 0xb7, 0x02],       // movzwl (%rdx), %eax
            &[0x48, 0x83, 0x3b, 0x00], // cmpq $0, (%rbx)
            &[0xff, 0x23],             // jmp *(%rbx)
        ];
        for bytes in integer {
            assert_eq!(load_class(bytes), Integer, "{bytes:02x?}");
        }
        let floating: [&[u8]; 5] = [
            &[0xf2, 0x0f, 0x59, 0x47, 0x10], // mulsd 16(%rdi), %xmm0
            &[0xf3, 0x0f, 0x6f, 0x03],       // movdqu (%rbx), %xmm0
            &[0xdd, 0x03],                   // fldl (%rbx)
            &[0x0f, 0x6f, 0x03],             // movq (%rbx), %mm0
            &[0xf2, 0x48, 0x0f, 0x2c, 0x03], // cvttsd2si (%rbx), %rax
        ];
        for bytes in floating {
            assert_eq!(load_class(bytes), FloatingPoint, "{bytes:02x?}");
        }
    }

    #[test]
    fn what_is_no_code_is_not_called_floating() {
        assert_eq!(load_class(&[]), Integer);
        assert_eq!(load_class(&[0xf2, 0x0f]), Integer);
    }
}
