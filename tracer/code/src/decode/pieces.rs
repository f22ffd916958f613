//! Code without function bounds (JIT output, stripped code without unwind tables): decoded from where it was seen to run.
//!
//! ```text
//!   1: add  $1,(%rdi)      <- from the jump's target
//!      cmp  $0,(%rsi)      <- sampled: an instruction begins here
//!      jne  1b             <- from there on
//!      ret                 <- where the jump does not go
//! ```
//!
//! An instruction that ran is one, what runs after it is one, and so is what its jump goes to; x86 cannot be decoded
//! backwards, so more is not known. A loop that was sampled once is all there. That a call comes back is likely only:
//! what follows it is decoded last, and gives way to all else.

use std::collections::VecDeque;

use iced_x86::{Decoder, DecoderOptions, Instruction};

use super::{
    CallConvention, FunctionCode,
    flow::Flow,
    function::flows,
    instruction::{Transfer, is_call, transfer},
};

/// Instructions decoded of one stretch.
const MAX_INSTRUCTIONS: usize = 4096;

/// What a byte of the stretch is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Taken {
    No,
    /// An instruction begins here.
    Begins,
    /// One goes on here.
    GoesOn,
}

/// The instructions of a stretch of memory that begins at `start` that `starts` lead to, in order of their addresses.
/// `None` where one of the starts is in the middle of an instruction that others lead to: they were not of the same code.
pub(super) fn instructions(start: u64, bytes: &[u8], starts: &[u64]) -> Option<Vec<Instruction>> {
    let mut taken = vec![Taken::No; bytes.len()];
    let mut found: Vec<Instruction> = Vec::new();
    // What surely runs goes first, what follows calls last.
    let mut sure: VecDeque<u64> = starts.iter().copied().collect();
    let mut likely: VecDeque<u64> = VecDeque::new();
    while let Some(from) = sure.pop_front().or_else(|| likely.pop_front()) {
        let mut decoder = Decoder::with_ip(64, &[], 0, DecoderOptions::NONE);
        let mut at = from;
        while let Some(offset) = offset_in(start, bytes, at)
            && taken[offset] == Taken::No
            && found.len() < MAX_INSTRUCTIONS
        {
            if decoder.ip() != at {
                decoder = Decoder::with_ip(64, &bytes[offset..], at, DecoderOptions::NONE);
            }
            let instruction = decoder.decode();
            let rest = &mut taken[offset..][..instruction.len()];
            if instruction.is_invalid() || rest.iter().any(|taken| *taken != Taken::No) {
                break;
            }
            rest.fill(Taken::GoesOn);
            rest[0] = Taken::Begins;
            found.push(instruction);
            at = instruction.next_ip();
            match transfer(&instruction) {
                Transfer::Next if is_call(&instruction) => {
                    likely.push_back(at);
                    break;
                }
                Transfer::Next => {}
                Transfer::Branch(target) => sure.push_back(target),
                Transfer::Jump(target) => {
                    sure.push_back(target);
                    break;
                }
                Transfer::Stop => break,
            }
        }
    }
    let begins = |at: &u64| {
        let offset = offset_in(start, bytes, *at);
        offset.is_none_or(|offset| taken[offset] != Taken::GoesOn)
    };
    found.sort_unstable_by_key(|instruction| instruction.ip().wrapping_sub(start));
    starts.iter().all(begins).then_some(found)
}

/// Address and length of the instructions that `starts` lead to, ascending; as [`FunctionCode::decode_pieces`] decodes them.
pub fn known_instructions(start: u64, bytes: &[u8], starts: &[u64]) -> Option<Vec<(u64, u64)>> {
    let found = instructions(start, bytes, starts)?;
    let place = |instruction: &Instruction| (instruction.ip(), instruction.len() as u64);
    Some(found.iter().map(place).collect())
}

fn offset_in(start: u64, bytes: &[u8], at: u64) -> Option<usize> {
    let offset = usize::try_from(at.wrapping_sub(start)).ok()?;
    (offset < bytes.len()).then_some(offset)
}

impl FunctionCode {
    /// Decodes what `starts` lead to of a stretch of memory that begins at `start` (a run-time address).
    /// The ways into it that are not seen are many. `None` where the starts contradict one another.
    pub fn decode_pieces(start: u64, bytes: &[u8], starts: &[u64]) -> Option<FunctionCode> {
        let instructions = instructions(start, bytes, starts)?;
        let mut ways = flows(start, &instructions, true);
        let nexts = instructions.iter().skip(1).map(Instruction::ip);
        let nexts = nexts.map(Some).chain([None]);
        for ((instruction, next), way) in instructions.iter().zip(nexts).zip(&mut ways) {
            // What runs on is not what is next in the list, where that was not decoded.
            if matches!(way, Flow::Next | Flow::Branch(_)) && next != Some(instruction.next_ip()) {
                *way = Flow::Stop;
            }
        }
        let convention = CallConvention::PointersOnly;
        let mut code = FunctionCode::assemble(start, &instructions, &ways, convention);
        code.bounded = false;
        Some(code)
    }
}
