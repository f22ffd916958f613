//! Where an access lies whose own address is not known: what the breakpoints say of it.
//!
//! ```text
//!   mov 4(%rax),%eax          4 bytes, address overwritten
//!   watched  [01234567]  hit          somewhere in 0-7
//!   watched  [0123][4567]             the second was hit and the first was not: 4-7
//! ```
//!
//! Compilers align operands of up to 8 bytes to their size, so where an aligned place explains the hits, those that
//! are not aligned are left out, unless there is `packed` data around. An operand that is not aligned all the same shows where it reaches from one
//! watched word into another: then no aligned place explains them.

use super::cover::overlap;
use crate::event::WatchedWord;

/// Operands up to this size, bytes, are taken to be aligned.
const ALIGNED: u16 = 8;

/// Bytes that an access touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    /// Virtual address of the first.
    pub(super) addr: u64,
    /// Length of the access in bytes.
    pub(super) size: u16,
    /// Where not 0: they lie somewhere in so many bytes from `addr` on.
    pub(super) within: u8,
}

impl Span {
    /// All bytes from `addr` on.
    pub(super) fn exact(addr: u64, size: u16) -> Span {
        Span {
            addr,
            size,
            within: 0,
        }
    }

    /// Bytes that it may touch.
    pub(super) fn reach(&self) -> u64 {
        u64::from(self.size.max(u16::from(self.within)))
    }

    /// Whether there is a byte that both may touch.
    pub(super) fn meets(&self, other: &Span) -> bool {
        other.addr.wrapping_sub(self.addr) < self.reach()
            || self.addr.wrapping_sub(other.addr) < other.reach()
    }

    /// The same access, if it may as well be the other one.
    pub(super) fn or(self, other: Span) -> Span {
        if self == other {
            return self;
        }
        // Both are near one word: the distance tells which one begins first, also where addresses wrap.
        let ahead = other.addr.wrapping_sub(self.addr).cast_signed();
        let addr = if ahead < 0 { other.addr } else { self.addr };
        let end = |span: &Span| span.addr.wrapping_sub(addr).wrapping_add(span.reach());
        Span {
            addr,
            size: self.size,
            within: u8::try_from(end(&self).max(end(&other))).unwrap_or(u8::MAX),
        }
    }
}

/// An operand of `size` bytes that touched words and left others alone; `None` where it can have done that nowhere.
/// `touched` are those that it touched, all of them where `all`, else one at least; with `packed`, data need not be aligned.
pub(super) fn place(
    size: u16,
    touched: &[WatchedWord],
    all: bool,
    alone: &[WatchedWord],
    packed: bool,
) -> Option<Span> {
    let first = touched.iter().min_by_key(|word| word.addr)?;
    let last = touched.iter().max_by_key(|word| word.addr)?;
    let bytes = u64::from(size);
    let from = first.addr.wrapping_sub(bytes - 1);
    let to = if all { first } else { last };
    let places = to.addr.wrapping_sub(from) + u64::from(to.len);
    let explains = |addr: &u64| {
        let here = |word: &WatchedWord| overlap(*addr, bytes, word);
        let hits = if all {
            touched.iter().all(here)
        } else {
            touched.iter().any(here)
        };
        hits && !alone.iter().any(here)
    };
    let explaining = || (0..places).map(|n| from.wrapping_add(n)).filter(explains);
    let may_align = !packed && size <= ALIGNED && size.is_power_of_two();
    let is_aligned = |addr: &u64| may_align && addr.is_multiple_of(bytes);
    hull(explaining().filter(is_aligned), size).or_else(|| hull(explaining(), size))
}

/// A byte at least of what the word has in common with `bytes` bytes from `start` on.
pub(super) fn somewhere(word: &WatchedWord, start: u64, bytes: u64) -> Span {
    let len = u64::from(word.len);
    let into = start.wrapping_sub(word.addr);
    let (addr, common) = if into < len {
        (start, bytes.min(len - into))
    } else {
        let ahead = word.addr.wrapping_sub(start);
        (word.addr, len.min(bytes.wrapping_sub(ahead)))
    };
    Span {
        addr,
        size: 1,
        within: if common > 1 { common as u8 } else { 0 },
    }
}

/// Of the elements before `pointer` that a repeated string instruction went through, those that touch the word, which
/// begins before `pointer`.
pub(super) fn elements(pointer: u64, size: u16, word: &WatchedWord) -> Option<Span> {
    let bytes = u64::from(size);
    let behind = pointer.wrapping_sub(word.addr);
    // An element that ends at or before the word's end, and those that touch it further up.
    let most = u64::from(word.len) / bytes + 2;
    let skipped = behind.saturating_sub(u64::from(word.len) + bytes) / bytes;
    let starts = (skipped..=skipped + most).rev();
    let starts = starts.map(|n| pointer.wrapping_sub((n + 1) * bytes));
    hull(starts.filter(|addr| overlap(*addr, bytes, word)), size)
}

/// From the first of ascending places to the end of the last.
fn hull(mut places: impl Iterator<Item = u64>, size: u16) -> Option<Span> {
    let first = places.next()?;
    let Some(last) = places.last() else {
        return Some(Span::exact(first, size));
    };
    let within = last.wrapping_sub(first) + u64::from(size);
    Some(Span {
        addr: first,
        size,
        within: u8::try_from(within).unwrap_or(u8::MAX),
    })
}
