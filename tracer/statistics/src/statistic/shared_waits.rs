//! Waits by whether the line is shared.

use super::{Amount, Needs, Statistic, Unit};
use crate::event_of::Event;

/// Time waited for lines of several threads, or of one.
#[derive(Debug)]
pub(super) struct SharedWaits {
    shared: bool,
}

impl SharedWaits {
    pub(super) const SHARED: SharedWaits = SharedWaits { shared: true };
    pub(super) const PRIVATE: SharedWaits = SharedWaits { shared: false };
}

impl Statistic for SharedWaits {
    fn name(&self) -> &'static str {
        if self.shared {
            "time.waiting_shared"
        } else {
            "time.waiting_private"
        }
    }

    fn unit(&self) -> Unit {
        Unit::Nanoseconds
    }

    fn about(&self) -> &'static str {
        if self.shared {
            "Time waited for lines that samples of two threads or more touched in this run."
        } else {
            "Time waited for lines that samples of only one thread touched in this run."
        }
    }

    fn needs(&self) -> Needs {
        Needs::Timer
    }

    fn counts(&self, event: &Event<'_>) -> Option<Amount> {
        match *event {
            Event::Wait {
                time_ns,
                samples,
                shared,
            } if shared == self.shared => Some(Amount {
                amount: time_ns,
                whole: 0,
                samples,
            }),
            _ => None,
        }
    }

    fn asks_who_shares(&self) -> bool {
        true
    }
}
