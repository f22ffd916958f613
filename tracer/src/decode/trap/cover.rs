//! Whether a candidate's operands touch the watched words, and the best of several candidates.

use iced_x86::Register;

use super::{
    super::{
        Registers,
        operand::{Bases, NoAddress},
        registers::{Gpr, Known},
    },
    Trapped,
    candidate::{Candidate, Reach, Touched, View},
};
use crate::event::WatchedWord;

/// How far behind its pointers a repeated string instruction may have touched a word when the trap comes,
/// bytes. AMD family 1Ah traps after the very repetition; P6 reports one repetition late (Intel SDM volume 3,
/// "Data Memory and I/O Breakpoint Exception Conditions"), and fast strings move whole groups at once,
/// never over a page's end.
const MAX_BEHIND: u64 = 4096;
/// Larger operands are cut to the part on the word's block of this many bytes.
const BLOCK: u64 = 64;

/// What is seen at a trap: registers after the access, and the words that were touched.
pub(super) struct Sight<'a> {
    known: Known,
    fs: Option<u64>,
    gs: Option<u64>,
    words: &'a [WatchedWord],
}

/// How well a candidate explains the hits; better is greater.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    #[default]
    Nothing,
    /// It may touch a word.
    Possible,
    /// It surely touches a word.
    Exact,
    /// It surely touches all of them.
    Complete,
}

/// The best candidate so far; the first of equals.
#[derive(Debug, Default)]
pub(super) struct Best {
    rank: Rank,
    accesses: Vec<Trapped>,
    /// Of the candidate that is being judged.
    judged: Vec<Trapped>,
}

impl<'a> Sight<'a> {
    pub(super) fn new(registers: &Registers, words: &'a [WatchedWord], kernel: bool) -> Sight<'a> {
        Sight {
            known: Known::all(registers.gpr),
            fs: registers.fs_base,
            // In kernel mode, what is sampled is the base of user mode.
            gs: registers.gs_base.filter(|_| !kernel),
            words,
        }
    }

    /// The value of a whole 64-bit register.
    pub(super) fn register(&self, register: Register) -> Option<u64> {
        let gpr = Gpr::of(register).filter(|_| register.is_gpr64())?;
        self.known.get(gpr)
    }
}

impl Best {
    pub(super) fn clear(&mut self) {
        self.rank = Rank::Nothing;
        self.accesses.clear();
    }

    pub(super) fn rank(&self) -> Rank {
        self.rank
    }

    pub(super) fn accesses(&self) -> &[Trapped] {
        &self.accesses
    }

    /// Judges candidates whose addresses are `bias` lower than at run time.
    pub(super) fn judge<'c>(
        &mut self,
        candidates: impl IntoIterator<Item = &'c Candidate>,
        sight: &Sight<'_>,
        bias: u64,
    ) {
        for candidate in candidates {
            if self.rank == Rank::Complete {
                return;
            }
            self.judged.clear();
            let rank = candidate.cover(sight, bias, &mut self.judged);
            if rank > self.rank {
                self.rank = rank;
                std::mem::swap(&mut self.accesses, &mut self.judged);
            }
        }
    }
}

impl Candidate {
    /// Appends the operands that touch a watched word, or that may and explain one that no other does.
    pub(super) fn cover(&self, sight: &Sight<'_>, bias: u64, out: &mut Vec<Trapped>) -> Rank {
        let bases = Bases {
            bias,
            fs: sight.fs,
            gs: sight.gs,
        };
        let mut known = sight.known.clone();
        match self.view {
            View::After => known.back(&self.step, bias),
            View::Called(_) => {
                let sp = known.get(Gpr::RSP).map(|sp| sp.wrapping_add(8));
                known.put(Gpr::RSP, sp);
            }
            View::Repetition | View::Returned => {}
        }
        let mut rank = Rank::Nothing;
        let mut unknown = 0;
        for (number, touched) in self.touched.iter().enumerate() {
            match self.place(touched, touched.operand.start(&known, &bases), sight.words) {
                Fit::Sure { addr, size } => {
                    rank = rank.max(Rank::Exact);
                    // That a `ret` loaded it is sure, but not which.
                    let exact = self.view != View::Returned;
                    out.push(self.trapped(touched, addr, size, exact, bias));
                }
                Fit::Possible => unknown |= 1u32 << (number & 31),
                Fit::No => {}
            }
        }
        let is_left = |out: &[Trapped], word: &&WatchedWord| {
            let touches = |t: &Trapped| overlap(t.addr, u64::from(t.size), word);
            !out.iter().any(touches)
        };
        for (number, touched) in self.touched.iter().enumerate() {
            if unknown >> (number & 31) & 1 == 0 {
                continue;
            }
            let left = sight.words.iter().filter(|word| is_left(out, word));
            let Some(word) = left.min_by_key(|word| word.addr) else {
                break;
            };
            rank = rank.max(Rank::Possible);
            let size = touched.operand.size.min(u16::from(word.len));
            out.push(self.trapped(touched, word.addr, size, false, bias));
        }
        let explained = !sight.words.iter().any(|word| is_left(out, &word));
        match rank {
            Rank::Exact if self.view == View::Returned => Rank::Possible,
            Rank::Exact if explained && unknown == 0 => Rank::Complete,
            rank => rank,
        }
    }

    fn trapped(&self, touched: &Touched, addr: u64, size: u16, exact: bool, bias: u64) -> Trapped {
        Trapped {
            ip: self.ip.wrapping_add(bias),
            addr,
            size,
            op: touched.operand.op,
            locked: touched.operand.locked,
            exact,
        }
    }

    /// How an operand relates to the watched words, given its address or why there is none.
    fn place(
        &self,
        touched: &Touched,
        start: Result<u64, NoAddress>,
        words: &[WatchedWord],
    ) -> Fit {
        let Ok(start) = start else {
            return Fit::Possible;
        };
        if self.view == View::Repetition {
            return behind(start, u64::from(touched.operand.size), words);
        }
        match touched.reach {
            Reach::Whole(bytes) => {
                let bytes = u64::from(bytes);
                match words.iter().find(|word| overlap(start, bytes, word)) {
                    Some(word) => part(start, bytes, word),
                    None => Fit::No,
                }
            }
            Reach::Within(bytes) => {
                let bytes = u64::from(bytes);
                let any = words.iter().any(|word| overlap(start, bytes, word));
                if any { Fit::Possible } else { Fit::No }
            }
        }
    }
}

/// What an operand has to do with the watched words.
enum Fit {
    Sure { addr: u64, size: u16 },
    Possible,
    No,
}

/// Whether `bytes` from `addr` on touch the word, also across the end of the address space.
pub(super) fn overlap(addr: u64, bytes: u64, word: &WatchedWord) -> bool {
    word.addr.wrapping_sub(addr) < bytes || addr.wrapping_sub(word.addr) < u64::from(word.len)
}

/// The operand, or if it is larger than a block the part of it on the word's block.
fn part(start: u64, bytes: u64, word: &WatchedWord) -> Fit {
    if bytes <= BLOCK {
        return Fit::Sure {
            addr: start,
            size: bytes as u16,
        };
    }
    let common = if word.addr.wrapping_sub(start) < bytes {
        word.addr
    } else {
        start
    };
    let block = common & !(BLOCK - 1);
    // Offsets from the start, so that nothing wraps.
    let first = common
        .wrapping_sub(start)
        .saturating_sub(common.wrapping_sub(block));
    let end = common
        .wrapping_sub(start)
        .wrapping_add(BLOCK - common.wrapping_sub(block))
        .min(bytes);
    Fit::Sure {
        addr: start.wrapping_add(first),
        size: end.wrapping_sub(first) as u16,
    }
}

/// A repeated string instruction touched what lies behind its pointer (direction flag clear, as ABIs
/// have it): surely the last element, perhaps more.
fn behind(pointer: u64, element: u64, words: &[WatchedWord]) -> Fit {
    let last = pointer.wrapping_sub(element);
    if words.iter().any(|word| overlap(last, element, word)) {
        return Fit::Sure {
            addr: last,
            size: element as u16,
        };
    }
    let start = pointer.wrapping_sub(MAX_BEHIND);
    let any = words.iter().any(|word| overlap(start, MAX_BEHIND, word));
    if any { Fit::Possible } else { Fit::No }
}
