//! Threads and processes that come and go.

use super::{Amount, Needs, Statistic, Unit};
use crate::event_of::Event;

/// Starts and ends.
#[derive(Debug)]
pub(super) struct Threads {
    name: &'static str,
    things: &'static str,
    about: &'static str,
    is_one: fn(&Event<'_>) -> bool,
}

impl Threads {
    pub(super) const STARTED: Threads = Threads {
        name: "threads.started",
        things: "threads",
        about: "Threads that started while the run was observed, first ones of processes too.",
        is_one: |event| matches!(event, Event::Started { .. }),
    };
    pub(super) const ENDED: Threads = Threads {
        name: "threads.ended",
        things: "threads",
        about: "Threads that ended while the run was observed.",
        is_one: |event| matches!(event, Event::Ended),
    };
    pub(super) const PROCESSES: Threads = Threads {
        name: "processes.started",
        things: "processes",
        about: "Processes that others started while the run was observed.",
        is_one: |event| matches!(event, Event::Started { process: true }),
    };
}

impl Statistic for Threads {
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
        Needs::Any
    }

    fn is_on_cpus(&self) -> bool {
        false
    }

    fn counts(&self, event: &Event<'_>) -> Option<Amount> {
        (self.is_one)(event).then(|| Amount::count(1))
    }
}
