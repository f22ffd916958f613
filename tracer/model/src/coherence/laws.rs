//! What must hold for every order of accesses. The caches here are kept apart from the directory, with the
//! number of the newest store in each copy, and change by the messages alone.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::{Directory, Found, Intent, Outcome, Protocol, Request, State, Transaction};
use crate::access::Cpu;

/// Content of the caches and of memory: the number of the newest store in it.
#[derive(Default)]
struct Caches {
    /// Who answers RESP_DATA keeps nothing.
    relinquish: bool,
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
            // The only copy goes elsewhere.
            if sent(Transaction::DataPriv) || self.relinquish && sent(Transaction::RespData) {
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

    /// Follows an eviction: content comes back to memory only with the message that carries it.
    fn evict(&mut self, cpu: Cpu, message: Option<Transaction>) {
        let content = self.copies.remove(&cpu);
        if message == Some(Transaction::WriteBack) {
            self.memory = content.expect("only who has a copy writes one back");
        }
    }
}

/// Every variant.
pub fn protocols() -> impl Strategy<Value = Protocol> {
    any::<(bool, bool, bool)>().prop_map(|(exclusive_on_first_read, migratory, relinquish)| {
        Protocol {
            exclusive_on_first_read,
            migratory,
            relinquish,
        }
    })
}

fn accesses() -> impl Strategy<Value = Vec<(Cpu, Intent)>> {
    let intents = prop::sample::select(vec![Intent::Load, Intent::BiasedLoad, Intent::Store]);
    let cpus = prop_oneof![0..4u32, 60..70u32].prop_map(Cpu);
    prop::collection::vec((cpus, intents), 0..80)
}

/// Accesses, and now and then (`None`) an eviction.
fn accesses_and_evictions() -> impl Strategy<Value = Vec<(Cpu, Option<Intent>)>> {
    let done = prop::sample::select(vec![
        Some(Intent::Load),
        Some(Intent::BiasedLoad),
        Some(Intent::Store),
        None,
    ]);
    let cpus = prop_oneof![0..4u32, 62..66u32].prop_map(Cpu);
    prop::collection::vec((cpus, done), 0..80)
}

proptest! {
    #[test]
    fn every_access_sees_the_newest_store(
        protocol in protocols(),
        accesses in accesses_and_evictions(),
    ) {
        let mut directory = Directory::under(protocol);
        let mut caches = Caches {
            relinquish: protocol.relinquish,
            ..Caches::default()
        };
        for (cpu, intent) in accesses {
            let Some(intent) = intent else {
                caches.evict(cpu, directory.evict(cpu));
                prop_assert_eq!(directory.state(cpu), State::Invalid);
                continue;
            };
            let outcome = directory.access(cpu, intent);
            let before = caches.newest;
            prop_assert_eq!(caches.follow(cpu, intent, &outcome), before);
            let holders: Vec<Cpu> = caches.copies.keys().copied().collect();
            prop_assert_eq!(directory.holders().collect::<Vec<_>>(), holders);
        }
    }

    #[test]
    fn an_owner_is_alone_and_a_hit_asks_for_nothing(protocol in protocols(), accesses in accesses()) {
        let mut directory = Directory::under(protocol);
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
            let owned = directory
                .holders()
                .any(|holder| directory.state(holder) != State::Shared);
            prop_assert!(!owned || directory.holders().count() == 1);
        }
    }

    #[test]
    fn the_messages_of_each_request_balance(protocol in protocols(), accesses in accesses()) {
        use Transaction::{
            Ack, DataPriv, DataShar, ReadPriv, ReadShar, RecallPriv, RecallShar, RespData, RespInval, RespShar,
        };
        let mut directory = Directory::under(protocol);
        for (cpu, intent) in accesses {
            let outcome = directory.access(cpu, intent);
            let count = |kind| outcome.transactions.of(kind);
            let requests = u64::from(outcome.request.is_some());
            prop_assert_eq!(count(DataShar) + count(DataPriv), requests);
            // Who asks to own does, and who asks to read is given more only where the protocol says so.
            prop_assert!(count(ReadPriv) <= count(DataPriv));
            let more = count(DataPriv) - count(ReadPriv);
            let idle = protocol.exclusive_on_first_read && outcome.found == Found::Idle;
            let dirty = protocol.migratory && matches!(outcome.found, Found::Dirty(_));
            prop_assert_eq!(more == 1, count(ReadShar) == 1 && (idle || dirty));
            prop_assert_eq!(count(Transaction::WriteBack) + count(Transaction::Drop), 0);
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
