//! What data breakpoints hit.

use super::{Amount, Needs, Statistic, Unit};
use crate::{access::Basis, event_of::Event};

/// Accesses that watch windows trapped.
#[derive(Debug)]
pub(super) struct Trapped {
    stores_only: bool,
}

impl Trapped {
    pub(super) const ALL: Trapped = Trapped { stores_only: false };
    pub(super) const STORES: Trapped = Trapped { stores_only: true };
}

impl Statistic for Trapped {
    fn name(&self) -> &'static str {
        if self.stores_only {
            "watch.stores"
        } else {
            "watch.hits"
        }
    }

    fn unit(&self) -> Unit {
        Unit::Count("accesses")
    }

    fn about(&self) -> &'static str {
        if self.stores_only {
            "Accesses that write, to words that were watched while they were: exact in windows, nothing between them."
        } else {
            "Accesses to words that were watched while they were: exact in windows, nothing between them."
        }
    }

    fn needs(&self) -> Needs {
        Needs::Windows
    }

    fn counts(&self, event: &Event<'_>) -> Option<Amount> {
        let Event::Access(seen) = event else {
            return None;
        };
        let access = seen.access;
        let counted = access.basis == Basis::Trapped && (!self.stores_only || access.op.stores());
        counted.then(|| Amount::count(1))
    }
}
