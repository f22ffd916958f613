//! Where the CPU stood while it waited.

use super::{Amount, Needs, Statistic, Unit};
use crate::{
    access::{Basis, Wait},
    event_of::Event,
};

/// Time of one kind of wait.
#[derive(Debug)]
pub(super) struct Waits(Wait);

impl Waits {
    pub(super) const AT_INSTRUCTION: Waits = Waits(Wait::AtInstruction);
    pub(super) const AT_BARRIER: Waits = Waits(Wait::AtBarrier);
    pub(super) const SPINNING: Waits = Waits(Wait::InSpinLoop);
}

impl Statistic for Waits {
    fn name(&self) -> &'static str {
        match self.0 {
            Wait::AtInstruction => "time.stalled",
            Wait::AtBarrier => "time.at_barrier",
            Wait::InSpinLoop => "time.spinning",
        }
    }

    fn unit(&self) -> Unit {
        Unit::Nanoseconds
    }

    fn about(&self) -> &'static str {
        match self.0 {
            Wait::AtInstruction => {
                "Time in which the CPU stood right behind an access to memory, which it waited for."
            }
            Wait::AtBarrier => {
                "Time at a full barrier, until a store before it was visible to all."
            }
            Wait::InSpinLoop => {
                "Time in loops that read a word again and again until another thread stores to it."
            }
        }
    }

    fn needs(&self) -> Needs {
        Needs::Timer
    }

    fn counts(&self, event: &Event<'_>) -> Option<Amount> {
        let Event::Access(seen) = event else {
            return None;
        };
        let access = seen.access;
        (access.basis == Basis::Stalled && access.wait == self.0).then(|| Amount {
            amount: access.cost.0.into(),
            whole: 0,
            samples: 1,
        })
    }
}
