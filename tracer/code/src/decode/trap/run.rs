//! The straight code before an instruction that overwrote its own address registers: what it computed them from may
//! still be there.
//!
//! ```text
//!   mov  %rdi,%rax            a copy: rdi is known at the trap, and so is rax before it was overwritten
//!   mov  4(%rax),%eax         <- trapped
//! ```
//!
//! Only code of one block is followed: control came in at its first instruction and ran through. Blocks are cut where
//! the function's own jumps lead to, so functions that jumps leave or enter otherwise (jump tables, parts that a
//! compiler moved elsewhere) are not followed at all. What exceptions enter is not seen; that what is computed
//! there touches the watched word as well, but elsewhere, is left to chance.

use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction};

use super::super::{
    function::MAX_FUNCTION_BYTES,
    instruction::{Transfer, is_call, transfer},
};

/// Instructions followed.
const MOST: usize = 32;

/// The instructions of the block of `at` that run before it, in order; none where the function's blocks are not
/// known for sure. The function begins at `start`.
pub(super) fn before(start: u64, bytes: &[u8], at: u64) -> Vec<Instruction> {
    let none = Vec::new();
    if bytes.len() > MAX_FUNCTION_BYTES {
        return none;
    }
    let mut run: Vec<Instruction> = Vec::new();
    // The latest place up to `at` that something else than the instruction before it leads to.
    let mut leader = start;
    for instruction in Decoder::with_ip(64, bytes, start, DecoderOptions::NONE) {
        let flow = transfer(&instruction);
        match flow {
            Transfer::Jump(target) | Transfer::Branch(target) => {
                if target.wrapping_sub(start) >= bytes.len() as u64 {
                    return none;
                }
                if target <= at {
                    leader = leader.max(target);
                }
            }
            Transfer::Stop if instruction.flow_control() == FlowControl::IndirectBranch => {
                return none;
            }
            Transfer::Next | Transfer::Stop => {}
        }
        if instruction.ip() >= at {
            continue;
        }
        // Of what a call leaves in registers nothing is known.
        if flow != Transfer::Next || is_call(&instruction) {
            leader = leader.max(instruction.next_ip());
        }
        if instruction.code() == Code::Endbr64 {
            leader = leader.max(instruction.ip());
        }
        if run.len() == MOST {
            run.remove(0);
        }
        run.push(instruction);
    }
    run.retain(|instruction| instruction.ip() >= leader);
    run
}
