//! Executions in an emulator, by what they do.

use super::{Amount, Needs, Statistic, Unit};
use crate::{
    access::{Access, Basis, Op},
    event_of::Event,
};

/// Executions of one kind of access, all of them.
#[derive(Debug)]
pub(super) struct Executions {
    name: &'static str,
    about: &'static str,
    is_one: fn(&Access) -> bool,
}

impl Executions {
    pub(super) const LOADS: Executions = Executions {
        name: "executions.loads",
        about: "Executed accesses that only read, prefetches left out.",
        is_one: |access| access.op == Op::Load,
    };
    pub(super) const STORES: Executions = Executions {
        name: "executions.stores",
        about: "Executed accesses that only write.",
        is_one: |access| access.op == Op::Store,
    };
    pub(super) const READ_WRITES: Executions = Executions {
        name: "executions.read_writes",
        about: "Executed accesses that read and write in one instruction.",
        is_one: |access| access.op == Op::Rmw,
    };
    pub(super) const LOCKED: Executions = Executions {
        name: "executions.locked",
        about: "Executed locked accesses; they are among those that read and write too.",
        is_one: |access| access.locked,
    };
}

impl Statistic for Executions {
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
        Needs::Emulator
    }

    fn counts(&self, event: &Event<'_>) -> Option<Amount> {
        let Event::Access(seen) = event else {
            return None;
        };
        let access = seen.access;
        (access.basis == Basis::Emulated && (self.is_one)(access))
            .then(|| Amount::count(access.executions()))
    }
}
