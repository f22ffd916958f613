//! Where the values of the registers of a cycle of blocks come from: from what it leaves alone and loads anew, or from
//! the round before.

use iced_x86::Instruction;

use super::{
    instruction::{Step, is_call},
    registers::{Gpr, RegisterSet},
    spin::{Code, Read},
};

/// Where the values of a cycle's registers come from.
///
/// A value is settled when it follows from what the cycle leaves alone and from loads at settled addresses in the same
/// round: not from itself.
pub(super) struct Settled<'a> {
    code: &'a Code<'a>,
    steps: &'a [(usize, usize)],
    read: &'a [Read],
    /// What the steps give new values, those of calls by what they return.
    pub(super) written: RegisterSet,
    /// Registers whose values are settled, before each step.
    before: Vec<RegisterSet>,
    /// Steps whose results are settled.
    pub(super) results: Vec<bool>,
    /// Registers that may hold something loaded.
    loaded: RegisterSet,
}

impl<'a> Settled<'a> {
    pub(super) fn new(
        code: &'a Code<'a>,
        blocks: &[u32],
        steps: &'a [(usize, usize)],
        read: &'a [Read],
        budget: &mut usize,
    ) -> Settled<'a> {
        let mut values = Settled {
            code,
            steps,
            read,
            written: RegisterSet::NONE,
            before: vec![RegisterSet::NONE; steps.len()],
            results: vec![false; steps.len()],
            loaded: RegisterSet::NONE,
        };
        let results = (0..steps.len()).map(|at| values.result(at));
        values.written = results.fold(RegisterSet::NONE, RegisterSet::union);
        let place = |block: u32| blocks.iter().position(|other| *other == block);
        let ways: Vec<[Option<usize>; 2]> = blocks
            .iter()
            .map(|block| &code.graph.blocks[*block as usize])
            .map(|block| [block.fall.and_then(place), block.jump.and_then(place)])
            .collect();
        // Each turn settles one more step at least.
        loop {
            values.follow(&ways, budget);
            if !values.settle() || *budget == 0 {
                break;
            }
        }
        values.find_loaded();
        values
    }

    pub(super) fn writes(&self, at: usize) -> bool {
        self.result(at) != RegisterSet::NONE
    }

    fn result(&self, at: usize) -> RegisterSet {
        let number = self.steps[at].1;
        result(&self.code.instructions[number], &self.code.steps[number])
    }

    /// What is settled before each step, given which steps' results are: the most that is consistent.
    fn follow(&mut self, ways: &[[Option<usize>; 2]], budget: &mut usize) {
        let mut starts = vec![RegisterSet::ALL; ways.len()];
        let mut changed = true;
        while changed {
            changed = false;
            *budget = budget.saturating_sub(self.steps.len());
            let mut at = 0;
            for (block, ways) in ways.iter().enumerate() {
                let mut state = starts[block];
                while self.steps.get(at).is_some_and(|(of, _)| *of == block) {
                    self.before[at] = state;
                    state = if self.results[at] {
                        state.union(self.result(at))
                    } else {
                        state.minus(self.result(at))
                    };
                    at += 1;
                }
                for next in ways.iter().flatten() {
                    let met = starts[*next].intersection(state);
                    changed |= met != starts[*next];
                    starts[*next] = met;
                }
            }
        }
    }

    /// Marks steps whose inputs are settled; false when there is no other.
    fn settle(&mut self) -> bool {
        let mut any = false;
        for at in 0..self.steps.len() {
            // What a call returns is new in each round.
            let call = is_call(&self.code.instructions[self.steps[at].1]);
            if !self.results[at] && (call || self.inputs_are_settled(at)) {
                self.results[at] = true;
                any = true;
            }
        }
        any
    }

    fn inputs_are_settled(&self, at: usize) -> bool {
        self.read[at].all.minus(self.before[at]) == RegisterSet::NONE
    }

    pub(super) fn address_is_settled(&self, at: usize) -> bool {
        self.read[at].address.minus(self.before[at]) == RegisterSet::NONE
    }

    fn depends_on_a_load(&self, at: usize) -> bool {
        self.code.steps[self.steps[at].1].operand_count > 0
            || self.read[at].all.intersection(self.loaded) != RegisterSet::NONE
    }

    fn find_loaded(&mut self) {
        loop {
            let loads = (0..self.steps.len()).filter(|at| self.depends_on_a_load(*at));
            let loaded = loads.fold(self.loaded, |all, at| all.union(self.result(at)));
            if loaded == self.loaded {
                return;
            }
            self.loaded = loaded;
        }
    }

    /// Whether the block's jump may leave the cycle, by a test of something loaded and nothing counted.
    pub(super) fn leaves_on_a_load(&self, block: u32, blocks: &[u32]) -> bool {
        let from = &self.code.graph.blocks[block as usize];
        let stays = |next: Option<u32>| next.is_some_and(|next| blocks.contains(&next));
        if !from.conditional || (stays(from.fall) && stays(from.jump)) {
            return false;
        }
        let sets = |(_, number): &(usize, usize)| {
            let instruction = &self.code.instructions[*number];
            self.code.steps[*number].block == block
                && (instruction.rflags_modified() != 0 || is_call(instruction))
        };
        let Some(at) = self.steps.iter().rposition(sets) else {
            return false;
        };
        let test = &self.code.instructions[self.steps[at].1];
        !is_call(test) && self.inputs_are_settled(at) && self.depends_on_a_load(at)
    }
}

/// The registers that a step gives new values. Of a call that is what it returns: code that goes on using another
/// register after a call knows that the callee leaves it alone.
fn result(instruction: &Instruction, step: &Step) -> RegisterSet {
    if is_call(instruction) {
        RegisterSet::NONE.with(Gpr::RAX)
    } else {
        step.written
    }
}
