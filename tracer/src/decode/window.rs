//! Code without function bounds (JIT output, stripped asm): only what follows the ip can be decoded.

use iced_x86::{Decoder, DecoderOptions, Instruction};

use super::{
    CallConvention, FunctionCode, Harvest, Registers, Stall, Touch,
    flow::Flow,
    instruction::{Transfer, is_call, transfer},
};
use crate::event::Unresolved;

/// Instructions decoded from the ip on.
const MAX_INSTRUCTIONS: usize = 64;

/// Appends the operands from the ip to the first branch or call. `bytes` begin at `registers.ip`; a cut
/// instruction at their end is ignored. x86 cannot be decoded backwards, so what came before the ip
/// stays unknown and the stall is [`Unresolved::NoFunction`], except inside a repeated string
/// instruction, which waits for itself.
pub fn harvest_window(bytes: &[u8], registers: &Registers, out: &mut Vec<Touch>) -> Harvest {
    let mut instructions: Vec<Instruction> = Vec::new();
    let decoder = Decoder::with_ip(64, bytes, registers.ip, DecoderOptions::NONE);
    for instruction in decoder.into_iter().take(MAX_INSTRUCTIONS) {
        if instruction.is_invalid() {
            break;
        }
        instructions.push(instruction);
        if transfer(&instruction) != Transfer::Next || is_call(&instruction) {
            break;
        }
    }
    if instructions.is_empty() {
        return Harvest {
            stall: Stall::Unresolved(Unresolved::NotAnInstruction),
            operands_unknown: 0,
        };
    }
    let mut flows = vec![Flow::Next; instructions.len()];
    if let Some(last) = flows.last_mut() {
        *last = Flow::Stop;
    }
    let code = FunctionCode::assemble(
        registers.ip,
        &instructions,
        &flows,
        CallConvention::default(),
    );
    let harvest = code.harvest(registers, 0, out);
    Harvest {
        stall: match harvest.stall {
            Stall::Attributed => Stall::Attributed,
            Stall::Unresolved(_) => Stall::Unresolved(Unresolved::NoFunction),
        },
        ..harvest
    }
}
