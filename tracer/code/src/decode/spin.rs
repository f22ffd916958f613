//! Loops that wait for another thread: all they do is read some words, test them and go round.
//!
//! ```text
//!   again: pause                 a cycle of blocks that store nothing, and call nothing (a loop that pauses may
//!          mov  flag,%eax        call: the kernel asks there whether the CPU it waits for still runs);
//!          cmp  %edx,%eax        every load reads the same place in each round (no search, no list);
//!          je   done             a way out depends on what was loaded and on nothing that the loop counts;
//!          sub  $1,%ecx          what a register carries from round to round is a count (other arithmetic is
//!          jne  again            work, and the loop does it instead of waiting).
//! ```
//!
//! Whole cycles of a function's blocks are looked at, not its natural loops: where a failed `cmpxchg` goes back to the
//! loop that waits before it, both are one natural loop, and only the inner cycle waits.

use iced_x86::{
    CpuidFeature, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind,
    Register,
};

use super::{
    cycles::Cycles,
    effect::{Effect, Function},
    flow::Graph,
    instruction::{Step, Traits, is_call},
    operand::Operand,
    registers::{Gpr, RegisterSet},
    settled::Settled,
};
use crate::access::Op;

/// Blocks and instructions of a loop that waits; longer ones do something.
const MOST: (usize, usize) = (16, 128);
/// Bound on looks at instructions, for functions that nobody writes. Past it no further loop is found.
const MAX_WORK: usize = 4_000_000;
/// Words of such a loop that are kept, the last in order of address.
const MOST_WORDS: usize = 8;

/// A loop that waits.
#[derive(Clone, Debug)]
pub(super) struct Spin {
    pub(super) blocks: Vec<u32>,
    /// The steps that load what it waits for; the last first.
    pub(super) words: Vec<u32>,
    /// Registers that it writes: elsewhere in it their values may be others.
    pub(super) written: RegisterSet,
}

/// Finds the loops that wait. Linear in the code but for those loops themselves, which are short.
pub(super) fn find(
    instructions: &[Instruction],
    steps: &[Step],
    operands: &[Operand],
    graph: &Graph,
) -> Vec<Spin> {
    let code = Code {
        instructions,
        steps,
        operands,
        graph,
    };
    let blocks = 0..graph.blocks.len() as u32;
    let idle: Vec<u32> = blocks.filter(|block| code.is_idle(*block)).collect();
    let mut cycles = Cycles::new(graph);
    let mut factory = InstructionInfoFactory::new();
    let mut budget = MAX_WORK;
    let mut spins = Vec::new();
    // A cycle that works in some blocks may wait in a smaller one without them.
    let mut open = vec![idle];
    while let Some(blocks) = open.pop() {
        for blocks in cycles.among(&blocks) {
            if blocks.len() > MOST.0 || code.length(&blocks) > MOST.1 || budget == 0 {
                continue;
            }
            match code.judge(&blocks, &mut factory, &mut budget) {
                Found::Waits(spin) => spins.push(spin),
                Found::Works(working) => {
                    let rest = blocks.into_iter().filter(|block| !working.contains(block));
                    open.push(rest.collect());
                }
                Found::Neither => {}
            }
        }
    }
    spins
}

/// What a cycle of blocks is.
enum Found {
    Waits(Spin),
    /// Blocks that do something else.
    Works(Vec<u32>),
    Neither,
}

/// A function's code.
pub(super) struct Code<'a> {
    pub(super) instructions: &'a [Instruction],
    pub(super) steps: &'a [Step],
    operands: &'a [Operand],
    pub(super) graph: &'a Graph,
}

/// General registers that an instruction reads, those of its address among them.
#[derive(Clone, Copy)]
pub(super) struct Read {
    pub(super) all: RegisterSet,
    pub(super) address: RegisterSet,
}

impl Read {
    fn of(instruction: &Instruction, factory: &mut InstructionInfoFactory) -> Read {
        // What is written perhaps keeps its old value otherwise.
        let reads = |access: OpAccess| !matches!(access, OpAccess::Write | OpAccess::None);
        let used = factory.info(instruction).used_registers().iter();
        let all = used
            .filter(|used| reads(used.access()))
            .filter_map(|used| Gpr::of(used.register()));
        let memory = (instruction.op_kinds())
            .any(|kind| kind == OpKind::Memory)
            .then(|| [instruction.memory_base(), instruction.memory_index()]);
        let address = memory.into_iter().flatten().filter_map(Gpr::of);
        Read {
            all: all.fold(RegisterSet::NONE, RegisterSet::with),
            address: address.fold(RegisterSet::NONE, RegisterSet::with),
        }
    }
}

impl Code<'_> {
    /// Whether a block does nothing but read memory and compute in general registers, or call.
    fn is_idle(&self, block: u32) -> bool {
        let mut steps = self.graph.blocks[block as usize].steps();
        steps.all(|number| {
            let instruction = &self.instructions[number];
            let step = &self.steps[number];
            let first = step.first_operand as usize;
            let operands = &self.operands[first..first + usize::from(step.operand_count)];
            is_quiet(instruction, step)
                && (does_nothing(instruction)
                    || operands.iter().all(|operand| operand.op == Op::Load))
        })
    }

    fn length(&self, blocks: &[u32]) -> usize {
        let steps = |block: &u32| self.graph.blocks[*block as usize].steps().len();
        blocks.iter().map(steps).sum()
    }

    /// The steps of a cycle, with the place of their block in it.
    fn steps_of<'b>(
        &self,
        blocks: &'b [u32],
    ) -> impl Iterator<Item = (usize, usize)> + use<'b, '_> {
        let of = |block: u32| self.graph.blocks[block as usize].steps();
        (blocks.iter().enumerate()).flat_map(move |(at, block)| of(*block).map(move |n| (at, n)))
    }

    fn judge(
        &self,
        blocks: &[u32],
        factory: &mut InstructionInfoFactory,
        budget: &mut usize,
    ) -> Found {
        let steps: Vec<(usize, usize)> = self.steps_of(blocks).collect();
        let has =
            |wanted: Traits, (_, number): &(usize, usize)| self.steps[*number].traits.has(wanted);
        if !steps.iter().any(|step| has(Traits::PAUSES, step)) {
            let calls = steps.iter().filter(|step| has(Traits::CALL, step));
            let mut calling: Vec<u32> = calls.map(|(at, _)| blocks[*at]).collect();
            calling.dedup();
            if !calling.is_empty() {
                return Found::Works(calling);
            }
        }
        let read: Vec<Read> = (steps.iter())
            .map(|(_, number)| Read::of(&self.instructions[*number], factory))
            .collect();
        let values = Settled::new(self, blocks, &steps, &read, budget);
        let working = |at: usize, number: usize| {
            let step = &self.steps[number];
            let is_load = step.operand_count > 0;
            let carried = !values.results[at] && !counts(step);
            (is_load && !values.address_is_settled(at)) || (values.writes(at) && carried)
        };
        let mut working: Vec<u32> = (steps.iter().enumerate())
            .filter(|(at, (_, number))| working(*at, *number))
            .map(|(_, (at, _))| blocks[*at])
            .collect();
        working.dedup();
        if !working.is_empty() {
            return Found::Works(working);
        }
        if !blocks
            .iter()
            .any(|block| values.leaves_on_a_load(*block, blocks))
        {
            return Found::Neither;
        }
        let loads = |number: &u32| {
            let instruction = &self.instructions[*number as usize];
            self.steps[*number as usize].operand_count == 1
                && !does_nothing(instruction)
                && !is_call(instruction)
        };
        let numbers = steps.iter().map(|(_, number)| *number as u32);
        let mut words: Vec<u32> = numbers.filter(loads).collect();
        words.sort_unstable_by(|a, b| b.cmp(a));
        words.truncate(MOST_WORDS);
        Found::Waits(Spin {
            blocks: blocks.to_vec(),
            words,
            written: values.written,
        })
    }
}

/// An instruction that changes nothing but general registers, flags and the way.
fn is_quiet(instruction: &Instruction, step: &Step) -> bool {
    let way = match instruction.flow_control() {
        FlowControl::Next | FlowControl::ConditionalBranch => true,
        FlowControl::UnconditionalBranch => instruction.op0_kind() == OpKind::NearBranch64,
        FlowControl::Call | FlowControl::IndirectCall => is_call(instruction),
        _ => false,
    };
    let general = |register: Register| {
        register == Register::None || register.is_gpr() || register.is_segment_register()
    };
    let registers = (0..instruction.op_count())
        .filter(|number| instruction.op_kind(*number) == OpKind::Register)
        .all(|number| general(instruction.op_register(number)));
    let floats = instruction.cpuid_features().contains(&CpuidFeature::FPU);
    way && registers
        && !floats
        && !instruction.is_invalid()
        && !instruction.is_string_instruction()
        && (is_call(instruction) || !instruction.is_stack_instruction())
        && (step.traits.has(Traits::PAUSES) || !instruction.is_privileged())
        && instruction.mnemonic() != Mnemonic::Cpuid
        && (!step.traits.has(Traits::LEAVES) || is_call(instruction))
}

/// A locked addition of nothing to the stack: compilers' full barrier.
fn does_nothing(instruction: &Instruction) -> bool {
    let zero = instruction.op_count() == 2
        && !matches!(instruction.op1_kind(), OpKind::Register | OpKind::Memory)
        && instruction.immediate(1) == 0;
    instruction.has_lock_prefix()
        && matches!(instruction.mnemonic(), Mnemonic::Or | Mnemonic::Add)
        && instruction.memory_base() == Register::RSP
        && zero
}

/// Whether what the step carries from round to round is a count, or a time to wait that doubles.
fn counts(step: &Step) -> bool {
    match step.effect {
        Effect::Linear(linear) => {
            linear.base == Some(linear.to)
                && !linear.relative
                && linear.index.is_none_or(|index| index == linear.to)
        }
        Effect::Compute(compute) => {
            compute.to == compute.from && compute.function == Function::ShiftLeft(1)
        }
        Effect::Nothing | Effect::Load(_) | Effect::Swap(..) | Effect::Strings(_) => false,
    }
}
