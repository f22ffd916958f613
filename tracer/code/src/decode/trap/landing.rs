//! Which instructions of a function can run right before one of its instructions.

use iced_x86::{Code, Decoder, DecoderOptions, Instruction};

use super::{
    super::{branch::fuses, function::MAX_FUNCTION_BYTES, pieces::instructions},
    candidate::{Candidate, Describer},
    run,
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
    let end = start.wrapping_add(bytes.len() as u64);
    let decoder = Decoder::with_ip(64, taken, start, DecoderOptions::NONE);
    if !found.search(&mut describer, decoder.into_iter(), end, at) {
        return Err(Unresolved::NotAnInstruction);
    }
    if let Some(ending) = &mut found.ending
        && ending.overwrites_its_address()
    {
        let run = run::before(start, bytes, ending.ip);
        ending.run = describer.steps(&run);
    }
    Ok(Landing {
        candidates: found.in_order(),
        entry: at == start,
    })
}

/// The same in code without bounds, of which the instructions are known that `starts` lead to: the ip's own is one.
/// [`Unresolved::NoFunction`] where it is not known what ran before it.
pub(super) fn find_piece(
    start: u64,
    bytes: &[u8],
    starts: &[u64],
    at: u64,
) -> Result<Landing, Unresolved> {
    let known = instructions(start, bytes, starts).ok_or(Unresolved::NoFunction)?;
    let mut found = Found::default();
    let end = start.wrapping_add(bytes.len() as u64);
    found.search(&mut Describer::new(), known.into_iter(), end, at);
    let is_known = found.ended || found.running.is_some() || !found.fused.is_empty();
    is_known
        .then(|| Landing {
            candidates: found.in_order(),
            entry: false,
        })
        .ok_or(Unresolved::NoFunction)
}

#[derive(Default)]
struct Found {
    /// Some instruction ends at the ip.
    ended: bool,
    /// It, where it can have been the one.
    ending: Option<Candidate>,
    /// Is at the ip, in the middle of its repetitions.
    running: Option<Candidate>,
    fused: Vec<Candidate>,
    jumps: Vec<Candidate>,
    others: Vec<Candidate>,
}

impl Found {
    /// Looks through the instructions of code that ends at `end`, in order; whether one is at `at`.
    fn search(
        &mut self,
        describer: &mut Describer,
        instructions: impl Iterator<Item = Instruction>,
        end: u64,
        at: u64,
    ) -> bool {
        let mut last: Option<Instruction> = None;
        let mut seen = false;
        for instruction in instructions {
            if instruction.next_ip() == at {
                self.ending(describer, last.as_ref(), &instruction);
                // The ip may be the function's end, where a call that does not return ends it.
                seen |= instruction.next_ip() == end;
            }
            if instruction.ip() == at {
                seen = true;
                self.running = describer.at(&instruction);
            }
            let leads_here = instruction.near_branch_target() == at;
            if instruction.is_jcc_short_or_near() && leads_here {
                self.fused(describer, last.as_ref(), &instruction);
            }
            if instruction.code() == Code::Call_rel32_64 && leads_here {
                self.others.extend(describer.call(&instruction));
            }
            if self.jumps.len() < MAX_JUMPS {
                self.jumps.extend(describer.jump(&instruction));
            }
            last = Some(instruction);
        }
        seen
    }

    /// Takes in the instruction that ends at the ip, and the one before it.
    fn ending(
        &mut self,
        describer: &mut Describer,
        last: Option<&Instruction>,
        instruction: &Instruction,
    ) {
        self.ended = true;
        self.ending = describer.before(instruction);
        self.fused(describer, last, instruction);
        self.others.extend(describer.returned(instruction));
    }

    /// A comparison that runs as one with the jump after it: processors that fuse even under armed
    /// breakpoints would trap after the jump. (AMD family 1Ah traps between the two.)
    fn fused(&mut self, describer: &mut Describer, last: Option<&Instruction>, jump: &Instruction) {
        let before = last.filter(|last| last.next_ip() == jump.ip());
        if let Some(last) = before.filter(|last| fuses(last, jump)) {
            self.fused.extend(describer.before(last));
        }
    }

    fn in_order(self) -> Vec<Candidate> {
        let first = self.ending.into_iter().chain(self.running);
        let then = self.fused.into_iter().chain(self.jumps).chain(self.others);
        first.chain(then).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: u64 = 0x1000;

    /// Where the candidates before `at` are, in code of which these places are known to have run.
    fn before(bytes: &[u8], starts: &[u64], at: u64) -> Result<Vec<u64>, Unresolved> {
        let starts: Vec<u64> = starts.iter().map(|start| START + start).collect();
        let landing = find_piece(START, bytes, &starts, START + at)?;
        let ips = landing.candidates.iter().map(|candidate| candidate.ip);
        Ok(ips.map(|ip| ip - START).collect())
    }

    #[test]
    fn in_code_without_bounds_what_ran_before_is_known_where_control_came_from_there() {
        // 1: add $1,(%rdi); cmp $0,(%rsi); jne 1b; ret
        let looped = [0x48, 0x83, 0x07, 0x01, 0x83, 0x3e, 0x00, 0x75, 0xf7, 0xc3];
        assert_eq!(before(&looped, &[4], 4), Ok(vec![0]));
        assert_eq!(before(&looped, &[7], 7), Ok(vec![4]));
        // mov (%rdi),%rax; ret: nothing leads to the load.
        let straight = [0x48, 0x8b, 0x07, 0xc3];
        assert_eq!(before(&straight, &[3], 3), Err(Unresolved::NoFunction));
        assert_eq!(before(&straight, &[0, 3], 3), Ok(vec![0]));
    }
}
