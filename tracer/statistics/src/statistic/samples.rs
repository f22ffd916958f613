//! Samples.

use super::{Amount, Needs, Statistic, Unit};
use crate::event_of::Event;

/// Samples of which an access is known.
#[derive(Debug)]
pub(super) struct Samples;

impl Statistic for Samples {
    fn name(&self) -> &'static str {
        "samples"
    }

    fn unit(&self) -> Unit {
        Unit::Count("samples")
    }

    fn about(&self) -> &'static str {
        "Samples in which the access was found that the CPU waited for; a recording has no others one by one."
    }

    fn needs(&self) -> Needs {
        Needs::Samples
    }

    fn counts(&self, event: &Event<'_>) -> Option<Amount> {
        match event {
            Event::Access(seen) if seen.first_of_sample => Some(Amount::count(1)),
            _ => None,
        }
    }
}
