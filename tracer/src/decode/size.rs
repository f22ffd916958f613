//! How many bytes an access touches, of which only the instruction and the direction are known.

use iced_x86::{Decoder, DecoderOptions, InstructionInfoFactory, OpAccess};

use crate::access::Op;

/// Largest access that counts as one, bytes: a vector register.
const LARGEST: usize = 64;

/// Bytes that the instruction at the front of `code` accesses in this direction; `None` when it has no such
/// access, several of different sizes, or one that is no plain operand (`xsave`).
pub fn access_size(code: &[u8], op: Op) -> Option<u16> {
    let mut decoder = Decoder::with_ip(64, code, 0, DecoderOptions::NONE);
    let instruction = decoder.decode();
    if instruction.is_invalid() {
        return None;
    }
    let mut factory = InstructionInfoFactory::new();
    let info = factory.info(&instruction);
    let mut found = None;
    for memory in info.used_memory() {
        if !fits(memory.access(), op) {
            continue;
        }
        let size = memory.memory_size().size();
        if size == 0 || size > LARGEST || found.is_some_and(|found| found != size) {
            return None;
        }
        found = Some(size);
    }
    found.map(|size| size as u16)
}

fn fits(access: OpAccess, op: Op) -> bool {
    let reads = matches!(
        access,
        OpAccess::Read | OpAccess::CondRead | OpAccess::ReadWrite | OpAccess::ReadCondWrite
    );
    let writes = matches!(
        access,
        OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite
    );
    match op {
        Op::Load => reads,
        Op::Store => writes,
        Op::Rmw => reads && writes,
        Op::Unknown => reads || writes,
        Op::Prefetch => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_is_that_of_the_operand_in_the_direction_asked_for() {
        // The bytes are those that an assembler makes of the text beside them.
        for (code, op, size) in [
            (&[0x8b, 0x07][..], Op::Load, Some(4)), // mov eax, [rdi]
            (&[0x8b, 0x07], Op::Store, None),
            (&[0x48, 0x89, 0x07], Op::Store, Some(8)), // mov [rdi], rax
            (&[0x48, 0x89, 0x07], Op::Load, None),
            (&[0xf0, 0x66, 0xff, 0x07], Op::Load, Some(2)), // lock inc word [rdi]
            (&[0xf0, 0x66, 0xff, 0x07], Op::Rmw, Some(2)),
            (&[0x0f, 0xb6, 0x07], Op::Unknown, Some(1)), // movzx eax, byte [rdi]
            (&[0xc5, 0xfd, 0x6f, 0x07], Op::Load, Some(32)), // vmovdqa ymm0, [rdi]
            (&[0xff, 0x37], Op::Load, Some(8)),          // push qword [rdi]
            (&[0x0f, 0xae, 0x07], Op::Store, None),      // fxsave [rdi]
            (&[0x89, 0xf8], Op::Unknown, None),          // mov eax, edi
            (&[0x48, 0x8b], Op::Load, None),             // cut
        ] {
            assert_eq!(access_size(code, op), size, "{code:x?} {op:?}");
        }
    }
}
