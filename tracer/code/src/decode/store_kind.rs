//! Whether a processor waits for the ownership that a store needs; pure, x86-64.

use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess,
    OpKind,
};

/// Instructions behind a store among which a fence counts as the store's own: sequentially consistent stores have theirs
/// right behind, perhaps with a move between.
const BEHIND: usize = 4;

/// What kind of store an instruction is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreKind {
    /// Only a store, without a fence near: the store buffer hides its request.
    Plain,
    /// Reads and writes, without a lock.
    ReadModifyWrite,
    /// A locked read-modify-write, or an exchange.
    Atomic,
    /// A compare-and-swap with a lock.
    CompareAndSwap,
    /// A plain store with a fence, or an instruction that acts as one, right behind.
    Fenced,
}

/// The kind of the store at the start of `bytes`, which go on with what follows it in its function. `None` where there is
/// no instruction.
pub fn store_kind(bytes: &[u8]) -> Option<StoreKind> {
    let mut decoder = Decoder::new(64, bytes, DecoderOptions::NONE);
    let store = decoder.decode();
    if store.is_invalid() {
        return None;
    }
    if is_locked(&store) {
        let swaps = matches!(
            store.mnemonic(),
            Mnemonic::Cmpxchg | Mnemonic::Cmpxchg8b | Mnemonic::Cmpxchg16b
        );
        return Some(if swaps {
            StoreKind::CompareAndSwap
        } else {
            StoreKind::Atomic
        });
    }
    if reads_what_it_writes(&store) {
        return Some(StoreKind::ReadModifyWrite);
    }
    let mut waits = false;
    for behind in decoder.iter().take(BEHIND) {
        if behind.is_invalid() {
            break;
        }
        if is_locked(&behind) || is_fence(&behind) {
            waits = true;
            break;
        }
        // Where it goes on is not certain, or not in this function.
        if behind.flow_control() != FlowControl::Next {
            break;
        }
    }
    Some(if waits {
        StoreKind::Fenced
    } else {
        StoreKind::Plain
    })
}

/// With a lock prefix, or `xchg` with memory, which locks by itself (Intel SDM volume 3A, section 9.1.2).
fn is_locked(instruction: &Instruction) -> bool {
    let memory = (0..instruction.op_count()).any(|at| instruction.op_kind(at) == OpKind::Memory);
    instruction.has_lock_prefix() || (instruction.mnemonic() == Mnemonic::Xchg && memory)
}

/// Waits until all stores before it are done (Intel SDM volume 3A, section 9.2.2 and 9.3). `sfence` orders ordinary stores
/// no more than they are.
fn is_fence(instruction: &Instruction) -> bool {
    matches!(
        instruction.mnemonic(),
        Mnemonic::Mfence | Mnemonic::Cpuid | Mnemonic::Serialize
    )
}

fn reads_what_it_writes(instruction: &Instruction) -> bool {
    let mut factory = InstructionInfoFactory::new();
    let mut memory = factory.info(instruction).used_memory().iter();
    memory.any(|used| matches!(used.access(), OpAccess::ReadWrite | OpAccess::ReadCondWrite))
}

#[cfg(test)]
mod tests {
    use super::{StoreKind::*, *};

    // Bytes as GNU as writes them.
    const STORE: &[u8] = &[0x48, 0x89, 0x17]; // movq %rdx, (%rdi)
    const MFENCE: &[u8] = &[0x0f, 0xae, 0xf0];
    const SFENCE: &[u8] = &[0x0f, 0xae, 0xf8];
    const LOCKED: &[u8] = &[0xf0, 0x48, 0x83, 0x0c, 0x24, 0x00]; // lock orq $0, (%rsp)
    const MOVE: &[u8] = &[0x48, 0x89, 0xd0]; // movq %rdx, %rax
    const RET: &[u8] = &[0xc3];

    fn of(parts: &[&[u8]]) -> Option<StoreKind> {
        store_kind(&parts.concat())
    }

    #[test]
    fn the_instruction_itself_tells_atomics() {
        assert_eq!(of(&[&[0xf0, 0x48, 0xff, 0x07]]), Some(Atomic)); // lock incq (%rdi)
        assert_eq!(of(&[&[0x48, 0x87, 0x07]]), Some(Atomic)); // xchgq %rax, (%rdi)
        let swap: &[u8] = &[0xf0, 0x48, 0x0f, 0xb1, 0x17]; // lock cmpxchgq %rdx, (%rdi)
        assert_eq!(of(&[swap]), Some(CompareAndSwap));
        assert_eq!(of(&[&swap[1..]]), Some(ReadModifyWrite));
        assert_eq!(of(&[&[0x48, 0xff, 0x07], MFENCE]), Some(ReadModifyWrite)); // incq (%rdi)
    }

    #[test]
    fn a_store_is_fenced_by_what_is_right_behind_it() {
        assert_eq!(of(&[STORE, MFENCE]), Some(Fenced));
        assert_eq!(of(&[STORE, MOVE, LOCKED]), Some(Fenced));
        assert_eq!(of(&[STORE, RET]), Some(Plain));
        assert_eq!(of(&[STORE, SFENCE, RET]), Some(Plain));
        assert_eq!(of(&[STORE, RET, MFENCE]), Some(Plain));
        assert_eq!(of(&[STORE, MOVE, MOVE, MOVE, MOVE, MFENCE]), Some(Plain));
        assert_eq!(of(&[STORE]), Some(Plain));
        assert_eq!(of(&[]), None);
        // Between registers an exchange locks nothing.
        assert_eq!(of(&[STORE, &[0x48, 0x87, 0xc1]]), Some(Plain)); // xchgq %rax, %rcx
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_give_an_answer(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..40)) {
            let _ = store_kind(&bytes);
        }
    }
}
