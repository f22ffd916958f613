//! Loads that mostly find their line here: a prefetch in front of each execution mostly does nothing.
//!
//! Measured (`cargo xtask bench prefetchw`: Zen 5, lines in the first cache, 8-byte elements; TSC cycles an element): a sum that is
//! as fast as the CPU loads takes 0.39 without and 0.66 with a prefetch for each element; one that waits for its additions or its
//! own jumps takes the same with it. To look whether an element begins a line costs more (0.54). So eight prefetches cost a line up
//! to 2.2 cycles. What they buy is nothing or little where the store buffer hides the store's request, and 28 cycles or more where
//! the CPU waits for it (`docs/hints.md`).

use super::file::{Expected, LoadHint, StoreKind};

/// Executions for each request from which on a prefetch is repeated: elements of eight bytes that are walked over have
/// eight for each line of 64 bytes, and a little less where the walks do not begin and end with lines; those of sixteen have
/// four.
const REPEATED: u64 = 6;
/// Executions for each request up to which the prefetches cost less than a waiting CPU gains: 28 cycles by 0.27.
const PAID: u64 = 100;

/// What a load's executions and requests say of a prefetch in front of each of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repeated {
    /// Executions of the load.
    pub executions: u64,
    /// Of those, executions that missed.
    pub requests: u64,
    /// A CPU gains more by a request that is saved than the prefetches cost.
    pub pays: bool,
}

impl Repeated {
    /// Of a hint; `None` where most prefetches have something to do.
    pub fn of(hint: &LoadHint) -> Option<Repeated> {
        let Expected {
            executions,
            requests,
            ..
        } = hint.expected;
        if requests == 0 || executions / requests < REPEATED {
            return None;
        }
        let most = hint.stores.iter().max_by_key(|store| store.count);
        let awaited = most.is_some_and(|store| {
            matches!(
                store.kind,
                StoreKind::Atomic | StoreKind::CompareAndSwap | StoreKind::Fenced
            )
        });
        Some(Repeated {
            executions,
            requests,
            pays: awaited && executions / requests < PAID,
        })
    }

    /// Why there is no prefetch in a loop, as a sentence without its full stop.
    pub fn phrase(&self) -> String {
        format!(
            "it is in a loop, and {} of its {} executions find their line here: a prefetch for each costs more than it gains",
            self.executions.saturating_sub(self.requests),
            self.executions
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hint::file::{FollowingStore, HintedCode};

    fn hint(executions: u64, requests: u64, kind: StoreKind) -> LoadHint {
        LoadHint {
            expected: Expected {
                executions,
                requests,
                ..Expected::default()
            },
            stores: vec![FollowingStore {
                code: HintedCode::default(),
                count: 1,
                kind,
            }],
            ..LoadHint::new("H1".to_owned(), HintedCode::default())
        }
    }

    #[test]
    fn a_walk_over_words_repeats_its_prefetch_and_one_over_lines_does_not() {
        let pays = |executions, requests, kind| {
            Repeated::of(&hint(executions, requests, kind)).map(|repeated| repeated.pays)
        };
        assert_eq!(pays(1000, 1000, StoreKind::Plain), None);
        assert_eq!(pays(4000, 1000, StoreKind::Plain), None);
        assert_eq!(pays(8000, 1000, StoreKind::Plain), Some(false));
        assert_eq!(pays(7100, 1000, StoreKind::Plain), Some(false));
        assert_eq!(pays(8000, 1000, StoreKind::CompareAndSwap), Some(true));
        assert_eq!(pays(500_000, 1000, StoreKind::CompareAndSwap), Some(false));
        assert_eq!(pays(0, 0, StoreKind::Plain), None);
    }
}
