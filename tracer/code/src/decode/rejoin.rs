//! What is known at the end of straight code, from the registers there: going back to its beginning, and forward again.
//!
//! ```text
//!   mov  %rdi,%rax            back to here rdi is known, and forward from here so is rax
//!   mov  4(%rax),%eax         <- the register that the address was in is gone
//! ```

use super::{
    instruction::Step,
    registers::{Gpr, Known},
};

/// Values kept that a register had before it was set anew.
const MOST_OVERWRITTEN: usize = 64;

/// What is known after `steps`, of which `known` is known already. `loaded` is asked for each step, with what is known
/// before it, for the value that it brings into a register from memory.
pub(super) fn rejoin(
    steps: &[Step],
    known: &Known,
    bias: u64,
    mut loaded: impl FnMut(usize, &Step, &Known) -> Option<(Gpr, u64)>,
) -> Known {
    let mut overwritten: Vec<(usize, Gpr, u64)> = Vec::new();
    let mut at = known.clone();
    for (number, step) in steps.iter().enumerate().rev() {
        for register in step.written.intersection(at.known()).iter() {
            if overwritten.len() < MOST_OVERWRITTEN {
                overwritten.extend(at.get(register).map(|value| (number, register, value)));
            }
        }
        at.back(step, bias);
    }
    for (number, step) in steps.iter().enumerate() {
        let value = loaded(number, step, &at);
        at.forward(step, bias);
        if let Some((register, value)) = value {
            at.set(register, value);
        }
        while let Some((_, register, value)) = overwritten.pop_if(|(after, ..)| *after == number) {
            at.set(register, value);
        }
    }
    at
}
