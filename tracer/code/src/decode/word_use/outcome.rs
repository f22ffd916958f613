//! What becomes of a value that an instruction read: looks ahead along all ways until something looks at it.

use std::collections::HashSet;

use iced_x86::{
    ConditionCode, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind,
    Register, RflagsBits,
};

use super::{
    Outcome,
    code::{FunctionText, Next, arguments},
    values::{Expr, Values},
};
use crate::decode::registers::{Gpr, RegisterSet};

/// Instructions looked at for one question.
const MOST_STEPS: usize = 256;

/// The flags that results of additions and comparisons are in.
const STATUS: u32 = RflagsBits::ZF | RflagsBits::CF | RflagsBits::SF | RflagsBits::OF;

/// What becomes of what the instruction left in a register.
pub(super) fn of_register(
    code: &FunctionText,
    values: &Values<'_>,
    at: usize,
    register: Register,
) -> Outcome {
    let Some(gpr) = Gpr::of(register) else {
        return Outcome::Unknown;
    };
    let holding = RegisterSet::NONE.with(gpr);
    let mut seen: HashSet<(usize, RegisterSet)> = HashSet::new();
    let mut waiting = vec![(at, holding)];
    let mut outcome = Outcome::Unused;
    while let Some((at, holding)) = waiting.pop() {
        let to = match code.next(at) {
            Next::To(to) => to,
            Next::Returns if holding.contains(Gpr::RAX) => {
                outcome = outcome.or(Outcome::Unknown);
                continue;
            }
            Next::Away if holding.intersection(arguments()) != RegisterSet::NONE => {
                outcome = outcome.or(Outcome::Unknown);
                continue;
            }
            Next::Returns | Next::Away | Next::Nowhere => continue,
        };
        for next in to {
            if !seen.insert((next, holding)) {
                continue;
            }
            if seen.len() > MOST_STEPS {
                return outcome.or(Outcome::Unknown);
            }
            match step(code, values, next, holding) {
                Step::Looks(found) => outcome = outcome.or(found),
                Step::Holds(RegisterSet::NONE) => {}
                Step::Holds(holding) => waiting.push((next, holding)),
            }
        }
    }
    outcome
}

/// What one instruction does with the registers that hold the value.
enum Step {
    Looks(Outcome),
    Holds(RegisterSet),
}

fn step(code: &FunctionText, values: &Values<'_>, at: usize, holding: RegisterSet) -> Step {
    let instruction = code.instruction(at);
    let held = |operand: u32| {
        instruction.op_kind(operand) == OpKind::Register
            && Gpr::of(instruction.op_register(operand)).is_some_and(|gpr| holding.contains(gpr))
    };
    let left = holding.minus(code.written(at));
    match instruction.mnemonic() {
        Mnemonic::Cmp if held(0) || held(1) => {
            let other = u32::from(held(0));
            let with = values.operand(instruction, other, at);
            Step::Looks(of_comparison(code, at, &with, values))
        }
        Mnemonic::Test if held(0) => match of_flags(code, at) {
            Outcome::Unused => Step::Holds(left),
            found => Step::Looks(found),
        },
        // A copy holds it too.
        Mnemonic::Mov | Mnemonic::Movzx | Mnemonic::Movsx | Mnemonic::Movsxd
            if held(1) && instruction.op0_kind() == OpKind::Register =>
        {
            let copied = Gpr::of(instruction.op0_register()).map(|gpr| left.with(gpr));
            Step::Holds(copied.unwrap_or(left))
        }
        // So does what is a constant away from it, if its flags are not looked at first.
        Mnemonic::Add | Mnemonic::Sub | Mnemonic::Inc | Mnemonic::Dec
            if held(0) && instruction.op1_kind() != OpKind::Register =>
        {
            match of_flags(code, at) {
                Outcome::Unused => Step::Holds(holding),
                found => Step::Looks(found),
            }
        }
        Mnemonic::Xor | Mnemonic::Sub
            if instruction.op1_kind() == OpKind::Register
                && instruction.op0_register() == instruction.op1_register() =>
        {
            Step::Holds(left)
        }
        Mnemonic::Call => {
            if holding.intersection(arguments()) == RegisterSet::NONE {
                Step::Holds(left)
            } else {
                Step::Looks(Outcome::Unknown)
            }
        }
        _ if reads(instruction, holding) => Step::Looks(Outcome::Used),
        _ => Step::Holds(left),
    }
}

/// Whether an instruction reads one of the registers.
fn reads(instruction: &Instruction, registers: RegisterSet) -> bool {
    // `ret` names what it gives back nowhere; that is for the caller of this to see.
    if instruction.flow_control() == FlowControl::Return {
        return false;
    }
    let mut factory = InstructionInfoFactory::new();
    let info = factory.info(instruction);
    info.used_registers().iter().any(|used| {
        let reads = !matches!(
            used.access(),
            OpAccess::Write | OpAccess::CondWrite | OpAccess::None
        );
        reads && Gpr::of(used.register()).is_some_and(|gpr| registers.contains(gpr))
    })
}

/// What a comparison of the value with another tells, by the condition that looks at it.
pub(super) fn of_comparison(
    code: &FunctionText,
    at: usize,
    with: &Expr,
    values: &Values<'_>,
) -> Outcome {
    let found = of_flags(code, at);
    match with {
        _ if found != Outcome::Tested => found,
        Expr::Constant(_) => Outcome::Tested,
        _ if values.is_word(with) => Outcome::Again,
        Expr::Load(_) => Outcome::Turn,
        _ => Outcome::Used,
    }
}

/// What becomes of the flags that an instruction left: looked at for equality, in another way, or not.
pub(super) fn of_flags(code: &FunctionText, at: usize) -> Outcome {
    let mut seen: HashSet<usize> = HashSet::new();
    let mut waiting = vec![at];
    let mut outcome = Outcome::Unused;
    while let Some(at) = waiting.pop() {
        // Calls and returns keep no flags for anyone.
        let Next::To(to) = code.next(at) else {
            continue;
        };
        for next in to {
            if !seen.insert(next) {
                continue;
            }
            if seen.len() > MOST_STEPS {
                return outcome.or(Outcome::Unknown);
            }
            let instruction = code.instruction(next);
            let read = instruction.rflags_read() & STATUS;
            if read != 0 {
                let equality = matches!(
                    instruction.condition_code(),
                    ConditionCode::e | ConditionCode::ne
                );
                let found = if equality {
                    Outcome::Tested
                } else {
                    Outcome::Used
                };
                outcome = outcome.or(found);
            }
            let gone = instruction.rflags_modified() & RflagsBits::ZF != 0
                || instruction.mnemonic() == Mnemonic::Call;
            // `sete` and a later `jg` may look at one and the same comparison; behind a jump it has been decided.
            if !gone && (read == 0 || instruction.flow_control() == FlowControl::Next) {
                waiting.push(next);
            }
        }
    }
    outcome
}
