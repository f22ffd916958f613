//! Running register knowledge over a stretch of straight code and collecting its operands.
//!
//! Backwards, an operand whose base was lost to a later overwrite is kept aside; once the stretch's
//! start is reached, a forward pass from there, joined with what was known at each step on the way
//! back, may still tell it.

use super::{
    FunctionCode, SpinLoop, Stall, Touch,
    effect::Effect,
    instruction::{Step, Traits},
    operand::{Bases, NoAddress},
    recall::{self, Memory},
    registers::{Gpr, Known},
    suspects::Suspects,
};
use crate::{
    access::{Basis, Wait},
    event::Unresolved,
};

/// Instructions looked at in one direction of one stretch; longer straight code is rare and the
/// operands far from the ip tell little about it.
pub(super) const MAX_STRETCH: u32 = 256;
/// Operands kept aside on a way back.
const MAX_PENDING: usize = 32;
/// Overwritten values kept on a way back.
const MAX_OVERWRITTEN: usize = 64;

/// Loads of unknown address that memory is asked for.
const MAX_LOST: usize = 8;
/// Instructions that retire in one clock cycle at most, about (8 on AMD's Zen, 4 to 12 on Intel's cores since 2015): an
/// access that is so close behind a full barrier, with none in between, has most likely retired together with it.
const RETIRE_WIDTH: u32 = 8;

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
    /// Where the sample's touches begin in `out`.
    pub(super) first_touch: usize,
    pub(super) unknown: u32,
    /// The step that the CPU waited for.
    pub(super) waited: Option<u32>,
    /// The same, when its address could not be told.
    pub(super) waited_lost: Option<u32>,
    /// Loads whose address could not be told.
    lost: Bounded<u32, MAX_LOST>,
    /// The waiting instruction is at the ip, in the middle of its repetitions.
    pub(super) interrupted: bool,
    pub(super) stall: Stall,
    pub(super) wait: Wait,
    pub(super) spin: Option<SpinLoop>,
    /// The full barrier that it waited at.
    pub(super) barrier: Option<u32>,
    /// Another access was met on the way back.
    met: bool,
    pub(super) suspects: Suspects,
    pending: Bounded<Pending, MAX_PENDING>,
    overwritten: Bounded<Overwritten, MAX_OVERWRITTEN>,
}

impl<'a> Collector<'a> {
    pub(super) fn new(code: &'a FunctionCode, bases: Bases, out: &'a mut Vec<Touch>) -> Self {
        Collector {
            code,
            bases,
            first_touch: out.len(),
            out,
            unknown: 0,
            waited: None,
            waited_lost: None,
            lost: Bounded::new(),
            interrupted: false,
            stall: Stall::Unresolved(Unresolved::NoMemoryOperand),
            wait: Wait::AtInstruction,
            spin: None,
            barrier: None,
            met: false,
            suspects: Suspects::new(),
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
            let before = Some(end - number);
            self.pass(number, step, end - number);
            for operand in self.wanted(number, step, collect) {
                if let Err(reason) = self.touch(number, operand, known, basis, before)
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
        if self.pending.len > 0 {
            self.settle(first, end, known);
        }
        if collect == Collect::All {
            self.suspects.walk(end - first);
        }
        basis
    }

    /// Tries the operands kept aside once more, forward from the state before `first`.
    fn settle(&mut self, first: u32, end: u32, known: &Known) {
        let mut ahead = known.clone();
        for number in first..end {
            if self.pending.len == 0 {
                break;
            }
            let at = |item: &Pending| item.0 == number;
            while let Some((_, operand, basis, reason)) = self.pending.pop_if(at) {
                let before = Some(end - number);
                if (self.touch(number, operand, &ahead, basis, before)).is_err() {
                    self.miss(number, operand, reason);
                }
            }
            ahead.forward(self.code.step(number), self.bases.bias);
            let at = |item: &Overwritten| item.0 == number;
            while let Some((_, register, value)) = self.overwritten.pop_if(at) {
                ahead.set(register, value);
            }
        }
    }

    /// Goes back over a stretch whose touches are told already, as those of the loop's next round. The same accesses
    /// were made before the ip, where their addresses are the same.
    pub(super) fn meet(&mut self, first: u32, end: u32, known: &mut Known) {
        for number in (first..end).rev() {
            let step = self.code.step(number);
            known.back(step, self.bases.bias);
            self.pass(number, step, end - number);
            let ip = self.code.run_time(number, &self.bases);
            for operand in 0..step.operand_count {
                let described =
                    &self.code.operands[step.first_operand as usize + usize::from(operand)];
                let Ok(addr) = described.address(known, &self.bases) else {
                    continue;
                };
                let mut told = self.out[self.first_touch..].iter();
                if let Some(touch) = told.position(|touch| touch.ip == ip && touch.addr == addr) {
                    self.suspects.note(end - number, touch);
                }
            }
        }
        self.suspects.walk(end - first);
    }

    /// The CPU waited at this full barrier.
    pub(super) fn stand_at(&mut self, barrier: u32) {
        self.barrier = Some(barrier);
        self.wait = Wait::AtBarrier;
    }

    /// Looks at a step on the way back, `before` instructions before the end of the stretch. What runs before a call is
    /// long done, and what runs before a full barrier was done at the barrier, unless that is what the CPU waited at.
    fn pass(&mut self, number: u32, step: &Step, before: u32) {
        if step.traits.has(Traits::LEAVES) {
            self.suspects.cut(before - 1);
        } else if step.traits.has(Traits::FENCES) && self.barrier != Some(number) {
            let alone = self.barrier.is_none() && self.stall == Stall::Attributed && !self.met;
            if alone && self.suspects.distance(before) <= RETIRE_WIDTH {
                self.stand_at(number);
            } else {
                self.suspects.cut(before);
            }
        }
        self.met |= step.operand_count > 0 && Some(number) != self.waited;
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
                if let Err(reason) = self.touch(number, operand, known, basis, None) {
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
    /// element: the next one, or for the one waited for the last. `before`: instructions to the end of the stretch, on
    /// the way back.
    fn touch(
        &mut self,
        number: u32,
        operand: u8,
        known: &Known,
        basis: Basis,
        before: Option<u32>,
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
        } else if let Some(before) = before {
            self.suspects
                .note(before, self.out.len() - self.first_touch);
        }
        let basis = if waited { Basis::Stalled } else { basis };
        self.push(number, operand, addr, basis);
        Ok(())
    }

    fn push(&mut self, number: u32, operand: u8, addr: u64, basis: Basis) {
        let step = self.code.step(number);
        let described = &self.code.operands[step.first_operand as usize + usize::from(operand)];
        let ip = self.code.run_time(number, &self.bases);
        self.out.push(described.touch(ip, addr, basis));
    }

    /// Tells touches by what is in memory, where the registers do not tell them: of loads in the block that begins with
    /// step `first`, of which those before `end` ran. The registers are those after them.
    pub(super) fn recall(&mut self, first: u32, end: u32, known: &Known, memory: &mut dyn Memory) {
        let mut told = Bounded::<(u32, u64, bool), MAX_LOST>::new();
        let lost: Bounded<u32, MAX_LOST> = std::mem::replace(&mut self.lost, Bounded::new());
        let stretch = first.max(end.saturating_sub(MAX_STRETCH))..end;
        let is_lost = |number: u32| lost.items.contains(&Some(number));
        if stretch.clone().any(is_lost) {
            let mut tell = |number, addr, agrees| {
                if is_lost(number) {
                    told.push((number, addr, agrees));
                }
            };
            recall::addresses(self.code, stretch, known, &self.bases, memory, &mut tell);
        }
        for (number, addr, agrees) in told.items.into_iter().flatten() {
            let ip = self.code.run_time(number, &self.bases);
            if !memory.believes(ip, addr, agrees) {
                continue;
            }
            // As of another round, where other registers told it.
            if self.out[self.first_touch..]
                .iter()
                .any(|touch| touch.ip == ip)
            {
                continue;
            }
            let waited = self.waited_lost == Some(number) && self.stall != Stall::Attributed;
            if waited {
                self.stall = Stall::Attributed;
            }
            self.unknown = self.unknown.saturating_sub(1);
            let basis = if waited {
                Basis::Stalled
            } else {
                Basis::Harvested
            };
            self.push(number, 0, addr, basis);
        }
        self.lost = lost;
    }

    /// Counts an operand whose address is not known.
    fn miss(&mut self, number: u32, operand: u8, reason: NoAddress) {
        self.unknown += 1;
        let step = self.code.step(number);
        if matches!(step.effect, Effect::Load(_)) {
            self.lost.push(number);
        }
        if Some(number) == self.waited && step.waits_for == Some(operand) {
            self.stall = Stall::Unresolved(reason.reason());
            self.waited_lost = Some(number);
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
