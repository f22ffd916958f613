//! An instruction that may have been the trapped one, with everything it touches.

use iced_x86::{Code, Instruction, Mnemonic};

use super::super::{
    instruction::{Reducer, Step, Traits, Transfer, transfer},
    operand::{Bases, Operand},
    registers::{Gpr, Known, RegisterSet},
};
use crate::access::Op;

/// Largest area that `xsave` and its kin write, bytes: that of a processor with AVX-512 and AMX (CPUID
/// leaf 13 says 11008 there).
const MAX_XSAVE_BYTES: u32 = 11008;

/// How the registers at the trap relate to the instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum View {
    /// They are those after it.
    After,
    /// They are those after one of its repetitions, perhaps the last.
    Repetition,
    /// It is a call, and they are those at the callee's first instruction. With a direct call, that is at
    /// this address.
    Called(Option<u64>),
    /// It is a call, and they are those after the callee's `ret`.
    Returned,
}

/// How many bytes an operand reaches from its address on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// All of them are touched.
    Whole(u32),
    /// Which of them are touched is not known.
    Within(u32),
}

/// One operand, written or implied.
#[derive(Clone, Copy, Debug)]
pub(super) struct Touched {
    pub(super) operand: Operand,
    pub(super) reach: Reach,
}

/// An instruction that may have been the trapped one.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    /// Its address; svma where it comes from a unit.
    pub(super) ip: u64,
    pub(super) view: View,
    pub(super) step: Step,
    /// What runs right before it, where that may tell its address; see [`run`](super::run).
    pub(super) run: Box<[Step]>,
    pub(super) touched: Box<[Touched]>,
}

impl Candidate {
    /// Whether it changes a register that its addresses were made of, beyond repair.
    pub(super) fn overwrites_its_address(&self) -> bool {
        let known = Known::all([0; 16]);
        let mut before = known.clone();
        before.back(&self.step, 0);
        let told = |operand: &Operand, known| operand.start(known, &Bases::ANY).is_ok();
        let lost =
            |touched: &Touched| told(&touched.operand, &known) && !told(&touched.operand, &before);
        self.view == View::After && self.touched.iter().any(lost)
    }

    /// Whether control can come from it to `at` (an address of its unit) directly.
    pub(super) fn leads_to(&self, at: u64) -> bool {
        match self.view {
            View::Called(Some(target)) => target == at,
            _ => true,
        }
    }
}

/// Turns instructions into candidates; keeps the decoder's scratch memory.
pub(super) struct Describer {
    reducer: Reducer,
    operands: Vec<Operand>,
}

impl Describer {
    pub(super) fn new() -> Describer {
        Describer {
            // Calls are never undone, so what they change does not matter.
            reducer: Reducer::new(RegisterSet::ALL),
            operands: Vec::new(),
        }
    }

    /// The instruction as one that ran right before the trap and went on to the next; `None` if it touches
    /// no memory or goes elsewhere.
    pub(super) fn before(&mut self, instruction: &Instruction) -> Option<Candidate> {
        let goes_on = matches!(transfer(instruction), Transfer::Next | Transfer::Branch(_))
            && !instruction.is_invalid()
            && instruction.mnemonic() != Mnemonic::Call;
        if !goes_on {
            return None;
        }
        let mut candidate = self.describe(instruction, View::After)?;
        if candidate.step.traits.has(Traits::REPEATS) {
            candidate.view = View::Repetition;
        }
        Some(candidate)
    }

    /// The instruction at the ip, if it is a string instruction that can be in the middle of its
    /// repetitions.
    pub(super) fn at(&mut self, instruction: &Instruction) -> Option<Candidate> {
        if !instruction.is_string_instruction() {
            return None;
        }
        self.before(instruction)
            .filter(|candidate| candidate.view == View::Repetition)
    }

    /// `jmp *(mem)`, which changes no register.
    pub(super) fn jump(&mut self, instruction: &Instruction) -> Option<Candidate> {
        let indirect = instruction.is_jmp_near_indirect();
        indirect.then(|| self.describe(instruction, View::After))?
    }

    /// A call, seen from its callee's first instruction: what it reads, and the return address it pushes.
    pub(super) fn call(&mut self, instruction: &Instruction) -> Option<Candidate> {
        let target = match instruction.code() {
            Code::Call_rel32_64 => Some(instruction.near_branch_target()),
            _ if instruction.is_call_near_indirect() => None,
            _ => return None,
        };
        self.describe(instruction, View::Called(target))
    }

    /// A call, seen from where its callee returned to: the return address that was loaded.
    pub(super) fn returned(&mut self, instruction: &Instruction) -> Option<Candidate> {
        if instruction.mnemonic() != Mnemonic::Call {
            return None;
        }
        let mut candidate = self.describe(instruction, View::Returned)?;
        let loaded = Operand::implied(Gpr::RSP, 8u64.wrapping_neg(), 8, Op::Load);
        candidate.touched = Box::new([Touched {
            operand: loaded,
            reach: Reach::Whole(8),
        }]);
        Some(candidate)
    }

    /// What instructions do to registers.
    pub(super) fn steps(&mut self, instructions: &[Instruction]) -> Box<[Step]> {
        self.operands.clear();
        let reduced = instructions
            .iter()
            .map(|instruction| self.reducer.step(instruction, 0, &mut self.operands));
        reduced.collect()
    }

    fn describe(&mut self, instruction: &Instruction, view: View) -> Option<Candidate> {
        self.operands.clear();
        let step = self.reducer.step(instruction, 0, &mut self.operands);
        let mut touched: Vec<Touched> = self
            .operands
            .iter()
            .filter(|operand| operand.op.touches() || is_flush(instruction))
            .map(|operand| Touched {
                operand: *operand,
                reach: reach(instruction, operand),
            })
            .collect();
        let implied = stack(instruction).or_else(|| destination(instruction));
        touched.extend(implied.map(|operand| Touched {
            operand,
            reach: Reach::Whole(u32::from(operand.size)),
        }));
        (!touched.is_empty()).then(|| Candidate {
            ip: instruction.ip(),
            view,
            step,
            run: Box::default(),
            touched: touched.into(),
        })
    }
}

/// Flushes of a line trap like a load of the named byte (AMD family 1Ah, measured); prefetches never do.
fn is_flush(instruction: &Instruction) -> bool {
    matches!(
        instruction.mnemonic(),
        Mnemonic::Clflush | Mnemonic::Clflushopt | Mnemonic::Clwb
    )
}

/// How far an explicit operand reaches; unlike its size, not cut to a line.
fn reach(instruction: &Instruction, operand: &Operand) -> Reach {
    let bytes = instruction.memory_size().size();
    if bytes == 0 {
        Reach::Within(MAX_XSAVE_BYTES)
    } else if bytes > usize::from(operand.size) && bytes > 64 {
        Reach::Whole(bytes as u32)
    } else if operand.is_masked() {
        Reach::Within(u32::from(operand.size))
    } else {
        // The operand's own size minds broadcasts.
        Reach::Whole(u32::from(operand.size))
    }
}

/// What the instruction does to the stack by itself; addresses from registers before it.
fn stack(instruction: &Instruction) -> Option<Operand> {
    let moved = instruction.stack_pointer_increment();
    match instruction.mnemonic() {
        Mnemonic::Leave => Some(Operand::implied(Gpr::RBP, 0, 8, Op::Load)),
        Mnemonic::Enter => Some(Operand::implied(
            Gpr::RSP,
            8u64.wrapping_neg(),
            8,
            Op::Store,
        )),
        // The rest of what `ret n` moves is not loaded.
        Mnemonic::Ret => Some(Operand::implied(Gpr::RSP, 0, 8, Op::Load)),
        _ if !instruction.is_stack_instruction() => None,
        _ if moved < 0 => {
            let size = moved.unsigned_abs() as u16;
            let below = i64::from(moved) as u64;
            Some(Operand::implied(Gpr::RSP, below, size, Op::Store))
        }
        _ if moved > 0 => Some(Operand::implied(Gpr::RSP, 0, moved as u16, Op::Load)),
        _ => None,
    }
}

/// What is stored to without a memory operand: by `movdir64b` and `enqcmd` to where a plain register
/// points, by `clzero` to the line that rax points into.
fn destination(instruction: &Instruction) -> Option<Operand> {
    match instruction.mnemonic() {
        Mnemonic::Movdir64b | Mnemonic::Enqcmd | Mnemonic::Enqcmds => {
            let base = Gpr::of(instruction.op0_register())?;
            Some(Operand::implied(base, 0, 64, Op::Store))
        }
        Mnemonic::Clzero => Some(Operand::anywhere(64, Op::Store)),
        _ => None,
    }
}
