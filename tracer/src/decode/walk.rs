//! Running register knowledge over a stretch of straight code and collecting its operands.
//!
//! Backwards, an operand whose base was lost to a later overwrite is kept aside; once the stretch's
//! start is reached, a forward pass from there, joined with what was known at each step on the way
//! back, may still tell it.

use super::{
    FunctionCode, Stall, Touch,
    instruction::{Step, Traits},
    operand::{Bases, NoAddress},
    registers::{Gpr, Known},
};
use crate::{access::Basis, event::Unresolved};

/// Instructions looked at in one direction of one stretch; longer straight code is rare and the
/// operands far from the ip tell little about it.
pub(super) const MAX_STRETCH: u32 = 256;
/// Operands kept aside on a way back.
const MAX_PENDING: usize = 32;
/// Overwritten values kept on a way back.
const MAX_OVERWRITTEN: usize = 64;

/// An operand kept aside on a way back: step, operand, basis there, why its address was not known.
type Pending = (u32, u8, Basis, NoAddress);
/// A value a register had after a step, lost on the way back over it.
type Overwritten = (u32, Gpr, u64);

/// A stack of bounded size: a sample must not allocate.
struct Bounded<T, const N: usize> {
    items: [Option<T>; N],
    len: usize,
}

impl<T: Copy, const N: usize> Bounded<T, N> {
    const fn new() -> Self {
        Bounded {
            items: [None; N],
            len: 0,
        }
    }

    /// False when full.
    fn push(&mut self, item: T) -> bool {
        let Some(slot) = self.items.get_mut(self.len) else {
            return false;
        };
        *slot = Some(item);
        self.len += 1;
        true
    }

    /// Takes the top item if it is a wanted one.
    fn pop_if(&mut self, wanted: impl Fn(&T) -> bool) -> Option<T> {
        let top = self.items[..self.len].last().copied().flatten();
        let top = top.filter(wanted)?;
        self.len -= 1;
        Some(top)
    }
}

/// Which operands of a stretch to collect.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Collect {
    All,
    /// Only the one that the CPU waited for.
    Stalled,
}

/// Gathers the touches of one sample.
pub(super) struct Collector<'a> {
    pub(super) code: &'a FunctionCode,
    pub(super) bases: Bases,
    pub(super) out: &'a mut Vec<Touch>,
    pub(super) unknown: u32,
    /// The step that the CPU waited for.
    pub(super) waited: Option<u32>,
    /// The waiting instruction is at the ip, in the middle of its repetitions.
    pub(super) interrupted: bool,
    pub(super) stall: Stall,
    pending: Bounded<Pending, MAX_PENDING>,
    overwritten: Bounded<Overwritten, MAX_OVERWRITTEN>,
}

impl<'a> Collector<'a> {
    pub(super) fn new(code: &'a FunctionCode, bases: Bases, out: &'a mut Vec<Touch>) -> Self {
        Collector {
            code,
            bases,
            out,
            unknown: 0,
            waited: None,
            interrupted: false,
            stall: Stall::Unresolved(Unresolved::NoMemoryOperand),
            pending: Bounded::new(),
            overwritten: Bounded::new(),
        }
    }

    /// Collects `steps[first .. end]` going back from the state after `end - 1`; leaves the state
    /// before `first`. The result is the basis for what lies before.
    pub(super) fn back(
        &mut self,
        first: u32,
        end: u32,
        known: &mut Known,
        mut basis: Basis,
        collect: Collect,
    ) -> Basis {
        self.pending.len = 0;
        self.overwritten.len = 0;
        for number in (first..end).rev() {
            let step = self.code.step(number);
            for register in step.written.intersection(known.known()).iter() {
                if let Some(value) = known.get(register) {
                    self.overwritten.push((number, register, value));
                }
            }
            known.back(step, self.bases.bias);
            basis = beyond(step, basis);
            for operand in self.wanted(number, step, collect) {
                if let Err(reason) = self.touch(number, operand, known, basis)
                    && !self.pending.push((number, operand, basis, reason))
                {
                    self.miss(number, operand, reason);
                }
            }
            let done = Some(number) == self.waited && self.stall == Stall::Attributed;
            if collect == Collect::Stalled && done {
                return basis;
            }
        }
        if self.pending.len == 0 {
            return basis;
        }
        let mut ahead = known.clone();
        for number in first..end {
            if self.pending.len == 0 {
                break;
            }
            let at = |item: &Pending| item.0 == number;
            while let Some((_, operand, basis, reason)) = self.pending.pop_if(at) {
                if self.touch(number, operand, &ahead, basis).is_err() {
                    self.miss(number, operand, reason);
                }
            }
            ahead.forward(self.code.step(number), self.bases.bias);
            let at = |item: &Overwritten| item.0 == number;
            while let Some((_, register, value)) = self.overwritten.pop_if(at) {
                ahead.set(register, value);
            }
        }
        basis
    }

    /// Collects `steps[first .. end]` from the state before `first`; leaves the state after the last.
    /// The result is the basis for what lies after.
    pub(super) fn forward(
        &mut self,
        first: u32,
        end: u32,
        known: &mut Known,
        mut basis: Basis,
    ) -> Basis {
        for number in first..end {
            let step = self.code.step(number);
            for operand in self.wanted(number, step, Collect::All) {
                if let Err(reason) = self.touch(number, operand, known, basis) {
                    self.miss(number, operand, reason);
                }
            }
            known.forward(step, self.bases.bias);
            basis = beyond(step, basis);
        }
        basis
    }

    /// The operands to collect: none of the waiting instruction once it has its touch.
    fn wanted(&self, number: u32, step: &Step, collect: Collect) -> std::ops::Range<u8> {
        let waited = Some(number) == self.waited;
        match collect {
            Collect::All if waited && self.stall == Stall::Attributed => 0..0,
            Collect::All => 0..step.operand_count,
            Collect::Stalled if waited => 0..step.operand_count,
            Collect::Stalled => 0..0,
        }
    }

    /// Emits one operand if its address is known here. Of a repeated string instruction that is one
    /// element: the next one, or for the one waited for the last.
    fn touch(
        &mut self,
        number: u32,
        operand: u8,
        known: &Known,
        basis: Basis,
    ) -> Result<(), NoAddress> {
        let step = self.code.step(number);
        let position = step.first_operand as usize + usize::from(operand);
        let described = &self.code.operands[position];
        let mut addr = described.address(known, &self.bases)?;
        let waited = Some(number) == self.waited && step.waits_for == Some(operand);
        if step.traits.has(Traits::REPEATS) {
            match known.get(Gpr::RCX).ok_or(NoAddress::Register)? {
                0 => return Ok(()),
                elements if waited && !self.interrupted => {
                    // It has run to its end, so the last element was the one waited for.
                    let last = step.effect.last_of(elements).ok_or(NoAddress::Register)?;
                    addr = addr.wrapping_add(last);
                }
                _ => {}
            }
        }
        if waited {
            self.stall = Stall::Attributed;
        }
        let svma = self.code.start.wrapping_add(u64::from(step.offset));
        self.out.push(Touch {
            ip: svma.wrapping_add(self.bases.bias),
            addr,
            size: described.size,
            op: described.op,
            locked: described.locked,
            basis: if waited { Basis::Stalled } else { basis },
        });
        Ok(())
    }

    /// Counts an operand whose address is not known.
    fn miss(&mut self, number: u32, operand: u8, reason: NoAddress) {
        self.unknown += 1;
        let step = self.code.step(number);
        if Some(number) == self.waited && step.waits_for == Some(operand) {
            self.stall = Stall::Unresolved(match reason {
                NoAddress::Register => Unresolved::RegisterOverwritten,
                NoAddress::Segment => Unresolved::SegmentUnknown,
            });
        }
    }
}

/// Past a call or system call the time is not bounded: what lies there is no longer certain to be
/// about now.
fn beyond(step: &Step, basis: Basis) -> Basis {
    if step.traits.has(Traits::LEAVES) {
        Basis::Harvested
    } else {
        basis
    }
}
