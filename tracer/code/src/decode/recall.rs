//! Addresses of loads that overwrote them, by what the code before loads from memory.
//!
//! ```text
//!   mov  table,%rax           the pointer is in memory still,
//!   mov  4(%rax),%eax         and what it points to is what was loaded
//!   add  %eax,%ebx            <- ip
//! ```
//!
//! Memory may have changed since the sample, so this proves nothing. It is believed where the value that the load
//! brought, which is in its register, is found at the address; or, as values that others store change all the time, where
//! the instruction's address was the same many times over. That is enough for a sample, which is one of many and says
//! where time may have gone; a trapped access has to be certain and does without.

use std::ops::Range;

use super::{FunctionCode, effect::Effect, operand::Bases, registers::Known, rejoin::rejoin};

/// Values read from memory for one sample.
const MOST_READS: u32 = 16;

/// The memory of the sampled process as it is now.
pub trait Memory {
    /// Reads; whether all of the buffer could be.
    fn read(&mut self, addr: u64, buffer: &mut [u8]) -> bool;
    /// Whether to believe that the load at `ip` was from there. It `agrees` when memory has the value that it brought.
    fn believes(&mut self, ip: u64, addr: u64, agrees: bool) -> bool;
}

/// Tells the addresses that loads among `steps`, which are of one block, loaded from, and whether memory agrees with what
/// they brought. `known` is what is known after the last.
pub(super) fn addresses(
    code: &FunctionCode,
    steps: Range<u32>,
    known: &Known,
    bases: &Bases,
    memory: &mut dyn Memory,
    mut tell: impl FnMut(u32, u64, bool),
) {
    let first = steps.start;
    let steps = &code.steps[steps.start as usize..steps.end as usize];
    let mut brought = vec![None; steps.len()];
    let mut at = known.clone();
    for (step, brought) in steps.iter().zip(&mut brought).rev() {
        if let Effect::Load(load) = step.effect {
            *brought = at.get(load.to);
        }
        at.back(step, bases.bias);
    }
    let mut reads = 0;
    rejoin(steps, known, bases.bias, |number, step, known| {
        let Effect::Load(load) = step.effect else {
            return None;
        };
        let operand = code.operands.get(step.first_operand as usize)?;
        let addr = operand.address(known, bases).ok()?;
        reads += 1;
        if reads > MOST_READS {
            return None;
        }
        let found = load.read(addr, memory)?;
        tell(first + number as u32, addr, brought[number] == Some(found));
        Some((load.to, found))
    });
}
