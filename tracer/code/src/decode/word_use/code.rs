//! A function's instructions with the ways between them.

use std::ops::Range;

use iced_x86::{
    ConditionCode, Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory,
    Mnemonic,
};

use crate::decode::{
    flow::{Block, Graph},
    function::{CallConvention, flows},
    instruction::{is_call, written},
    registers::{Gpr, RegisterSet},
};

/// Bytes of a function that are decoded for one question; of a larger one, what is behind the instruction.
const MOST_BYTES: usize = 1 << 16;
/// Bytes behind an instruction that are decoded where nothing before it can be.
const MOST_BEHIND: usize = 1 << 10;

/// What a called function gets in registers (System V psABI, section 3.2.3).
const ARGUMENTS: [Gpr; 6] = [Gpr::RDI, Gpr::RSI, Gpr::RDX, Gpr::RCX, Gpr::R8, Gpr::R9];

/// One function.
pub(super) struct FunctionText {
    instructions: Vec<Instruction>,
    written: Vec<RegisterSet>,
    graph: Graph,
    convention: CallConvention,
}

impl FunctionText {
    /// `None` where the instruction is not in the bytes.
    pub(super) fn decode(
        start: u64,
        bytes: &[u8],
        ip: u64,
        convention: CallConvention,
    ) -> Option<FunctionText> {
        let before = usize::try_from(ip.checked_sub(start)?).ok()?;
        let (start, bytes) = if bytes.len() <= MOST_BYTES {
            (start, bytes)
        } else {
            let behind = bytes.get(before..)?;
            (ip, &behind[..behind.len().min(MOST_BEHIND)])
        };
        let instructions: Vec<Instruction> =
            Decoder::with_ip(64, bytes, start, DecoderOptions::NONE)
                .into_iter()
                .collect();
        let flows = flows(start, &instructions, false);
        let landing = vec![false; instructions.len()];
        // Before aligned loops there are some that nothing enters.
        let idle: Vec<bool> = instructions
            .iter()
            .map(|instruction| instruction.mnemonic() == Mnemonic::Nop)
            .collect();
        let graph = Graph::cut(&flows, &landing, &idle);
        let mut factory = InstructionInfoFactory::new();
        let written = instructions
            .iter()
            .map(|instruction| written(instruction, factory.info(instruction)))
            .collect();
        Some(FunctionText {
            instructions,
            written,
            graph,
            convention,
        })
    }

    /// The instruction that begins at an address.
    pub(super) fn at(&self, ip: u64) -> Option<usize> {
        let found = self.instructions.binary_search_by_key(&ip, Instruction::ip);
        found.ok().filter(|&at| !self.instructions[at].is_invalid())
    }

    pub(super) fn instruction(&self, at: usize) -> &Instruction {
        &self.instructions[at]
    }

    /// Registers that it changes; a call, those that the convention does not keep.
    pub(super) fn written(&self, at: usize) -> RegisterSet {
        if is_call(&self.instructions[at]) {
            return self.convention.changed_by_calls();
        }
        self.written[at]
    }

    /// The number of the block that holds an instruction.
    pub(super) fn block_of(&self, at: usize) -> u32 {
        let after = self
            .graph
            .blocks
            .partition_point(|block| block.steps().start <= at);
        after.saturating_sub(1) as u32
    }

    /// The instructions of a block.
    pub(super) fn steps(&self, block: u32) -> Range<usize> {
        self.block(block).steps()
    }

    /// The blocks that control comes from, and whether it may come from elsewhere.
    pub(super) fn entries(&self, block: u32) -> (Vec<u32>, bool) {
        let from: Vec<u32> = self
            .graph
            .entries(block)
            .iter()
            .map(|edge| edge.from)
            .collect();
        // Targets of jump tables are not read, so that nothing seems to lead there.
        let unseen = self.block(block).unseen || from.is_empty();
        (from, unseen)
    }

    fn block(&self, block: u32) -> &Block {
        &self.graph.blocks[block as usize]
    }

    /// Where control goes after an instruction.
    pub(super) fn next(&self, at: usize) -> Next {
        let block = self.block(self.block_of(at));
        if at + 1 < block.steps().end {
            return Next::To(vec![at + 1]);
        }
        let first = |block: u32| self.block(block).steps().start;
        let to: Vec<usize> = block
            .fall
            .iter()
            .chain(&block.jump)
            .map(|&to| first(to))
            .collect();
        let instruction = &self.instructions[at];
        match instruction.flow_control() {
            FlowControl::Return => Next::Returns,
            _ if !to.is_empty() => Next::To(to),
            FlowControl::UnconditionalBranch | FlowControl::IndirectBranch => Next::Away,
            _ => Next::Nowhere,
        }
    }
}

/// Where control goes.
pub(super) enum Next {
    /// To these instructions.
    To(Vec<usize>),
    /// Back to the caller.
    Returns,
    /// To another function, or to where a table says.
    Away,
    /// It ends here.
    Nowhere,
}

/// What another function may get to see.
pub(super) fn arguments() -> RegisterSet {
    ARGUMENTS
        .into_iter()
        .fold(RegisterSet::NONE, RegisterSet::with)
}

/// `sete` and its kin, which give 0 or 1.
pub(super) fn sets_by_condition(instruction: &Instruction) -> bool {
    instruction.condition_code() != ConditionCode::None
        && instruction.op_count() == 1
        && instruction.flow_control() == FlowControl::Next
}

/// `cmove` and its kin, which give one of two values.
pub(super) fn moves_by_condition(instruction: &Instruction) -> bool {
    instruction.condition_code() != ConditionCode::None
        && instruction.op_count() == 2
        && instruction.flow_control() == FlowControl::Next
}
