//! False, true or mixed sharing: the one rule, whoever saw the hand-offs.

use crate::analysis::Kinds;

/// Least part of the sharing that each kind must hold for a mixed verdict, 0..=1. Of the shapes with two
/// kinds, a lock word of two threads beside six others' fields has the smallest part, 14 %; of
/// those that should stay one kind, counters that a third thread reads for 2 % of its time have
/// the largest, 5 to 8 % in simulation.
pub(super) const MIXED_SHARE: f64 = 0.1;

/// How the bytes of a shared line are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// No byte that one thread stores is used by another, or hardly ever: the line moves for nothing.
    FalseSharing,
    /// The threads use the same bytes; separating others from them would not help.
    TrueSharing,
    /// Both on one line, each in a share worth saying.
    MixedSharing,
}

impl Verdict {
    /// The verdict on a line whose hand-offs are of these kinds. False while less than a tenth of them would remain
    /// on lines of their own, else true while less than that take along what nobody changed, else mixed.
    pub fn of(kinds: Kinds) -> Verdict {
        if kinds.truly < MIXED_SHARE {
            Verdict::FalseSharing
        } else if kinds.falsely < MIXED_SHARE {
            Verdict::TrueSharing
        } else {
            Verdict::MixedSharing
        }
    }

    /// Stable name, as in reports.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::FalseSharing => "false-sharing",
            Verdict::TrueSharing => "true-sharing",
            Verdict::MixedSharing => "mixed-sharing",
        }
    }
}

/// What hand-offs were for, as somebody saw them; nothing where none was seen.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Claim {
    /// If accesses whose bytes are not known touched as little as they can.
    pub(super) kinds: Option<Kinds>,
    /// If they touched as much as they can.
    pub(super) widest: Option<Kinds>,
}

impl Claim {
    /// The bytes of all accesses are known.
    pub(super) fn of(kinds: Option<Kinds>) -> Claim {
        Claim {
            kinds,
            widest: kinds,
        }
    }

    /// The verdict that holds however much the accesses touched; what holds only if they touched little, or only if they
    /// touched much, is none.
    pub(super) fn verdict(&self) -> Option<Verdict> {
        let verdict = self.kinds.map(Verdict::of);
        verdict.filter(|_| self.widest.map(Verdict::of) == verdict)
    }
}
