//! Small numbers for instructions, so that what is kept of each is a row and not a hash.

use rustc_hash::FxHashMap;

use super::Instruction;

/// Instructions looked at before the hash is: loops use few again and again.
const RECENT: usize = 4096;

/// The instructions that appeared so far, numbered in order of appearance from 0.
#[derive(Clone, Debug)]
pub(super) struct InstructionNumbers {
    instructions: Vec<Instruction>,
    numbers: FxHashMap<Instruction, u32>,
    recent: Vec<u32>,
}

impl Default for InstructionNumbers {
    fn default() -> InstructionNumbers {
        InstructionNumbers {
            instructions: Vec::new(),
            numbers: FxHashMap::default(),
            recent: vec![u32::MAX; RECENT],
        }
    }
}

impl InstructionNumbers {
    /// The instruction's number, now given if it is new; `None` when it is and there are `most` already.
    pub(super) fn number(&mut self, instruction: Instruction, most: usize) -> Option<u32> {
        let recent = &mut self.recent[instruction.ip as usize % RECENT];
        if self.instructions.get(*recent as usize) == Some(&instruction) {
            return Some(*recent);
        }
        let number = match self.numbers.get(&instruction) {
            Some(number) => *number,
            None if self.instructions.len() >= most => return None,
            None => {
                let number = self.instructions.len() as u32;
                self.instructions.push(instruction);
                self.numbers.insert(instruction, number);
                number
            }
        };
        *recent = number;
        Some(number)
    }

    /// By number.
    pub(super) fn instructions(&self) -> &[Instruction] {
        &self.instructions
    }
}
