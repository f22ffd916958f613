//! How often a line was asked for, and what that took.

use super::served::{OrderFacts, Served, Statistic};
use crate::coherence::{Found, Request};

/// Requests for a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Requests {
    /// Requests for a copy.
    pub read_shar: u64,
    /// Requests for ownership.
    pub read_priv: u64,
    /// Of both, requests before the first store of their window: which caches had the line is not known.
    pub cold: u64,
    /// Copies that the home called back from an owner.
    pub recall_priv: u64,
    /// Copies that it called back from sharers.
    pub recall_shar: u64,
    /// Messages that served them.
    pub transactions: u64,
}

impl Requests {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.read_shar + self.read_priv
    }
}

impl Statistic for Requests {
    fn see(&mut self, served: &Served, _: &OrderFacts) {
        match served.request {
            Some(Request::ReadShar) => self.read_shar += 1,
            Some(Request::ReadPriv) => self.read_priv += 1,
            None => return,
        }
        match served.found {
            Found::Clean(_) | Found::Dirty(_) => self.recall_priv += 1,
            Found::Shared { others } if served.takes() => self.recall_shar += others as u64,
            Found::Shared { .. } | Found::Own | Found::Idle => {}
        }
        self.cold += u64::from(!served.known);
        self.transactions += u64::from(served.messages);
    }
}
