//! Whether an instruction may go elsewhere than to the next one.

use iced_x86::{Decoder, DecoderOptions, FlowControl, Mnemonic};

/// Whether the instruction at the start of `bytes` is a branch as PMUs count them: a jump, with a condition or without, a call
/// or a return. System calls, traps and bytes that are no instruction are none.
pub fn is_branch(bytes: &[u8]) -> bool {
    let instruction = Decoder::new(64, bytes, DecoderOptions::NONE).decode();
    matches!(
        instruction.flow_control(),
        FlowControl::UnconditionalBranch
            | FlowControl::IndirectBranch
            | FlowControl::ConditionalBranch
            | FlowControl::Return
            | FlowControl::Call
            | FlowControl::IndirectCall
    ) && !matches!(
        instruction.mnemonic(),
        Mnemonic::Syscall | Mnemonic::Sysenter
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jumps_calls_and_returns_are_branches_and_nothing_else_is() {
        // jnz, jmp, loop, call, jmp *%rax, ret.
        for bytes in [
            &[0x75, 0xfe][..],
            &[0xe9, 0, 0, 0, 0],
            &[0xe2, 0xfe],
            &[0xe8, 0, 0, 0, 0],
            &[0xff, 0xe0],
            &[0xc3],
        ] {
            assert!(is_branch(bytes), "{bytes:x?}");
        }
        // dec %rcx, cmovz, syscall, int3, an instruction cut short, nothing.
        for bytes in [
            &[0x48, 0xff, 0xc9][..],
            &[0x0f, 0x44, 0xc1],
            &[0x0f, 0x05],
            &[0xcc],
            &[0xe9, 0],
            &[],
        ] {
            assert!(!is_branch(bytes), "{bytes:x?}");
        }
    }
}
