//! What an emulator's callbacks about an instruction mean: it tells loads and stores, and takes some instructions apart.

use iced_x86::{
    Code, Decoder, DecoderOptions, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind,
    Register,
};

/// An instruction as callbacks about its accesses need it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "four facts, each with or without the others"
)]
pub struct Emulated {
    /// It reads and writes the same operand. Emulators tell a store, and a load before it or not.
    pub read_modify_write: bool,
    /// A lock prefix, or `xchg` with memory, which locks by itself.
    pub locked: bool,
    /// It accesses nothing but the stack, by the stack pointer.
    pub by_stack: bool,
    /// The `prefetchw` before it has the same operand; emulators tell nothing of that one.
    pub owned_before: bool,
}

/// The instruction at `ip` that begins `code`, after the instruction `before`, if that is known. Code that does not
/// decode is an instruction without peculiarities.
pub fn emulated(ip: u64, code: &[u8], before: &[u8]) -> Emulated {
    let Some(instruction) = decode(ip, code) else {
        return Emulated::default();
    };
    let mut factory = InstructionInfoFactory::new();
    let memory = factory.info(&instruction).used_memory();
    let changes = |access| matches!(access, OpAccess::ReadWrite | OpAccess::ReadCondWrite);
    Emulated {
        read_modify_write: memory.iter().any(|memory| changes(memory.access())),
        locked: instruction.has_lock_prefix() || is_xchg_with_memory(&instruction),
        by_stack: !memory.is_empty() && memory.iter().all(|memory| memory.base() == Register::RSP),
        owned_before: decode(ip.wrapping_sub(before.len() as u64), before)
            .is_some_and(|before| is_prefetchw(&before) && same_operand(&before, &instruction)),
    }
}

fn decode(ip: u64, code: &[u8]) -> Option<Instruction> {
    let instruction = Decoder::with_ip(64, code, ip, DecoderOptions::NONE).decode();
    (!instruction.is_invalid()).then_some(instruction)
}

fn is_xchg_with_memory(instruction: &Instruction) -> bool {
    instruction.mnemonic() == Mnemonic::Xchg && has_memory_operand(instruction)
}

fn is_prefetchw(instruction: &Instruction) -> bool {
    instruction.code() == Code::Prefetchw_m8
}

fn has_memory_operand(instruction: &Instruction) -> bool {
    instruction.op_kinds().any(|kind| kind == OpKind::Memory)
}

/// Nothing is between the two, so equal words are equal addresses.
fn same_operand(a: &Instruction, b: &Instruction) -> bool {
    let operand = |i: &Instruction| {
        (
            i.memory_segment(),
            i.memory_base(),
            i.memory_index(),
            i.memory_index_scale(),
            i.memory_displacement64(),
        )
    };
    has_memory_operand(a) && has_memory_operand(b) && operand(a) == operand(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    const IP: u64 = 0x40_1000;
    // Bytes as GNU as writes them.
    const PREFETCHW: &[u8] = &[0x0f, 0x0d, 0x4f, 0x08]; // prefetchw 8(%rdi)
    const LOAD: &[u8] = &[0x48, 0x8b, 0x47, 0x08]; // mov 8(%rdi),%rax
    const OTHER: &[u8] = &[0x48, 0x8b, 0x47, 0x10]; // mov 16(%rdi),%rax

    fn is(code: &[u8]) -> (bool, bool, bool) {
        let found = emulated(IP, code, &[]);
        (found.read_modify_write, found.locked, found.by_stack)
    }

    #[test]
    fn what_reads_and_writes_one_operand_is_told_from_what_has_two() {
        assert_eq!(is(&[0x48, 0x83, 0x07, 0x01]), (true, false, false)); // addq $1,(%rdi)
        assert_eq!(is(&[0xf0, 0xff, 0x07]), (true, true, false)); // lock incl (%rdi)
        assert_eq!(is(&[0x87, 0x07]), (true, true, false)); // xchg %eax,(%rdi)
        assert_eq!(is(&[0xf0, 0x0f, 0xb1, 0x17]), (true, true, false)); // lock cmpxchg %edx,(%rdi)
        assert_eq!(is(LOAD), (false, false, false));
        assert_eq!(is(&[0x48, 0xa5]), (false, false, false)); // movsq
        assert_eq!(is(&[0x93]), (false, false, false)); // xchg %eax,%ebx
    }

    #[test]
    fn the_stack_alone_is_told_from_the_stack_and_something_else() {
        assert!(is(&[0x55]).2); // push %rbp
        assert!(is(&[0xe8, 0, 0, 0, 0]).2); // call
        assert!(!is(&[0xff, 0x37]).2); // push (%rdi)
        assert!(!is(LOAD).2);
        assert!(!is(&[0x90]).2);
    }

    #[test]
    fn a_prefetchw_belongs_to_the_access_of_the_same_operand_only() {
        assert!(emulated(IP, LOAD, PREFETCHW).owned_before);
        assert!(!emulated(IP, OTHER, PREFETCHW).owned_before);
        assert!(!emulated(IP, LOAD, &[]).owned_before);
        assert!(!emulated(IP, LOAD, LOAD).owned_before);
        assert!(!emulated(IP, LOAD, &[0x0f, 0x18, 0x4f, 0x08]).owned_before); // prefetcht0 8(%rdi)
    }

    #[test]
    fn operands_relative_to_the_instruction_are_compared_as_addresses() {
        // prefetchw 0x100(%rip) ends at IP; mov 0xf9(%rip),%rax ends at IP + 7.
        let prefetch: &[u8] = &[0x0f, 0x0d, 0x0d, 0, 1, 0, 0];
        let same: &[u8] = &[0x48, 0x8b, 0x05, 0xf9, 0, 0, 0];
        let other: &[u8] = &[0x48, 0x8b, 0x05, 0, 1, 0, 0];
        assert!(emulated(IP, same, prefetch).owned_before);
        assert!(!emulated(IP, other, prefetch).owned_before);
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_give_an_answer(
            code in proptest::collection::vec(proptest::num::u8::ANY, 0..16),
            before in proptest::collection::vec(proptest::num::u8::ANY, 0..16),
        ) {
            let found = emulated(IP, &code, &before);
            proptest::prop_assert!(!found.owned_before || !before.is_empty());
        }
    }
}
