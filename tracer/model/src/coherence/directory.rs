//! The home of one line: who has a copy, and what it takes to serve the next access.

use super::{
    Found, Intent, Outcome, Protocol, Request, State, Transaction, Transactions,
    processors::Processors,
};
use crate::access::Cpu;

/// What the copies are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Home {
    /// There are none.
    #[default]
    Idle,
    /// At least one, all to read.
    Shared,
    /// One, whose holder owns the line and has not written to it.
    Clean,
    /// One, whose holder owns the line and has written to it.
    Dirty,
}

/// The directory entry of one line, in 24 bytes: simulations keep millions. Holds a bit for each of the first 64 processors,
/// and a number elsewhere for each other one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Directory {
    holders: Processors,
    home: Home,
    protocol: Protocol,
}

impl Directory {
    /// The line is in no cache.
    pub fn new() -> Directory {
        Directory::default()
    }

    /// The line is in no cache, under a variant of the protocol.
    pub fn under(protocol: Protocol) -> Directory {
        Directory {
            protocol,
            ..Directory::default()
        }
    }

    /// The line as the processor has it.
    pub fn state(&self, cpu: Cpu) -> State {
        if !self.holders.contains(cpu) {
            return State::Invalid;
        }
        match self.home {
            Home::Idle => State::Invalid,
            Home::Shared => State::Shared,
            Home::Clean => State::Exclusive,
            Home::Dirty => State::Modified,
        }
    }

    /// The processors that have a copy, in order of their numbers.
    pub fn holders(&self) -> impl Iterator<Item = Cpu> + '_ {
        self.holders.iter()
    }

    /// Serves one access.
    pub fn access(&mut self, cpu: Cpu, intent: Intent) -> Outcome {
        let state = self.state(cpu);
        let found = self.found(state);
        let request = match (intent, state) {
            (Intent::Store, State::Modified | State::Exclusive) => {
                self.home = Home::Dirty;
                None
            }
            (Intent::Store, _) | (Intent::BiasedLoad, State::Invalid) => Some(Request::ReadPriv),
            (Intent::Load, State::Invalid) => Some(Request::ReadShar),
            (Intent::Load | Intent::BiasedLoad, _) => None,
        };
        let mut transactions = Transactions::default();
        match request {
            Some(Request::ReadShar) => self.share(cpu, &mut transactions),
            Some(Request::ReadPriv) => self.own(cpu, intent == Intent::Store, &mut transactions),
            None => {}
        }
        Outcome {
            request,
            transactions,
            found,
            state,
        }
    }

    /// The processor lets its copy go to make room. Gives the one message that tells the home, which serves no request:
    /// a dirty copy goes back with its content, a clean one only says so. `None` where there is no copy.
    pub fn evict(&mut self, cpu: Cpu) -> Option<Transaction> {
        let message = match self.state(cpu) {
            State::Invalid => return None,
            State::Modified => Transaction::WriteBack,
            State::Exclusive | State::Shared => Transaction::Drop,
        };
        self.holders.remove(cpu);
        if self.holders.is_empty() {
            self.home = Home::Idle;
        }
        Some(message)
    }

    fn found(&self, state: State) -> Found {
        let Some(first) = self.holders.iter().next() else {
            return Found::Idle;
        };
        match (self.home, state) {
            (Home::Idle, _) => Found::Idle,
            (Home::Shared, _) => Found::Shared {
                others: self.holders.len() - usize::from(state == State::Shared),
            },
            (Home::Clean | Home::Dirty, State::Modified | State::Exclusive) => Found::Own,
            (Home::Clean, _) => Found::Clean(first),
            (Home::Dirty, _) => Found::Dirty(first),
        }
    }

    fn share(&mut self, cpu: Cpu, sent: &mut Transactions) {
        sent.send(Transaction::ReadShar, 1);
        let dirty = self.home == Home::Dirty;
        if matches!(self.home, Home::Clean | Home::Dirty) {
            sent.send(Transaction::RecallPriv, 1);
            let response = if dirty {
                Transaction::RespData
            } else {
                Transaction::RespShar
            };
            sent.send(response, 1);
        }
        let alone = (dirty && self.protocol.migratory)
            || (self.home == Home::Idle && self.protocol.exclusive_on_first_read);
        if alone || (dirty && self.protocol.relinquish) {
            self.holders.clear();
        }
        self.holders.insert(cpu);
        if alone {
            // Clean: what a dirty owner had went to memory with its RESP_DATA.
            self.home = Home::Clean;
            sent.send(Transaction::DataPriv, 1);
        } else {
            self.home = Home::Shared;
            sent.send(Transaction::DataShar, 1);
        }
    }

    fn own(&mut self, cpu: Cpu, dirty: bool, sent: &mut Transactions) {
        sent.send(Transaction::ReadPriv, 1);
        let recalled = match self.home {
            Home::Idle => None,
            Home::Shared => {
                let others = self.holders.len() - usize::from(self.holders.contains(cpu));
                sent.send(Transaction::RecallShar, others as u64);
                sent.send(Transaction::Ack, others as u64);
                None
            }
            Home::Clean => Some(Transaction::RespInval),
            Home::Dirty => Some(Transaction::RespData),
        };
        if let Some(response) = recalled {
            sent.send(Transaction::RecallPriv, 1);
            sent.send(response, 1);
        }
        sent.send(Transaction::DataPriv, 1);
        self.holders.clear();
        self.holders.insert(cpu);
        self.home = if dirty { Home::Dirty } else { Home::Clean };
    }
}

#[cfg(test)]
mod tests {
    use super::{Intent::*, *};

    const P1: Cpu = Cpu(1);
    const P2: Cpu = Cpu(2);
    const P3: Cpu = Cpu(3);

    /// The line after these accesses.
    fn after(accesses: &[(Cpu, Intent)]) -> Directory {
        after_under(Protocol::default(), accesses)
    }

    fn messages(outcome: &Outcome) -> String {
        let names = outcome.transactions.iter().map(|(kind, count)| {
            if count == 1 {
                kind.to_string()
            } else {
                format!("{count} {kind}")
            }
        });
        names.collect::<Vec<_>>().join(" ")
    }

    fn check(before: &[(Cpu, Intent)], intent: Intent, sent: &str, found: Found, state: State) {
        let mut directory = after(before);
        let outcome = directory.access(P1, intent);
        assert_eq!(messages(&outcome), sent);
        assert_eq!(outcome.found, found);
        assert_eq!(directory.state(P1), state);
    }

    #[test]
    fn a_read_of_an_idle_line_takes_two_messages_and_gives_a_shared_copy() {
        check(&[], Load, "READ_SHAR DATA_SHAR", Found::Idle, State::Shared);
    }

    #[test]
    fn a_read_of_a_line_owned_elsewhere_takes_four_messages() {
        check(
            &[(P2, Store)],
            Load,
            "READ_SHAR RECALL_PRIV RESP_DATA DATA_SHAR",
            Found::Dirty(P2),
            State::Shared,
        );
        check(
            &[(P2, BiasedLoad)],
            Load,
            "READ_SHAR RECALL_PRIV RESP_SHAR DATA_SHAR",
            Found::Clean(P2),
            State::Shared,
        );
        let mut directory = after(&[(P2, Store)]);
        let outcome = directory.access(P1, Load);
        assert_eq!(outcome.hand_off_from(), Some(P2));
        assert_eq!(directory.state(P2), State::Shared);
    }

    #[test]
    fn a_read_of_a_shared_line_adds_a_sharer_and_hands_nothing_off() {
        check(
            &[(P2, Load), (P3, Load)],
            Load,
            "READ_SHAR DATA_SHAR",
            Found::Shared { others: 2 },
            State::Shared,
        );
        let outcome = after(&[(P2, Load)]).access(P1, Load);
        assert_eq!(outcome.hand_off_from(), None);
    }

    #[test]
    fn a_store_invalidates_every_other_copy_and_each_is_acknowledged() {
        check(
            &[(P2, Load), (P3, Load)],
            Store,
            "READ_PRIV 2 RECALL_SHAR 2 ACK DATA_PRIV",
            Found::Shared { others: 2 },
            State::Modified,
        );
        let mut directory = after(&[(P1, Load), (P2, Load)]);
        let upgrade = directory.access(P1, Store);
        assert_eq!(messages(&upgrade), "READ_PRIV RECALL_SHAR ACK DATA_PRIV");
        assert!(!upgrade.missed());
        assert_eq!(directory.state(P2), State::Invalid);
    }

    #[test]
    fn a_store_recalls_the_owner() {
        let dirty = "READ_PRIV RECALL_PRIV RESP_DATA DATA_PRIV";
        check(
            &[(P2, Store)],
            Store,
            dirty,
            Found::Dirty(P2),
            State::Modified,
        );
        let clean = "READ_PRIV RECALL_PRIV RESP_INVAL DATA_PRIV";
        let before = [(P2, BiasedLoad)];
        check(&before, Store, clean, Found::Clean(P2), State::Modified);
        check(
            &before,
            BiasedLoad,
            clean,
            Found::Clean(P2),
            State::Exclusive,
        );
    }

    #[test]
    fn an_owner_reads_and_writes_without_a_message() {
        for first in [BiasedLoad, Store] {
            for intent in [Load, BiasedLoad, Store] {
                let outcome = after(&[(P1, first)]).access(P1, intent);
                assert_eq!((outcome.request, outcome.found), (None, Found::Own));
                assert_eq!(outcome.transactions.total(), 0);
            }
        }
        let written = after(&[(P1, BiasedLoad), (P1, Store)]);
        assert_eq!(written.state(P1), State::Modified);
        let read = after(&[(P1, BiasedLoad), (P1, Load)]);
        assert_eq!(read.state(P1), State::Exclusive);
    }

    #[test]
    fn a_biased_load_that_hits_is_a_plain_load() {
        let others = Found::Shared { others: 1 };
        check(
            &[(P1, Load), (P2, Load)],
            BiasedLoad,
            "",
            others,
            State::Shared,
        );
    }

    /// Messages for P1's load and then store, and for its biased load and then store.
    fn plain_and_biased(before: &[(Cpu, Intent)]) -> [(u64, u64); 2] {
        [Load, BiasedLoad].map(|load| {
            let mut directory = after(before);
            let load = directory.access(P1, load).transactions.total();
            (load, directory.access(P1, Store).transactions.total())
        })
    }

    #[test]
    fn the_papers_six_and_two_fewer_hold_where_another_processor_shares_the_line() {
        assert_eq!(plain_and_biased(&[(P2, Load)]), [(2, 4), (4, 0)]);
        let two_sharers = [(P2, Load), (P3, Load)];
        assert_eq!(plain_and_biased(&two_sharers), [(2, 6), (6, 0)]);
    }

    #[test]
    fn bias_saves_two_messages_on_an_idle_line_and_four_on_one_owned_elsewhere() {
        assert_eq!(plain_and_biased(&[]), [(2, 2), (2, 0)]);
        for owned in [Store, BiasedLoad] {
            assert_eq!(plain_and_biased(&[(P2, owned)]), [(4, 4), (4, 0)]);
        }
    }

    /// The line under a variant of the protocol, after these accesses.
    fn after_under(protocol: Protocol, accesses: &[(Cpu, Intent)]) -> Directory {
        let mut directory = Directory::under(protocol);
        for (cpu, intent) in accesses {
            directory.access(*cpu, *intent);
        }
        directory
    }

    #[test]
    fn a_first_read_gives_the_only_copy_where_the_protocol_says_so() {
        let protocol = Protocol {
            exclusive_on_first_read: true,
            ..Protocol::default()
        };
        let mut directory = Directory::under(protocol);
        let read = directory.access(P1, Load);
        assert_eq!(messages(&read), "READ_SHAR DATA_PRIV");
        assert_eq!(directory.state(P1), State::Exclusive);
        assert_eq!(directory.access(P1, Store).request, None);
        let second = after_under(protocol, &[(P1, Load)]).access(P2, Load);
        let clean = "READ_SHAR RECALL_PRIV RESP_SHAR DATA_SHAR";
        assert_eq!(messages(&second), clean);
    }

    #[test]
    fn a_dirty_line_moves_with_its_ownership_where_the_protocol_is_migratory() {
        let protocol = Protocol {
            migratory: true,
            ..Protocol::default()
        };
        let mut directory = after_under(protocol, &[(P2, Store)]);
        let read = directory.access(P1, Load);
        assert_eq!(messages(&read), "READ_SHAR RECALL_PRIV RESP_DATA DATA_PRIV");
        assert_eq!(read.hand_off_from(), Some(P2));
        assert_eq!(directory.state(P1), State::Exclusive);
        assert_eq!(directory.state(P2), State::Invalid);
        // Nobody wrote since: the next reader shares, as if the line never migrated.
        let next = directory.access(P2, Load);
        assert_eq!(messages(&next), "READ_SHAR RECALL_PRIV RESP_SHAR DATA_SHAR");
        assert_eq!(directory.state(P1), State::Shared);
        // Without the variant the writer keeps a copy.
        let mut plain = after(&[(P2, Store)]);
        plain.access(P1, Load);
        assert_eq!(plain.state(P2), State::Shared);
    }

    #[test]
    fn a_recalled_dirty_owner_keeps_no_copy_where_the_protocol_has_it_relinquish_the_line() {
        let protocol = Protocol::SWIFT_2005;
        let mut directory = after_under(protocol, &[(P2, Store)]);
        let read = directory.access(P1, Load);
        assert_eq!(messages(&read), "READ_SHAR RECALL_PRIV RESP_DATA DATA_SHAR");
        assert_eq!(directory.state(P1), State::Shared);
        assert_eq!(directory.state(P2), State::Invalid);
        // The reader is the only sharer, so that its store takes the text's "at least 6" with the load, and bias 2 fewer.
        assert_eq!(
            messages(&directory.access(P1, Store)),
            "READ_PRIV DATA_PRIV"
        );
        // A clean owner goes on sharing.
        let mut clean = after_under(protocol, &[(P2, BiasedLoad)]);
        clean.access(P1, Load);
        assert_eq!(clean.state(P2), State::Shared);
        // Without the variant a dirty one does too, and the store has a copy to recall.
        let mut kept = after(&[(P2, Store), (P1, Load)]);
        assert_eq!(kept.state(P2), State::Shared);
        assert_eq!(kept.access(P1, Store).transactions.total(), 4);
        // Who migrates a dirty line gives its ownership away too, whether it would keep a copy or not.
        let both = Protocol {
            migratory: true,
            ..protocol
        };
        let migrated = after_under(both, &[(P2, Store), (P1, Load)]);
        assert_eq!(migrated.state(P1), State::Exclusive);
    }

    #[test]
    fn an_evicted_copy_is_written_back_when_it_is_dirty_and_only_told_when_it_is_clean() {
        let mut written = after(&[(P1, Store)]);
        assert_eq!(written.evict(P1), Some(Transaction::WriteBack));
        assert_eq!(written, Directory::new());
        let mut owned = after(&[(P1, BiasedLoad)]);
        assert_eq!(owned.evict(P1), Some(Transaction::Drop));
        assert_eq!(owned, Directory::new());
        let mut shared = after(&[(P1, Load), (P2, Load)]);
        assert_eq!(shared.evict(P1), Some(Transaction::Drop));
        assert_eq!(shared.holders().collect::<Vec<_>>(), [P2]);
        assert_eq!(shared.evict(P1), None);
        assert_eq!(shared.evict(P2), Some(Transaction::Drop));
        assert_eq!(shared, Directory::new());
        // Who has no copy cannot take the owner's away.
        let mut of_another = after(&[(P2, Store)]);
        assert_eq!(of_another.evict(P1), None);
        assert_eq!(of_another.state(P2), State::Modified);
    }
}
