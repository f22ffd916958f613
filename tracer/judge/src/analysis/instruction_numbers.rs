//! Small numbers for instructions, so that what is kept of each is a row and not a hash.

use rustc_hash::FxHashMap;

use super::Instruction;

/// Instructions looked at before the hash is: loops use few again and again.
const RECENT: usize = 4096;

/// The instructions that appeared so far, each with what is counted of it, numbered in order of appearance from 0.
#[derive(Clone, Debug)]
pub(super) struct InstructionNumbers<T> {
    rows: Vec<(Instruction, T)>,
    numbers: FxHashMap<Instruction, u32>,
    recent: Vec<u32>,
}

impl<T> Default for InstructionNumbers<T> {
    fn default() -> InstructionNumbers<T> {
        InstructionNumbers {
            rows: Vec::new(),
            numbers: FxHashMap::default(),
            recent: vec![u32::MAX; RECENT],
        }
    }
}

impl<T> InstructionNumbers<T> {
    /// The instruction's number and row, which is made now if it is new; `None` when it is and there are `most` already.
    pub(super) fn number(
        &mut self,
        instruction: Instruction,
        most: usize,
        row: impl FnOnce() -> T,
    ) -> Option<(u32, &mut T)> {
        let at = instruction.ip as usize % RECENT;
        let mut number = self.recent[at];
        let known = self.rows.get(number as usize);
        if known.is_none_or(|(known, _)| *known != instruction) {
            number = match self.numbers.get(&instruction) {
                Some(number) => *number,
                None if self.rows.len() >= most => return None,
                None => {
                    let number = self.rows.len() as u32;
                    self.rows.push((instruction, row()));
                    self.numbers.insert(instruction, number);
                    number
                }
            };
            self.recent[at] = number;
        }
        let (_, row) = self.rows.get_mut(number as usize)?;
        Some((number, row))
    }

    /// By number.
    pub(super) fn rows(&self) -> &[(Instruction, T)] {
        &self.rows
    }
}
