//! What must hold for every order of accesses. The caches here are kept apart from the directory, with the
//! number of the newest store in each copy, and change by the messages alone.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::{Directory, Found, Intent, Outcome, Request, State, Transaction};
use crate::access::Cpu;

/// Content of the caches and of memory: the number of the newest store in it.
#[derive(Default)]
struct Caches {
    memory: u64,
    copies: BTreeMap<Cpu, u64>,
    newest: u64,
}

impl Caches {
    /// Follows the messages of one access; returns the content that the processor saw.
    fn follow(&mut self, cpu: Cpu, intent: Intent, outcome: &Outcome) -> u64 {
        let sent = |kind| outcome.transactions.of(kind) > 0;
        if let Some(owner) = outcome.hand_off_from() {
            let content = self.copies[&owner];
            if sent(Transaction::RespData) {
                self.memory = content;
            }
            if outcome.request == Some(Request::ReadPriv) {
                self.copies.remove(&owner);
            }
        }
        if sent(Transaction::RecallShar) {
            self.copies.retain(|holder, _| *holder == cpu);
        }
        if sent(Transaction::DataShar) || sent(Transaction::DataPriv) {
            self.copies.insert(cpu, self.memory);
        }
        let seen = self.copies[&cpu];
        if intent == Intent::Store {
            self.newest += 1;
            self.copies.insert(cpu, self.newest);
        }
        seen
    }
}

fn accesses() -> impl Strategy<Value = Vec<(Cpu, Intent)>> {
    let intents = prop::sample::select(vec![Intent::Load, Intent::BiasedLoad, Intent::Store]);
    let cpus = prop_oneof![0..4u32, 60..70u32].prop_map(Cpu);
    prop::collection::vec((cpus, intents), 0..80)
}

proptest! {
    #[test]
    fn every_access_sees_the_newest_store(accesses in accesses()) {
        let mut directory = Directory::new();
        let mut caches = Caches::default();
        for (cpu, intent) in accesses {
            let outcome = directory.access(cpu, intent);
            let before = caches.newest;
            prop_assert_eq!(caches.follow(cpu, intent, &outcome), before);
            let holders: Vec<Cpu> = caches.copies.keys().copied().collect();
            prop_assert_eq!(directory.holders(), holders);
        }
    }

    #[test]
    fn an_owner_is_alone_and_a_hit_asks_for_nothing(accesses in accesses()) {
        let mut directory = Directory::new();
        for (cpu, intent) in accesses {
            let before = directory.state(cpu);
            let outcome = directory.access(cpu, intent);
            prop_assert_eq!(outcome.state, before);
            let suffices = match intent {
                Intent::Store => matches!(before, State::Modified | State::Exclusive),
                Intent::Load | Intent::BiasedLoad => before != State::Invalid,
            };
            prop_assert_eq!(outcome.request.is_none(), suffices);
            prop_assert_eq!(outcome.transactions.total() == 0, suffices);
            prop_assert!(!suffices || outcome.hand_off_from().is_none());
            let after = directory.state(cpu);
            prop_assert!(after != State::Invalid);
            prop_assert!(intent != Intent::Store || after == State::Modified);
            let owned = (directory.holders().iter())
                .any(|holder| directory.state(*holder) != State::Shared);
            prop_assert!(!owned || directory.holders().len() == 1);
        }
    }

    #[test]
    fn the_messages_of_each_request_balance(accesses in accesses()) {
        use Transaction::{
            Ack, DataPriv, DataShar, ReadPriv, ReadShar, RecallPriv, RecallShar, RespData, RespInval, RespShar,
        };
        let mut directory = Directory::new();
        for (cpu, intent) in accesses {
            let outcome = directory.access(cpu, intent);
            let count = |kind| outcome.transactions.of(kind);
            prop_assert_eq!(count(ReadShar), count(DataShar));
            prop_assert_eq!(count(ReadPriv), count(DataPriv));
            let requests = u64::from(outcome.request.is_some());
            prop_assert_eq!(count(ReadShar) + count(ReadPriv), requests);
            prop_assert_eq!(count(RecallShar), count(Ack));
            prop_assert_eq!(count(RecallPriv), count(RespShar) + count(RespData) + count(RespInval));
            let owners = u64::from(outcome.hand_off_from().is_some());
            prop_assert_eq!(count(RecallPriv), owners);
            let others = match outcome.found {
                Found::Shared { others } if outcome.request == Some(Request::ReadPriv) => others,
                _ => 0,
            };
            prop_assert_eq!(count(RecallShar), others as u64);
            let all = 2 * (requests + owners + others as u64);
            prop_assert_eq!(outcome.transactions.total(), all);
        }
    }
}
