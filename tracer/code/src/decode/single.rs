//! What a single instruction does to memory, without any register: direction and size of one of its accesses.

use iced_x86::{Decoder, DecoderOptions, Instruction, InstructionInfoFactory, Mnemonic, OpAccess};

use crate::access::Op;

/// Bytes of the longest instruction.
pub const LONGEST_INSTRUCTION: usize = 15;
/// The largest size that is believed: a cache line, and the largest register.
const MOST_BYTES: usize = 64;

/// One access of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SingleAccess {
    /// Direction.
    pub op: Op,
    /// Bytes; 0 where registers decide, or more than a line is touched.
    pub size: u16,
    /// A lock prefix, or `xchg` with memory, which locks by itself.
    pub locked: bool,
}

/// The access that a PMU saw as `op` of the instruction at the start of `bytes`: a read-modify-write is seen as
/// load or as store, and [`Op::Unknown`] fits all. Pushes and returns count with their stack. `None` where none
/// fits, or several do.
pub fn single_access(bytes: &[u8], op: Op) -> Option<SingleAccess> {
    let mut decoder = Decoder::new(64, bytes, DecoderOptions::NONE);
    let instruction = decoder.decode();
    if instruction.is_invalid() {
        return None;
    }
    let mut factory = InstructionInfoFactory::new();
    let mut found = None;
    for memory in factory.info(&instruction).used_memory() {
        let does = match memory.access() {
            OpAccess::Read | OpAccess::CondRead => Op::Load,
            OpAccess::Write | OpAccess::CondWrite => Op::Store,
            OpAccess::ReadWrite | OpAccess::ReadCondWrite => Op::Rmw,
            OpAccess::None | OpAccess::NoMemAccess => continue,
        };
        let fits = match op {
            Op::Load => matches!(does, Op::Load | Op::Rmw),
            Op::Store => matches!(does, Op::Store | Op::Rmw),
            Op::Rmw => does == Op::Rmw,
            Op::Unknown => true,
            Op::Prefetch | Op::PrefetchOwn => false,
        };
        if !fits {
            continue;
        }
        if found.is_some() {
            return None;
        }
        let bytes = memory.memory_size().size();
        let known = !by_register(&instruction) && bytes <= MOST_BYTES;
        found = Some(SingleAccess {
            op: does,
            size: if known { bytes as u16 } else { 0 },
            locked: instruction.has_lock_prefix() || instruction.mnemonic() == Mnemonic::Xchg,
        });
    }
    found
}

/// Masks and vectors of addresses choose what is touched.
fn by_register(instruction: &Instruction) -> bool {
    super::operand::is_masked(instruction)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(bytes: &[u8], op: Op) -> Option<(Op, u16, bool)> {
        single_access(bytes, op).map(|access| (access.op, access.size, access.locked))
    }

    // Bytes as GNU as writes them.
    const LOAD: &[u8] = &[0x48, 0x8b, 0x43, 0x08]; // mov 8(%rbx),%rax
    const STORE: &[u8] = &[0x66, 0x89, 0x03]; // mov %ax,(%rbx)
    const LOCKED: &[u8] = &[0xf0, 0xff, 0x03]; // lock incl (%rbx)
    const XCHG: &[u8] = &[0x86, 0x03]; // xchg %al,(%rbx)
    const PUSH: &[u8] = &[0x55]; // push %rbp
    const MOVSQ: &[u8] = &[0x48, 0xa5]; // movsq
    const LEA: &[u8] = &[0x48, 0x8d, 0x43, 0x08]; // lea 8(%rbx),%rax
    const GATHER: &[u8] = &[0xc4, 0xe2, 0x6d, 0x90, 0x04, 0x83]; // vpgatherdd %ymm2,(%rbx,%ymm0,4),%ymm0

    #[test]
    fn direction_and_size_are_the_instructions_own() {
        assert_eq!(of(LOAD, Op::Load), Some((Op::Load, 8, false)));
        assert_eq!(of(STORE, Op::Store), Some((Op::Store, 2, false)));
        assert_eq!(of(PUSH, Op::Store), Some((Op::Store, 8, false)));
        assert_eq!(of(LOAD, Op::Unknown), Some((Op::Load, 8, false)));
    }

    #[test]
    fn a_read_modify_write_is_one_however_it_was_seen() {
        for op in [Op::Load, Op::Store, Op::Unknown] {
            assert_eq!(of(LOCKED, op), Some((Op::Rmw, 4, true)), "{op:?}");
            assert_eq!(of(XCHG, op), Some((Op::Rmw, 1, true)), "{op:?}");
        }
    }

    #[test]
    fn of_two_accesses_the_direction_chooses() {
        assert_eq!(of(MOVSQ, Op::Load), Some((Op::Load, 8, false)));
        assert_eq!(of(MOVSQ, Op::Store), Some((Op::Store, 8, false)));
        assert_eq!(of(MOVSQ, Op::Unknown), None);
    }

    #[test]
    fn what_does_not_fit_is_none_and_what_registers_decide_has_no_size() {
        assert_eq!(of(LOAD, Op::Store), None);
        assert_eq!(of(STORE, Op::Load), None);
        assert_eq!(of(LEA, Op::Load), None);
        assert_eq!(of(&[0x48, 0x8b], Op::Load), None);
        assert_eq!(of(&[], Op::Unknown), None);
        assert!(of(GATHER, Op::Load).is_none_or(|(_, size, _)| size == 0));
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_give_an_answer(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..16)) {
            for op in [Op::Load, Op::Store, Op::Rmw, Op::Prefetch, Op::Unknown] {
                if let Some(access) = single_access(&bytes, op) {
                    proptest::prop_assert!(access.size <= 64);
                }
            }
        }
    }
}
