//! Basic blocks and the edges between them.

use super::{Instruction, Next, switch::Table};

/// Instructions that are executed one after the other.
#[derive(Clone, Debug, Default)]
pub(crate) struct Block {
    /// Indexes of the instructions: from, to.
    pub(crate) first: usize,
    pub(crate) last: usize,
    pub(crate) successors: Vec<u32>,
    /// May be entered in a way that is not known: the start, a landing pad.
    pub(crate) is_entry: bool,
}

impl Block {
    /// Its instructions, each with its index.
    pub(crate) fn instructions<'i>(
        &self,
        all: &'i [Instruction],
    ) -> impl Iterator<Item = (usize, &'i Instruction)> + use<'i> {
        let count = (self.last + 1).saturating_sub(self.first);
        all.iter().enumerate().skip(self.first).take(count)
    }
}

/// The blocks of a function, in the order of their addresses.
#[derive(Debug)]
pub(crate) struct Blocks(pub(crate) Vec<Block>);

/// The instruction at an address.
pub(crate) fn at(instructions: &[Instruction], address: u64) -> Option<usize> {
    instructions
        .binary_search_by_key(&address, |instruction| instruction.address)
        .ok()
}

impl Blocks {
    /// `tables` are the jump tables of indirect jumps, `None` where a table was not understood: such a
    /// jump may lead to any block.
    pub(crate) fn new(instructions: &[Instruction], table_of: impl Fn(usize) -> Table) -> Blocks {
        let mut leads = vec![false; instructions.len() + 1];
        let mut tables: Vec<(usize, Table)> = Vec::new();
        leads[0] = true;
        for (index, instruction) in instructions.iter().enumerate() {
            match instruction.next {
                Next::Following | Next::Call { .. } => continue,
                Next::Branch { target, .. } => {
                    if let Some(target) = at(instructions, target) {
                        leads[target] = true;
                    }
                }
                Next::Indirect => {
                    let table = table_of(index);
                    if let Table::Targets(targets) = &table {
                        for target in targets {
                            if let Some(target) = at(instructions, *target) {
                                leads[target] = true;
                            }
                        }
                    }
                    tables.push((index, table));
                }
                Next::Stop => {}
            }
            leads[index + 1] = true;
        }
        let starts: Vec<usize> = (0..instructions.len())
            .filter(|&index| leads[index])
            .collect();
        let block_of = |index: usize| {
            starts
                .partition_point(|&start| start <= index)
                .saturating_sub(1) as u32
        };
        let mut blocks: Vec<Block> = Vec::with_capacity(starts.len());
        let mut reached = vec![false; starts.len()];
        for (number, &first) in starts.iter().enumerate() {
            let last = starts
                .get(number + 1)
                .map_or(instructions.len(), |&next| next)
                - 1;
            let mut block = Block {
                first,
                last,
                successors: Vec::new(),
                is_entry: number == 0,
            };
            let following = || (last + 1 < instructions.len()).then(|| block_of(last + 1));
            match instructions[last].next {
                Next::Following | Next::Call { .. } => block.successors.extend(following()),
                Next::Branch {
                    target,
                    conditional,
                } => {
                    if conditional {
                        block.successors.extend(following());
                    }
                    block
                        .successors
                        .extend(at(instructions, target).map(block_of));
                }
                Next::Indirect => match tables.iter().find(|(index, _)| *index == last) {
                    Some((_, Table::Targets(targets))) => {
                        let targets = targets.iter();
                        let targets = targets.filter_map(|target| at(instructions, *target));
                        block.successors.extend(targets.map(block_of));
                        block.successors.sort_unstable();
                        block.successors.dedup();
                    }
                    Some((_, Table::NotUnderstood)) => {
                        block.successors = (0..starts.len() as u32).collect();
                    }
                    Some((_, Table::None)) | None => {}
                },
                Next::Stop => {}
            }
            for successor in &block.successors {
                reached[*successor as usize] = true;
            }
            blocks.push(block);
        }
        for (block, reached) in blocks.iter_mut().zip(reached) {
            block.is_entry |= !reached;
        }
        Blocks(blocks)
    }
}
