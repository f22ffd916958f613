//! A function's code, decoded once: steps, operands, blocks, loops, and what they do to registers.
//!
//! Addresses are those of the file (svma); the run-time address is that plus the load bias.

use std::collections::HashSet;

use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic};

use super::{
    branch::{self, Condition},
    flow::{Flow, Graph},
    instruction::{Callee, Reducer, Step, Traits, Transfer, callee, transfer},
    loops,
    operand::{Bases, Operand},
    registers::{Gpr, RegisterSet},
    spin::{self, Spin},
};

/// Code after this many bytes of a function is not decoded: larger "functions" are mis-sized symbols
/// or generated tables. Samples there are not at an instruction, and since jumps from there are not
/// seen, no path into a block of the rest is trusted.
pub(super) const MAX_FUNCTION_BYTES: usize = 1 << 20;

/// Which registers a call gives back unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum CallConvention {
    /// rbx, rsp, rbp, r12..r15: C, C++, Rust and the kernel on x86-64.
    #[default]
    SystemV,
    /// rsp and rbp only: Go, HotSpot and others that save nothing else.
    PointersOnly,
}

impl CallConvention {
    pub(super) fn changed_by_calls(self) -> RegisterSet {
        match self {
            CallConvention::SystemV => RegisterSet::CALLER_SAVED,
            CallConvention::PointersOnly => RegisterSet::NO_POINTERS,
        }
    }
}

/// One function, decoded for harvesting. Cache it per module and function.
#[derive(Clone, Debug)]
pub struct FunctionCode {
    pub(super) start: u64,
    /// It is a function from its first instruction to its last; else some pieces of code.
    pub(super) bounded: bool,
    pub(super) steps: Vec<Step>,
    pub(super) operands: Vec<Operand>,
    pub(super) graph: Graph,
    /// Per block.
    pub(super) facts: Vec<BlockFacts>,
    pub(super) loops: Vec<LoopFacts>,
    /// Blocks' loops, as numbers into `loops`.
    pub(super) nest: loops::Nest,
    /// Loops that wait for memory to change.
    pub(super) spins: Vec<Spin>,
}

/// What one block's instructions mean for its successors.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BlockFacts {
    /// The step that was waited for when control has just left the block.
    pub(super) waits_at_end: Option<u32>,
    /// What its last jump decides on.
    pub(super) condition: Option<Condition>,
    /// The loop that it waits in, as a number into [`FunctionCode::spins`].
    pub(super) spin: Option<u32>,
}

/// What one loop does to registers.
#[derive(Clone, Copy, Debug)]
pub(super) struct LoopFacts {
    pub(super) written: RegisterSet,
}

impl FunctionCode {
    /// Decodes the function that begins at `start` (svma). Never fails: what cannot be decoded ends
    /// the path that leads there, and jump tables, which are not read, leave their targets without a
    /// known way in. Linear in the bytes up to a fixed bound on loop finding; a function past that bound
    /// is harvested without its loops.
    pub fn decode(start: u64, bytes: &[u8]) -> FunctionCode {
        FunctionCode::decode_as(start, bytes, CallConvention::SystemV)
    }

    /// As [`FunctionCode::decode`], for code of another calling convention.
    pub fn decode_as(start: u64, bytes: &[u8], convention: CallConvention) -> FunctionCode {
        let taken = &bytes[..bytes.len().min(MAX_FUNCTION_BYTES)];
        let instructions: Vec<Instruction> =
            Decoder::with_ip(64, taken, start, DecoderOptions::NONE)
                .into_iter()
                .collect();
        let truncated = taken.len() < bytes.len();
        let flows = flows(start, &instructions, truncated);
        let mut code = FunctionCode::assemble(start, &instructions, &flows, convention);
        if truncated {
            for block in &mut code.graph.blocks {
                block.unseen = true;
            }
        }
        code
    }

    /// Builds the function from its instructions and the ways between them.
    pub(super) fn assemble(
        start: u64,
        instructions: &[Instruction],
        flows: &[Flow],
        convention: CallConvention,
    ) -> FunctionCode {
        let mut reducer = Reducer::new(convention.changed_by_calls());
        let mut operands = Vec::new();
        let mut steps: Vec<Step> = instructions
            .iter()
            .map(|instruction| {
                let offset = instruction.ip().wrapping_sub(start) as u32;
                reducer.step(instruction, offset, &mut operands)
            })
            .collect();
        operands.shrink_to_fit();
        // `endbr64` marks what indirect jumps and unwinders may reach.
        let landing: Vec<bool> = instructions
            .iter()
            .map(|instruction| instruction.code() == Code::Endbr64)
            .collect();
        let idle: Vec<bool> = instructions
            .iter()
            .map(|instruction| instruction.mnemonic() == Mnemonic::Nop)
            .collect();
        let mut graph = Graph::cut(flows, &landing, &idle);
        let mut nest = loops::find(&mut graph);
        graph.mark_inside(|from, to| {
            nest.innermost[to as usize].is_some_and(|number| nest.contains(number, from))
        });
        let mut facts = Vec::with_capacity(graph.blocks.len());
        for (number, block) in graph.blocks.iter().enumerate() {
            let steps = &mut steps[block.steps()];
            for step in &mut *steps {
                step.block = number as u32;
            }
            count_constants(steps);
            facts.push(block_facts(
                block.first,
                &instructions[block.steps()],
                steps,
            ));
        }
        let spins = spin::find(instructions, &steps, &operands, &graph);
        for (number, spin) in spins.iter().enumerate() {
            for block in &spin.blocks {
                facts[*block as usize].spin = Some(number as u32);
            }
        }
        let loops = nest
            .loops
            .iter_mut()
            .map(|l| LoopFacts {
                // The body is only needed for this: nested loops would keep it once per level.
                written: written(&std::mem::take(&mut l.body), &graph, &steps),
            })
            .collect();
        FunctionCode {
            start,
            bounded: true,
            steps,
            operands,
            graph,
            facts,
            loops,
            nest,
            spins,
        }
    }

    /// The instructions' addresses (svma). Keeping the function costs about 90 bytes for each.
    pub fn instructions(&self) -> impl ExactSizeIterator<Item = u64> {
        let address = |step: &Step| self.start.wrapping_add(u64::from(step.offset));
        self.steps.iter().map(address)
    }

    /// Bytes on the heap.
    pub fn bytes(&self) -> usize {
        fn of<T>(all: &Vec<T>) -> usize {
            all.capacity() * size_of::<T>()
        }
        let spins = self.spins.iter();
        let spins: usize = spins.map(|spin| of(&spin.blocks) + of(&spin.words)).sum();
        of(&self.steps)
            + of(&self.operands)
            + self.graph.bytes()
            + of(&self.facts)
            + of(&self.loops)
            + self.nest.bytes()
            + of(&self.spins)
            + spins
    }

    /// The step that begins at this address (svma).
    pub(super) fn step_at(&self, address: u64) -> Option<u32> {
        let offset = u32::try_from(address.wrapping_sub(self.start)).ok()?;
        let number = self.steps.binary_search_by_key(&offset, |step| step.offset);
        number.ok().map(|number| number as u32)
    }

    pub(super) fn step(&self, number: u32) -> &Step {
        &self.steps[number as usize]
    }

    /// Where a step is in the running program.
    pub(super) fn run_time(&self, number: u32, bases: &Bases) -> u64 {
        let svma = self.start.wrapping_add(u64::from(self.step(number).offset));
        svma.wrapping_add(bases.bias)
    }
}

/// The ways of control between instructions, by number.
pub(super) fn flows(start: u64, instructions: &[Instruction], truncated: bool) -> Vec<Flow> {
    let position = |target: u64| {
        let distance = target.wrapping_sub(start);
        instructions
            .binary_search_by_key(&distance, |other| other.ip().wrapping_sub(start))
            .ok()
            .map(|number| number as u32)
    };
    let endless = never_returning(instructions, truncated);
    instructions
        .iter()
        .map(|instruction| match transfer(instruction) {
            Transfer::Next if callee(instruction).is_some_and(|c| endless.contains(&c)) => {
                Flow::Stop
            }
            Transfer::Next => Flow::Next,
            Transfer::Jump(target) => Flow::Jump(position(target)),
            Transfer::Branch(target) => Flow::Branch(position(target)),
            Transfer::Stop => Flow::Stop,
        })
        .collect()
}

/// Functions that do not return: compilers end a function with a call, or follow it with `ud2`, only
/// when it cannot come back. The same callee does not come back elsewhere either.
fn never_returning(instructions: &[Instruction], truncated: bool) -> HashSet<Callee> {
    let next = instructions.iter().skip(1).map(Some).chain([None]);
    instructions
        .iter()
        .zip(next)
        .filter(|(_, next)| match next {
            Some(next) => next.flow_control() == FlowControl::Exception,
            None => !truncated,
        })
        .filter_map(|(instruction, _)| callee(instruction))
        .collect()
}

/// Tells each repeated string instruction of a block the count it starts with, where the block sets
/// rcx to a constant.
fn count_constants(block: &mut [Step]) {
    let mut count = None;
    for step in block {
        if step.traits.has(Traits::REPEATS) {
            step.effect = step.effect.counting(count);
        }
        if step.written.contains(Gpr::RCX) {
            count = step.effect.constant(Gpr::RCX);
        }
    }
}

fn block_facts(first: u32, instructions: &[Instruction], steps: &[Step]) -> BlockFacts {
    BlockFacts {
        waits_at_end: waits_at_end(instructions, steps).map(|number| first + number as u32),
        condition: Condition::of(instructions, |number| steps[number].written),
        spin: None,
    }
}

/// Which instruction the CPU was waiting for if the next one it would run is not in this block: the
/// last one, or the comparison fused with it.
fn waits_at_end(instructions: &[Instruction], steps: &[Step]) -> Option<usize> {
    let last = steps.len().checked_sub(1)?;
    if last > 0 && steps[last - 1].traits.has(Traits::SHADOWS) {
        return None;
    }
    let waits = |number: usize| steps[number].waits_for.map(|_| number);
    waits(last).or_else(|| {
        let fused = last > 0 && branch::fuses(&instructions[last - 1], &instructions[last]);
        if fused { waits(last - 1) } else { None }
    })
}

/// Everything the loop's blocks change.
fn written(body: &[u32], graph: &Graph, steps: &[Step]) -> RegisterSet {
    body.iter()
        .flat_map(|block| &steps[graph.blocks[*block as usize].steps()])
        .fold(RegisterSet::NONE, |all, step| all.union(step.written))
}
