//! Whose access gets a sample's cost. Code tells which accesses may have been waited for; who else uses their lines
//! decides between them. Decided here, before the stream splits, so that a report of a session is that of the run.

use super::{
    last_places::{Code, LastPlaces},
    line_users::LineUsers,
};
use crate::{
    access::{Basis, Cpu, LineKey, LineSize, Op, Place, Tid, Wait},
    decode::{Harvest, SpinLoop, Touch},
};

/// Granule by which accesses are held together here; that of the report may be larger.
const LINE: LineSize = LineSize::B64;

/// A sample's touch, with the line that it begins on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Placed {
    pub(super) touch: Touch,
    line: LineKey,
    /// Its bytes on that line, bit n for byte n.
    bytes: u64,
}

impl Placed {
    pub(super) fn new(touch: Touch, place: Place) -> Placed {
        let offset = place.offset_in_line(LINE);
        let size = u32::from(touch.size.clamp(1, 64));
        Placed {
            touch,
            line: place.line(LINE),
            bytes: (u64::MAX >> (64 - size)) << offset,
        }
    }

    fn stored(&self) -> u64 {
        if self.touch.op.stores() {
            self.bytes
        } else {
            0
        }
    }

    /// Whether both are one instruction's access to one place.
    pub(super) fn is_same(&self, other: &Placed) -> bool {
        (self.touch.ip, self.touch.addr, self.line)
            == (other.touch.ip, other.touch.addr, other.line)
    }

    fn is_stalled(&self) -> bool {
        self.touch.basis == Basis::Stalled
    }
}

/// An access that was waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    /// Its place in the sample.
    pub(super) touch: usize,
    pub(super) wait: Wait,
    /// As in [`Access::instead`](crate::access::Access::instead).
    pub(super) instead: u8,
}

/// Who made a sample, and when.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sampled {
    pub(super) time_ns: u64,
    pub(super) tid: Tid,
    pub(super) cpu: Cpu,
}

/// Decides, sample by sample, from what samples before showed.
#[derive(Debug, Default)]
pub(super) struct Waits {
    users: LineUsers,
    places: LastPlaces,
}

impl Waits {
    /// Puts into `owners` the accesses of a sample that its cost belongs to, in equal parts; none where nobody is known.
    /// An access that the sample itself does not tell is added to it.
    pub(super) fn owners(
        &mut self,
        harvest: &Harvest,
        sample: &mut Vec<Placed>,
        by: Sampled,
        owners: &mut Vec<Owner>,
    ) {
        owners.clear();
        for placed in sample.iter().filter(|placed| placed.touch.op.touches()) {
            (self.users).note(placed.line, by.tid, by.cpu, placed.stored());
            let code = Code::Instruction(placed.touch.ip);
            self.places.note(code, by.tid, by.time_ns, *placed);
        }
        if let Some(spin) = harvest.spin {
            self.in_loop(spin, sample, by, owners);
            return;
        }
        if harvest.wait == Wait::AtBarrier {
            self.at_barrier(sample, by.tid, owners);
        }
        if !owners.is_empty() {
            return;
        }
        let stalled = sample.iter().position(Placed::is_stalled);
        if let Some(touch) = stalled.or_else(|| self.lost(harvest, sample, by)) {
            owners.push(Owner {
                touch,
                wait: Wait::AtInstruction,
                instead: self.instead(sample, touch),
            });
        }
    }

    /// The access that the sample waited for, where only its instruction is known: added to the sample if that accessed
    /// the same place in the samples before.
    fn lost(&mut self, harvest: &Harvest, sample: &mut Vec<Placed>, by: Sampled) -> Option<usize> {
        let code = Code::Instruction(harvest.lost?);
        self.places.want(code, by.tid);
        let placed = self.places.lately(code, by.tid, by.time_ns)?;
        Some(find_or_add(sample, placed))
    }

    /// The loop's word that another thread stores; else one that this thread stores, or that others use; else the one
    /// tested last. Where the sample does not tell all words, the one that the thread waited for there in the samples
    /// before, or none.
    fn in_loop(
        &mut self,
        spin: SpinLoop,
        sample: &mut Vec<Placed>,
        by: Sampled,
        owners: &mut Vec<Owner>,
    ) {
        let stored = |placed: &Placed| {
            let others = self.users.stored_by_others(placed.line, by.tid);
            let overlap = others & placed.bytes != 0;
            let own = self.users.is_stored(placed.line);
            (overlap, others != 0, own, self.users.several(placed.line))
        };
        let best = suspects(sample)
            .max_by_key(|(_, placed)| (stored(placed), std::cmp::Reverse(placed.touch.suspect)));
        let code = Code::Loop(spin.ip);
        let touch = match best {
            Some((touch, word)) if stored(word).0 => {
                self.places.want(code, by.tid);
                self.places.note(code, by.tid, by.time_ns, *word);
                touch
            }
            Some((touch, _)) if !spin.incomplete => touch,
            _ => {
                let Some(word) = self.places.lately(code, by.tid, by.time_ns) else {
                    return;
                };
                find_or_add(sample, word)
            }
        };
        let line = sample[touch].line;
        let mut others = suspects(sample).filter(|(_, placed)| placed.line != line);
        let other = others.next().filter(|_| !self.users.is_stored(line));
        owners.push(Owner {
            touch,
            wait: Wait::InSpinLoop,
            instead: other.map_or(0, |(touch, _)| number(touch)),
        });
    }

    /// An access behind the barrier whose line others store to waits for that, and a barrier whose own operand others
    /// use, for that. Otherwise the barrier waits for the stores before it, if others use their lines.
    fn at_barrier(&self, sample: &[Placed], tid: Tid, owners: &mut Vec<Owner>) {
        let stalled = sample.iter().position(Placed::is_stalled);
        let behind = stalled.filter(|touch| {
            let placed = &sample[*touch];
            !placed.touch.locked && self.users.stored_by_others(placed.line, tid) != 0
        });
        let operand = || {
            let locked = |placed: &Placed| placed.touch.locked;
            let own = stalled.filter(|touch| locked(&sample[*touch]));
            let mut suspects = suspects(sample);
            own.or_else(|| {
                suspects
                    .find(|(_, placed)| locked(placed))
                    .map(|(touch, _)| touch)
            })
        };
        let shared = |touch: &usize| self.users.several(sample[*touch].line);
        if let Some(touch) = behind.or_else(|| operand().filter(shared)) {
            owners.push(Owner {
                touch,
                wait: Wait::AtInstruction,
                instead: 0,
            });
            return;
        }
        let mut stores: Vec<(u8, usize)> = suspects(sample)
            .filter(|(_, placed)| placed.touch.op.stores() && !placed.touch.locked)
            .filter(|(touch, _)| shared(touch))
            .map(|(touch, placed)| (placed.touch.suspect, touch))
            .collect();
        stores.sort_unstable();
        for (_, touch) in stores {
            let line = sample[touch].line;
            if owners.iter().all(|owner| sample[owner.touch].line != line) {
                owners.push(Owner {
                    touch,
                    wait: Wait::AtBarrier,
                    instead: 0,
                });
            }
        }
    }

    /// What a load waited for if nobody stores to its line: of the accesses before it to other lines that others use,
    /// the nearest, but rather one to a line that is stored to, and one that reads. An access to memory that this thread
    /// has for itself waits for nobody either. Only asked of lines that several threads use and none was seen to store
    /// to.
    fn instead(&self, sample: &[Placed], stalled: usize) -> u8 {
        let load = &sample[stalled];
        let doubtful = load.touch.op == Op::Load
            && self.users.several(load.line)
            && !self.users.is_stored(load.line);
        if !doubtful {
            return 0;
        }
        let worth = |placed: &Placed| {
            let reads = matches!(placed.touch.op, Op::Load | Op::Rmw);
            (self.users.is_stored(placed.line), reads)
        };
        let best = suspects(sample)
            .filter(|(_, placed)| placed.line != load.line && self.users.several(placed.line))
            .max_by_key(|(_, placed)| (worth(placed), std::cmp::Reverse(placed.touch.suspect)));
        best.map_or(0, |(touch, _)| number(touch))
    }
}

fn find_or_add(sample: &mut Vec<Placed>, placed: Placed) -> usize {
    let known = sample.iter().position(|other| other.is_same(&placed));
    known.unwrap_or_else(|| {
        sample.push(placed);
        sample.len() - 1
    })
}

/// A place in the sample as [`Owner::instead`] has it.
fn number(touch: usize) -> u8 {
    u8::try_from(touch + 1).unwrap_or(0)
}

fn suspects(sample: &[Placed]) -> impl Iterator<Item = (usize, &Placed)> {
    let numbered = sample.iter().enumerate();
    numbered.filter(|(_, placed)| placed.touch.suspect > 0)
}

#[cfg(test)]
mod tests;
