//! Whether a load that is followed by a store should fetch its line for ownership.
//!
//! Of one line, as the report shows it. What compilers are told is decided over all lines, by messages, with limits of
//! its own: [`choose`](super::choose).

use crate::analysis::Pair;

/// The limits of [`hint`], each with its reason.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PairThresholds {
    /// Least part of the load's executions, 0..=1, that the store must follow. A fetch for ownership that no
    /// store follows takes the line from its readers for nothing.
    pub share_of_load: f64,
    /// Least executions of the load. One that the store follows nine times in ten shows 16 of 16 in less than
    /// one run of five.
    pub executions: u64,
    /// Most of the load's executions, 0..=1, in which another CPU that merely reads the line would lose its
    /// copy earlier than now, or for longer.
    pub readers: f64,
    /// Least executions of the load that miss: one that hits fetches nothing.
    pub misses: u64,
}

impl Default for PairThresholds {
    fn default() -> Self {
        PairThresholds {
            share_of_load: 0.9,
            executions: 16,
            readers: 0.1,
            misses: 1,
        }
    }
}

/// What to do about the load of a pair.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Hint {
    /// Fetch its line for ownership: one request instead of two.
    FetchForOwnership,
    /// Leave it.
    No(NoHint),
}

/// Why a load is left as it is; the first that applies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum NoHint {
    /// It is the store as well, and fetches for ownership by itself.
    SameInstruction,
    /// Too few executions to tell.
    TooFewExecutions,
    /// The store follows this part of the executions only, 0..=1.
    SeldomStored(f64),
    /// It never misses.
    AlwaysHits,
    /// In this part of the executions, 0..=1, others would lose a copy that they read.
    TakenFromReaders(f64),
}

/// Judges a pair, conservatively: when in doubt, keeping the regular load is best (SWIFT, section 2).
///
/// A load should fetch for ownership when, in at least [`share_of_load`](PairThresholds::share_of_load) of its
/// executions, its thread's next access to the line is this store; when it misses at all; and when in at most
/// [`readers`](PairThresholds::readers) of them another CPU merely reads the line, between the two or since
/// the last store before them.
pub fn hint(pair: &Pair, limits: &PairThresholds) -> Hint {
    if pair.same_instruction {
        return Hint::No(NoHint::SameInstruction);
    }
    let Some(share) = (pair.share_of_load).filter(|_| pair.executions >= limits.executions) else {
        return Hint::No(NoHint::TooFewExecutions);
    };
    if share < limits.share_of_load {
        return Hint::No(NoHint::SeldomStored(share));
    }
    if pair.load_requests < limits.misses {
        return Hint::No(NoHint::AlwaysHits);
    }
    let readers = pair.among_readers.saturating_add(pair.mere_reads);
    let readers = (readers as f64 / pair.executions as f64).min(1.0);
    if readers > limits.readers {
        return Hint::No(NoHint::TakenFromReaders(readers));
    }
    Hint::FetchForOwnership
}
