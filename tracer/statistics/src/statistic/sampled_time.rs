//! Time by samples.

use super::{Amount, Needs, Statistic, Unit};
use crate::{access::Basis, event_of::Event};

/// Time in which memory was waited for.
#[derive(Debug)]
pub(super) struct SampledTime;

impl Statistic for SampledTime {
    fn name(&self) -> &'static str {
        "time.sampled"
    }

    fn unit(&self) -> Unit {
        Unit::Nanoseconds
    }

    fn about(&self) -> &'static str {
        "Run time of the samples in which an access was found: at least so long did the thread, CPU or process run."
    }

    fn needs(&self) -> Needs {
        Needs::Timer
    }

    fn counts(&self, event: &Event<'_>) -> Option<Amount> {
        match event {
            Event::Access(seen) if seen.access.basis == Basis::Stalled => Some(Amount {
                amount: seen.access.cost.0.into(),
                whole: 0,
                samples: u64::from(seen.first_of_sample),
            }),
            _ => None,
        }
    }
}
