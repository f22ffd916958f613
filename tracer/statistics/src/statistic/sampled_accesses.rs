//! Sampled accesses by what they do.

use super::{Amount, Needs, Statistic, Unit};
use crate::{
    access::{Access, Op},
    event_of::Event,
};

/// Samples of one kind of access.
#[derive(Debug)]
pub(super) struct SampledAccesses {
    name: &'static str,
    about: &'static str,
    is_one: fn(&Access) -> bool,
}

impl SampledAccesses {
    pub(super) const LOADS: SampledAccesses = SampledAccesses {
        name: "samples.loads",
        about: "Accesses that only read, as samples hit them; no executions.",
        is_one: |access| access.op == Op::Load,
    };
    pub(super) const STORES: SampledAccesses = SampledAccesses {
        name: "samples.stores",
        about: "Accesses that only write, as samples hit them; no executions.",
        is_one: |access| access.op == Op::Store,
    };
    pub(super) const READ_WRITES: SampledAccesses = SampledAccesses {
        name: "samples.read_writes",
        about: "Accesses that read and write in one instruction, as samples hit them; no executions.",
        is_one: |access| access.op == Op::Rmw,
    };
    pub(super) const LOCKED: SampledAccesses = SampledAccesses {
        name: "samples.locked",
        about: "Locked accesses, as samples hit them, whatever they do besides; no executions.",
        is_one: |access| access.locked,
    };
}

impl Statistic for SampledAccesses {
    fn name(&self) -> &'static str {
        self.name
    }

    fn unit(&self) -> Unit {
        Unit::Count("accesses")
    }

    fn about(&self) -> &'static str {
        self.about
    }

    fn needs(&self) -> Needs {
        Needs::Samples
    }

    fn counts(&self, event: &Event<'_>) -> Option<Amount> {
        let Event::Access(seen) = event else {
            return None;
        };
        (seen.is_sampled() && (self.is_one)(seen.access)).then_some(Amount {
            amount: 1,
            whole: 0,
            samples: 1,
        })
    }
}
