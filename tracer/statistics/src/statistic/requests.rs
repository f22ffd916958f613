//! What processors ask the directory for, by who asks.

use super::{Amount, Needs, Statistic, Unit};
use crate::{
    coherence::{Found, Outcome, Request, Transaction},
    event_of::Event,
};

/// One kind of request, or what requests do to others.
#[derive(Debug)]
pub(super) struct Requests {
    name: &'static str,
    things: &'static str,
    about: &'static str,
    of: fn(&Outcome) -> u64,
}

impl Requests {
    pub(super) const READ: Requests = Requests {
        name: "requests.read",
        things: "requests",
        about: "Requests for a copy to read (READ_SHAR), by the processor that asks.",
        of: |outcome| u64::from(outcome.request == Some(Request::ReadShar)),
    };
    pub(super) const READ_OWNING: Requests = Requests {
        name: "requests.read_owning",
        things: "requests",
        about: "Requests for the only copy (READ_PRIV) by a processor that has none.",
        of: |outcome| u64::from(outcome.request == Some(Request::ReadPriv) && outcome.missed()),
    };
    pub(super) const UPGRADES: Requests = Requests {
        name: "requests.upgrades",
        things: "requests",
        about: "Requests for ownership (READ_PRIV) by a processor that has a copy to read.",
        of: |outcome| u64::from(outcome.request == Some(Request::ReadPriv) && !outcome.missed()),
    };
    pub(super) const INTERVENTIONS: Requests = Requests {
        name: "requests.interventions",
        things: "requests",
        about: "Requests for which another processor had to give up its ownership (RECALL_PRIV).",
        of: |outcome| outcome.transactions.of(Transaction::RecallPriv),
    };
    pub(super) const INVALIDATIONS: Requests = Requests {
        name: "requests.invalidations",
        things: "copies",
        about: "Copies that other processors lost to requests for ownership, by the processor that asks.",
        of: |outcome| {
            let owners = match outcome.request {
                Some(Request::ReadPriv) => outcome.transactions.of(Transaction::RecallPriv),
                Some(Request::ReadShar) | None => 0,
            };
            outcome.transactions.of(Transaction::RecallShar) + owners
        },
    };
    pub(super) const HAND_OFFS: Requests = Requests {
        name: "requests.hand_offs",
        things: "requests",
        about: "Requests that took the line, or ownership of it, from another processor.",
        of: |outcome| {
            u64::from(match (outcome.request, outcome.found) {
                (Some(_), Found::Clean(_) | Found::Dirty(_)) => true,
                (Some(Request::ReadPriv), Found::Shared { others }) => others > 0,
                _ => false,
            })
        },
    };
}

impl Statistic for Requests {
    fn name(&self) -> &'static str {
        self.name
    }

    fn unit(&self) -> Unit {
        Unit::Count(self.things)
    }

    fn about(&self) -> &'static str {
        self.about
    }

    fn needs(&self) -> Needs {
        Needs::Emulator
    }

    fn counts(&self, event: &Event<'_>) -> Option<Amount> {
        let Event::Access(seen) = event else {
            return None;
        };
        let of = seen.outcomes.iter().map(self.of);
        Some(Amount::count(of.fold(0, u64::saturating_add))).filter(|found| found.amount > 0)
    }

    fn asks_the_directory(&self) -> bool {
        true
    }
}
