//! One decoded instruction, reduced to what a harvest needs: its operands, what it does to registers,
//! where control goes next.

use iced_x86::{
    FlowControl, Instruction, InstructionInfo, InstructionInfoFactory, Mnemonic, OpAccess, OpKind,
};

use super::{
    effect::Effect,
    operand::{Operand, operands},
    registers::{Gpr, RegisterSet},
    semantics::effect,
};
use crate::access::Op;

/// A reduced instruction. Its operands are `operands[first_operand..][..operand_count]` of the
/// function.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    /// Bytes from the function's start.
    pub(super) offset: u32,
    pub(super) block: u32,
    pub(super) first_operand: u32,
    pub(super) operand_count: u8,
    /// The operand the CPU waits for, counted from `first_operand`.
    pub(super) waits_for: Option<u8>,
    pub(super) traits: Traits,
    /// Every general register it changes.
    pub(super) written: RegisterSet,
    /// Those of them whose new value `effect` does not tell.
    pub(super) clobbered: RegisterSet,
    pub(super) effect: Effect,
}

/// Yes-or-no facts of an instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Traits(u8);

impl Traits {
    /// A call: what retires before the instruction after it is the callee's `ret`.
    pub(super) const CALL: Traits = Traits(1 << 0);
    /// A call or system call: the time until the next instruction has no bound.
    pub(super) const LEAVES: Traits = Traits(1 << 1);
    /// A string instruction with a repeat prefix: interruptible in the middle.
    pub(super) const REPEATS: Traits = Traits(1 << 2);
    /// `sti`: interrupts stay off for one more instruction, and whatever was pending lands after that
    /// one, whether or not it was slow (Intel SDM volume 2, STI).
    pub(super) const SHADOWS: Traits = Traits(1 << 3);
    /// A full barrier; see [`is_full_barrier`].
    pub(super) const FENCES: Traits = Traits(1 << 4);
    /// It holds the CPU for a while, for another thread's sake; see [`pauses`].
    pub(super) const PAUSES: Traits = Traits(1 << 5);

    pub(super) fn has(self, other: Traits) -> bool {
        self.0 & other.0 != 0
    }

    fn and(self, other: Traits, condition: bool) -> Traits {
        if condition {
            Traits(self.0 | other.0)
        } else {
            self
        }
    }
}

/// Turns instructions into [`Step`]s; keeps the decoder's scratch memory.
pub(super) struct Reducer {
    factory: InstructionInfoFactory,
    /// What a call changes, by the code's convention.
    changed_by_calls: RegisterSet,
}

impl Reducer {
    pub(super) fn new(changed_by_calls: RegisterSet) -> Reducer {
        Reducer {
            factory: InstructionInfoFactory::new(),
            changed_by_calls,
        }
    }

    /// The step of `instruction`, which begins `offset` bytes into the function; appends its operands.
    pub(super) fn step(
        &mut self,
        instruction: &Instruction,
        offset: u32,
        out: &mut Vec<Operand>,
    ) -> Step {
        let info = self.factory.info(instruction);
        let first_operand = out.len();
        operands(instruction, info, out);
        let call = is_call(instruction);
        let written = if call {
            self.changed_by_calls
        } else {
            written(instruction, info)
        };
        let effect = effect(instruction);
        let system_call = instruction.mnemonic() == Mnemonic::Syscall;
        let repeats = instruction.is_string_instruction()
            && (instruction.has_rep_prefix() || instruction.has_repne_prefix());
        Step {
            offset,
            block: 0,
            first_operand: first_operand as u32,
            operand_count: (out.len() - first_operand) as u8,
            waits_for: if call {
                None
            } else {
                waits_for(&out[first_operand..])
            },
            traits: Traits::default()
                .and(Traits::CALL, call)
                .and(Traits::LEAVES, call || system_call)
                .and(Traits::REPEATS, repeats)
                .and(Traits::SHADOWS, instruction.mnemonic() == Mnemonic::Sti)
                .and(Traits::FENCES, is_full_barrier(instruction))
                .and(Traits::PAUSES, pauses(instruction)),
            written,
            clobbered: written.minus(effect.accounts_for()),
            effect,
        }
    }
}

/// The operand that holds an instruction back: a load if it has one, since a store retires into the
/// store buffer without its line; never a hint.
fn waits_for(operands: &[Operand]) -> Option<u8> {
    let position = |wanted: fn(Op) -> bool| operands.iter().position(|operand| wanted(operand.op));
    position(|op| matches!(op, Op::Load | Op::Rmw))
        .or_else(|| position(Op::stores))
        .map(|number| number as u8)
}

/// Whether the stores before it are visible to all before anything after it runs: `mfence`, and what locks the bus, as
/// `xchg` with memory does by itself (Intel SDM volume 3, "Store Buffer" and "Effects of a LOCK Operation on Internal Processor Caches"; AMD
/// APM volume 2, "Memory-Ordering Rules"). The CPU waits there
/// for the lines of these stores. Other instructions that wait for them are none of it: in a guest `cpuid` and `wrmsr`
/// leave for the hypervisor, which takes longer, and `sfence` retires as a store does.
pub(super) fn is_full_barrier(instruction: &Instruction) -> bool {
    let memory = || instruction.op_kinds().any(|kind| kind == OpKind::Memory);
    match instruction.mnemonic() {
        Mnemonic::Mfence | Mnemonic::Serialize => true,
        Mnemonic::Xchg => memory(),
        _ => instruction.has_lock_prefix() && memory(),
    }
}

/// Instructions for loops that wait: they hold a CPU for a while, or until a line was stored to.
pub(super) fn pauses(instruction: &Instruction) -> bool {
    matches!(
        instruction.mnemonic(),
        Mnemonic::Pause
            | Mnemonic::Monitor
            | Mnemonic::Monitorx
            | Mnemonic::Umonitor
            | Mnemonic::Mwait
            | Mnemonic::Mwaitx
            | Mnemonic::Umwait
            | Mnemonic::Tpause
    )
}

/// A call of any form, but not a system call, which the decoder crate counts among calls too.
pub(super) fn is_call(instruction: &Instruction) -> bool {
    instruction.mnemonic() == Mnemonic::Call
}

/// The general registers that an instruction changes, wholly, in part, or perhaps.
pub(super) fn written(instruction: &Instruction, info: &InstructionInfo) -> RegisterSet {
    // Bytes that are no instruction may be a newer one that this decoder does not know.
    if instruction.is_invalid() {
        return RegisterSet::ALL;
    }
    let changed = info
        .used_registers()
        .iter()
        .filter(|used| !matches!(used.access(), OpAccess::Read | OpAccess::CondRead))
        .filter_map(|used| Gpr::of(used.register()))
        .fold(RegisterSet::NONE, RegisterSet::with);
    match instruction.mnemonic() {
        Mnemonic::Syscall => changed.union(RegisterSet::SYSCALL),
        _ => changed,
    }
}

/// Where control goes after an instruction, targets as file addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transfer {
    Next,
    Jump(u64),
    Branch(u64),
    Stop,
}

/// Where control goes after `instruction`.
pub(super) fn transfer(instruction: &Instruction) -> Transfer {
    match instruction.flow_control() {
        FlowControl::UnconditionalBranch if is_near(instruction) => {
            Transfer::Jump(instruction.near_branch_target())
        }
        FlowControl::ConditionalBranch => Transfer::Branch(instruction.near_branch_target()),
        // `xbegin` goes to its target when the transaction aborts.
        FlowControl::XbeginXabortXend if is_near(instruction) => {
            Transfer::Branch(instruction.near_branch_target())
        }
        FlowControl::Next
        | FlowControl::Call
        | FlowControl::IndirectCall
        | FlowControl::XbeginXabortXend => Transfer::Next,
        // `int3` is padding; the other software interrupts come back.
        FlowControl::Interrupt if instruction.mnemonic() != Mnemonic::Int3 => Transfer::Next,
        FlowControl::UnconditionalBranch
        | FlowControl::Interrupt
        | FlowControl::IndirectBranch
        | FlowControl::Return
        | FlowControl::Exception => Transfer::Stop,
    }
}

fn is_near(instruction: &Instruction) -> bool {
    matches!(
        instruction.op0_kind(),
        OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64
    )
}

/// What a call calls, as far as its bytes say: the function, or the slot that holds its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Callee {
    Function(u64),
    Slot(u64),
}

/// The callee of a direct call or of a call through a fixed slot (`call *printf@GOTPCREL(%rip)`).
pub(super) fn callee(instruction: &Instruction) -> Option<Callee> {
    match instruction.flow_control() {
        FlowControl::Call if is_call(instruction) && is_near(instruction) => {
            Some(Callee::Function(instruction.near_branch_target()))
        }
        FlowControl::IndirectCall if instruction.is_ip_rel_memory_operand() => {
            Some(Callee::Slot(instruction.ip_rel_memory_address()))
        }
        _ => None,
    }
}
