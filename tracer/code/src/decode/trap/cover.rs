//! Whether a candidate's operands touch the watched words, and the best of several candidates.

use iced_x86::Register;

use super::{
    super::{
        Registers,
        operand::Bases,
        registers::{Gpr, Known},
        rejoin::rejoin,
    },
    Hit, Trapped,
    candidate::{Candidate, Reach, Touched, View},
    placing::{self, Span},
};
use crate::event::{Unresolved, WatchedWord};

/// How far behind its pointers a repeated string instruction may have touched a word when the trap comes,
/// bytes. AMD family 1Ah traps after the very repetition; P6 reports one repetition late (Intel SDM volume 3,
/// "Data Memory and I/O Breakpoint Exception Conditions"), and fast strings move whole groups at once,
/// never over a page's end.
const MAX_BEHIND: u64 = 4096;
/// Larger operands are cut to the part on the word's block of this many bytes.
const BLOCK: u64 = 64;

/// What is seen at a trap: registers after the access, the words that were touched, and those that were not.
pub(super) struct Sight<'a> {
    known: Known,
    fs: Option<u64>,
    gs: Option<u64>,
    words: &'a [WatchedWord],
    alone: &'a [WatchedWord],
    packed: bool,
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
    /// Of candidates that may explain the hits too.
    rivals: Vec<Trapped>,
}

impl<'a> Sight<'a> {
    pub(super) fn new(registers: &Registers, hit: &Hit<'a>) -> Sight<'a> {
        Sight {
            known: Known::all(registers.gpr),
            fs: registers.fs_base,
            // In kernel mode, what is sampled is the base of user mode.
            gs: registers.gs_base.filter(|_| !hit.kernel),
            words: hit.words,
            alone: hit.alone,
            packed: hit.packed,
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
        self.rivals.clear();
    }

    pub(super) fn rank(&self) -> Rank {
        self.rank
    }

    /// The accesses of the best. Where another candidate may have run as well, they reach over what that one would
    /// have touched; [`Unresolved::AmbiguousPath`] where that is not of one direction.
    pub(super) fn settle(&mut self) -> Result<&[Trapped], Unresolved> {
        for access in &mut self.accesses {
            let mut span = access.span();
            for rival in &self.rivals {
                if !span.meets(&rival.span()) {
                    continue;
                }
                if rival.op != access.op {
                    return Err(Unresolved::AmbiguousPath);
                }
                span = span.or(rival.span());
            }
            access.set_span(span);
        }
        Ok(&self.accesses)
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
            let rank = candidate.cover(sight, bias, &mut self.judged, &mut self.rivals);
            if rank > self.rank {
                self.rank = rank;
                std::mem::swap(&mut self.accesses, &mut self.judged);
            }
            self.rivals.append(&mut self.judged);
        }
    }

    /// Judges candidates of which one alone ran, and nobody knows which: the first is taken, and the others are its
    /// rivals however well it fits.
    pub(super) fn judge_alike<'c>(
        &mut self,
        candidates: impl IntoIterator<Item = &'c Candidate>,
        sight: &Sight<'_>,
    ) {
        let mut candidates = candidates.into_iter();
        let rank = self.rank;
        self.judge(candidates.next(), sight, 0);
        if self.rank > rank {
            for candidate in candidates {
                let mut covered = Vec::new();
                candidate.cover(sight, 0, &mut covered, &mut self.rivals);
                self.rivals.append(&mut covered);
            }
        }
    }
}

impl Candidate {
    /// Appends the operands that touch a watched word, or that may and explain one that no other does; and to
    /// `rivals` those that may have been it instead.
    pub(super) fn cover(
        &self,
        sight: &Sight<'_>,
        bias: u64,
        out: &mut Vec<Trapped>,
        rivals: &mut Vec<Trapped>,
    ) -> Rank {
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
        let mut possible: Vec<(&Touched, Option<u64>)> = Vec::new();
        for touched in &self.touched {
            let start = touched.operand.start(&known, &bases).ok();
            let start = start.or_else(|| self.start_by_run(touched, &known, &bases, sight));
            match self.fit(touched, start, sight.words) {
                Fit::Sure => {
                    rank = Rank::Exact;
                    self.place(touched, start, sight.words, true, sight, |span| {
                        out.push(self.trapped(touched, span, bias));
                    });
                }
                Fit::Possible => possible.push((touched, start)),
                Fit::No => {}
            }
        }
        let explained = |word: &WatchedWord| out.iter().any(|access| access.touches(word));
        let left: Vec<WatchedWord> = match possible.as_slice() {
            [] => Vec::new(),
            _ => (sight.words.iter().filter(|word| !explained(word)))
                .copied()
                .collect(),
        };
        let mut into = &mut *out;
        for (touched, start) in possible.iter().filter(|_| !left.is_empty()) {
            let before = into.len();
            self.place(touched, *start, &left, possible.len() == 1, sight, |span| {
                into.push(self.trapped(touched, span, bias));
            });
            if into.len() > before {
                rank = rank.max(Rank::Possible);
                into = &mut *rivals;
            }
        }
        let explained = |word| out.iter().any(|access| access.touches(word));
        match rank {
            // That a `ret` loaded it is sure, but not which.
            Rank::Exact if self.view == View::Returned => Rank::Possible,
            Rank::Exact if possible.is_empty() && sight.words.iter().all(explained) => {
                Rank::Complete
            }
            rank => rank,
        }
    }

    /// The address as the code before the instruction computed it, where it then touches what was hit, and only that:
    /// were the code entered otherwise than it seems, that would be a strange accident.
    fn start_by_run(
        &self,
        touched: &Touched,
        known: &Known,
        bases: &Bases,
        sight: &Sight<'_>,
    ) -> Option<u64> {
        if self.run.is_empty() || self.view != View::After {
            return None;
        }
        let known = rejoin(&self.run, known, bases.bias, |_, _, _| None);
        let start = touched.operand.start(&known, bases).ok()?;
        let touches = |word| overlap(start, u64::from(touched.operand.size), word);
        let only = sight.words.iter().any(touches) && !sight.alone.iter().any(touches);
        only.then_some(start)
    }

    fn trapped(&self, touched: &Touched, span: Span, bias: u64) -> Trapped {
        Trapped {
            ip: self.ip.wrapping_add(bias),
            addr: span.addr,
            size: span.size,
            within: span.within,
            op: touched.operand.op,
            locked: touched.operand.locked,
        }
    }

    /// How an operand relates to the watched words, given its address, if that is known.
    fn fit(&self, touched: &Touched, start: Option<u64>, words: &[WatchedWord]) -> Fit {
        let Some(start) = start else {
            return Fit::Possible;
        };
        let any = |start, bytes| words.iter().any(|word| overlap(start, bytes, word));
        let size = u64::from(touched.operand.size);
        match (self.view, touched.reach) {
            (View::Repetition, _) if any(start.wrapping_sub(size), size) => Fit::Sure,
            (View::Repetition, _) if any(start.wrapping_sub(MAX_BEHIND), MAX_BEHIND) => {
                Fit::Possible
            }
            (View::Repetition, _) => Fit::No,
            (_, Reach::Whole(bytes)) if any(start, u64::from(bytes)) => Fit::Sure,
            (_, Reach::Within(bytes)) if any(start, u64::from(bytes)) => Fit::Possible,
            (_, Reach::Whole(_) | Reach::Within(_)) => Fit::No,
        }
    }

    /// Tells the bytes that an operand touched of `words`, from `start` on if that is known: of all of them where
    /// `all`, else of one at least.
    fn place(
        &self,
        touched: &Touched,
        start: Option<u64>,
        words: &[WatchedWord],
        all: bool,
        sight: &Sight<'_>,
        tell: impl FnMut(Span),
    ) {
        let size = touched.operand.size;
        let bytes = match touched.reach {
            Reach::Whole(bytes) | Reach::Within(bytes) => u64::from(bytes),
        };
        let here = |start, bytes| {
            (words.iter()).filter(move |word: &&WatchedWord| overlap(start, bytes, word))
        };
        match (self.view, touched.reach, start) {
            (View::Repetition, _, Some(pointer)) => {
                let reached = here(pointer.wrapping_sub(MAX_BEHIND), MAX_BEHIND);
                reached
                    .filter_map(|word| placing::elements(pointer, size, word))
                    .for_each(tell);
            }
            (_, Reach::Whole(_), Some(start)) => here(start, bytes)
                .take(1)
                .map(|word| part(start, bytes, word))
                .for_each(tell),
            (_, Reach::Within(_), Some(start)) => here(start, bytes)
                .map(|word| placing::somewhere(word, start, bytes))
                .for_each(tell),
            (View::After | View::Called(_) | View::Returned, Reach::Whole(_), None)
                if bytes == u64::from(size) =>
            {
                let placed = placing::place(size, words, all, sight.alone, sight.packed);
                placed.into_iter().for_each(tell);
            }
            (_, _, None) => words
                .iter()
                .map(|word| placing::somewhere(word, word.addr, u64::from(word.len)))
                .for_each(tell),
        }
    }
}

/// What an operand has to do with the watched words.
enum Fit {
    /// It touches one.
    Sure,
    Possible,
    No,
}

/// Whether `bytes` from `addr` on touch the word, also across the end of the address space.
pub(super) fn overlap(addr: u64, bytes: u64, word: &WatchedWord) -> bool {
    word.addr.wrapping_sub(addr) < bytes || addr.wrapping_sub(word.addr) < u64::from(word.len)
}

/// The operand, or if it is larger than a block the part of it on the word's block.
fn part(start: u64, bytes: u64, word: &WatchedWord) -> Span {
    if bytes <= BLOCK {
        return Span::exact(start, bytes as u16);
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
    Span::exact(start.wrapping_add(first), end.wrapping_sub(first) as u16)
}
