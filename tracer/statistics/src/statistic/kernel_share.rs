//! How much of the samples is the kernel's.

use super::{Amount, Needs, Statistic, Sums, Unit};
use crate::event_of::Event;

/// Samples in kernel mode, of all of which an access is known.
#[derive(Debug)]
pub(super) struct KernelShare;

impl Statistic for KernelShare {
    fn name(&self) -> &'static str {
        "samples.kernel_share"
    }

    fn unit(&self) -> Unit {
        Unit::Percent
    }

    fn about(&self) -> &'static str {
        "Share of the samples with an access that were taken in the kernel."
    }

    fn needs(&self) -> Needs {
        Needs::Samples
    }

    fn sums(&self) -> Sums {
        Sums::Share
    }

    fn counts(&self, event: &Event<'_>) -> Option<Amount> {
        match event {
            Event::Access(seen) if seen.first_of_sample => Some(Amount {
                amount: u64::from(seen.access.kernel),
                whole: 1,
                samples: 1,
            }),
            _ => None,
        }
    }
}
