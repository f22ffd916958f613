//! Which instructions of a function can run right before one of its instructions.

use iced_x86::{Code, Decoder, DecoderOptions, Instruction};

use super::{
    super::{branch::fuses, function::MAX_FUNCTION_BYTES},
    candidate::{Candidate, Describer},
};
use crate::event::Unresolved;

/// Indirect jumps taken from one function; more of them are an interpreter's, and mean less each.
const MAX_JUMPS: usize = 64;

/// The candidates of one place, best first.
#[derive(Debug)]
pub(super) struct Landing {
    pub(super) candidates: Vec<Candidate>,
    /// It is a function's first instruction.
    pub(super) entry: bool,
}

/// The candidates before the instruction at `at`, in the function that begins at `start`.
/// [`Unresolved::NotAnInstruction`] if decoding from the start leads to no instruction there.
pub(super) fn find(start: u64, bytes: &[u8], at: u64) -> Result<Landing, Unresolved> {
    let taken = &bytes[..bytes.len().min(MAX_FUNCTION_BYTES)];
    let mut describer = Describer::new();
    let mut found = Found::default();
    let mut last: Option<Instruction> = None;
    let mut seen = false;
    for instruction in Decoder::with_ip(64, taken, start, DecoderOptions::NONE) {
        if instruction.next_ip() == at {
            found.ending(&mut describer, last.as_ref(), &instruction);
            // The ip may be the function's end, where a call that does not return ends it.
            seen |= instruction.next_ip() == start.wrapping_add(bytes.len() as u64);
        }
        if instruction.ip() == at {
            seen = true;
            found.running = describer.at(&instruction);
        }
        let leads_here = instruction.near_branch_target() == at;
        if instruction.is_jcc_short_or_near() && leads_here {
            found.fused(&mut describer, last.as_ref(), &instruction);
        }
        if instruction.code() == Code::Call_rel32_64 && leads_here {
            found.others.extend(describer.call(&instruction));
        }
        if found.jumps.len() < MAX_JUMPS {
            found.jumps.extend(describer.jump(&instruction));
        }
        last = Some(instruction);
    }
    if !seen {
        return Err(Unresolved::NotAnInstruction);
    }
    Ok(Landing {
        candidates: found.in_order(),
        entry: at == start,
    })
}

#[derive(Default)]
struct Found {
    /// Ends at the ip.
    ending: Option<Candidate>,
    /// Is at the ip, in the middle of its repetitions.
    running: Option<Candidate>,
    fused: Vec<Candidate>,
    jumps: Vec<Candidate>,
    others: Vec<Candidate>,
}

impl Found {
    /// Takes in the instruction that ends at the ip, and the one before it.
    fn ending(
        &mut self,
        describer: &mut Describer,
        last: Option<&Instruction>,
        instruction: &Instruction,
    ) {
        self.ending = describer.before(instruction);
        self.fused(describer, last, instruction);
        self.others.extend(describer.returned(instruction));
    }

    /// A comparison that runs as one with the jump after it: processors that fuse even under armed
    /// breakpoints would trap after the jump. (AMD family 1Ah traps between the two.)
    fn fused(&mut self, describer: &mut Describer, last: Option<&Instruction>, jump: &Instruction) {
        if let Some(last) = last.filter(|last| fuses(last, jump)) {
            self.fused.extend(describer.before(last));
        }
    }

    fn in_order(self) -> Vec<Candidate> {
        let first = self.ending.into_iter().chain(self.running);
        let then = self.fused.into_iter().chain(self.jumps).chain(self.others);
        first.chain(then).collect()
    }
}
