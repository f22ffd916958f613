//! Where in a function to put a probe: as near to its entry as the kernel can go on from cheaply.
//!
//! After the trap the kernel has to carry out the instruction that the breakpoint replaced. It does so itself for
//! a few kinds (arch/x86/kernel/uprobes.c, `branch_setup_xol_ops` and `push_setup_xol_ops`); all others are
//! single-stepped in a copy, which is a second trap: under a hypervisor that intercepts debug exceptions, ten times
//! as long as the first.

use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, OpAccess, Register,
};

/// Instructions looked at.
const MOST_INSTRUCTIONS: usize = 8;

/// Bytes from the function's start (`code` is the whole of it, at `start`) to an instruction that the kernel
/// carries out itself, before which neither arguments nor stack change and to which no jump of the function leads.
/// `None`: only the entry will do.
pub(super) fn cheap_probe(code: &[u8], start: u64) -> Option<u64> {
    let mut info = InstructionInfoFactory::new();
    let mut decoder = Decoder::with_ip(64, code, start, DecoderOptions::NONE);
    for _ in 0..MOST_INSTRUCTIONS {
        let instruction = decoder.can_decode().then(|| decoder.decode())?;
        if instruction.is_invalid() {
            return None;
        }
        let at = instruction.ip() - start;
        let bytes = code.get(at as usize..)?;
        if is_carried_out(bytes) {
            let free = at == 0 || !is_jumped_to(code, start, instruction.ip());
            return free.then_some(at);
        }
        if instruction.flow_control() != FlowControl::Next
            || changes_arguments(&mut info, &instruction)
        {
            return None;
        }
    }
    None
}

/// Whether the kernel needs no single step: `push` of a register, calls and jumps to fixed addresses, `nop`.
fn is_carried_out(code: &[u8]) -> bool {
    match code {
        [0x50..=0x57 | 0x70..=0x7f | 0x90 | 0xe8 | 0xe9 | 0xeb, ..] => true,
        [0x41, second, ..] => matches!(second, 0x50..=0x57),
        [0x0f, second, ..] => matches!(second, 0x80..=0x8f),
        _ => false,
    }
}

/// Whether what the probe's program reads is another value afterwards.
fn changes_arguments(info: &mut InstructionInfoFactory, instruction: &Instruction) -> bool {
    const READ: [Register; 4] = [Register::RDI, Register::RSI, Register::RDX, Register::RSP];
    info.info(instruction).used_registers().iter().any(|used| {
        let writes = !matches!(
            used.access(),
            OpAccess::Read | OpAccess::CondRead | OpAccess::None
        );
        writes && READ.contains(&used.register().full_register())
    })
}

fn is_jumped_to(code: &[u8], start: u64, target: u64) -> bool {
    Decoder::with_ip(64, code, start, DecoderOptions::NONE)
        .iter()
        .any(|instruction| instruction.near_branch_target() == target)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_push_at_the_entry_and_after_a_landing_pad_will_do() {
        assert_eq!(cheap_probe(&[0x41, 0x54, 0x55, 0xc3], 0x1000), Some(0));
        // endbr64; push %rbp; ret
        assert_eq!(
            cheap_probe(&[0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0xc3], 0x1000),
            Some(4)
        );
    }

    #[test]
    fn the_jump_after_a_test_is_taken_instead_of_the_test() {
        // test %rdi,%rdi; je +1; nop; ret
        let free = [0x48, 0x85, 0xff, 0x74, 0x01, 0x90, 0xc3];
        assert_eq!(cheap_probe(&free, 0x1000), Some(3));
    }

    #[test]
    fn no_probe_comes_after_an_argument_or_the_stack_has_changed() {
        // mov %rsi,%rdi; push %rbx; ret
        assert_eq!(cheap_probe(&[0x48, 0x89, 0xf7, 0x53, 0xc3], 0x1000), None);
        // sub $8,%rsp; push %rbx; ret
        assert_eq!(
            cheap_probe(&[0x48, 0x83, 0xec, 0x08, 0x53, 0xc3], 0x1000),
            None
        );
        // mov %edi,%eax; ret: nothing before the end
        assert_eq!(cheap_probe(&[0x89, 0xf8, 0xc3], 0x1000), None);
    }

    #[test]
    fn a_place_that_is_jumped_to_would_be_hit_again() {
        // test %rdi,%rdi; push %rbx; jmp back to the push
        let looped = [0x48, 0x85, 0xff, 0x53, 0xeb, 0xfd];
        assert_eq!(cheap_probe(&looped, 0x1000), None);
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_give_an_instruction_of_theirs_or_none(
            code in proptest::collection::vec(proptest::num::u8::ANY, 0..64),
        ) {
            if let Some(at) = cheap_probe(&code, 0x1000) {
                proptest::prop_assert!((at as usize) < code.len());
            }
        }
    }
}
