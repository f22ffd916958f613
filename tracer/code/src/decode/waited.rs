//! What the CPU may have waited for besides the instruction before the ip.
//!
//! Behind a full barrier it waits for the lines of the stores before it; in a loop that only waits, for the word that it
//! reads; and of instructions that retire in one go, the ip is behind the last. Code alone cannot between them: they are
//! told as suspects.

use super::{
    SpinLoop, Stall,
    flow::{Edge, Way},
    harvest::{Entry, Search},
    instruction::Traits,
    operand::NoAddress,
    registers::Known,
};
use crate::{
    access::{Basis, Op, Wait},
    event::Unresolved,
};

impl Search<'_> {
    /// Notes whether what retired last is a full barrier.
    pub(super) fn stand_behind(&mut self, last: u32) {
        if self.collector.code.step(last).traits.has(Traits::FENCES) {
            self.collector.stand_at(last);
            self.collector.stall = Stall::Unresolved(Unresolved::FullBarrier);
        }
    }

    /// Numbers what may have been waited for instead.
    pub(super) fn suspect(&mut self, at: u32, sampled: &Known) {
        if self.spins(at, sampled) {
            return;
        }
        let code = self.collector.code;
        let barrier = self
            .collector
            .barrier
            .map(|step| code.run_time(step, &self.collector.bases));
        let out = &mut self.collector.out[self.collector.first_touch..];
        let stalled = out.iter().find(|touch| touch.basis == Basis::Stalled);
        let loads = stalled.is_some_and(|touch| touch.op == Op::Load);
        let wait = self.collector.wait;
        self.collector.suspects.rank(out, |touch| {
            let other = touch.basis != Basis::Stalled && touch.op.touches();
            match wait {
                Wait::AtBarrier if touch.locked => other && Some(touch.ip) == barrier,
                Wait::AtBarrier => other && touch.op.stores(),
                Wait::AtInstruction => other && loads,
                Wait::InSpinLoop => false,
            }
        });
    }

    /// Numbers the words of the loop that the sample waits in, if it does.
    fn spins(&mut self, at: u32, sampled: &Known) -> bool {
        let code = self.collector.code;
        let Some(number) = code.facts[self.home as usize].spin else {
            return false;
        };
        if !self.goes_round(number, at, sampled) {
            return false;
        }
        let bases = self.collector.bases;
        let spin = &code.spins[number as usize];
        let mut kept = sampled.clone();
        kept.forget(spin.written);
        let mut rank = 0;
        let mut missing = NoAddress::Register;
        for word in &spin.words {
            let ip = code.run_time(*word, &bases);
            let first_touch = self.collector.first_touch;
            let out = &mut *self.collector.out;
            if !out[first_touch..].iter().any(|touch| touch.ip == ip) {
                let operand = &code.operands[code.step(*word).first_operand as usize];
                match operand.address(&kept, &bases) {
                    Ok(addr) => out.push(operand.touch(ip, addr, Basis::Harvested)),
                    Err(reason) => missing = reason,
                }
            }
            if let Some(touch) = out[first_touch..].iter_mut().find(|touch| touch.ip == ip) {
                rank += 1;
                touch.suspect = rank;
            }
        }
        self.collector.wait = Wait::InSpinLoop;
        self.collector.spin = spin.words.first().map(|word| SpinLoop {
            ip: code.run_time(*word, &bases),
            incomplete: usize::from(rank) < spin.words.len(),
        });
        if rank == 0 && self.collector.stall != Stall::Attributed {
            self.collector.stall = Stall::Unresolved(missing.reason());
        }
        true
    }

    /// Whether the thread is really going round in the loop, since blocks of such a loop may be on a way with work as
    /// well. It is if it has paused since the last test; if a test chose, or will choose by the values at hand, to go
    /// round instead of to work; and if the loop is the only way that it can have come.
    fn goes_round(&self, number: u32, at: u32, sampled: &Known) -> bool {
        let code = self.collector.code;
        let bias = self.collector.bases.bias;
        let home = &code.graph.blocks[self.home as usize];
        let within = |block: u32| code.facts[block as usize].spin == Some(number);
        // Whether a jump from a block of the loop to this one leaves it for work, after which the loop comes again.
        let around = code.nest.innermost[self.home as usize];
        let works = |next: Option<u32>| {
            next.is_some_and(|next| {
                !within(next) && around.is_some_and(|around| code.nest.contains(around, next))
            })
        };
        if (home.first..at).any(|step| code.step(step).traits.has(Traits::PAUSES)) {
            return true;
        }
        let mut ahead = sampled.clone();
        for step in at..home.end {
            ahead.forward(code.step(step), bias);
        }
        let condition = code.facts[self.home as usize].condition;
        if let Some(taken) = condition.and_then(|condition| condition.taken(&ahead)) {
            let (next, other) = if taken {
                (home.jump, home.fall)
            } else {
                (home.fall, home.jump)
            };
            if !next.is_some_and(within) || works(other) {
                return next.is_some_and(within);
            }
        }
        let mut known = sampled.clone();
        let (mut block, mut end) = (self.home, at);
        for _ in &code.spins[number as usize].blocks {
            for step in (code.graph.blocks[block as usize].first..end).rev() {
                known.back(code.step(step), bias);
            }
            let edge = match code.entry(block, &known, bias) {
                Entry::Only(edge) | Entry::Likely(edge) => edge,
                Entry::Several { inside } => {
                    let mut edges = code.fitting(block, &known, bias, inside);
                    // Where the loop's last test reads a word itself, both ways wait for that.
                    let reads = |edge: Edge| code.facts[edge.from as usize].waits_at_end.is_some();
                    return if at == home.first && block == self.home {
                        edges.any(|edge| within(edge.from) && reads(edge))
                    } else {
                        edges.all(|edge| within(edge.from))
                    };
                }
                Entry::Called | Entry::Unseen => return false,
            };
            let from = &code.graph.blocks[edge.from as usize];
            let other = if edge.way == Way::Jumped {
                from.fall
            } else {
                from.jump
            };
            if !within(edge.from) {
                return false;
            }
            if edge.from == self.home || works(other) {
                return true;
            }
            (block, end) = (edge.from, from.end);
        }
        true
    }
}
