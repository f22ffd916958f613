//! Accesses by what they do: as samples hit them, and all executions in an emulator.

use super::{Amount, Needs, Statistic, Unit};
use crate::{
    access::{Access, Basis, Op},
    event_of::Event,
};

/// Accesses of one kind.
#[derive(Debug)]
pub(super) struct Accesses {
    name: &'static str,
    about: &'static str,
    /// Executions, all of them; else samples.
    executed: bool,
    is_one: fn(&Access) -> bool,
}

fn loads(access: &Access) -> bool {
    access.op == Op::Load
}

fn stores(access: &Access) -> bool {
    access.op == Op::Store
}

fn reads_and_writes(access: &Access) -> bool {
    access.op == Op::Rmw
}

fn locked(access: &Access) -> bool {
    access.locked
}

impl Accesses {
    pub(super) const SAMPLED_LOADS: Accesses = Accesses {
        name: "samples.loads",
        about: "Accesses that only read, as samples hit them; no executions.",
        executed: false,
        is_one: loads,
    };
    pub(super) const SAMPLED_STORES: Accesses = Accesses {
        name: "samples.stores",
        about: "Accesses that only write, as samples hit them; no executions.",
        executed: false,
        is_one: stores,
    };
    pub(super) const SAMPLED_READ_WRITES: Accesses = Accesses {
        name: "samples.read_writes",
        about: "Accesses that read and write in one instruction, as samples hit them; no executions.",
        executed: false,
        is_one: reads_and_writes,
    };
    pub(super) const SAMPLED_LOCKED: Accesses = Accesses {
        name: "samples.locked",
        about: "Locked accesses, as samples hit them, whatever they do besides; no executions.",
        executed: false,
        is_one: locked,
    };
    pub(super) const EXECUTED_LOADS: Accesses = Accesses {
        name: "executions.loads",
        about: "Executed accesses that only read, prefetches left out.",
        executed: true,
        is_one: loads,
    };
    pub(super) const EXECUTED_STORES: Accesses = Accesses {
        name: "executions.stores",
        about: "Executed accesses that only write.",
        executed: true,
        is_one: stores,
    };
    pub(super) const EXECUTED_READ_WRITES: Accesses = Accesses {
        name: "executions.read_writes",
        about: "Executed accesses that read and write in one instruction.",
        executed: true,
        is_one: reads_and_writes,
    };
    pub(super) const EXECUTED_LOCKED: Accesses = Accesses {
        name: "executions.locked",
        about: "Executed locked accesses; they are among those that read and write too.",
        executed: true,
        is_one: locked,
    };
}

impl Statistic for Accesses {
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
        if self.executed {
            Needs::Emulator
        } else {
            Needs::Samples
        }
    }

    fn counts(&self, event: &Event<'_>) -> Option<Amount> {
        let Event::Access(seen) = event else {
            return None;
        };
        let access = seen.access;
        let (counts, amount) = if self.executed {
            let executions = Amount::count(access.executions());
            (access.basis == Basis::Emulated, executions)
        } else {
            let sample = Amount {
                samples: 1,
                ..Amount::count(1)
            };
            (seen.is_sampled(), sample)
        };
        (counts && (self.is_one)(access)).then_some(amount)
    }
}
