//! Threads at work.

use super::{Amount, Needs, Statistic, Sums, Unit};
use crate::event_of::Event;

/// Different threads of which an access was seen.
#[derive(Debug)]
pub(super) struct ThreadsSeen;

impl Statistic for ThreadsSeen {
    fn name(&self) -> &'static str {
        "threads.seen"
    }

    fn unit(&self) -> Unit {
        Unit::Count("threads")
    }

    fn about(&self) -> &'static str {
        "Different threads of which an access was seen; one that is in two slices is once in the whole."
    }

    fn needs(&self) -> Needs {
        Needs::Any
    }

    fn sums(&self) -> Sums {
        Sums::Different
    }

    fn counts(&self, event: &Event<'_>) -> Option<Amount> {
        matches!(event, Event::Access(_)).then(|| Amount::count(1))
    }
}
